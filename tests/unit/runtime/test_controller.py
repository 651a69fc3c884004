"""The controller: what each end of a reconcile means for its key, and how workers start, stop and fail."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from memcached_operator.kube.errors import Conflict, KubeError, ServerError, TooManyRequests, Unreachable
from memcached_operator.kube.retry import Backoff
from memcached_operator.runtime.async_queue import AsyncWorkQueue
from memcached_operator.runtime.controller import (
    Controller,
    ControllerConfig,
    FailureLog,
    Outcome,
    ReconcileContext,
    Result,
    TerminalError,
    current_reconcile,
)
from memcached_operator.runtime.queue import LOW_PRIORITY, WorkQueue

DEADLINE_S = 5.0
LOGGER = "memcached_operator.runtime.controller"

Step = Result | BaseException | Callable[[], Awaitable[Result]]


class Reconciler:
    """Plays a script, one step per call; the calls beyond it succeed."""

    def __init__(self, *script: Step) -> None:
        self.script = list(script)
        self.calls: list[str] = []
        self.called = asyncio.Condition()

    async def __call__(self, key: str) -> Result:
        self.calls.append(key)
        async with self.called:
            self.called.notify_all()
        step = self.script.pop(0) if self.script else Result()
        if isinstance(step, BaseException):
            raise step
        return step if isinstance(step, Result) else await step()

    async def wait_for_calls(self, number: int) -> None:
        async with asyncio.timeout(DEADLINE_S), self.called:
            await self.called.wait_for(lambda: len(self.calls) >= number)


class Outcomes:
    def __init__(self) -> None:
        self.seen: list[tuple[str, Outcome]] = []
        self.changed = asyncio.Condition()
        self.tasks: set[asyncio.Task[None]] = set()

    def reconciled(self, controller: str, outcome: Outcome, seconds: float) -> None:
        assert seconds >= 0.0
        self.seen.append((controller, outcome))
        self.tasks.add(asyncio.create_task(self.notify()))

    async def notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def wait_for(self, number: int) -> list[Outcome]:
        async with asyncio.timeout(DEADLINE_S), self.changed:
            await self.changed.wait_for(lambda: len(self.seen) >= number)
        return [outcome for _, outcome in self.seen]


def quick_queue() -> AsyncWorkQueue[str]:
    return AsyncWorkQueue(WorkQueue(backoff=Backoff(first_s=0.001, longest_s=0.002)))


@asynccontextmanager
async def running(controller: Controller[str]) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(controller.run())
    try:
        yield task
    finally:
        controller.stop()
        await asyncio.wait_for(task, DEADLINE_S)


async def never() -> Result:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


# What an end means


async def test_success_forgets_the_failures() -> None:
    reconciler, outcomes = Reconciler(Unreachable("refused")), Outcomes()
    controller = Controller("memcached", reconciler, queue=quick_queue(), observer=outcomes)
    async with running(controller):
        controller.queue.add("a")
        assert await outcomes.wait_for(2) == [Outcome.ERROR, Outcome.SUCCESS]
    assert reconciler.calls == ["a", "a"]
    assert controller.queue.core.failures("a") == 0
    assert outcomes.seen[0][0] == "memcached"


async def test_errors_retry_with_backoff_and_are_counted() -> None:
    reconciler, outcomes = Reconciler(*[Unreachable("refused")] * 3, never), Outcomes()
    controller = Controller(
        "memcached", reconciler, queue=quick_queue(), observer=outcomes, config=ControllerConfig(drain_timeout_s=0.0)
    )
    async with running(controller):
        controller.queue.add("a")
        await reconciler.wait_for_calls(4)
        assert controller.queue.core.failures("a") == 3
        assert controller.queue.core.retries == 3


async def test_requeue_after_forgets_and_looks_again() -> None:
    queue, outcomes = quick_queue(), Outcomes()
    reconciler = Reconciler(ServerError(500), Result(requeue_after_s=0.001))
    controller = Controller("memcached", reconciler, queue=queue, observer=outcomes)
    async with running(controller):
        queue.add("a")
        assert await outcomes.wait_for(3) == [Outcome.ERROR, Outcome.REQUEUE_AFTER, Outcome.SUCCESS]


@pytest.mark.parametrize(("asked", "kept"), [(None, LOW_PRIORITY), (7, 7)])
async def test_requeue_after_keeps_the_priority_unless_the_result_names_one(asked: int | None, kept: int) -> None:
    queue, outcomes, priorities = quick_queue(), Outcomes(), []

    async def reconcile(key: str) -> Result:
        priorities.append(queue.core._processing[key][1])
        return Result(requeue_after_s=0.001, priority=asked) if len(priorities) == 1 else Result()

    async with running(Controller("memcached", reconcile, queue=queue, observer=outcomes)):
        queue.add("a", priority=LOW_PRIORITY)
        await outcomes.wait_for(2)
    assert priorities == [LOW_PRIORITY, kept]


async def test_a_terminal_error_waits_for_the_next_change() -> None:
    queue, outcomes = quick_queue(), Outcomes()
    reconciler = Reconciler(Unreachable("refused"), TerminalError("spec.image is no image"))
    async with running(Controller("memcached", reconciler, queue=queue, observer=outcomes)):
        queue.add("a")
        assert await outcomes.wait_for(2) == [Outcome.ERROR, Outcome.TERMINAL]
        assert queue.core.next_deadline() is None
        assert queue.core.failures("a") == 0
        queue.add("a")
        assert (await outcomes.wait_for(3))[2] == Outcome.SUCCESS


async def test_the_wait_that_a_server_asks_for_is_honoured_as_a_minimum() -> None:
    queue, outcomes = quick_queue(), Outcomes()
    reconciler = Reconciler(TooManyRequests(429, retry_after_s=3600.0))
    async with running(Controller("memcached", reconciler, queue=queue, observer=outcomes)):
        queue.add("a")
        await outcomes.wait_for(1)
        deadline = queue.core.next_deadline()
        assert deadline is not None
        assert deadline - queue.core.clock() > 3000.0


async def test_a_reconcile_that_takes_too_long_is_cancelled_counted_and_retried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcomes = Outcomes()
    controller = Controller(
        "memcached",
        Reconciler(never),
        queue=quick_queue(),
        observer=outcomes,
        config=ControllerConfig(reconcile_timeout_s=0.005),
    )
    async with running(controller):
        controller.queue.add("a")
        assert await outcomes.wait_for(2) == [Outcome.TIMEOUT, Outcome.SUCCESS]
    assert "not finished within 0.005 s, cancelled" in caplog.text
    assert "Traceback" not in caplog.text


async def test_a_timeout_of_the_reconcilers_own_is_an_ordinary_error() -> None:
    outcomes = Outcomes()
    async with running(
        controller := Controller("memcached", Reconciler(TimeoutError()), queue=quick_queue(), observer=outcomes)
    ):
        controller.queue.add("a")
        assert (await outcomes.wait_for(1))[0] == Outcome.ERROR


async def test_a_cancellation_that_nobody_asked_for_is_a_failure_and_not_the_end_of_a_worker() -> None:
    outcomes = Outcomes()
    reconciler = Reconciler(asyncio.CancelledError())
    config = ControllerConfig(workers=1)
    async with running(
        controller := Controller("memcached", reconciler, queue=quick_queue(), observer=outcomes, config=config)
    ):
        controller.queue.add("a")
        assert await outcomes.wait_for(2) == [Outcome.ERROR, Outcome.SUCCESS]


async def test_a_reconciler_that_returns_no_result_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    async def forgetful(key: str) -> Any:
        pass

    outcomes = Outcomes()
    async with running(controller := Controller("memcached", forgetful, queue=quick_queue(), observer=outcomes)):
        controller.queue.add("a")
        assert (await outcomes.wait_for(1))[0] == Outcome.ERROR
    assert "the reconciler of controller 'memcached' returned None: return a Result" in caplog.text


# Waiting before a reconcile


async def test_a_key_that_is_not_ready_waits_uncounted_and_keeps_its_priority() -> None:
    waits_s = [0.001, 0.001, 0.0]
    queue, outcomes, reconciler = quick_queue(), Outcomes(), Reconciler()
    priorities = []

    def ready(key: str) -> float:
        priorities.append(queue.core._processing[key][1])
        return waits_s.pop(0)

    async with running(Controller("memcached", reconciler, queue=queue, ready=ready, observer=outcomes)):
        queue.add("a", priority=LOW_PRIORITY)
        assert await outcomes.wait_for(1) == [Outcome.SUCCESS]
    assert reconciler.calls == ["a"]
    assert priorities == [LOW_PRIORITY] * 3
    assert queue.core.retries == 0


# Context


async def test_a_reconcile_knows_its_controller_key_and_a_unique_id_also_in_its_tasks() -> None:
    contexts: list[ReconcileContext | None] = []

    async def look() -> None:
        contexts.append(current_reconcile.get())

    async def reconcile(key: str) -> Result:
        await look()
        await asyncio.create_task(look())
        return Result()

    outcomes = Outcomes()
    async with running(controller := Controller("memcached", reconcile, observer=outcomes)):
        controller.queue.add("a")
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


# Workers


async def test_as_many_reconciles_run_at_once_as_there_are_workers() -> None:
    release = asyncio.Event()

    async def hold() -> Result:
        await release.wait()
        return Result()

    reconciler = Reconciler(hold, hold, hold)
    async with running(controller := Controller("memcached", reconciler, config=ControllerConfig(workers=2))):
        for key in "abc":
            controller.queue.add(key)
        await reconciler.wait_for_calls(2)
        assert controller.queue.core.processing == 2
        assert len(controller.queue.core) == 1
        release.set()
        await reconciler.wait_for_calls(3)


async def test_a_key_in_work_is_reconciled_again_only_after_it() -> None:
    running_now: list[str] = []

    async def reconcile(key: str) -> Result:
        assert key not in running_now
        running_now.append(key)
        controller.queue.add(key)
        await asyncio.sleep(0)
        running_now.remove(key)
        return Result()

    outcomes = Outcomes()
    async with running(controller := Controller("memcached", reconcile, observer=outcomes)):
        controller.queue.add("a")
        assert set(await outcomes.wait_for(20)) == {Outcome.SUCCESS}


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


async def test_a_stop_before_the_run_takes_no_key() -> None:
    reconciler = Reconciler()
    controller = Controller("memcached", reconciler)
    controller.queue.add("a")
    controller.stop()
    await asyncio.wait_for(controller.run(), DEADLINE_S)
    assert reconciler.calls == []


async def test_a_stop_lets_the_work_finish_and_takes_no_more_keys() -> None:
    release, finished = asyncio.Event(), []

    async def hold() -> Result:
        await release.wait()
        finished.append(True)
        return Result()

    reconciler = Reconciler(hold)
    controller = Controller("memcached", reconciler, config=ControllerConfig(workers=1))
    run = asyncio.create_task(controller.run())
    controller.queue.add("a")
    controller.queue.add("b")
    await reconciler.wait_for_calls(1)
    controller.stop()
    await asyncio.sleep(0)
    assert not run.done()
    release.set()
    await asyncio.wait_for(run, DEADLINE_S)
    assert finished == [True]
    assert reconciler.calls == ["a"]


async def test_work_that_outlasts_the_drain_is_cancelled_and_said(caplog: pytest.LogCaptureFixture) -> None:
    reconciler = Reconciler(never)
    controller = Controller("memcached", reconciler, config=ControllerConfig(drain_timeout_s=0.005))
    async with running(controller):
        controller.queue.add("a")
        await reconciler.wait_for_calls(1)
    assert "memcached: cancelled 1 reconciles that had not finished within 0.005 s of the stop" in caplog.text


async def test_a_worker_that_ends_unexpectedly_ends_the_run() -> None:
    def broken(key: str) -> float:
        raise LookupError("no such store")

    controller = Controller("memcached", Reconciler(), ready=broken)
    controller.queue.add("a")
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(controller.run(), DEADLINE_S)
    assert caught.group_contains(LookupError, match="no such store")


async def test_a_queue_that_others_shut_down_ends_the_run_with_an_error() -> None:
    controller = Controller("memcached", Reconciler())
    controller.queue.shut_down()
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(controller.run(), DEADLINE_S)
    assert caught.group_contains(RuntimeError, match="'memcached' found its queue shut down")


async def test_a_cancelled_run_takes_its_workers_along() -> None:
    reconciler = Reconciler(never)
    controller = Controller("memcached", reconciler)
    run = asyncio.create_task(controller.run())
    controller.queue.add("a")
    await reconciler.wait_for_calls(1)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, DEADLINE_S)
    assert controller.queue.core.processing == 0


# Configuration


def test_a_reconciler_that_is_no_coroutine_function_is_refused() -> None:
    def plain(key: str) -> Any:
        return Result()

    with pytest.raises(TypeError, match="controller 'memcached' is not a coroutine function: write `async def`"):
        Controller("memcached", plain)


async def test_objects_and_partials_of_coroutine_functions_are_reconcilers() -> None:
    async def reconcile(greeting: str, key: str) -> Result:
        return Result()

    assert Controller("a", functools.partial(reconcile, "hello")).name == "a"
    assert Controller("b", Reconciler()).name == "b"


@pytest.mark.parametrize(("field", "value"), [("workers", 0), ("reconcile_timeout_s", 0.0), ("drain_timeout_s", -1.0)])
def test_a_number_that_makes_no_sense_is_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field} is {value}: "):
        ControllerConfig(**{field: value})  # type: ignore[arg-type]


# What is said


class Said:
    """A failure log on a fake clock, and the lines that it wrote."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.now = 0.0
        self.log: FailureLog[str] = FailureLog("memcached", lambda: self.now)
        self.caplog = caplog
        caplog.set_level(logging.DEBUG, LOGGER)

    def failed(self, error: Exception, retry_in_s: float | None = 1.0) -> None:
        self.log.failed("default/a", error, retry_in_s)

    @property
    def lines(self) -> list[str]:
        return [record.getMessage() for record in self.caplog.records]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Said:
    return Said(caplog)


