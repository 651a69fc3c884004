"""What `kubectl get` prints: the columns of a resource, and the cells of an object.

Differs from Kubernetes: of what a JSONPath finds, see `jsonpath`.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from memcached_operator.simulator.errors import Json, not_implemented
from memcached_operator.simulator.kinds.cells import BUILT_IN
from memcached_operator.simulator.kinds.durations import age, parse_time
from memcached_operator.simulator.kinds.jsonpath import find
from memcached_operator.simulator.resources import Column, Resource

_NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_AGE_DESCRIPTION = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
_NAME = Column(
    {"name": "Name", "type": "string", "format": "name", "description": _NAME_DESCRIPTION, "priority": 0},
    ".metadata.name",
)
_AGE = Column(
    {"name": "Age", "type": "date", "format": "", "description": _AGE_DESCRIPTION, "priority": 0},
    ".metadata.creationTimestamp",
)


def columns(resource: Resource) -> list[Json]:
    """`metav1.TableColumnDefinition` of each column; a custom resource's first is its name."""
    return [column.definition for column in _columns(resource)]


def cells(resource: Resource, found: Json, now: datetime) -> list[Any]:
    """What stands in each column of an object; null where a custom resource has nothing.

    Raises:
        ApiError: 501, there is no table of this kind, or a column's JSONPath is not implemented.
    """
    if resource.custom:
        return [_cell(column, found, now) for column in _columns(resource)]
    printed = BUILT_IN.get(resource.full_name)
    if printed is None:
        raise not_implemented(f"a table of {resource.full_name}")
    return printed(found, now)


def _columns(resource: Resource) -> tuple[Column, ...]:
    if not resource.custom:
        return resource.columns
    own = tuple(column for column in resource.columns if column.definition.get("format") != "name")
    return (_NAME, *(own or (_AGE,)))


def _cell(column: Column, found: Json, now: datetime) -> object:
    values = find(column.path, found)
    if not values:
        return None
    value = values[0]
    kind = column.definition["type"]
    if kind == "string":
        return _text(value)
    if isinstance(value, bool):
        return value if kind == "boolean" else None
    if isinstance(value, int | float) and kind in ("integer", "number"):
        return int(value) if kind == "integer" else value
    if isinstance(value, str) and kind == "date":
        return _age(value, now)
    return None


def _text(value: object) -> str:
    """As Go prints it."""
    if isinstance(value, str):
        return value
    return "<no value>" if value is None else json.dumps(value, separators=(",", ":"), sort_keys=True)


def _age(time: str, now: datetime) -> str:
    try:
        parse_time(time)
    except ValueError:
        return "<invalid>"
    return age(time, now)
