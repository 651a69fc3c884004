"""Tables of `kubectl get`: the columns of a resource, and the cells of an object."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from kube_simulator.errors import not_implemented
from kube_simulator.resources import Column, Resource
from kube_simulator.values import Json

_UNITS: Final = (("d", 86400), ("h", 3600), ("m", 60))
_STEP: Final = re.compile(
    r"""(?P<all>\[\*\]|\.\*)|\[(?P<index>-?\d+)\]|\.(?P<field>(?:[^.\[\]\\*]|\\.)+)"""
    r"""|\[\?\(\s*@\.(?P<key>[\w-]+)\s*==\s*["'](?P<value>[^"']*)["']\s*\)\]"""
)
Cells = Callable[[Json], Sequence[object]]


def columns(resource: Resource) -> list[Json]:
    """`metav1.TableColumnDefinition` of each column; one of them, of the format `name`, is the object's name."""
    if resource.custom:
        return [column.definition for column in resource.columns]
    own, _ = _BUILT_IN.get(resource.full_name, _PLAIN)
    plain = {"type": "string", "description": "", "priority": 0}
    return [{"name": name, "format": "name" if name == "Name" else "", **plain} for name in ("Name", *own, "Age")]


def cells(resource: Resource, found: Json, now: datetime) -> list[Any]:
    """Return the cell of each column of an object; null where a custom resource has nothing.

    Raises:
        ApiError: 501, a column's JSONPath is not implemented.
    """
    if resource.custom:
        return [_cell(column, found, now) for column in resource.columns]
    _, own = _BUILT_IN.get(resource.full_name, _PLAIN)
    metadata = found["metadata"]
    return [metadata["name"], *own(found), _age(metadata.get("creationTimestamp") or "", now)]


def find(path: str, value: object) -> list[Any]:
    """Find what a JSONPath such as `.spec.size` leads to; nothing if a field on the way is absent.

    Raises:
        ApiError: 501, the path has something that is not implemented.
    """
    found, at, text = [value], 0, path if path.startswith((".", "[")) else f".{path}"
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise not_implemented(f"the JSONPath {path}, from {text[at:]} on")
        found = [each for one in found for each in _taken(step, one)]
        at = step.end()
    return found


def _taken(step: re.Match[str], value: Any) -> Iterator[Any]:
    if step["field"] is not None:
        name = re.sub(r"\\(.)", r"\1", step["field"])
        if isinstance(value, dict) and name in value:
            yield value[name]
    elif step["all"]:
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    elif isinstance(value, list):
        if step["index"] is not None:
            yield from value[int(step["index"]) :][:1]
        else:
            yield from (each for each in value if isinstance(each, dict) and each.get(step["key"]) == step["value"])


def _cell(column: Column, found: Json, now: datetime) -> object:
    if column.definition.get("format") == "name":
        return found["metadata"]["name"]
    values = find(column.path, found)
    value, kind = values[0] if values else None, column.definition["type"]
    match kind, value:
        case _, None:
            return None
        case "date", str():
            return _age(value, now)
        case "string", _:
            return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)
        case "boolean", bool():
            return value
        case "integer" | "number", int() | float() if not isinstance(value, bool):
            return int(value) if kind == "integer" else value
    return None


def _age(time: str, now: datetime) -> str:
    """Return how long ago a time was, in its greatest unit: `59s`, `3m`, `5d`."""
    try:
        seconds = int((now - datetime.fromisoformat(time)).total_seconds())
    except (TypeError, ValueError):
        return "<invalid>"
    unit, length = next(((unit, length) for unit, length in _UNITS if seconds >= length), ("s", 1))
    return f"{max(seconds, 0) // length}{unit}"


def _status(found: Json) -> Json:
    return found.get("status") or {}


def _ready(found: Json) -> str:
    return f"{_status(found).get('readyReplicas', 0)}/{found['spec'].get('replicas', 0)}"


def _deployment(found: Json) -> Sequence[object]:
    return _ready(found), *(_status(found).get(key, 0) for key in ("updatedReplicas", "availableReplicas"))


def _pod(found: Json) -> Sequence[object]:
    status = _status(found)
    containers = status.get("containerStatuses") or []
    states: list[Json] = [next(iter((each.get("state") or {}).values()), {}) for each in containers]
    reasons = [each["reason"] for each in states if each.get("reason")]
    shown = "Terminating" if "deletionTimestamp" in found["metadata"] else next(iter(reasons), status.get("phase", ""))
    ready = f"{sum(bool(each.get('ready')) for each in containers)}/{len(found['spec'].get('containers') or ())}"
    return ready, shown, str(sum(each.get("restartCount", 0) for each in containers))


def _event(found: Json) -> Sequence[object]:
    subject = found.get("involvedObject") or found.get("regarding") or {}
    target = f"{subject.get('kind', '').lower()}/{subject.get('name', '')}"
    return found.get("type", ""), found.get("reason", ""), target, found.get("message") or found.get("note") or ""


_PLAIN: Final[tuple[Sequence[str], Cells]] = ((), lambda _found: ())
_EVENT: Final[tuple[Sequence[str], Cells]] = (("Type", "Reason", "Object", "Message"), _event)
_BUILT_IN: Final[dict[str, tuple[Sequence[str], Cells]]] = {
    "deployments.apps": (("Ready", "Up-to-date", "Available"), _deployment),
    "events": _EVENT,
    "events.events.k8s.io": _EVENT,
    "pods": (("Ready", "Status", "Restarts"), _pod),
    "statefulsets.apps": (("Ready",), lambda found: (_ready(found),)),
}
