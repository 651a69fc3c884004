"""Events, which core/v1 and events.k8s.io/v1 show in two forms of one object. Stored is that of events.k8s.io/v1.

Differs from Kubernetes: the shape alone is checked.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from kube_simulator.kinds.compaction import compact_object
from kube_simulator.kinds.kind_strategy import Strategy, plain
from kube_simulator.values import Json

# Fields of events.k8s.io/v1, and what core/v1 calls them.
_CORE_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_NEW_NAMES: Final = {core: new for new, core in _CORE_NAMES.items()}


def micro_time(text: str) -> str:
    """A time to the microsecond, in UTC; what is none stays, as reading the body has refused it."""
    return _time(text, "%Y-%m-%dT%H:%M:%S.%fZ")


def to_core(event: Json) -> Json:
    """Convert from events.k8s.io/v1 to core/v1."""
    renamed = {_CORE_NAMES.get(key, key): value for key, value in event.items()}
    old: Json = {"source": {}, "firstTimestamp": None, "lastTimestamp": None}
    return {**old, **compact_object(renamed), "apiVersion": "v1"}


def from_core(event: Json) -> Json:
    """Convert from core/v1 to events.k8s.io/v1."""
    renamed = {_NEW_NAMES.get(key, key): value for key, value in event.items()}
    return _default({**renamed, "apiVersion": "events.k8s.io/v1"})


def _time(text: str, form: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).strftime(form)
    except ValueError:
        return text


def _default(new: Json) -> Json:
    given = {"eventTime": None, "regarding": {}, **compact_object(new)}
    for key in given.keys() & {"deprecatedFirstTimestamp", "deprecatedLastTimestamp"}:
        given[key] = _time(given[key], "%Y-%m-%dT%H:%M:%SZ")
    if given["eventTime"]:
        given["eventTime"] = micro_time(given["eventTime"])
    if observed := (given.get("series") or {}).get("lastObservedTime"):
        given["series"] = {**given["series"], "lastObservedTime": micro_time(observed)}
    return given


STRATEGY: Final[Strategy] = plain(_default)
