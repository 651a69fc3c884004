"""What is counted, and which families it becomes."""

from __future__ import annotations

import asyncio

import pytest

from operator_runtime.client.errors import Unreachable
from operator_runtime.controller.controller import Controller, ControllerConfig, Outcome, Result
from operator_runtime.diagnostics.failure_log import TerminalError
from operator_runtime.telemetry.metrics import (
    MAX_PRIORITIES,
    QUEUE_BUCKETS_S,
    RECONCILE_BUCKETS_S,
    ControllerMetrics,
    Family,
    Histogram,
    Kind,
    LoopLag,
    Metrics,
    counter,
    gauge,
    histogram,
)
from operator_runtime.testing.clock import FakeClock
from operator_runtime.workqueue.async_queue import AsyncWorkQueue
from operator_runtime.workqueue.queue import WorkQueue
from tests.unit.operator_runtime.controller.controller_support import DEADLINE_S, Reconciler, Step, running
from tests.unit.operator_runtime.workqueue.queue_support import steady_backoff


def by_name(families: list[Family]) -> dict[str, Family]:
    found = {each.name: each for each in families}
    assert len(found) == len(families)
    return found


def values(family: Family) -> dict[tuple[str, ...], float]:
    return {sample.labels: sample.value for sample in family.samples if not isinstance(sample.value, Histogram)}


def test_the_buckets_are_those_that_dashboards_know() -> None:
    assert len(RECONCILE_BUCKETS_S) == 40
    for bounds in (RECONCILE_BUCKETS_S, QUEUE_BUCKETS_S):
        assert list(bounds) == sorted(set(bounds))
        assert bounds[-1] == 60.0


@pytest.mark.parametrize(("seconds", "bucket"), [(0.0, 0), (1.0, 0), (1.1, 1), (2.0, 1), (2.1, 2)])
def test_a_bound_belongs_to_its_bucket(seconds: float, bucket: int) -> None:
    histogram = Histogram((1.0, 2.0))
    histogram.observe(seconds)
    assert [number for number, count in enumerate(histogram.counts) if count] == [bucket]
    assert histogram.sum == seconds


def test_a_histogram_is_shown_as_it_was_when_it_was_read() -> None:
    seconds = Histogram((1.0, 2.0))
    seconds.observe(0.5)
    shown = histogram("time_seconds", "How long.", (), [((), seconds)]).samples[0].value
    seconds.observe(1.5)
    assert isinstance(shown, Histogram)
    assert (shown.bounds, shown.counts, shown.sum) == ((1.0, 2.0), [1, 0, 0], 0.5)


def test_a_controller_shows_all_of_its_families_before_anything_happened() -> None:
    metrics, queue = ControllerMetrics[str]("memcached", 8), WorkQueue[str]()
    families = by_name(list(metrics.families(queue)))
    assert sorted(families) == [
        "controller_runtime_active_workers",
        "controller_runtime_max_concurrent_reconciles",
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_reconcile_panics_total",
        "controller_runtime_reconcile_time_seconds",
        "controller_runtime_reconcile_timeouts_total",
        "controller_runtime_reconcile_total",
        "controller_runtime_terminal_reconcile_errors_total",
        "workqueue_adds_total",
        "workqueue_depth",
        "workqueue_longest_running_processor_seconds",
        "workqueue_queue_duration_seconds",
        "workqueue_retries_total",
        "workqueue_unfinished_work_seconds",
        "workqueue_work_duration_seconds",
    ]
    for name, family in families.items():
        first = ("controller",) if name.startswith("controller_runtime") else ("name", "controller")
        assert family.labels[: len(first)] == first
        assert family.samples, f"{name} is there from the first scrape"
        assert all(set(sample.labels[: len(first)]) == {"memcached"} for sample in family.samples)
    results = families["controller_runtime_reconcile_total"]
    assert values(results) == {("memcached", result): 0 for result in ("success", "error", "requeue", "requeue_after")}
    assert values(families["controller_runtime_max_concurrent_reconciles"]) == {("memcached",): 8}


