"""Events, which core/v1 and events.k8s.io/v1 show in two forms of one object.

Stored is the form of events.k8s.io/v1. Its rules are strict; those of core/v1 are as loose as they were before it.
"""

from __future__ import annotations

from kube_simulator.errors import Cause
from kube_simulator.kinds.base import Strategy, tidy
from kube_simulator.kinds.causes import IMMUTABLE, invalid, required, unlike
from kube_simulator.kinds.compaction import CORE_V1, EVENTS_V1, compact_object
from kube_simulator.kinds.names import qualified_name
from kube_simulator.kinds.times import micro_time, whole_seconds
from kube_simulator.values import Json

# k8s.io/kubernetes/pkg/apis/core/validation/events.go.
_NOTE_LIMIT = 1024
_TEXT_LIMIT = 128
_LEAST_SERIES = 2
_TYPES = ("Normal", "Warning")
_CLUSTER_NAMESPACES = ("default", "kube-system")

# Fields of events.k8s.io/v1, and what core/v1 calls them.
_CORE_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_NEW_NAMES = {core: new for new, core in _CORE_NAMES.items()}
_REFERENCE = {"kind": "Kind", "namespace": "Namespace", "name": "Name", "uid": "UID", "apiVersion": "APIVersion"} | {
    "resourceVersion": "ResourceVersion",
    "fieldPath": "FieldPath",
}


def to_core(event: Json) -> Json:
    """From events.k8s.io/v1 to core/v1."""
    renamed = {_CORE_NAMES.get(key, key): value for key, value in event.items()}
    return {**compact_object(renamed, f"{CORE_V1}Event"), "apiVersion": "v1"}


def from_core(event: Json) -> Json:
    """From core/v1 to events.k8s.io/v1."""
    renamed = {_NEW_NAMES.get(key, key): value for key, value in event.items()}
    return _default({**renamed, "apiVersion": "events.k8s.io/v1"})


def _default(new: Json) -> Json:
    given = compact_object(new, f"{EVENTS_V1}Event")
    for key in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp"):
        given[key] = whole_seconds(given[key]) if given[key] else None
    given["eventTime"] = micro_time(given["eventTime"]) if given["eventTime"] else None
    if "series" in given:
        series = given["series"]
        observed = series["lastObservedTime"]
        given["series"] = {**series, "lastObservedTime": micro_time(observed) if observed else None}
    return given


def _create(new: Json) -> Json:
    return tidy(new)


def _update(new: Json, _old: Json, _subresource: str) -> Json:
    return _default(tidy(new))


def _core_problems(new: Json, _old: Json | None) -> list[Cause]:
    return _common_problems(new, "reportingComponent")


def _problems(new: Json, old: Json | None) -> list[Cause]:
    if old is not None:
        return _changes(new, old) + _series_problems(new)
    found = _common_problems(new, "reportingController")
    if not new["eventTime"]:
        found.append(required("eventTime"))
    if new.get("type", "") not in _TYPES:
        found.append(_flawed("type", f"has invalid value: {new.get('type', '')}"))
    for key in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount", "deprecatedSource"):
        if new.get(key):
            found.append(_flawed(_CORE_NAMES[key], "needs to be unset"))
    return found + _series_problems(new)


def _common_problems(new: Json, controller_field: str) -> list[Cause]:
    """What holds for both forms; an event without eventTime is one of the old kind, about which little is asked."""
    namespace, subject = new["metadata"].get("namespace") or "", new["regarding"].get("namespace") or ""
    misplaced = invalid("involvedObject.namespace", subject, "does not match event.namespace")
    if not new["eventTime"]:
        agrees = subject == namespace or (not subject and namespace == "default")
        return [] if agrees else [misplaced]
    found = [] if subject or namespace in _CLUSTER_NAMESPACES else [misplaced]
    controller = new.get("reportingController") or ""
    if not controller:
        found.append(required(controller_field))
    found += unlike(controller_field, controller, qualified_name(controller))
    for key in ("reportingInstance", "action", "reason"):
        text = new.get(key) or ""
        found += [] if text else [required(key)]
        found += [_flawed(key, f"can have at most {_TEXT_LIMIT} characters")] if len(text) > _TEXT_LIMIT else []
    if len(new.get("note") or "") > _NOTE_LIMIT:
        found.append(_flawed("message", f"can have at most {_NOTE_LIMIT} characters"))
    return found


def _series_problems(new: Json) -> list[Cause]:
    series = new.get("series")
    if series is None:
        return []
    found = []
    if series["count"] < _LEAST_SERIES:
        found.append(_flawed("series.count", f"should be at least {_LEAST_SERIES}"))
    if not series["lastObservedTime"]:
        found.append(required("series.lastObservedTime"))
    return found


def _changes(new: Json, old: Json) -> list[Cause]:
    """All but the series stays as it was."""
    found = []
    for key in (*_CORE_NAMES, "eventTime", "reason", "type", "action", "related", "reportingInstance"):
        if new.get(key) == old.get(key):
            continue
        value = new.get(key)
        if key in ("regarding", "related") and value is not None:
            value = {shown: value.get(name, "") for name, shown in _REFERENCE.items()}
        field = key if key == "reportingController" else _CORE_NAMES.get(key, key)
        found.append(invalid(field, value, IMMUTABLE))
    return found


def _flawed(field: str, why: str) -> Cause:
    """Kubernetes does not repeat the values of events."""
    return invalid(field, "", why)


CORE = Strategy(_create, _update, _default, _core_problems)
STRATEGY = Strategy(_create, _update, _default, _problems)
