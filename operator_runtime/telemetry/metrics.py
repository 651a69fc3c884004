"""Metrics: prometheus-client's own counters, gauges and histograms in a registry of the operator's.

What something else holds anyway is read at the scrape, by a source. Names and labels are controller-runtime's where it
has the metric: its dashboards work. Every label's values come from a set that the code bounds, those of
`--metrics-per-object` excepted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, disable_created_metrics
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from operator_runtime.cache.reflector import Reflector
from operator_runtime.client.watch_ends import Cause
from operator_runtime.controller.controller import ReconcileOutcome
from operator_runtime.diagnostics.callback_errors import CallbackErrors, check_plain
from operator_runtime.diagnostics.watchdog import PERIOD_S
from operator_runtime.workqueue.queue import WorkQueue

# Those of controller-runtime's reconcile time, in seconds.
RECONCILE_BUCKETS_S = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0),
    *(40.0, 50.0, 60.0),
)
# controller-runtime's go from 10 ns in steps of ten, too coarse where it matters to a Python loop: 1 ms to 60 s.
QUEUE_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LAG_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# controller-runtime shows so many priorities of a queue each on its own, and sums the rest.
MAX_PRIORITIES = 25
OTHER_PRIORITIES = "other"

# When a counter began would be one more series for each.
disable_created_metrics()  # type: ignore[no-untyped-call]

Source = Callable[[], Iterable[Metric]]
"""Gives families as they are now. Called at each scrape, on the operator's event loop, and quick."""


@dataclass(frozen=True, eq=False)
class Given:
    """A source as prometheus-client takes it: a collector."""

    collect: Source


class Metrics(CollectorRegistry):
    """Everything that a scrape shows. What fails is logged, and a scrape goes without its metrics alone."""

    def __init__(self) -> None:
        super().__init__()
        self._collectors: list[Collector] = []
        self._callback_errors = CallbackErrors()

    def add(self, source: Source) -> None:
        """Show these families, too; TypeError where `source` is a coroutine function."""
        check_plain(source, "the source of metrics")
        self.register(Given(source))

    def register(self, collector: Collector) -> None:
        """See `CollectorRegistry.register`: prometheus-client's counters and the like call it."""
        super().register(collector)
        self._collectors.append(collector)

    def unregister(self, collector: Collector) -> None:
        super().unregister(collector)
        self._collectors.remove(collector)

    def collect(self) -> Iterator[Metric]:
        for each in tuple(self._collectors):
            try:
                families = list(each.collect())
            except Exception as error:
                self._callback_errors.report(each.collect, "a scrape", "Its metrics are missing.", error)
            else:
                yield from families


Values = Iterable[tuple[Sequence[str], float]]
"""The series of a family, as pairs of label values and number."""


def counter(name: str, help: str, labels: Sequence[str], values: Values) -> Metric:
    """A family of counters."""
    return _filled(CounterMetricFamily(name, help, labels=labels), values)


def gauge(name: str, help: str, labels: Sequence[str], values: Values) -> Metric:
    """A family of gauges."""
    return _filled(GaugeMetricFamily(name, help, labels=labels), values)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, values: Values) -> Metric:
    for labels, value in values:
        family.add_metric(labels, value)
    return family


# The counters of errors, and those in which an outcome counts that is "error" in `controller_runtime_reconcile_total`.
_ERRORS = {
    "reconcile_errors": "Reconciles that failed, whatever the reason.",
    "terminal_reconcile_errors": "Reconciles that failed and are not tried again before the object changes.",
    "reconcile_panics": "Reconciles that a bug ended: an exception that is not an API error.",
    "reconcile_timeouts": "Reconciles that were ended because they took too long.",
}
_ERRORS_OF = {
    ReconcileOutcome.ERROR: ("reconcile_errors",),
    ReconcileOutcome.TERMINAL: ("reconcile_errors", "terminal_reconcile_errors"),
    ReconcileOutcome.BUG: ("reconcile_errors", "reconcile_panics"),
    ReconcileOutcome.TIMEOUT: ("reconcile_errors", "reconcile_timeouts"),
}


