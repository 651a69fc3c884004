"""The controller: what each end of a reconcile means for its key, what a reconcile knows, and its workers."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from operator_runtime.client.errors import (
    AuthenticationUnavailable,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    MalformedAnswer,
    NotFound,
    ResourceVersionTooLarge,
    ServerError,
    StreamStalled,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    WriteRefused,
)
from operator_runtime.client.retry import Backoff
from operator_runtime.controller.controller import (
    Controller,
    ReconcileContext,
    ReconcileOutcome,
    Result,
    StaleCache,
    current_reconcile,
)
from operator_runtime.diagnostics.failure_log import TerminalError
from operator_runtime.diagnostics.reconcile_hot_loops import LIMIT
from operator_runtime.testing.clock import FakeClock
from operator_runtime.workqueue.async_queue import AsyncWorkQueue
from operator_runtime.workqueue.queue import LOW_PRIORITY, OUTAGE_LONGEST_S
from tests.unit.operator_runtime.controller.controller_support import (
    Outcomes,
    Reconciler,
    Step,
    never,
    playing,
    quick_queue,
)
from tests.unit.operator_runtime.running import DEADLINE_S, running
from tests.unit.operator_runtime.workqueue.queue_support import failures_of

# What an end means


async def test_errors_retry_with_backoff_and_are_counted() -> None:
    reconciler = Reconciler(*[Unreachable("refused")] * 3, never)
    async with playing(reconciler, drain_timeout_s=0.0) as (controller, _):
        await reconciler.wait_for_calls(4)
        assert failures_of(controller.queue, "a") == 3
        assert controller.queue.retries == 3


async def test_requeue_reconciles_again_after_the_backoff_and_counts_as_no_error() -> None:
    async with playing(Reconciler(Result(requeue=True), Result(requeue=True))) as (controller, outcomes):
        assert await outcomes.wait_for(3) == [
            ReconcileOutcome.REQUEUE,
            ReconcileOutcome.REQUEUE,
            ReconcileOutcome.SUCCESS,
        ]
        assert controller.queue.retries == 2
        assert failures_of(controller.queue, "a") == 0


async def test_a_cache_that_is_behind_is_no_failure_and_waited_for_as_long_as_it_says() -> None:
    async with playing(Reconciler(Unreachable("refused"), StaleCache("behind", retry_s=3600.0))) as (
        controller,
        outcomes,
    ):
        assert await outcomes.wait_for(2) == [ReconcileOutcome.ERROR, ReconcileOutcome.REQUEUE_AFTER]
        assert failures_of(controller.queue, "a") == 0
        deadline = controller.queue.next_deadline()
        assert deadline is not None
        assert deadline - controller.queue.clock() > 3000.0


@pytest.mark.parametrize("seconds", [-1, math.nan, "5", timedelta(seconds=5), None])
def test_seconds_that_no_queue_can_wait_for_are_refused_where_they_are_given(seconds: Any) -> None:
    calls: dict[str, Callable[[], object]] = {
        "retry_s": lambda: StaleCache("behind", retry_s=seconds),
    }
    if seconds is not None:
        calls["requeue_after_s"] = lambda: Result(requeue_after_s=seconds)
        calls["retry_after_s"] = lambda: TooManyRequests(429, retry_after_s=seconds)
    for name, call in calls.items():
        with pytest.raises(ValueError, match=re.escape(f"{name} is {seconds!r}: it must be 0 seconds or more")):
            call()


@pytest.mark.parametrize("priority", ["high", 1.5])
def test_a_priority_that_no_queue_can_compare_is_refused_where_it_is_given(priority: Any) -> None:
    with pytest.raises(ValueError, match=f"priority is {priority!r}: it must be a whole number, such as -100"):
        Result(requeue_after_s=1, priority=priority)


@pytest.mark.parametrize("mistake", [{"retry_s": "5"}, {"priority": "high"}])
async def test_an_author_s_mistake_is_a_bug_of_that_key_alone(mistake: Any) -> None:
    async def reconcile(key: str) -> Result:
        if key == "good":
            return Result(requeue_after_s=0.001)
        if "retry_s" in mistake:
            raise StaleCache("behind", **mistake)
        return Result(requeue_after_s=0.001, **mistake)

    async with playing(reconcile) as (controller, outcomes):
        controller.queue.add("good")
        assert set(await outcomes.wait_for(20)) == {ReconcileOutcome.BUG, ReconcileOutcome.REQUEUE_AFTER}


@pytest.mark.parametrize(("requested", "kept"), [(None, LOW_PRIORITY), (7, 7)])
async def test_requeue_after_keeps_the_priority_unless_the_result_names_one(requested: int | None, kept: int) -> None:
    priorities: list[int] = []

    async def reconcile(key: str) -> Result:
        if key == "a":
            return Result()
        priorities.append(controller.queue._processing[key][1])
        return Result(requeue_after_s=0.001, priority=requested) if len(priorities) == 1 else Result()

    async with playing(reconcile) as (controller, outcomes):
        controller.queue.add("b", priority=LOW_PRIORITY)
        await outcomes.wait_for(3)
    assert priorities == [LOW_PRIORITY, kept]


async def test_a_terminal_error_waits_for_the_next_change() -> None:
    reconciler = Reconciler(Unreachable("refused"), TerminalError("spec.image is no image"))
    async with playing(reconciler) as (controller, outcomes):
        assert await outcomes.wait_for(2) == [ReconcileOutcome.ERROR, ReconcileOutcome.TERMINAL]
        assert controller.queue.next_deadline() is None
        assert failures_of(controller.queue, "a") == 0
        controller.queue.add("a")
        assert (await outcomes.wait_for(3))[2] == ReconcileOutcome.SUCCESS


async def test_the_wait_that_a_server_asks_for_is_honoured_as_a_minimum() -> None:
    async with playing(Reconciler(TooManyRequests(429, retry_after_s=3600.0))) as (controller, outcomes):
        await outcomes.wait_for(1)
        deadline = controller.queue.next_deadline()
        assert deadline is not None
        assert deadline - controller.queue.clock() > 3000.0


NOT_OF_THE_OBJECT: list[Step] = [
    Unreachable("refused"),
    ServerError(503),
    TooManyRequests(429),
    never,
    ResourceVersionTooLarge(504),
    Expired(410),
    Unauthorized(401),
    Forbidden(403),
    AuthenticationUnavailable("the token file is missing"),
    WriteRefused("does not lead"),
    MalformedAnswer("HTTP 200 with a login page"),
    StreamStalled("no byte for 70 s"),
]
OF_THE_OBJECT: list[Step] = [Conflict(409), NotFound(404), Invalid(422), KeyError("size")]


@pytest.mark.parametrize(
    ("step", "longest_s"),
    [(step, OUTAGE_LONGEST_S) for step in NOT_OF_THE_OBJECT] + [(step, 300.0) for step in OF_THE_OBJECT],
)
async def test_only_errors_that_say_nothing_about_the_object_keep_the_backoff_short(
    step: Step, longest_s: float
) -> None:
    clock, backoff = FakeClock(), Backoff(first_s=300.0, longest_s=300.0, uniform=max)
    queue: AsyncWorkQueue[str] = AsyncWorkQueue(clock=clock, backoff=backoff)
    async with playing(Reconciler(step), queue=queue, reconcile_timeout_s=0.005) as (_, outcomes):
        await outcomes.wait_for(1)
        assert queue.next_deadline() == clock.now + longest_s


async def test_a_reconcile_that_takes_too_long_is_cancelled_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    async with playing(Reconciler(never), reconcile_timeout_s=0.005) as (_, outcomes):
        assert await outcomes.wait_for(2) == [ReconcileOutcome.TIMEOUT, ReconcileOutcome.SUCCESS]
    assert "not finished within 0.005 s, cancelled" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("own", "outcome"), [(TimeoutError(), ReconcileOutcome.ERROR), (asyncio.CancelledError(), ReconcileOutcome.BUG)]
)
async def test_a_timeout_or_a_cancellation_of_the_reconcilers_own_is_a_failure_and_not_the_end_of_a_worker(
    own: BaseException, outcome: ReconcileOutcome
) -> None:
    async with playing(Reconciler(own), workers=1) as (_, outcomes):
        assert await outcomes.wait_for(2) == [outcome, ReconcileOutcome.SUCCESS]


async def test_a_reconciler_that_returns_no_result_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    async def forgetful(key: str) -> Any:
        pass

    async with playing(forgetful) as (_, outcomes):
        assert (await outcomes.wait_for(1))[0] == ReconcileOutcome.BUG
    assert "the reconciler of controller 'memcached' returned None: return a Result" in caplog.text


# Waiting before a reconcile


async def test_a_key_that_is_not_ready_waits_uncounted_and_keeps_its_priority() -> None:
    waits_s = [0.001, 0.001, 0.0]
    queue, outcomes, reconciler = quick_queue(), Outcomes(), Reconciler()
    priorities = []

    def delay_s(key: str) -> float:
        priorities.append(queue._processing[key][1])
        return waits_s.pop(0)

    async with running(
        Controller("memcached", reconciler, queue=queue, delay_s=delay_s, reconciled=outcomes.reconciled)
    ):
        queue.add("a", priority=LOW_PRIORITY)
        assert await outcomes.wait_for(1) == [ReconcileOutcome.SUCCESS]
    assert reconciler.calls == ["a"]
    assert priorities == [LOW_PRIORITY] * 3
    assert queue.retries == 0


# Context


async def test_a_reconcile_knows_its_controller_key_and_a_unique_id_also_in_its_tasks() -> None:
    contexts: list[ReconcileContext | None] = []

    async def append_context() -> None:
        contexts.append(current_reconcile.get())

    async def reconcile(key: str) -> Result:
        await append_context()
        await asyncio.create_task(append_context())
        return Result()

    async with playing(reconcile) as (controller, outcomes):
        await outcomes.wait_for(1)
        controller.queue.add("b")
        await outcomes.wait_for(2)
    first, first_in_task, second, _ = contexts
    assert first is not None
    assert second is not None
    assert first is first_in_task
    assert (first.controller, first.key, second.key) == ("memcached", "a", "b")
    assert first.id != second.id
    assert current_reconcile.get() is None


async def test_a_key_that_is_reconciled_without_end_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    rounds = 3 * LIMIT
    reconciler = Reconciler(*[Result(requeue_after_s=0.0)] * rounds)
    async with playing(reconciler, clock=FakeClock()):
        await reconciler.wait_for_calls(rounds + 1)
    (line,) = caplog.messages
    assert line.startswith(f"reconciled {LIMIT} times within 0 s: does it write something that differs each time")


# Configuration


async def test_as_many_reconciles_run_at_once_as_there_are_workers() -> None:
    release = asyncio.Event()

    async def hold() -> Result:
        await release.wait()
        return Result()

    reconciler = Reconciler(hold, hold, hold)
    async with running(controller := Controller("memcached", reconciler, workers=2)):
        for key in "abc":
            controller.queue.add(key)
        await reconciler.wait_for_calls(2)
        assert controller.queue.processing == 2
        assert len(controller.queue) == 1
        release.set()
        await reconciler.wait_for_calls(3)


async def test_reconciles_that_never_wait_let_the_loop_breathe() -> None:
    seconds = 0.0

    def clock() -> float:
        nonlocal seconds
        seconds += 0.001
        return seconds

    async def reconcile(key: str) -> Result:
        controller.queue.add(key)
        return Result()

    async with running(controller := Controller("memcached", reconcile, clock=clock)):
        controller.queue.add("a")
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_stop_lets_the_work_finish_and_takes_no_more_keys() -> None:
    release, finished = asyncio.Event(), []

    async def hold() -> Result:
        await release.wait()
        finished.append(True)
        return Result()

    reconciler = Reconciler(hold)
    controller = Controller("memcached", reconciler, workers=1)
    run = asyncio.create_task(controller.run())
    controller.queue.add("a")
    controller.queue.add("b")
    await reconciler.wait_for_calls(1)
    controller.stop()
    await asyncio.sleep(0)
    assert not run.done()
    release.set()
    await asyncio.wait_for(run, DEADLINE_S)
    await asyncio.wait_for(controller.run(), DEADLINE_S)
    assert (finished, reconciler.calls) == ([True], ["a"])


async def test_work_that_outlasts_the_drain_is_cancelled_and_said(caplog: pytest.LogCaptureFixture) -> None:
    reconciler = Reconciler(never)
    controller = Controller("memcached", reconciler, drain_timeout_s=0.005)
    async with running(controller):
        controller.queue.add("a")
        await reconciler.wait_for_calls(1)
    assert "memcached: cancelled 1 reconciles that had not finished within 0.005 s of the stop" in caplog.text


@pytest.mark.parametrize(
    ("shut_down", "error", "message"),
    [(False, LookupError, "no such store"), (True, RuntimeError, "'memcached' found its queue shut down")],
)
async def test_a_worker_that_ends_unexpectedly_or_finds_its_queue_shut_down_ends_the_run(
    shut_down: bool, error: type[Exception], message: str
) -> None:
    def broken(key: str) -> float:
        raise LookupError("no such store")

    controller = Controller("memcached", Reconciler(), delay_s=broken)
    controller.queue.add("a")
    if shut_down:
        controller.queue.stop()
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(controller.run(), DEADLINE_S)
    assert caught.group_contains(error, match=message)


async def test_a_cancelled_run_takes_its_workers_along() -> None:
    reconciler = Reconciler(never)
    controller = Controller("memcached", reconciler)
    run = asyncio.create_task(controller.run())
    controller.queue.add("a")
    await reconciler.wait_for_calls(1)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, DEADLINE_S)
    assert controller.queue.processing == 0
