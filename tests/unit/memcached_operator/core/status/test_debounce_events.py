"""Which changes of servers have their Memcached reconciled."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memcached_operator.core.observed.pod_status import PodProblem
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.status.debounce import ServerPredicates
from tests.unit.memcached_operator.support import deployment_of, pod_of
from tests.unit.memcached_operator.world import KEY, World


def pod(number: int = 0, **changes: Any) -> PodRecord:
    return msgspec.structs.replace(pod_of(str(number), ready=False), **changes)


NOW_S = 100


def predicates(world: World, awaited: int | None) -> ServerPredicates:
    return ServerPredicates(world.caches, {KEY: awaited}.get, lambda: NOW_S)


NEW, PLACED = pod(), pod(resource_version="2", since_s=9, address="10.0.0.9")


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        (None, NEW, False),
        (NEW, PLACED, False),
        (pod(since_s=NOW_S - 29), pod(placed=True, since_s=NOW_S), False),
        (pod(since_s=NOW_S - 30), pod(placed=True, since_s=NOW_S), True),
        (pod(since_s=NOW_S - 15), pod(placed=True, since_s=NOW_S + 15), True),
        (pod(since_s=NOW_S + 3600), pod(placed=True, since_s=NOW_S), True),
        (pod(placed=True, since_s=NOW_S - 30), pod(placed=True, since_s=NOW_S), False),
        (None, pod(ready=True), True),
        (PLACED, pod(ready=True), True),
        (PLACED, pod(problem=PodProblem("ImagePullBackOff")), True),
        (pod(problem=PodProblem("ImagePullBackOff")), PLACED, True),
        (pod(ready=True), PLACED, True),
        (PLACED, pod(active=False), True),
        (pod(down=True), pod(waits=PodProblem("ContainerCreating"), down=True), False),
        (pod(down=True), NEW, False),
        (NEW, pod(down=True), True),
        (NEW, pod(peers="10.0.0.2"), True),
        (PLACED, None, True),
        (None, pod(memcached=""), True),
    ],
)
def test_a_pod_on_its_way_counts_for_nothing_while_others_are_awaited(
    before: PodRecord | None, after: PodRecord | None, *, counts: bool
) -> None:
    world = World()
    if after is not None:
        world.caches.pods.put(after)
    assert predicates(world, awaited=2).by_pod(before, after) is counts
    placed = before is not None and not counts
    assert predicates(world, awaited=None).by_pod(before, after) is not placed, "more than servers is waited for"


def test_the_last_pod_of_those_awaited_counts() -> None:
    world = World()
    for number, counts in enumerate([False, True, False]):
        world.caches.pods.put(pod(number))
        assert predicates(world, awaited=2).by_pod(None, pod(number)) is counts


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({"is_observed": False}, False),
        ({"revised": True, "has_revision": True, "rolled_out": False}, False),
        ({"replicas": 9}, True),
        ({"create_failure": "exceeded quota"}, True),
        ({"normalized": b"other"}, True),
    ],
)
def test_what_a_controller_counts_is_nothing_while_pods_are_awaited(changes: dict[str, Any], *, counts: bool) -> None:
    before = deployment_of()
    after = msgspec.structs.replace(before, **changes)
    assert predicates(World(), awaited=2).by_workload(before, after) is counts
    world = World()
    for number in range(before.replicas):
        world.caches.pods.put(pod(number, ready=True))
    assert predicates(world, awaited=None).by_workload(before, after)
    assert predicates(World(), awaited=2).by_workload(None, after)
    assert predicates(World(), awaited=2).by_workload(before, None)


@pytest.mark.parametrize(
    ("workload", "ready", "changes", "counts"),
    [
        ({}, 0, {"is_observed": False, "has_revision": True}, False),
        ({}, 1, {"is_observed": False}, False),
        ({}, 2, {"is_observed": False}, True),
        ({"generation": 2}, 1, {"is_observed": False}, True),
        ({"kind": "StatefulSet"}, 1, {"is_observed": False}, True),
        ({}, 1, {"rolled_out": False}, True),
        ({}, 1, {"create_failure": "exceeded quota"}, True),
    ],
)
def test_that_the_controller_has_seen_a_new_deployment_counts_for_nothing_before_its_pods_are_ready(
    workload: dict[str, Any], ready: int, changes: dict[str, Any], *, counts: bool
) -> None:
    world, before = World(), msgspec.structs.replace(deployment_of(), replicas=2, **workload)
    for number in range(2):
        world.caches.pods.put(pod(number, ready=number < ready))
    after = msgspec.structs.replace(before, **changes)
    assert predicates(world, awaited=None).by_workload(before, after) is counts