class ControllerMetrics:
    """Metrics of controllers and their queues, as controller-runtime has them, for all of an operator."""

    def __init__(self, metrics: Metrics) -> None:
        prefix, controller, queue = "controller_runtime_", ("controller",), ("name", "controller")
        self._results = Counter(
            f"{prefix}reconcile_total", "Reconciles by result.", (*controller, "result"), registry=metrics
        )
        self._errors = {
            name: Counter(f"{prefix}{name}_total", help, controller, registry=metrics) for name, help in _ERRORS.items()
        }
        self._reconcile_s = Histogram(
            f"{prefix}reconcile_time_seconds",
            "Duration of reconciles, in seconds.",
            controller,
            registry=metrics,
            buckets=RECONCILE_BUCKETS_S,
        )
        self._workers = Gauge(
            f"{prefix}max_concurrent_reconciles",
            "Maximum number of concurrent reconciles.",
            controller,
            registry=metrics,
        )
        self._active = Gauge(f"{prefix}active_workers", "Current number of reconciles.", controller, registry=metrics)
        self._queued_s = Histogram(
            "workqueue_queue_duration_seconds",
            "Seconds that a key was queued before a worker took it.",
            queue,
            registry=metrics,
            buckets=QUEUE_BUCKETS_S,
        )
        self._worked_s = Histogram(
            "workqueue_work_duration_seconds",
            "Seconds that a key was processed.",
            queue,
            registry=metrics,
            buckets=QUEUE_BUCKETS_S,
        )
        self._queues: dict[str, WorkQueue[Any]] = {}
        metrics.add(self._of_queues)

    def observer(self, name: str, workers: int) -> ControllerObserver:
        self._workers.labels(name).set(workers)
        counters = {}
        for outcome in ReconcileOutcome:
            errors = _ERRORS_OF.get(outcome, ())
            result = self._results.labels(name, "error" if errors else outcome.value)
            counters[outcome] = (result, *(self._errors[each].labels(name) for each in errors))
        return ControllerObserver(
            counters,
            self._reconcile_s.labels(name),
            self._queued_s.labels(name, name).observe,
            self._worked_s.labels(name, name).observe,
        )

    def add_queue(self, name: str, queue: WorkQueue[Any]) -> None:
        """Show the queue of the controller of that name, too."""
        self._queues[name] = queue
        self._active.labels(name).set_function(lambda: queue.processing)

    def _of_queues(self) -> Iterator[Metric]:
        labels = ("name", "controller")
        queues = [((name, name), queue) for name, queue in self._queues.items()]
        yield gauge(
            "workqueue_depth",
            "Keys that are ready and wait for a worker, by priority.",
            (*labels, "priority"),
            (
                ((*values, priority), number)
                for values, queue in queues
                for priority, number in _by_priority(queue.depth()).items()
            ),
        )
        for family, name, help, value in _OF_A_QUEUE:
            yield family(name, help, labels, ((values, value(queue)) for values, queue in queues))


_OF_A_QUEUE: tuple[tuple[Callable[..., Metric], str, str, Callable[[WorkQueue[Any]], float]], ...] = (
    (counter, "workqueue_adds_total", "Keys that became ready, duplicates not counted.", lambda queue: queue.adds),
    (counter, "workqueue_retries_total", "Retries that a failure scheduled.", lambda queue: queue.retries),
    (
        gauge,
        "workqueue_unfinished_work_seconds",
        "Seconds of work in progress, all keys together: steady growth means stuck workers.",
        lambda queue: queue.unfinished_s(),
    ),
    (
        gauge,
        "workqueue_longest_running_processor_seconds",
        "Seconds that the oldest key has been in progress, 0 if none is.",
        lambda queue: queue.longest_running_s(),
    ),
)


@dataclass(frozen=True, slots=True)
class ControllerObserver:
    """Counts what a controller and its queue do, each outcome in its `counters`: the observer of both."""

    counters: Mapping[ReconcileOutcome, Sequence[Counter]]
    reconcile_s: Histogram
    queued: Callable[[float], None]
    worked: Callable[[float], None]

    def reconciled(self, outcome: ReconcileOutcome, seconds: float) -> None:
        for each in self.counters[outcome]:
            each.inc()
        self.reconcile_s.observe(seconds)


