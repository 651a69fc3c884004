"""Changes of a write: the fields that are new or have another value, and those that are gone."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from kube_simulator.patches.fieldsets import ALONE, EMPTY, SELF, Fields, field_step
from kube_simulator.patches.shapes import Shape
from kube_simulator.schema.node import Node
from kube_simulator.values import Json, same

_NOTHING: Final = (None, None)
_BUILTIN_SHAPES_KEPT: Final = 256


class Changes(NamedTuple):
    """The difference between two objects."""

    changed: Fields
    """Added, or with another value."""
    removed: Fields


def compare(before: Json, after: Json, shape: Shape) -> Changes:
    """Compare one state of an object with the next; what both share is not traversed."""
    changed, removed = _compare(before, after, shape)
    return Changes(changed or EMPTY, removed or EMPTY)


def whole(value: Any, shape: Shape) -> Fields:
    """A value with all that is beneath it, as a step leads to it."""
    parts = shape.parts(value)
    if not parts:
        return ALONE
    below: Fields = {SELF: ALONE}
    if isinstance(parts, dict):
        for name in sorted(parts):
            below[field_step(name)] = whole(parts[name], shape.field(name))
    else:
        for step, elements in _by_step(parts, shape).items():
            below[step] = whole(elements[0], shape.items) if len(elements) == 1 else ALONE
    return below


@lru_cache(_BUILTIN_SHAPES_KEPT)
def unborn(node: Node) -> Json:
    """Return an object of this schema as it is before its creation, with which its creator's fields are compared.

    For a built-in kind that is a struct of Go, whose fields are not all optional: its spec is there, if empty. The
    OpenAPI document shows which by their defaults and by `required`.
    """
    return _zero(node) if node.ref else {}


def _zero(node: Node) -> Json:
    required = node.raw.get("required", ())
    zero: Json = {}
    for name, below in node.properties.items():
        if below.default == {}:
            zero[name] = _zero(below)
        elif below.default in ("", 0, False):
            zero[name] = below.default
        elif name in required or below.format == "date-time":
            zero[name] = None
    return zero


def _compare(before: Any, after: Any, shape: Shape) -> tuple[Fields | None, Fields | None]:
    """Changed and removed, each None where there is nothing of it."""
    if before is after:
        return _NOTHING
    old, new = shape.parts(before), shape.parts(after)
    if not old and not new:
        return _NOTHING if same(before, after) else (ALONE, None)
    if isinstance(old or {}, dict) and isinstance(new or {}, dict):
        changed, removed = _compare_maps(old or {}, new or {}, shape)  # type: ignore[arg-type]
    else:
        changed, removed = _compare_lists(old or [], new or [], shape)  # type: ignore[arg-type]
    # A scalar in the place of a map, or the other way round: the field itself has another value, too.
    if not _fits(before, old) or not _fits(after, new):
        changed = {SELF: ALONE, **changed} if changed else ALONE
        return changed, removed or None
    return changed or None, removed or None


def _fits(value: Any, parts: dict[str, Any] | list[Any] | None) -> bool:
    """Report whether the value is made of parts, or could be."""
    return parts is not None or value is None


def _compare_maps(old: dict[str, Any], new: dict[str, Any], shape: Shape) -> tuple[Fields, Fields]:
    changed: Fields = {}
    removed: Fields = {}
    for name, value in new.items():
        if name not in old:
            changed[field_step(name)] = whole(value, shape.field(name))
        elif (mine := old[name]) is not value:
            below, gone = _compare(mine, value, shape.field(name))
            if below is not None:
                changed[field_step(name)] = below
            if gone is not None:
                removed[field_step(name)] = gone
    for name, value in old.items():
        if name not in new:
            removed[field_step(name)] = whole(value, shape.field(name))
    return changed, removed


def _compare_lists(old: list[Any], new: list[Any], shape: Shape) -> tuple[Fields, Fields]:
    changed: Fields = {}
    removed: Fields = {}
    before, after = _by_step(old, shape), _by_step(new, shape)
    for step, elements in after.items():
        mine = before.get(step)
        if len(elements) == 1 and mine is not None and len(mine) == 1:
            below, gone = _compare(mine[0], elements[0], shape.items)
            if below is not None:
                changed[step] = below
            if gone is not None:
                removed[step] = gone
        elif mine is None:
            changed[step] = whole(elements[0], shape.items) if len(elements) == 1 else ALONE
        elif not same(mine, elements):  # a key that several have is one field, whatever is in them
            changed[step] = ALONE
    for step, elements in before.items():
        if step not in after:
            removed[step] = whole(elements[0], shape.items) if len(elements) == 1 else ALONE
    return changed, removed


def _by_step(elements: list[Any], shape: Shape) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for element in elements:
        found.setdefault(shape.step(element), []).append(element)
    return found
