"""Tables of `kubectl get`: the columns of a resource, and the cells of an object.

Differs from Kubernetes: of what a JSONPath finds, see `jsonpath`.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from kube_simulator.errors import not_implemented
from kube_simulator.kinds.cells import BUILT_IN
from kube_simulator.kinds.durations import age, parse_time
from kube_simulator.kinds.jsonpath import find
from kube_simulator.resources import Column, Resource
from kube_simulator.values import Json


def columns(resource: Resource) -> list[Json]:
    """`metav1.TableColumnDefinition` of each column; one of them, of the format `name`, is the object's name."""
    return [column.definition for column in resource.columns]


def cells(resource: Resource, found: Json, now: datetime) -> list[Any]:
    """Return the cell of each column of an object; null where a custom resource has nothing.

    Raises:
        ApiError: 501, there is no table of this kind, or a column's JSONPath is not implemented.
    """
    if resource.custom:
        return [_cell(column, found, now) for column in resource.columns]
    printed = BUILT_IN.get(resource.full_name)
    if printed is None:
        raise not_implemented(f"a table of {resource.full_name}")
    return printed(found, now)


def _cell(column: Column, found: Json, now: datetime) -> object:
    if column.definition.get("format") == "name":
        return found["metadata"]["name"]
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
    """Format as Go prints it."""
    if isinstance(value, str):
        return value
    return "<no value>" if value is None else json.dumps(value, separators=(",", ":"), sort_keys=True)


def _age(time: str, now: datetime) -> str:
    try:
        parse_time(time)
    except ValueError:
        return "<invalid>"
    return age(time, now)
