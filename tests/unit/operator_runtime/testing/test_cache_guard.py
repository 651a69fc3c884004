"""What an operator changes in its caches fails its test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pydantic
import pytest

from operator_runtime import Kind, ObjectKey, Operator, Result, RuntimeSettings, Store, plain, typed
from operator_runtime.client.resources import CONFIG_MAPS as RESOURCE
from operator_runtime.testing.cluster import SimulatedCluster
from operator_runtime.testing.running import CacheChangedError, CacheGuard
from operator_runtime.testing.waiting import async_until

CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
BODY = {
    "metadata": {"namespace": "ns", "name": "a", "uid": "u1", "resourceVersion": "1", "labels": {"x": "y"}},
    "data": {"apples": "3"},
    "spec": {"size": 1, "names": ["a", "b"]},
}


class Model(pydantic.BaseModel):
    size: int = 0
    names: list[str] = []


class Struct(msgspec.Struct):
    size: int = 0


@dataclass
class Own:
    namespace: str = "ns"
    name: str = "a"
    uid: str = "u1"
    resource_version: str = "1"
    parts: list[int] = field(default_factory=lambda: [1])


class Incomparable(Own):
    __eq__ = object.__eq__
    __hash__ = object.__hash__


OWN = Kind(RESOURCE, lambda raw: Own())
INCOMPARABLE = Kind(RESOURCE, lambda raw: Incomparable())


def typed_as(spec: type[Any]) -> Kind[Any]:
    return typed("v1", "ConfigMap", "configmaps", spec=spec)


def changes_reported(kind: Kind[Any], change: Any) -> list[str]:
    """The change reported of an object of this kind after the change, while it is held and after it was replaced."""
    changes = []
    for replaced in (False, True):
        guard, store = CacheGuard(), Store[Any]()
        guard.watch("ConfigMap", store)
        record = kind.decode(msgspec.json.encode(BODY))
        store.put(record)
        change(record)
        if replaced:
            store.remove(ObjectKey("ns", "a"))
        try:
            guard.check()
        except CacheChangedError as error:
            changes.append(str(error).partition(". What a store gives is shared ")[0])
    return changes


@pytest.mark.parametrize(
    ("kind", "change", "place"),
    [
        (CONFIG_MAPS, lambda record: record.body["data"].update(apples="4"), ".body['data']['apples']"),
        (CONFIG_MAPS, lambda record: record.body.pop("data"), ".body['data']"),
        (CONFIG_MAPS, lambda record: record.labels.update(new=""), ".metadata.labels['new']"),
        (CONFIG_MAPS, lambda record: record.body["spec"]["names"].append("c"), ".body['spec']['names']"),
        (CONFIG_MAPS, lambda record: record.body["spec"]["names"].reverse(), ".body['spec']['names'][0]"),
        (typed_as(dict[str, Any]), lambda record: record.spec.update(size=2), ".spec['size']"),
        (typed_as(Model), lambda record: setattr(record.spec, "size", 2), ".spec.size"),
        (typed_as(Struct), lambda record: setattr(record.spec, "size", 2), ".spec.size"),
        (OWN, lambda record: record.parts.append(2), ".parts"),
    ],
)
def test_a_change_is_told_with_its_place(kind: Kind[Any], change: Any, place: str) -> None:
    assert changes_reported(kind, change) == [f"ConfigMap ns/a was changed in the cache, at {place}"] * 2


@pytest.mark.parametrize("kind", [CONFIG_MAPS, typed_as(Model), OWN, INCOMPARABLE])
def test_what_is_only_read_or_cannot_be_compared_is_no_change(kind: Kind[Any]) -> None:
    assert changes_reported(kind, repr) == []


async def test_the_test_of_an_operator_that_changes_its_cache_fails(simulator: SimulatedCluster) -> None:
    reconciled: list[ObjectKey] = []

    def set_up(operator: Operator, settings: RuntimeSettings) -> None:
        config_maps = operator.informer(CONFIG_MAPS)

        async def reconcile(key: ObjectKey) -> Result:
            found = config_maps.get(key)
            if found is not None and key.name == "fruit":
                found.body["data"]["apples"] = "4"
            reconciled.append(key)
            return Result()

        operator.controller("fruit", CONFIG_MAPS, reconcile)

    fruit = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fruit"}, "data": {"apples": "3"}}
    await simulator.apply(fruit)
    with pytest.raises(CacheChangedError) as caught:
        async with simulator.operator(set_up):
            await async_until("it was not reconciled", lambda: ObjectKey("default", "fruit") in reconciled)
    assert str(caught.value) == (
        "ConfigMap default/fruit was changed in the cache, at .body['data']['apples']. What a store gives is shared by "
        "all who read it: change a copy, such as copy.deepcopy(obj.body), or build a new object"
    )
