"""Instruments: what is counted as it happens, in plain slots, and families: what a scrape reads of it.

Counting costs an addition; nothing is formatted and no metrics library is loaded before somebody scrapes
(`telemetry.exposition`). Names and labels are controller-runtime's where it has the metric: its dashboards work.
Every label's values come from a set that the code bounds, those of `--metrics-per-object` excepted.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from operator_runtime.controller.controller import Outcome
from operator_runtime.diagnostics.callback_errors import CallbackErrors
from operator_runtime.workqueue.queue import WorkQueue

K = TypeVar("K")

# Those of controller-runtime's reconcile time, in seconds.
RECONCILE_BUCKETS_S = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0),
    *(40.0, 50.0, 60.0),
)
# controller-runtime's go from 10 ns in steps of ten, too coarse where it matters to a Python loop: 1 ms to 60 s.
QUEUE_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LAG_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# How often the event loop's lag is looked at: often enough that a stall of a second is always seen, seldom enough to
# cost nothing (some 20 us each).
LAG_PERIOD_S = 0.5
# controller-runtime shows so many priorities of a queue each on its own, and sums the rest.
MAX_PRIORITIES = 25
OTHER_PRIORITIES = "other"


class Kind(StrEnum):
    """What a family's numbers are."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Histogram:
    """How often a duration fell into which bucket; see `observe`."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        """
        Args:
            bounds: upper bounds of the buckets, in seconds, rising; one without a bound is added.
        """
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum += seconds

    def copy(self) -> Histogram:
        """One of its own with what was counted so far."""
        copy = Histogram(self.bounds)
        copy.counts = self.counts.copy()
        copy.sum = self.sum
        return copy


class Sample(NamedTuple):
    """One series: the values of the family's labels, and a number (or, of a histogram, all its buckets)."""

    labels: tuple[str, ...]
    value: float | Histogram


class Family(NamedTuple):
    """All series of one name.

    Attributes:
        name: in full, with `_total` where it is a counter.
        help: one sentence.
        labels: names of the labels.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    samples: Sequence[Sample]


Source = Callable[[], Iterable[Family]]
"""Gives families as they are now. Called at each scrape, on the operator's event loop, and quick."""


