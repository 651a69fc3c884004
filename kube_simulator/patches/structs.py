"""What applied JSON becomes where its schema has types: whole numbers are integers, and a built-in kind is Go's.

A struct of Go has no null and, where a field may be left out, no empty list and no empty map of strings either.
"""

from __future__ import annotations

from typing import Any

from kube_simulator.patches.shapes import Shape
from kube_simulator.patches.values import go_type
from kube_simulator.schema.node import MISSING

_GO_KINDS = {"bool": "bool", "map[string]interface {}": "object", "[]interface {}": "array", "float64": "number"}


class Unconvertible(Exception):
    """A value that no field of its type in Go can take, which the schema has let pass."""


def whole_numbers(value: Any, shape: Shape) -> Any:
    """The value, with 1.0 as 1 where the schema wants an integer; the value itself if there is nothing to do."""
    if isinstance(value, dict) and shape.kind in ("map", "any"):
        result = value
        for name, each in value.items():
            new = whole_numbers(each, shape.field(name))
            if new is not each:
                result = {**result, name: new}
        return result
    if isinstance(value, list) and shape.kind == "list":
        elements = [whole_numbers(each, shape.items) for each in value]
        return value if all(new is each for new, each in zip(elements, value, strict=True)) else elements
    if isinstance(value, float) and value.is_integer() and shape.node.type == "integer":
        return int(value)
    return value


def as_struct(value: Any, before: Any, shape: Shape) -> Any:
    """A value of a built-in kind as Go keeps it; the value itself if there is nothing to do.

    Args:
        before: what stood there; what both share is not looked into.

    Raises:
        Unconvertible: its type is not the field's.
    """
    if value is before:
        return value
    if isinstance(value, dict) and shape.kind == "map":
        return _struct(value, before if isinstance(before, dict) else {}, shape)
    if isinstance(value, list) and shape.kind == "list":
        elements = [as_struct(each, None, shape.items) for each in value]
        return value if all(new is each for new, each in zip(elements, value, strict=True)) else elements
    if shape.node.int_or_string and (isinstance(value, bool) or not isinstance(value, int | str)):
        raise Unconvertible(f"json: cannot unmarshal {_kind(value)} into Go value of type int32")
    if shape.node.type == "integer" and isinstance(value, float):
        raise Unconvertible("cannot convert float64 to int64")
    return value


def _struct(value: dict[str, Any], before: dict[str, Any], shape: Shape) -> dict[str, Any]:
    result = value
    for name, each in value.items():
        below, mine = shape.field(name), before.get(name, MISSING)
        if each is mine:
            continue
        if each is None and not shape.declares(name) and below.node.default is not MISSING:
            new: Any = below.node.default  # the zero value of what a map holds
        elif _vanishes(each, shape, name):
            result = {key: kept for key, kept in result.items() if key != name}
            continue
        else:
            new = as_struct(each, mine, below)
        if new is not each:
            result = {**result, name: new}
    return result


def _vanishes(value: Any, shape: Shape, name: str) -> bool:
    """Whether a field of this value is written by Go as if it were not there."""
    if value is None:
        return shape.kind == "map" and not shape.preserving
    if value not in ([], {}) or not shape.declares(name) or name in shape.node.raw.get("required", ()):
        return False
    below = shape.field(name)
    return below.kind == "list" or (below.kind == "map" and below.node.additional is not None)


def _kind(value: Any) -> str:
    return _GO_KINDS.get(go_type(value), "value")