@pytest.mark.parametrize("error", [Unreachable("connection refused"), KubeError("what"), TerminalError("spec.size")])
def test_an_expected_failure_is_one_line_without_a_traceback(said: Said, error: Exception) -> None:
    said.failed(error, 0.25)
    assert said.lines == [f"memcached default/a: attempt 1 failed, next one in 0.25 s: {error}"]
    assert said.caplog.records[0].levelno == logging.WARNING
    assert said.caplog.records[0].exc_info is None


def test_a_bug_brings_its_traceback_once(said: Said) -> None:
    for _ in range(2):
        said.failed(KeyError("size"))
        said.now += 60.0
    assert said.lines[0] == "memcached default/a: attempt 1 failed, next one in 1 s: KeyError: 'size'"
    assert [record.levelno for record in said.caplog.records] == [logging.ERROR] * 2
    assert [bool(record.exc_info) for record in said.caplog.records] == [True, False]


def test_a_failure_for_good_says_what_it_waits_for(said: Said) -> None:
    said.failed(TerminalError("spec.size must be 0 or more"), None)
    assert said.lines == [
        "memcached default/a: attempt 1 failed, next one when the object changes: spec.size must be 0 or more"
    ]


def test_the_same_failure_is_repeated_at_intervals_that_double_up_to_an_hour(said: Said) -> None:
    times = []
    for second in range(0, 4 * 3600, 10):
        said.now = float(second)
        before = len(said.lines)
        said.failed(Unreachable(f"resourceVersion {second}: refused"))
        if len(said.lines) > before:
            times.append(second)
    assert times == [0, 60, 180, 420, 900, 1860, 3780, 7380, 10980]


