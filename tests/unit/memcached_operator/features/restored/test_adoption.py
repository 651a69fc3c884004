"""A Memcached that comes back from a backup with its objects, under new uids and without ownerReferences."""

from __future__ import annotations

import json

import pytest

from memcached_operator.core.objects.labels import OWNER_UID_ANNOTATION, RESTORED_ANNOTATION
from memcached_operator.core.observed.memcacheds import memcached_record
from operator_runtime.client.errors import Conflict, Forbidden, KubeError, ServerError, TooManyRequests
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.support import NAME, NAMESPACE, UID
from tests.unit.memcached_operator.world import DELAY_S, World

FORMER = "the-uid-before-the-backup"
OBJECTS = [
    *((kind, NAME) for kind in ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy")),
    ("ConfigMap", f"{NAME}-servers"),
]
FULL: Json = {
    **{"service": {"type": "Headless"}, "disruptionBudget": {"maxUnavailable": 1}},
    **{"networkPolicy": {"ingress": []}, "discovery": {"configMap": {}}},
}


@pytest.fixture
async def restored(world: World) -> World:
    """All of one Memcached as a backup brings it back: nothing has an owner, and all was made for a former uid."""
    world.memcached(size=2, **FULL)
    await world.settle()
    for kind, name in OBJECTS:
        live = world.api.objects[kind, NAMESPACE, name]
        del live["metadata"]["ownerReferences"]
        live["metadata"]["annotations"][OWNER_UID_ANNOTATION] = FORMER
        world.api.put(live)
    world.api.objects["Memcached", NAMESPACE, NAME]["status"] = {}
    world.show()
    return world


def annotate(world: World, uid: str) -> None:
    """As a person does once after the restore."""
    memcached = world.api.objects["Memcached", NAMESPACE, NAME]
    memcached["metadata"]["annotations"] = {RESTORED_ANNOTATION: uid}
    world.api.put(memcached)
    world.show()


async def settle(world: World) -> None:
    """As often as it takes where there is no status yet."""
    for _ in range(4):
        world.show()
        await world.reconcile(after_s=DELAY_S)
    await world.settle()


def owners(world: World) -> set[str]:
    """Who controls the objects."""
    found = [world.api.objects[kind, NAMESPACE, name]["metadata"] for kind, name in OBJECTS]
    return {owner["uid"] for each in found for owner in each.get("ownerReferences") or [{"uid": ""}]}


def test_a_record_has_the_former_uid_and_no_other_annotation() -> None:
    metadata: Json = {"name": NAME, "namespace": NAMESPACE, "uid": UID, "resourceVersion": "1"}
    assert memcached_record(json.dumps({"metadata": metadata}).encode()).restored_from == ""
    metadata["annotations"] = {"of": "another", RESTORED_ANNOTATION: FORMER}
    assert memcached_record(json.dumps({"metadata": metadata}).encode()).restored_from == FORMER


async def test_without_the_annotation_nothing_is_touched_and_the_message_names_it(restored: World) -> None:
    await settle(restored)
    assert owners(restored) == {""}
    assert restored.condition("Degraded") == ("True", "NotControlled")
    assert restored.message("Degraded").count(f"set the annotation {RESTORED_ANNOTATION}={FORMER} on it") == 1


async def test_one_annotation_hands_over_all_that_was_made_for_the_former_uid(restored: World) -> None:
    annotate(restored, FORMER)
    await restored.reconcile(after_s=DELAY_S)
    assert [event.note for event in restored.recorder.events if event.reason == "Adopted"] == [
        f"Restored from the Memcached with uid {FORMER}; it now owns: "
        "Deployment, Service, PodDisruptionBudget, NetworkPolicy, ConfigMap"
    ]
    await restored.settle()
    assert owners(restored) == {UID}
    assert restored.condition("Degraded") == ("False", "AsExpected")
    await restored.reconcile_shown()
    assert restored.api.verbs() == []


async def test_what_was_made_for_another_uid_is_refused(restored: World) -> None:
    annotate(restored, "a-uid-of-nobody")
    await settle(restored)
    assert owners(restored) == {""}
    assert restored.condition("Degraded") == ("True", "NotControlled")


async def test_what_another_controller_owns_is_refused(restored: World) -> None:
    service = restored.api.objects["Service", NAMESPACE, NAME]
    service["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "of-another", "controller": True}
    ]
    restored.api.put(service)
    annotate(restored, FORMER)
    await restored.settle()
    assert owners(restored) == {UID, "of-another"}
    assert restored.condition("Degraded") == ("True", "NotControlled")


@pytest.mark.parametrize(
    "error", [Conflict(409, "Conflict", "it changed"), Forbidden(403), ServerError(500), TooManyRequests(429)]
)
async def test_what_cannot_be_handed_over_for_now_is_when_it_can(restored: World, error: KubeError) -> None:
    annotate(restored, FORMER)
    restored.api.refuse("merge_patch", "Service", error)
    await restored.reconcile(after_s=DELAY_S)
    assert [event for event in restored.recorder.events if event.reason == "Adopted"] != []
    await settle(restored)
    assert owners(restored) == {UID}


async def test_why_something_was_not_handed_over_is_told_in_the_api_servers_words(restored: World) -> None:
    annotate(restored, FORMER)
    for _ in range(4):
        restored.api.refuse("merge_patch", "Service", Forbidden(403, "Forbidden", "no right"))
        restored.show()
        await restored.reconcile(after_s=DELAY_S)
        restored.api.refusals_of.clear()
    assert restored.condition("Degraded") == ("True", "NotControlled")
    assert "The Service cannot be adopted: no right" in restored.message("Degraded")
    assert f"set the annotation {RESTORED_ANNOTATION}" not in restored.message("Degraded")
