"""What is counted, and what is shown of it."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import Gauge, Metric

from operator_runtime.client.errors import Unreachable
from operator_runtime.controller.controller import Controller, ReconcileOutcome, Result
from operator_runtime.diagnostics.failure_log import TerminalError
from operator_runtime.telemetry.metrics import (
    MAX_PRIORITIES,
    QUEUE_BUCKETS_S,
    RECONCILE_BUCKETS_S,
    ControllerMetrics,
    Metrics,
    gauge,
    loop_metrics,
)
from operator_runtime.testing.clock import FakeClock
from operator_runtime.workqueue.async_queue import AsyncWorkQueue
from operator_runtime.workqueue.queue import WorkQueue
from tests.unit.operator_runtime.controller.controller_support import Reconciler, Step
from tests.unit.operator_runtime.running import DEADLINE_S, running
from tests.unit.operator_runtime.series import series
from tests.unit.operator_runtime.workqueue.queue_support import steady_backoff


class Shown:
    """What there is to see of a controller."""

    def __init__(
        self, clock: FakeClock | None = None, workers: int = 1, queue: type[WorkQueue[str]] = WorkQueue
    ) -> None:
        self.metrics = Metrics()
        controllers = ControllerMetrics(self.metrics)
        self.observer = controllers.observer("memcached", workers)
        times = {} if clock is None else {"clock": clock}
        self.queue = queue(queued=self.observer.queued, worked=self.observer.worked, backoff=steady_backoff(), **times)
        controllers.add_queue("memcached", self.queue)

    def __getitem__(self, name: str) -> dict[tuple[str, ...], float]:
        return series(self.metrics.collect()).get(name, {})


def test_the_buckets_are_those_that_dashboards_know() -> None:
    assert len(RECONCILE_BUCKETS_S) == 40
    for bounds in (RECONCILE_BUCKETS_S, QUEUE_BUCKETS_S):
        assert list(bounds) == sorted(set(bounds))
        assert bounds[-1] == 60.0


def test_a_controller_shows_all_of_its_series_before_anything_happened() -> None:
    shown = Shown(workers=8)
    found = series(shown.metrics.collect())
    assert len([name for name in found if not name.endswith(("_bucket", "_sum"))]) == 15, "by their names in the docs"
    for name, its in found.items():
        first = 1 if name.startswith("controller_runtime") else 2
        assert {labels[:first] for labels in its} == {("memcached",) * first}, name
    assert found["controller_runtime_reconcile_total"] == {
        ("memcached", result): 0 for result in ("success", "error", "requeue", "requeue_after")
    }
    assert found["controller_runtime_max_concurrent_reconciles"] == {("memcached",): 8}


async def test_what_a_controller_does_is_what_is_shown() -> None:
    ends = (Unreachable("down"), TerminalError("no"), ValueError("bug"))
    script: list[Step] = [Result(), Result(requeue_after_s=3600.0), *ends]
    shown = Shown(queue=AsyncWorkQueue)
    assert isinstance(shown.queue, AsyncWorkQueue)
    controller = Controller(
        "memcached",
        Reconciler(*script),
        queue=shown.queue,
        reconciled=shown.observer.reconciled,
        workers=1,
    )
    one, both = ("memcached",), ("memcached", "memcached")
    async with running(controller), asyncio.timeout(DEADLINE_S):
        for number in range(len(script)):
            controller.queue.add(f"key-{number}")
        while shown.queue.processing or shown.queue.depth():  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert shown["controller_runtime_reconcile_total"] == {
        ("memcached", "success"): 1,
        ("memcached", "error"): 3,
        ("memcached", "requeue"): 0,
        ("memcached", "requeue_after"): 1,
    }
    for name, number in (("reconcile_errors", 3), ("terminal_reconcile_errors", 1), ("reconcile_panics", 1)):
        assert shown[f"controller_runtime_{name}_total"] == {one: number}
    assert shown["controller_runtime_reconcile_timeouts_total"] == {one: 0}
    assert shown["workqueue_adds_total"] == {both: 5}
    assert shown["workqueue_retries_total"] == {both: 2}
    assert shown["controller_runtime_reconcile_time_seconds_count"] == {one: len(script)}
    assert shown["workqueue_queue_duration_seconds_count"] == {both: len(script)}


def test_work_that_hangs_shows_while_it_hangs_and_then_as_an_error_and_a_timeout(clock: FakeClock) -> None:
    shown = Shown(clock, workers=2)
    for key in "ab":
        shown.queue.add(key)
        shown.queue.get_nowait()
        clock.advance(10.0)
    labels = ("memcached", "memcached")
    assert shown["workqueue_unfinished_work_seconds"] == {labels: 30.0}
    assert shown["workqueue_longest_running_processor_seconds"] == {labels: 20.0}
    assert shown["controller_runtime_active_workers"] == {("memcached",): 2}
    shown.observer.reconciled(ReconcileOutcome.TIMEOUT, 60.0)
    assert shown["controller_runtime_reconcile_timeouts_total"] == {("memcached",): 1}
    assert shown["controller_runtime_reconcile_errors_total"] == {("memcached",): 1}


def test_depth_is_by_priority_and_has_no_more_of_them_than_is_bearable() -> None:
    shown = Shown()
    for priority in range(1, MAX_PRIORITIES + 6):
        shown.queue.add(f"key-{priority}", priority=priority)
    depth = shown["workqueue_depth"]
    assert depth["memcached", "memcached", "other"] == 5
    assert depth["memcached", "memcached", "0"] == 0
    assert len(depth) == MAX_PRIORITIES + 2
    assert sum(depth.values()) == MAX_PRIORITIES + 5


def test_what_fails_is_named_and_keeps_nothing_else_from_being_shown(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()

    def shells() -> list[Metric]:
        raise LookupError("no shells yet")

    async def awaited() -> list[Metric]:
        return []

    metrics.add(shells)
    depth = Gauge("depth", "How deep.", registry=metrics)
    metrics.add(lambda: [gauge("clerks", "Another source.", (), [((), 2)])])
    for _ in range(3):
        assert series(metrics.collect()) == {"clerks": {(): 2}, "depth": {(): 0}}
    (line,) = caplog.messages
    assert "shells (" in line
    assert line.endswith(" failed for a scrape: LookupError: no shells yet. Its metrics are missing.")
    metrics.unregister(depth)
    assert series(metrics.collect()) == {"clerks": {(): 2}}
    with pytest.raises(TypeError, match=r"^the source of metrics is a coroutine function, .*awaited \("):
        metrics.add(awaited)  # type: ignore[arg-type]


async def test_the_loops_lag_and_its_tasks_are_shown_those_of_others_not() -> None:
    metrics = Metrics()
    observe_lag = loop_metrics(metrics)

    def tasks() -> float:
        return series(metrics.collect())["event_loop_tasks"][()]

    before = tasks()
    more = [asyncio.create_task(asyncio.Event().wait()) for _ in range(3)]
    assert tasks() == before + 3
    for task in more:
        task.cancel()
    await asyncio.wait(more)
    assert tasks() == before
    assert await asyncio.to_thread(tasks) == 0, "no loop runs there"
    for seconds in (0.0, 3.0):
        observe_lag(seconds)
    up_to = series(metrics.collect())["event_loop_lag_seconds_bucket"]
    assert (up_to["0.001",], up_to["2.5",], up_to["5.0",]) == (1, 1, 2)
