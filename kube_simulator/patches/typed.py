"""An applied object against its schema: what is wrong with it, and which fields its applier owns by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube_simulator.patches.fieldsets import ALONE, SELF, Fields, field_step, text
from kube_simulator.patches.shapes import Shape
from kube_simulator.patches.values import go_type, printed, written


def problem(value: Any, shape: Shape) -> str:
    """What does not fit the schema, in the words of Kubernetes; empty if all does."""
    found = list(_problems(value, shape, ""))
    return "\n  ".join(["errors:", *found]) if len(found) > 1 else "".join(found)


def owned(value: Any, shape: Shape) -> Fields:
    """The fields that an object has, as its applier owns them; the object fits the schema.

    A field that holds others is not owned itself, unless it is an element of a list or a key that the schema does not
    know by name.
    """
    return _owned(value, shape) or {}


def _owned(value: Any, shape: Shape) -> Fields | None:
    """None for what is not there at all: an empty list of elements that would be owned one by one."""
    fields: Fields = {}
    if isinstance(value, dict) and value and shape.is_map:
        for name in sorted(value):
            below = _owned(value[name], shape.field(name))
            if below is not None:
                named = not below or shape.declares(name)
                fields[field_step(name)] = below if named else {SELF: ALONE, **below}
    elif isinstance(value, list) and shape.is_list:
        for element in value:
            below = _owned(element, shape.items)
            fields[shape.step(element)] = {SELF: ALONE, **below} if below else ALONE
    else:
        return ALONE
    return fields or None


def _problems(value: Any, shape: Shape, path: str) -> Iterator[str]:
    if value is None or shape.kind == "any":
        return
    match shape.kind:
        case "map":
            if not isinstance(value, dict):
                yield f"{path}: expected map, got &{{{printed(value)}}}"
                return
            yield from _map_problems(value, shape, path)
        case "list":
            if not isinstance(value, list):
                yield f"{path}: expected list, got &{{{printed(value)}}}"
                return
            yield from _list_problems(value, shape, path)
        case "scalar":
            yield from (f"{path}: {problem}" for problem in _scalar_problems(value, shape.node.type))


def _map_problems(value: dict[str, Any], shape: Shape, path: str) -> Iterator[str]:
    for name in sorted(value):
        at = f"{path}.{name}"
        if not shape.declares(name) and not shape.open:
            yield f"{at}: field not declared in schema"
            return
        if found := list(_problems(value[name], shape.field(name), at)):
            yield from found
            return  # Kubernetes too leaves an object at the first field that is wrong


def _list_problems(value: list[Any], shape: Shape, path: str) -> Iterator[str]:
    if shape.atomic:
        for place, element in enumerate(value):
            yield from _problems(element, shape.items, f"{path}[{place}]")
        return
    seen = set()
    for place, element in enumerate(value):
        if why := _unfit(element, shape):
            yield f"{path}: element {place}: {why}"
            continue
        step = shape.step(element)
        at = text((step,))
        if step in seen:
            yield f"{path}: duplicate entries for key {at}"
        seen.add(step)
        yield from _problems(element, shape.items, path + at)


def _unfit(element: Any, shape: Shape) -> str:
    """Why a value cannot be told from the other elements of its list."""
    if shape.keys:
        if element is None:
            return "associative list with keys may not have a null element"
        return "" if isinstance(element, dict) else "associative list with keys may not have non-map elements"
    if element is None:
        return "associative list without keys has an element that's an explicit null"
    if isinstance(element, list):
        return "not supported: associative list with lists as elements"
    return "associative list without keys has an element that's a map type" if isinstance(element, dict) else ""


def _scalar_problems(value: Any, kind: str) -> Iterator[str]:
    match kind:
        case "string":
            if not isinstance(value, str):
                yield f"expected string, got &value.valueUnstructured{{Value:{written(value)}}}"
        case "boolean":
            if not isinstance(value, bool):
                yield f"expected boolean, got &{{{printed(value)}}}"
        case "integer" | "number":
            if isinstance(value, bool) or not isinstance(value, int | float):
                yield f"expected numeric (int or float), got {go_type(value)}"
        case _:
            if isinstance(value, dict | list):
                yield f"expected any scalar, got &{{{printed(value)}}}"