async def test_what_a_controller_does_is_what_is_shown() -> None:
    ends = (Unreachable("down"), TerminalError("no"), ValueError("bug"))
    script: list[Step] = [Result(), Result(requeue_after_s=3600.0), *ends]
    metrics = ControllerMetrics[str]("memcached", 1)
    core = WorkQueue[str](observer=metrics, backoff=steady_backoff())
    controller = Controller(
        "memcached",
        Reconciler(*script),
        queue=AsyncWorkQueue(core),
        observer=metrics,
        config=ControllerConfig(workers=1),
    )
    shown: dict[str, Family] = {}
    async with running(controller), asyncio.timeout(DEADLINE_S):
        for number in range(len(script)):
            controller.queue.add(f"key-{number}")
        while sum(_counts(shown.get("workqueue_work_duration_seconds"))) < len(script):
            await asyncio.sleep(0)
            shown = by_name(list(metrics.families(core)))
    results = values(shown["controller_runtime_reconcile_total"])
    assert results == {
        ("memcached", "success"): 1,
        ("memcached", "error"): 3,
        ("memcached", "requeue"): 0,
        ("memcached", "requeue_after"): 1,
    }
    for name, number in (("reconcile_errors", 3), ("terminal_reconcile_errors", 1), ("reconcile_panics", 1)):
        assert values(shown[f"controller_runtime_{name}_total"]) == {("memcached",): number}
    assert values(shown["controller_runtime_reconcile_timeouts_total"]) == {("memcached",): 0}
    assert values(shown["workqueue_adds_total"]) == {("memcached", "memcached"): 5}
    assert values(shown["workqueue_retries_total"]) == {("memcached", "memcached"): 2}
    for name in ("controller_runtime_reconcile_time_seconds", "workqueue_queue_duration_seconds"):
        assert sum(_counts(shown[name])) == len(script)


def _counts(family: Family | None) -> list[int]:
    if family is None:
        return []
    (sample,) = family.samples
    assert isinstance(sample.value, Histogram)
    return sample.value.counts


def test_a_reconcile_that_took_too_long_is_an_error_and_a_timeout() -> None:
    metrics = ControllerMetrics[str]("memcached", 1)
    metrics.reconciled("memcached", Outcome.TIMEOUT, 60.0)
    shown = by_name(list(metrics.families(WorkQueue())))
    assert values(shown["controller_runtime_reconcile_timeouts_total"]) == {("memcached",): 1}
    assert values(shown["controller_runtime_reconcile_errors_total"]) == {("memcached",): 1}


def test_work_that_hangs_shows_while_it_hangs(clock: FakeClock) -> None:
    metrics = ControllerMetrics[str]("memcached", 2)
    queue = WorkQueue[str](clock=clock, observer=metrics)
    for key in "ab":
        queue.add(key)
        queue.get_nowait()
        clock.advance(10.0)
    shown = by_name(list(metrics.families(queue)))
    labels = ("memcached", "memcached")
    assert values(shown["workqueue_unfinished_work_seconds"]) == {labels: 30.0}
    assert values(shown["workqueue_longest_running_processor_seconds"]) == {labels: 20.0}
    assert values(shown["controller_runtime_active_workers"]) == {("memcached",): 2}


def test_depth_is_by_priority_and_has_no_more_of_them_than_is_bearable() -> None:
    metrics, queue = ControllerMetrics[str]("memcached", 1), WorkQueue[str]()
    for priority in range(1, MAX_PRIORITIES + 6):
        queue.add(f"key-{priority}", priority=priority)
    depth = values(by_name(list(metrics.families(queue)))["workqueue_depth"])
    assert depth[("memcached", "memcached", "other")] == 5
    assert depth[("memcached", "memcached", "0")] == 0
    assert len(depth) == MAX_PRIORITIES + 2
    assert sum(depth.values()) == MAX_PRIORITIES + 5


def test_families_of_one_name_are_joined() -> None:
    metrics = Metrics()
    for name in ("a", "b"):
        metrics.add(lambda name=name: [counter("x_total", "x", ["of"], [((name,), 1)])])  # type: ignore[misc]
    metrics.add(lambda: [gauge("y", "y", [], [((), 2)])])
    x, y = metrics.families()
    assert (x.name, values(x), y.kind) == ("x_total", {("a",): 1, ("b",): 1}, Kind.GAUGE)


async def test_a_loop_that_is_held_up_shows_by_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    lag = LoopLag(clock, period_s=0.001)
    looks = [0.001, 3.001]

    def look() -> None:
        clock.advance(looks.pop(0))
        LoopLag._look(lag)
        if not looks:
            lag.stop()

    monkeypatch.setattr(lag, "_look", look)
    await asyncio.wait_for(lag.run(), DEADLINE_S)
    (sample,) = next(family.samples for family in lag.families() if family.name == "event_loop_lag_seconds")
    assert isinstance(sample.value, Histogram)
    bounds = [bound for bound, count in zip(sample.value.bounds, sample.value.counts, strict=False) if count]
    assert bounds == [0.001, 5.0]


async def test_the_tasks_of_the_loop_are_counted_those_of_others_not() -> None:
    lag = LoopLag(FakeClock())

    def tasks() -> float:
        (sample,) = next(family.samples for family in lag.families() if family.name == "event_loop_tasks")
        assert not isinstance(sample.value, Histogram)
        return sample.value

    assert tasks() == 0, "it does not run yet"
    running = asyncio.create_task(lag.run())
    await asyncio.sleep(0)
    before = tasks()
    more = [asyncio.create_task(asyncio.Event().wait()) for _ in range(3)]
    assert tasks() == before + 3
    for task in more:
        task.cancel()
    await asyncio.wait(more)
    assert await asyncio.to_thread(tasks) == before
    lag.stop()
    await running
