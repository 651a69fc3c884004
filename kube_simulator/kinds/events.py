"""Events, which core/v1 and events.k8s.io/v1 show in two forms of one object. Stored is that of events.k8s.io/v1."""

from __future__ import annotations

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


def to_core(event: Json) -> Json:
    """Convert from events.k8s.io/v1 to core/v1."""
    renamed = {_CORE_NAMES.get(key, key): value for key, value in event.items()}
    old: Json = {"source": {}, "firstTimestamp": None, "lastTimestamp": None}
    return {**old, **compact_object(renamed), "apiVersion": "v1"}


def from_core(event: Json) -> Json:
    """Convert from core/v1 to events.k8s.io/v1."""
    renamed = {_NEW_NAMES.get(key, key): value for key, value in event.items()}
    return _default({**renamed, "apiVersion": "events.k8s.io/v1"})


def _default(new: Json) -> Json:
    return {"eventTime": None, "regarding": {}, **compact_object(new)}


STRATEGY: Final[Strategy] = plain(_default)
