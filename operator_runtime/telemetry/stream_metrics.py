"""Metrics of each watch: whether it lives, its history, and what it holds; and of writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from prometheus_client import Metric

from operator_runtime.cache.reflector import Reflector
from operator_runtime.client.watch_ends import Cause
from operator_runtime.telemetry.metrics import counter, gauge

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
        (
            ((*labels, cause.value), each.statistics.restarts.get(cause, 0))
            for labels, each in labelled
            for cause in Cause
        ),
    )
    yield counters(
        "relists", "Complete lists that were applied, including the first.", lambda each: each.statistics.relists
    )
    yield counters(
        "unreadable_objects",
        "Versions of objects that could not be decoded and were skipped.",
        lambda each: each.statistics.unreadable,
    )
    yield gauges("cached_objects", "Objects that the cache holds of this watch.", lambda each: each.cached_objects)
    yield gauge(
        "watch_stream_resource_version",
        "The last resourceVersion that the watch confirmed; absent before the first list.",
        _STREAM,
        ((labels, float(each.resource_version)) for labels, each in held if _is_number(each.resource_version)),
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


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit()