def test_another_reason_is_said_at_once(said: Said) -> None:
    said.failed(Unreachable("refused"))
    said.failed(ServerError(503, message="overloaded"))
    said.failed(ServerError(503, message="overloaded"))
    assert len(said.lines) == 2


def test_recovery_is_said_once_and_only_after_a_failure(said: Said) -> None:
    said.log.worked("default/a")
    said.failed(Unreachable("refused"))
    said.failed(Unreachable("refused"))
    said.now = 2.5
    said.log.worked("default/b")
    said.log.worked("default/a")
    said.log.worked("default/a")
    assert said.lines[1:] == ["memcached default/a: recovered after 2 failed attempts in 2.5 s"]


def test_a_conflict_is_said_only_when_it_persists(said: Said) -> None:
    said.failed(Conflict(409, "Conflict", "the object has been modified"))
    said.log.worked("default/a")
    assert said.lines == []
    for _ in range(2):
        said.failed(Conflict(409, "Conflict", "the object has been modified"))
    assert len(said.lines) == 1


async def test_the_line_is_written_inside_the_reconciles_context(caplog: pytest.LogCaptureFixture) -> None:
    contexts: list[ReconcileContext | None] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            contexts.append(current_reconcile.get())

    outcomes, listener = Outcomes(), Listener()
    logging.getLogger(LOGGER).addHandler(listener)
    try:
        controller = Controller("memcached", Reconciler(Unreachable("refused")), observer=outcomes)
        async with running(controller):
            controller.queue.add("a")
            await outcomes.wait_for(1)
    finally:
        logging.getLogger(LOGGER).removeHandler(listener)
    assert contexts[0] is not None
    assert contexts[0].key == "a"
