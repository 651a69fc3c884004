"""Which changes of servers have their Memcached looked at, and how long a status on its way is held back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from memcached_operator.api.status import Status
from memcached_operator.memcached.events import recorded_by
from memcached_operator.memcached.observed.memcacheds import MemcachedRecord
from memcached_operator.memcached.observed.pod_status import NO_PROBLEM, PodProblem
from memcached_operator.memcached.observed.pods import PodRecord
from memcached_operator.memcached.plan import Servers
from memcached_operator.memcached.status.event_predicates import ServerPredicates
from memcached_operator.memcached.status.observation import Observation
from memcached_operator.memcached.status.status_writer import StatusWriter
from operator_runtime import ObjectKey, Result
from operator_runtime.events.recorder import EventRecorder
from tests.unit.memcached_operator.memcached.status_support import pods
from tests.unit.memcached_operator.memcached.support import NAME, NAMESPACE, deployment_of
from tests.unit.memcached_operator.memcached.world import DELAY_S, KEY, World


def pod(number: int = 0, **changes: Any) -> PodRecord:
    made = PodRecord(
        NAMESPACE, f"{NAME}-a-{number}", f"uid-{number}", "1", NAME, "a", True, ready=False, problem=NO_PROBLEM
    )
    return msgspec.structs.replace(made, **changes)


def waking(world: World, awaited: int | None) -> ServerPredicates:
    return ServerPredicates(world.caches, {KEY: awaited}.get)


NEW, PLACED = pod(), pod(resource_version="2", since_s=9, address="10.0.0.9")


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        (None, NEW, False),
        (NEW, PLACED, False),
        (None, pod(ready=True), True),
        (PLACED, pod(ready=True), True),
        (PLACED, pod(problem=PodProblem("ImagePullBackOff")), True),
        (pod(problem=PodProblem("ImagePullBackOff")), PLACED, True),
        (pod(ready=True), PLACED, True),
        (PLACED, pod(active=False), True),
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
    assert waking(world, awaited=2).by_pod(before, after) is counts
    placed = (before, after) == (NEW, PLACED)
    assert waking(world, awaited=None).by_pod(before, after) is not placed, "more than servers is waited for"


def test_the_last_pod_of_those_awaited_counts() -> None:
    world = World()
    for number, counts in enumerate([False, True, False]):
        world.caches.pods.put(pod(number))
        assert waking(world, awaited=2).by_pod(None, pod(number)) is counts


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({"settled": False}, False),
        ({"revised": True, "begun": True, "rolled_out": False}, False),
        ({"replicas": 9}, True),
        ({"create_failure": "exceeded quota"}, True),
        ({"form": b"other"}, True),
    ],
)
def test_what_a_controller_counts_is_nothing_while_pods_are_awaited(changes: dict[str, Any], *, counts: bool) -> None:
    before = deployment_of()
    after = msgspec.structs.replace(before, **changes)
    assert waking(World(), awaited=2).by_workload(before, after) is counts
    world = World()
    for number in range(before.replicas):
        world.caches.pods.put(pod(number, ready=True))
    assert waking(world, awaited=None).by_workload(before, after)
    assert waking(World(), awaited=2).by_workload(None, after)
    assert waking(World(), awaited=2).by_workload(before, None)


@pytest.mark.parametrize(
    ("workload", "ready", "changes", "counts"),
    [
        ({}, 0, {"settled": False, "begun": True}, False),
        ({}, 1, {"settled": False}, False),
        ({}, 2, {"settled": False}, True),
        ({"generation": 2}, 1, {"settled": False}, True),
        ({"kind": "StatefulSet"}, 1, {"settled": False}, True),
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
    assert waking(world, awaited=None).by_workload(before, after) is counts


async def test_pods_are_awaited_until_the_status_is_looked_at_again() -> None:
    world = World()
    world.memcached(size=2)
    assert world.reconciler.awaited(KEY) is None
    result = await world.look()
    assert result == Result(requeue_after_s=DELAY_S)
    assert world.reconciler.awaited(KEY) == 2
    world.clock.advance(DELAY_S)
    assert world.reconciler.awaited(KEY) is None, "this look is due, and may not see what comes now"
    await world.look()
    assert world.reconciler.awaited(KEY) is None, "the status was written"


async def test_what_comes_while_a_look_is_on_its_way_counts() -> None:
    world = World()
    world.memcached(size=2)
    await world.look()
    seen = []
    patch = world.api.merge_patch

    async def during(*arguments: Any, **named: Any) -> Any:
        seen.append(world.reconciler.awaited(KEY))
        return await patch(*arguments, **named)

    world.api.merge_patch = during  # type: ignore[method-assign]
    world.pods(2)
    await world.look()
    assert seen == [None]


class Many:
    """A reporter of as many Memcacheds as are wanted, whose servers are on their way."""

    def __init__(self) -> None:
        self.world = world = World()
        self.reporter = StatusWriter(
            world.parts.client, world.owners, recorded_by(cast(EventRecorder, world.recorder)),
            status_delay_s=DELAY_S, clock=world.clock, utc_now=lambda: datetime.fromtimestamp(1_800_000_000, UTC),
        )  # fmt: skip

    async def report(self, number: int, **found: Any) -> float | None:
        record = MemcachedRecord(NAMESPACE, f"m{number}", f"uid-{number}", "1", 1, False, b"{}", b"")
        servers = Servers("Deployment", ())
        observed = Observation(record.name, 1, 2, "Deployment", deployment_of(), (), servers)
        observed = msgspec.structs.replace(observed, **found)
        _, result = await self.reporter.report(record, Status(), observed)
        return result.requeue_after_s

    async def settle(self, number: int) -> None:
        """One has got its servers, and its status is written."""
        name = f"m{number}"
        meta = {"namespace": NAMESPACE, "name": name, "uid": f"uid-{number}", "resourceVersion": "1", "generation": 1}
        self.world.api.objects["Memcached", NAMESPACE, name] = {"kind": "Memcached", "metadata": meta, "spec": {}}
        assert await self.report(number, pods=pods(0, 2)) is None


async def test_the_more_are_on_their_way_the_longer_a_status_is_held_back() -> None:
    many = Many()
    waits = [cast(float, await many.report(number)) for number in range(12_000)]
    assert waits[0] == DELAY_S
    assert waits == sorted(waits)
    assert waits[100] == pytest.approx(DELAY_S + 3)
    assert waits[-1] == DELAY_S + 300
    assert await many.report(0) == DELAY_S + 300, "also of one that came before the others"


async def test_how_long_that_is_follows_from_how_long_those_took_that_have_got_their_servers() -> None:
    many = Many()
    for number in range(500):
        await many.report(number)
    many.world.clock.advance(1)
    for number in range(50):
        await many.settle(number)
    # 1 s for 50, and 30 ms for each of as many that were not seen.
    assert await many.report(499) == pytest.approx(DELAY_S + 499 * (1 + 1.5) / 100 - 1)
    many.world.clock.advance(20)
    for number in range(50, 250):
        await many.settle(number)
    assert await many.report(499) == pytest.approx(DELAY_S + 499 * (21 + 1.5) / 300 - 21)


async def test_a_status_is_held_back_for_no_more_than_five_minutes_and_none_hurries_when_the_others_are_done() -> None:
    many = Many()
    for number in range(500):
        await many.report(number)
    many.world.clock.advance(200)
    assert await many.report(499) == pytest.approx(DELAY_S + 100)
    for number in range(499):
        many.reporter.forget(ObjectKey(NAMESPACE, f"m{number}"))
    assert await many.report(499) == pytest.approx(DELAY_S + 100)


async def test_a_problem_a_list_or_a_rollout_is_not_held_back_for_longer_whatever_is_on_its_way() -> None:
    many = Many()
    for number in range(1000):
        await many.report(number)
    assert await many.report(1001, waiting="The Service is being deleted.") == DELAY_S
    assert await many.report(1002, servers=Servers("Deployment", ("10.0.0.1:11211",))) == DELAY_S
    assert await many.report(1003, paused=True) == DELAY_S