def _by_priority(depth: Mapping[int, int]) -> dict[str, int]:
    shown = {"0": 0} | {str(priority): depth[priority] for priority in sorted(depth)[-MAX_PRIORITIES:]}
    if rest := sum(depth[priority] for priority in sorted(depth)[:-MAX_PRIORITIES]):
        shown[OTHER_PRIORITIES] = rest
    return shown


def loop_metrics(metrics: Metrics) -> Callable[[float], None]:
    """Show the event loop's; returns what is to be called, each `PERIOD_S`, with how many seconds it was late."""
    tasks = "Tasks of the event loop that have not ended: steady growth means a leak."
    Gauge("event_loop_tasks", tasks, registry=metrics).set_function(_tasks)
    lag = f"Seconds by which the event loop was late, looked at each {PERIOD_S:g} s."
    return Histogram("event_loop_lag_seconds", lag, registry=metrics, buckets=LAG_BUCKETS_S).observe


def _tasks() -> int:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # no loop runs here, as where a test reads the metrics
        return 0


_STREAM = ("resource", "scope")
# What is shown from the first scrape on: no answer, success, and what alerts are made of.
_ANSWERS = (0, 200, 201, 401, 403, 404, 409, 422, 429, 500, 503)
_METHODS = ("GET", "PATCH", "POST")


def stream_families(streams: Iterable[Reflector[Any]]) -> Iterator[Metric]:
    """The state of each watch. `scope` is the namespace that it watches, "" for all; see `Reflector.scope`.

    Of one that is optional and refused only the restarts are shown: that it brings nothing is not to raise an alarm.
    """
    labelled = [((each.resource.qualified_name, each.scope), each) for each in streams]
    held = [(labels, each) for labels, each in labelled if not (each.optional and each.refusal is not None)]

    def gauges(name: str, help: str, value: Callable[[Reflector[Any]], float]) -> Metric:
        return gauge(f"watch_stream_{name}", help, _STREAM, ((labels, value(each)) for labels, each in held))

    def counters(name: str, help: str, value: Callable[[Reflector[Any]], float]) -> Metric:
        return counter(f"watch_stream_{name}_total", help, _STREAM, ((labels, value(each)) for labels, each in held))

    yield gauges(
        "last_byte_age_seconds",
        "Seconds since the last byte; bookmarks come each minute, so that more than 70 means a dead stream.",
        lambda each: each.silent_s,
    )
    yield gauges(
        "last_event_age_seconds",
        "Seconds since the last whole event, bookmarks included.",
        lambda each: each.eventless_s,
    )
    yield counter(
        "watch_stream_restarts_total",
        "Requests that ended, by cause; closed is how every watch ends after 5 to 10 minutes.",
        (*_STREAM, "cause"),
        (((*labels, cause.value), each.restarts.get(cause, 0)) for labels, each in labelled for cause in Cause),
    )
    yield counters("relists", "Complete lists that were applied, including the first.", lambda each: each.relists)
    yield counters(
        "unreadable_objects",
        "Versions of objects that could not be decoded and were skipped.",
        lambda each: each.unreadable_objects,
    )
    yield gauges("cached_objects", "Objects that the cache holds of this watch.", lambda each: each.cached_objects)
    versions = ((labels, each.resource_version) for labels, each in held)
    yield gauge(
        "watch_stream_resource_version",
        "The last resourceVersion that the watch confirmed; absent before the first list.",
        _STREAM,
        ((labels, float(version)) for labels, version in versions if version.isascii() and version.isdigit()),
    )


def client_families(
    host: str,
    requests: Mapping[tuple[int, str], int],
    writes: Mapping[tuple[str, str], int],
    expected_writes: Iterable[tuple[str, str]] = (),
) -> Iterator[Metric]:
    """Requests to the API server, as client-go counts them, and those of them that changed something."""
    # From 0 on, or the first 403 would be no increase.
    answers = dict.fromkeys(product(_ANSWERS, _METHODS), 0) | dict(requests)
    yield counter(
        "rest_client_requests_total",
        "Requests to the API server, by status code and method; <error> where no answer came.",
        ("code", "method", "host"),
        (((str(code or "<error>"), method, host), number) for (code, method), number in answers.items()),
    )
    yield counter(
        "api_writes_total",
        "Writes that the API server accepted, by resource and verb.",
        ("resource", "verb"),
        (dict.fromkeys(expected_writes, 0) | dict(writes)).items(),
    )
