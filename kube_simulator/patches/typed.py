"""An applied object against its schema: what is wrong with it, and which fields its applier owns by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube_simulator.patches.fieldsets import ALONE, SELF, Fields, field_step, text
from kube_simulator.patches.shapes import Shape


def problem(value: Any, shape: Shape) -> str:
    """Describe what does not fit the schema, in the words of Kubernetes; empty if all does."""
    found = list(_problems(value, shape, ""))
    return "\n  ".join(["errors:", *found]) if len(found) > 1 else "".join(found)


def owned(value: Any, shape: Shape) -> Fields:
    """The fields that an object has, as its applier owns them; the object fits the schema.

    A field that holds others is not owned itself, unless it is an element of a list or a key that the schema does not
    know by name.
    """
    return _owned(value, shape) or {}


def _owned(value: Any, shape: Shape) -> Fields | None:
    """Return the owned fields; None for what is not there, as an empty list of elements that are owned one by one."""
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
    if not _fits(value, shape):
        kind = shape.node.type if shape.kind == "scalar" else shape.kind
        yield f"{path}: expected {kind or 'any scalar'}, got {value!r}"
    elif shape.kind == "map":
        yield from _map_problems(value, shape, path)
    elif shape.kind == "list":
        yield from _list_problems(value, shape, path)


def _fits(value: Any, shape: Shape) -> bool:
    match shape.kind, shape.node.type:
        case "map", _:
            return isinstance(value, dict)
        case "list", _:
            return isinstance(value, list)
        case _, "string":
            return isinstance(value, str)
        case _, "boolean":
            return isinstance(value, bool)
        case _, "integer" | "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
    return not isinstance(value, dict | list)


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
    """Explain why a value cannot be distinguished from the other elements of its list."""
    if shape.keys:
        return "" if isinstance(element, dict) else "associative list with keys may not have non-map elements"
    scalar = element is not None and not isinstance(element, dict | list)
    return "" if scalar else "associative list without keys may have scalars alone"
