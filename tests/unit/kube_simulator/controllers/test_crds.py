"""The life of a CustomResourceDefinition."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kube_simulator.controllers.crds import COLLECTION, FINALIZER, CustomResources
from kube_simulator.errors import ApiError
from kube_simulator.resources import Resource
from kube_simulator.store.watches import Stream, Watches
from kube_simulator.values import Json
from tests.unit.kube_simulator.controllers.world import World, condition, turns

GROUP = "example.com"
GADGETS = f"gadgets.{GROUP}"
SCHEMA: Json = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
}


class Life:
    """A world with CRDs and watches, and without other controllers."""

    def __init__(self) -> None:
        self.world = World()
        clock = asyncio.get_running_loop().time
        self.watches = Watches(self.world.store, clock)
        world = self.world
        self.crds = CustomResources(world.api, world.store, world.registry, self.watches, lambda: world.moment)

    def get(self, name: str = GADGETS) -> Json:
        return self.world.get(COLLECTION, name)

    async def create(self, plural: str = "gadgets", kind: str = "Gadget", **spec: Any) -> Json:
        """Create a CRD, and wait until something has been decided."""
        name = f"{plural}.{GROUP}"
        await self.world.create(COLLECTION, crd(plural, kind, **spec))
        await turns(lambda: bool(self.get(name)["status"].get("conditions")))
        return self.get(name)

    async def change(self, body: Json, name: str = GADGETS) -> None:
        await self.world.merge(COLLECTION, name, body)

    async def gadget(self, name: str, **metadata: Any) -> Json:
        return await self.world.create(GADGETS, {"metadata": {"name": name, **metadata}, "spec": {"size": 1}})

    def served(self, version: str = "v1", plural: str = "gadgets") -> Resource | None:
        return self.world.registry.get(GROUP, version, plural)

    def watch(self, **query: str) -> Stream:
        resource = self.served()
        assert resource is not None
        return self.watches.open(resource, "", query)


def crd(plural: str, kind: str, *, versions: list[Json] | None = None, **names: Any) -> Json:
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": versions or [version()],
        },
    }


def version(name: str = "v1", *, storage: bool = True, served: bool = True, **fields: Any) -> Json:
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": SCHEMA}, **fields}


def conditions(found: Json) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in found["status"]["conditions"]}


async def told(stream: Stream) -> list[tuple[str, str]]:
    """All that a watch tells until its end."""
    async with asyncio.timeout(60):
        return [(kind, found["metadata"].get("name", "")) async for kind, found in stream]


@pytest.fixture
async def life() -> AsyncIterator[Life]:
    made = Life()
    await made.world.create("namespaces", {"metadata": {"name": "shop"}}, namespace="")
    made.crds.start()
    yield made
    await made.crds.stop()


async def test_a_crd_is_established_and_its_resource_served(life: Life) -> None:
    made = await life.create(shortNames=["gad"])
    assert conditions(made) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert condition(made, "Established")["message"] == "the initial names have been accepted"
    assert condition(made, "Established")["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    names = {
        "plural": "gadgets",
        "singular": "gadget",
        "kind": "Gadget",
        "listKind": "GadgetList",
        "shortNames": ["gad"],
    }
    assert made["status"]["acceptedNames"] == names
    assert made["status"]["storedVersions"] == ["v1"]
    assert made["metadata"]["generation"] == 1
    served = life.served()
    assert served is not None
    assert (served.kind, served.short_names) == ("Gadget", ("gad",))


async def test_nothing_is_written_once_all_is_said(life: Life) -> None:
    version_ = (await life.create())["metadata"]["resourceVersion"]
    await life.create("widgets", "Widget")
    assert life.get()["metadata"]["resourceVersion"] == version_


async def test_a_crd_whose_name_is_taken_is_not_served(life: Life) -> None:
    await life.create()
    second = await life.create("doodads", "Gadget", listKind="DoodadList")
    assert conditions(second) == {
        "NamesAccepted": ("False", "KindConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert condition(second, "NamesAccepted")["message"] == '"Gadget" is already in use'
    assert condition(second, "Established")["message"] == "not all names are accepted"
    assert life.served(plural="doodads") is None


async def test_names_that_are_given_up_are_given_to_a_crd_that_waits_for_them(life: Life) -> None:
    await life.create()
    await life.create("doodads", "Gadget", listKind="DoodadList")
    await life.world.delete(COLLECTION, GADGETS)
    await turns(lambda: conditions(life.get(f"doodads.{GROUP}"))["Established"] == ("True", "InitialNamesAccepted"))
    assert life.served(plural="doodads") is not None
    assert life.served() is None


async def test_what_is_established_stays_so_and_keeps_its_names(life: Life) -> None:
    await life.create(shortNames=["gad"])
    await life.create("widgets", "Widget", shortNames=["wid"])
    life.world.moment = life.world.moment.replace(hour=1)
    await life.change({"spec": {"names": {"shortNames": ["wid"]}}})
    await turns(lambda: conditions(life.get())["NamesAccepted"] == ("False", "ShortNamesConflict"))
    found = life.get()
    assert conditions(found)["Established"] == ("True", "InitialNamesAccepted")
    times = {each["type"]: each["lastTransitionTime"] for each in found["status"]["conditions"]}
    assert times == {"NamesAccepted": "2026-01-01T01:00:00Z", "Established": "2026-01-01T00:00:00Z"}
    served = life.served()
    assert served is not None
    assert served.short_names == ("gad",)


async def test_a_changed_schema_is_served_ends_watches_and_forgets_their_versions(life: Life) -> None:
    await life.create()
    gadget = await life.gadget("a")
    version_ = gadget["metadata"]["resourceVersion"]
    stream = life.watch(resourceVersion=version_)
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    await life.change({"spec": {"versions": [version(schema={"openAPIV3Schema": schema})]}})
    assert await told(stream) == []
    resumed = [(kind, found["code"]) async for kind, found in life.watch(resourceVersion=version_)]
    assert resumed == [("ERROR", 410)]
    assert (await life.world.create(GADGETS, {"metadata": {"name": "b"}, "spec": {"more": 1}}))["spec"] == {"more": 1}
    assert life.world.get(GADGETS, "a")["metadata"]["resourceVersion"] == version_


async def test_a_change_of_metadata_leaves_watches_alone(life: Life) -> None:
    await life.create()
    stream = life.watch()
    await life.change({"metadata": {"annotations": {"a": "b"}}})
    await life.create("widgets", "Widget")  # by then the other one has been looked at
    assert not stream.ended
    stream.end()


async def test_a_version_that_is_no_longer_served_is_gone(life: Life) -> None:
    await life.create(versions=[version(), version("v2", storage=False)])
    assert life.served("v2") is not None
    stream = life.watch()
    await life.change({"spec": {"versions": [version(), version("v2", storage=False, served=False)]}})
    assert await told(stream) == []
    assert (life.served("v1") is None, life.served("v2") is None) == (False, True)


async def test_each_version_that_was_for_storage_is_remembered(life: Life) -> None:
    await life.create(versions=[version(), version("v2", storage=False)])
    await life.change({"spec": {"versions": [version(storage=False), version("v2")]}})
    await turns(lambda: life.get()["status"]["storedVersions"] == ["v1", "v2"])


async def test_a_deleted_crd_deletes_its_objects_then_goes_and_ends_watches(life: Life) -> None:
    await life.create()
    await life.gadget("a")
    await life.gadget("b")
    stream = life.watch(resourceVersion=str(life.world.store.revision))
    await life.world.delete(COLLECTION, GADGETS)
    assert await told(stream) == [("DELETED", "a"), ("DELETED", "b")]
    assert life.served() is None
    assert life.world.gone(COLLECTION, GADGETS)


async def test_a_crd_waits_for_the_finalizers_of_its_objects_and_lets_no_new_one_in(life: Life) -> None:
    await life.create()
    await life.gadget("held", finalizers=["example.com/keep"])
    await life.gadget("free")
    await life.world.delete(COLLECTION, GADGETS)
    await turns(lambda: life.world.names(GADGETS) == ["held"])
    waiting = life.get()
    assert conditions(waiting)["Terminating"] == ("True", "InstanceDeletionInProgress")
    assert list(conditions(waiting)) == ["NamesAccepted", "Established", "Terminating"]
    assert waiting["metadata"]["finalizers"] == [FINALIZER]
    assert life.served() is not None
    with pytest.raises(ApiError, match="create not allowed while custom resource definition is terminating"):
        await life.gadget("late")

    await life.world.merge(GADGETS, "held", {"metadata": {"finalizers": None}})
    await turns(lambda: life.world.gone(COLLECTION, GADGETS))
    assert life.served() is None


async def test_objects_of_a_crd_that_serves_no_version_are_deleted_as_well(life: Life) -> None:
    await life.create()
    await life.gadget("a")
    await life.change({"spec": {"versions": [version(served=False)]}})
    await turns(lambda: life.served() is None)
    await life.world.delete(COLLECTION, GADGETS)
    await turns(lambda: life.world.gone(COLLECTION, GADGETS))
    assert life.world.store.list(GADGETS) == []


async def test_a_crd_with_finalizers_of_others_outlives_its_objects(life: Life) -> None:
    await life.create()
    await life.gadget("a")
    await life.change({"metadata": {"finalizers": ["example.com/keep"]}})
    await life.world.delete(COLLECTION, GADGETS)
    await turns(lambda: life.get()["metadata"]["finalizers"] == ["example.com/keep"])
    assert life.world.store.list(GADGETS) == []


async def test_a_crd_that_comes_back_begins_anew(life: Life) -> None:
    await life.create()
    version_ = (await life.gadget("a"))["metadata"]["resourceVersion"]
    await life.world.delete(COLLECTION, GADGETS)
    await turns(lambda: life.world.gone(COLLECTION, GADGETS))
    await life.create()
    resumed = [(kind, found["code"]) async for kind, found in life.watch(resourceVersion=version_)]
    assert resumed == [("ERROR", 410)]
    assert life.world.store.list(GADGETS) == []


async def test_what_happened_to_crds_before_the_start_is_made_up_for(life: Life) -> None:
    await life.create("widgets", "Widget")
    await life.crds.stop()
    await life.world.create(COLLECTION, crd("gadgets", "Gadget"))
    life.world.store.delete(COLLECTION, "", f"widgets.{GROUP}")
    assert (life.served() is None, life.served(plural="widgets") is None) == (True, False)
    life.crds.start()
    await turns(lambda: life.served() is not None)
    assert life.served(plural="widgets") is None
