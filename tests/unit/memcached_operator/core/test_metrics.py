from __future__ import annotations

import msgspec
import pytest
from prometheus_client import Metric

from memcached_operator.api.status import OWNED_CONDITIONS
from memcached_operator.core.metrics import OTHER_FIELDS, RepairCounts, condition_family, memcached_families
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.owned_kinds import AUXILIARY
from operator_runtime.cache.store import ObjectKey
from tests.unit.memcached_operator.support import NAME, NAMESPACE
from tests.unit.memcached_operator.world import World


def values(family: Metric) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


OWNED = ("Service", "PodDisruptionBudget", "NetworkPolicy", "ConfigMap")


def test_a_field_that_is_put_right_is_counted_from_its_first_repair_on_and_no_other_is_shown() -> None:
    repairs = RepairCounts(AUXILIARY)
    (before,) = repairs.families()
    assert values(before) == {}
    for path in ("spec.replicas", "spec.replicas", "spec.template.spec.containers[memcached].image"):
        repairs.count("Deployment", path)
    repairs.count("Service", "spec.ports")
    (after,) = repairs.families()
    assert values(after) == {
        ("Deployment", "spec.replicas"): 2,
        ("Deployment", "spec.template.spec.containers.image"): 1,
        ("Service", "spec.ports"): 1,
    }


@pytest.mark.parametrize("kind", [*OWNED, "Deployment", "StatefulSet"])
def test_whatever_others_name_themselves_makes_no_series_of_its_own(kind: str) -> None:
    repairs = RepairCounts(AUXILIARY)
    for number in range(100):
        for path in ("metadata.labels[app-{}]", "metadata.annotations[some.body/else-{}]", "status.field-{}"):
            repairs.count(kind, path.format(number))
    (counted,) = repairs.families()
    assert values(counted) == {(kind, path): 100 for path in ("metadata.labels", "metadata.annotations", OTHER_FIELDS)}


async def test_a_memcacheds_servers_are_shown_as_long_as_it_is_there() -> None:
    world = World()
    world.memcached(size=3)
    world.show()
    await world.settle()
    world.pods(ready=2, unready=1)
    world.show()
    desired, ready = memcached_families(world.caches)
    assert [list(sample.labels) for each in (desired, ready) for sample in each.samples] == [["namespace", "name"]] * 2
    assert values(desired) == {(NAMESPACE, NAME): 3}
    assert values(ready) == {(NAMESPACE, NAME): 2}
    world.memcached(size="many")
    world.show()
    desired, ready = memcached_families(world.caches)
    assert (values(desired), values(ready)) == ({}, {(NAMESPACE, NAME): 2}), "it cannot be read"
    world.caches.memcacheds.remove(ObjectKey(NAMESPACE, NAME))
    assert [values(each) for each in memcached_families(world.caches)] == [{}, {}]


def record(name: str, status: bytes) -> MemcachedRecord:
    return MemcachedRecord(NAMESPACE, name, f"uid-of-{name}", "1", 1, False, spec=b"{}", status=status)


def counted(*statuses: object) -> dict[tuple[str, ...], float]:
    """How many there are of each combination, where Memcacheds have these lists of conditions."""
    bodies = (msgspec.json.encode({"nodes": ["a"], "conditions": each}) for each in statuses)
    return values(condition_family([record(f"cache-{number}", body) for number, body in enumerate(bodies)]))


def condition(type_: str, status: str, reason: str) -> dict[str, object]:
    return {"type": type_, "status": status, "reason": reason, "message": "m", "observedGeneration": 1}


def write_failed(number: int, *but: str) -> dict[tuple[str, ...], float]:
    """What is counted of conditions that so many Memcacheds have not."""
    return {(each, "Unknown", "none"): number for each in OWNED_CONDITIONS if each not in but}


def test_memcacheds_are_counted_by_each_own_condition_its_status_and_its_reason() -> None:
    good = [condition("Degraded", "False", "AsExpected"), condition("Ready", "True", "AllServersReady")]
    bad = [condition(type_, "False", "Forbidden") for type_ in ("Ready", "Degraded", "Backup")]
    assert counted(good, bad, good) == {
        ("Degraded", "False", "AsExpected"): 2,
        ("Degraded", "False", "Forbidden"): 1,
        ("Ready", "True", "AllServersReady"): 2,
        ("Ready", "False", "Forbidden"): 1,
        **write_failed(3, "Degraded", "Ready"),
    }


@pytest.mark.parametrize(
    "status", [b"", b"{}", b'{"conditions":null}', b'{"conditions":[]}', b'{"conditions":"stored otherwise"}', b"[" * 9]
)
def test_a_memcached_without_conditions_that_can_be_read_counts_as_unknown_for_no_reason(status: bytes) -> None:
    assert values(condition_family([record("cache", status)])) == write_failed(1)


@pytest.mark.parametrize(
    ("foreign", "labels"),
    [
        (condition("Ready", "True", "BecauseISaySo"), ("Ready", "True", "other")),
        (condition("Ready", "Perhaps", "AllServersReady"), ("Ready", "Unknown", "AllServersReady")),
        ({"type": "Ready"}, ("Ready", "Unknown", "other")),
    ],
)
def test_what_others_wrote_into_an_own_condition_makes_no_series(foreign: object, labels: tuple[str, ...]) -> None:
    assert counted([foreign]) == {labels: 1, **write_failed(1, "Ready")}


@pytest.mark.parametrize("labels", [("Retaining", "False", "Growing"), ("HandingOver", "True", "Preparing")])
def test_a_condition_that_depends_on_the_specification_is_counted_where_it_is(labels: tuple[str, str, str]) -> None:
    assert counted([condition(*labels)], []) == {labels: 1, **write_failed(2)}