class Metrics:
    """Everything that a scrape shows: the sources that the parts of an operator have added."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._callback_errors = CallbackErrors()

    def add(self, source: Source) -> None:
        """Show these families too. A source that fails is told in the log, and a scrape goes without its families."""
        self._sources.append(source)

    def families(self) -> list[Family]:
        """All of them, as they are now. Families of one name are joined."""
        joined: dict[str, Family] = {}
        for source in self._sources:
            with_these = dict(joined)
            try:
                for family in source():
                    with_these[family.name] = _joined(with_these.get(family.name), family)
            except Exception as error:
                self._callback_errors.tell(source, "a scrape", "Its metrics are missing.", error)
            else:
                joined = with_these
        return list(joined.values())


def _joined(before: Family | None, family: Family) -> Family:
    """Both as one family.

    Raises:
        ValueError: they differ in more than their series.
    """
    if before is None:
        return family
    if (family.kind, family.labels) != (before.kind, before.labels):
        raise ValueError(
            f"the metric {family.name} is shown already, as a {before.kind} {_with_labels(before.labels)}, and is now "
            f"a {family.kind} {_with_labels(family.labels)}: give yours another name"
        )
    return family._replace(samples=[*before.samples, *family.samples])


def _with_labels(labels: Sequence[str]) -> str:
    return f"with the labels {', '.join(labels)}" if labels else "without labels"


def family(
    kind: Kind, name: str, help: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float | Histogram]]
) -> Family:
    """A family from its series as pairs of label values and number."""
    return Family(name, kind, help, _several(labels), [Sample(_several(each), value) for each, value in values])


def _several(texts: Sequence[str]) -> tuple[str, ...]:
    if isinstance(texts, str):
        raise TypeError(f"labels are {texts!r}: give several of them, such as ({texts!r},)")
    return tuple(texts)


def counter(name: str, help: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float]]) -> Family:
    """A family of counters."""
    return family(Kind.COUNTER, name, help, labels, values)


def gauge(name: str, help: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float]]) -> Family:
    """A family of gauges."""
    return family(Kind.GAUGE, name, help, labels, values)


def histogram(name: str, help: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], Histogram]]) -> Family:
    """A family of histograms, as they are now: they are written later, on another thread, while they go on counting."""
    return family(Kind.HISTOGRAM, name, help, labels, ((each, value.copy()) for each, value in values))


# What each outcome counts as in `controller_runtime_reconcile_total`; all errors are "error" there.
_RESULTS = {
    Outcome.SUCCESS: "success",
    Outcome.REQUEUE: "requeue",
    Outcome.REQUEUE_AFTER: "requeue_after",
    Outcome.ERROR: "error",
    Outcome.TERMINAL: "error",
    Outcome.TIMEOUT: "error",
    Outcome.BUG: "error",
}


class ControllerMetrics(Generic[K]):
    """Observes one controller and its queue: hand it to both as their observer."""

    def __init__(self, name: str, workers: int) -> None:
        """
        Args:
            name: the controller's; its queue bears it too.
            workers: how many reconciles there may be at once.
        """
        self.name = name
        self._workers = workers
        self._outcomes = dict.fromkeys(Outcome, 0)
        self._reconcile_s = Histogram(RECONCILE_BUCKETS_S)
        self._queued_s = Histogram(QUEUE_BUCKETS_S)
        self._worked_s = Histogram(QUEUE_BUCKETS_S)

    def reconciled(self, controller: str, outcome: Outcome, seconds: float) -> None:
        """See `controller.ReconcileObserver`."""
        self._outcomes[outcome] += 1
        self._reconcile_s.observe(seconds)

    def queued(self, seconds: float) -> None:
        """See `queue.QueueObserver`."""
        self._queued_s.observe(seconds)

    def worked(self, seconds: float) -> None:
        """See `queue.QueueObserver`."""
        self._worked_s.observe(seconds)

    def families(self, queue: WorkQueue[K]) -> Iterator[Family]:
        """What controller-runtime shows of a controller and its queue."""
        yield from self._of_controller(queue)
        yield from self._of_queue(queue)

    def _of_controller(self, queue: WorkQueue[K]) -> Iterator[Family]:
        outcomes, prefix, name = self._outcomes, "controller_runtime_", (self.name,)
        results = {"success": 0, "error": 0, "requeue": 0, "requeue_after": 0}
        for outcome, number in outcomes.items():
            results[_RESULTS[outcome]] += number
        yield counter(
            f"{prefix}reconcile_total",
            "Reconciles by how they ended.",
            ("controller", "result"),
            (((self.name, result), number) for result, number in results.items()),
        )
        for suffix, number, help in (
            ("reconcile_errors", results["error"], "Reconciles that failed, whatever the reason."),
            (
                "terminal_reconcile_errors",
                outcomes[Outcome.TERMINAL],
                "Reconciles that failed and are not tried again before the object changes.",
            ),
            (
                "reconcile_panics",
                outcomes[Outcome.BUG],
                "Reconciles that a bug ended: an exception that is no error of the API.",
            ),
            ("reconcile_timeouts", outcomes[Outcome.TIMEOUT], "Reconciles that were ended because they took too long."),
        ):
            yield counter(f"{prefix}{suffix}_total", help, ("controller",), [(name, number)])
        time_ = "Seconds that a reconcile took."
        yield histogram(f"{prefix}reconcile_time_seconds", time_, ("controller",), [(name, self._reconcile_s)])
        limit = "How many reconciles there may be at the same time."
        yield gauge(f"{prefix}max_concurrent_reconciles", limit, ("controller",), [(name, self._workers)])
        active = "How many reconciles there are now."
        yield gauge(f"{prefix}active_workers", active, ("controller",), [(name, queue.processing)])

    def _of_queue(self, queue: WorkQueue[K]) -> Iterator[Family]:
        labels, values = ("name", "controller"), (self.name, self.name)
        yield gauge(
            "workqueue_depth",
            "Keys that are ready and wait for a worker, by priority.",
            (*labels, "priority"),
            (((*values, priority), number) for priority, number in _by_priority(queue.depth()).items()),
        )
        yield counter(
            "workqueue_adds_total", "Keys that became ready, duplicates not counted.", labels, [(values, queue.adds)]
        )
        yield counter("workqueue_retries_total", "Retries that a failure scheduled.", labels, [(values, queue.retries)])
        yield histogram(
            "workqueue_queue_duration_seconds",
            "Seconds that a key was ready before a worker took it.",
            labels,
            [(values, self._queued_s)],
        )
        yield histogram(
            "workqueue_work_duration_seconds", "Seconds that a key was worked on.", labels, [(values, self._worked_s)]
        )
        yield gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds of work in progress, all keys together: what grows without end is stuck.",
            labels,
            [(values, queue.unfinished_s())],
        )
        yield gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds that the oldest key has been worked on, 0 when none is.",
            labels,
            [(values, queue.longest_running_s())],
        )


def _by_priority(depth: Mapping[int, int]) -> dict[str, int]:
    shown = {"0": 0} | {str(priority): depth[priority] for priority in sorted(depth)[-MAX_PRIORITIES:]}
    if rest := sum(depth[priority] for priority in sorted(depth)[:-MAX_PRIORITIES]):
        shown[OTHER_PRIORITIES] = rest
    return shown


class LoopLag:
    """Measures how late the event loop runs what is due; a service of the manager."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, period_s: float = LAG_PERIOD_S) -> None:
        """
        Args:
            clock: monotonic seconds.
            period_s: seconds between two looks.
        """
        self._clock = clock
        self._period_s = period_s
        self._lag_s = Histogram(LAG_BUCKETS_S)
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due_at = 0.0

    async def run(self) -> None:
        """Look, again and again, until `stop`."""
        self._loop = asyncio.get_running_loop()
        self._arm()
        try:
            await self._stopping.wait()
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def stop(self) -> None:
        """Make `run` return."""
        self._stopping.set()

    def families(self) -> Iterator[Family]:
        """The lag as a histogram, and how many tasks there are."""
        yield histogram(
            "event_loop_lag_seconds",
            f"Seconds by which the event loop was late, looked at each {self._period_s:g} s.",
            (),
            [((), self._lag_s)],
        )
        help = "Tasks of the event loop that have not ended: what grows without end is a leak."
        tasks = 0 if self._loop is None else len(asyncio.all_tasks(self._loop))
        yield gauge("event_loop_tasks", help, (), [((), tasks)])

    def _arm(self) -> None:
        self._due_at = self._clock() + self._period_s
        self._timer = asyncio.get_running_loop().call_later(self._period_s, self._look)

    def _look(self) -> None:
        self._lag_s.observe(max(0.0, self._clock() - self._due_at))
        self._arm()
