"""For how long a status that still changes is held back, and how many pods are awaited meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from memcached_operator.api.status import Status
from memcached_operator.api.v1alpha1 import Rollout, Spec
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.outcome import WorkloadResult
from memcached_operator.core.plan.plan import ListedServers
from memcached_operator.core.status.conditions import status_of
from memcached_operator.core.status.debounce import StatusDebounce
from memcached_operator.core.status.observation import Observation
from memcached_operator.core.status.status_writer import StatusWriter
from operator_runtime import KubeError, ObjectKey, Result
from tests.unit.memcached_operator.status_support import NOW, pods
from tests.unit.memcached_operator.support import NAMESPACE, deployment_of
from tests.unit.memcached_operator.world import DELAY_S, KEY, World


async def test_pods_are_awaited_until_the_status_is_reconciled_again() -> None:
    world = World()
    world.memcached(size=2)
    assert world.reconciler.debounce.awaited(KEY) is None
    result = await world.reconcile_shown()
    assert result == Result(requeue_after_s=DELAY_S)
    assert world.reconciler.debounce.awaited(KEY) == 2
    world.clock.advance(DELAY_S)
    assert world.reconciler.debounce.awaited(KEY) is None, "this reconcile is due, and may not see what comes now"
    await world.reconcile_shown()
    assert world.reconciler.debounce.awaited(KEY) is None, "the status was written"


async def test_what_comes_while_a_reconcile_is_on_its_way_counts() -> None:
    world = World()
    world.memcached(size=2)
    await world.reconcile_shown()
    seen = []
    patch = world.api.patch

    async def during(*arguments: Any, **named: Any) -> Any:
        if named["subresource"] == "status":
            seen.append(world.reconciler.debounce.awaited(KEY))
        return await patch(*arguments, **named)

    world.api.patch = during  # type: ignore[method-assign]
    world.pods(2)
    await world.reconcile_shown()
    assert seen == [None]


def observation(number: int, **found: Any) -> Observation:
    """Observation of a Memcached whose servers are on their way, unless other is found."""
    servers, workload = ListedServers("Deployment", ()), WorkloadResult(deployment_of())
    return msgspec.structs.replace(
        Observation(f"m{number}", 1, Spec(size=2), "Deployment", workload, (), servers), **found
    )


class Many:
    """A writer of as many Memcacheds as are desired, whose servers are on their way."""

    def __init__(self) -> None:
        self.world = world = World()
        now = datetime.fromtimestamp(1_800_000_000, UTC)
        access = world.reconciler._access
        self.writer = StatusWriter(access, StatusDebounce(DELAY_S, world.clock), lambda: now)

    async def report(self, number: int, last: Status | None = None, **found: Any) -> float | None:
        record = MemcachedRecord(NAMESPACE, f"m{number}", f"uid-{number}", "1", 1, False, b"{}", b"")
        _, result = await self.writer.report(record, last or Status(), observation(number, **found))
        return result.requeue_after_s

    async def report_another_specification(self, number: int) -> float | None:
        """Its servers are all ready, and the status has that."""
        last = status_of(observation(number, pods=pods(2)), Status(), NOW)
        return await self.report(number, last, pods=pods(2), generation=2)

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
        many.writer.debounce.forget(ObjectKey(NAMESPACE, f"m{number}"))
    assert await many.report(499) == pytest.approx(DELAY_S + 100)


async def test_a_problem_a_list_or_a_rollout_is_not_held_back_for_longer_whatever_is_on_its_way() -> None:
    many = Many()
    for number in range(1000):
        await many.report(number)
    assert await many.report(1001, waiting="The Service is being deleted.") == DELAY_S
    assert await many.report(1002, servers=ListedServers("Deployment", ("10.0.0.1:11211",))) == DELAY_S
    assert await many.report(1003, spec=Spec(size=2, rollout=Rollout(paused=True))) == DELAY_S


async def test_where_all_servers_are_ready_whatever_else_changes_is_not_held_back_for_longer() -> None:
    many = Many()
    for number in range(1000):
        await many.report(number)
    assert await many.report_another_specification(1001) == DELAY_S


async def test_statuses_that_change_all_the_time_hold_no_other_back() -> None:
    many = Many()
    for number in range(100):
        assert await many.report_another_specification(number) == DELAY_S
        many.world.clock.advance(60)
    assert await many.report(100) == DELAY_S, "no other starts servers"


async def test_a_status_that_the_api_server_refuses_holds_no_other_back() -> None:
    many = Many()
    assert await many.report(0) == DELAY_S
    many.world.clock.advance(3600)
    with pytest.raises(KubeError):
        await many.report(0)  # it does not exist
    assert await many.report(1) == DELAY_S
