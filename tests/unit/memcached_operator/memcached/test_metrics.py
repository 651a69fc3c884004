from __future__ import annotations

from prometheus_client import Metric

from memcached_operator.memcached.metrics import OTHER_FIELDS, RepairCounts, memcached_families
from operator_runtime.cache.store import ObjectKey
from tests.unit.memcached_operator.memcached.support import NAME, NAMESPACE
from tests.unit.memcached_operator.memcached.world import World


def values(family: Metric) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


OWNED = ("Service", "PodDisruptionBudget", "NetworkPolicy", "ConfigMap")


def test_every_field_of_ours_is_there_from_the_first_scrape_and_no_other_ever_comes() -> None:
    repairs = RepairCounts()
    (before,) = repairs.families()
    assert ("Deployment", "spec.replicas") in values(before)
    assert ("Deployment", "spec.template.spec.containers.image") in values(before)
    assert ("StatefulSet", "spec.serviceName") in values(before)
    assert ("Service", "spec.ports") in values(before)
    assert {kind for kind, _ in values(before)} == {*OWNED, "Deployment", "StatefulSet"}
    assert not any("[" in name or name.endswith("metadata.name") for _, name in values(before))
    for path in ("spec.replicas", "metadata.labels[app]", "metadata.annotations[some.body/else]", "status.whatever"):
        repairs.count("Deployment", path)
    (after,) = repairs.families()
    assert set(values(after)) == set(values(before))
    assert {name: number for (kind, name), number in values(after).items() if number} == {
        "spec.replicas": 1,
        "metadata.labels": 1,
        "metadata.annotations": 1,
        OTHER_FIELDS: 1,
    }


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
    world.caches.memcacheds.remove(ObjectKey(NAMESPACE, NAME))
    assert [values(each) for each in memcached_families(world.caches)] == [{}, {}]


def test_one_whose_specification_cannot_be_read_desires_nothing_and_hides_no_other() -> None:
    world = World()
    world.memcached(size="many")
    world.show()
    desired, ready = memcached_families(world.caches)
    assert values(desired) == {}
    assert values(ready) == {(NAMESPACE, NAME): 0}
