"""Merge of an applied object with the live one, and removal of what its applier gives up.

Nothing is changed in place: what both have in common, the result shares with the live object, and is that object itself
if nothing changes.
"""

from __future__ import annotations

from typing import Any

from kube_simulator.patches.fieldsets import SELF, Fields
from kube_simulator.patches.shapes import Shape
from kube_simulator.patches.typed import owned as owned_by_applier
from kube_simulator.values import same


def merged(live: Any, applied: Any, shape: Shape) -> Any:
    """The live value with the applied one laid over it, which fits the schema."""
    if applied is None and shape.parts(live):
        return live  # null takes nothing away from what is made of parts
    if isinstance(applied, dict) and isinstance(live, dict) and shape.is_map:
        return _merged_maps(live, applied, shape)
    if isinstance(applied, list) and isinstance(live, list) and shape.is_list:
        return _merged_lists(live, applied, shape) if applied else live
    return live if same(live, applied) else applied


def pruned(value: Any, last: Fields, owned: Fields, shape: Shape) -> Any:
    """The value without what its applier owned and nobody owns now; null where no part of a field is left.

    Args:
        last: what the applier owned before.
        owned: what anybody owns now, the applier included.
    """
    if isinstance(value, dict) and shape.is_map:
        return _pruned_map(value, last, owned, shape)
    if isinstance(value, list) and shape.is_list:
        return _pruned_list(value, last, owned, shape)
    return value


def _merged_maps(live: dict[str, Any], applied: dict[str, Any], shape: Shape) -> dict[str, Any]:
    result = live
    for name, value in applied.items():
        if name in live:
            mine = live[name]
            new = merged(mine, value, shape.field(name))
            if new is mine:
                continue
        else:
            new = value
        if result is live:
            result = dict(live)
        result[name] = new
    return result


def _merged_lists(live: list[Any], applied: list[Any], shape: Shape) -> list[Any]:
    """The applied elements in their order; those of the live list alone stay before the shared ones they preceded."""
    steps = [shape.step(element) for element in live]
    desired = {shape.step(element): element for element in applied}
    place = {step: at for at, step in reversed(list(enumerate(steps)))}
    result: list[Any] = []
    waiting: list[Any] = []  # new ones, which come right before the next that is shared
    cursor = 0
    for step, element in desired.items():
        if step not in place:
            waiting.append(element)
            continue
        at = place[step]
        end = at if at >= cursor else len(live)
        result += (live[each] for each in range(cursor, end) if steps[each] not in desired)
        cursor = min(end + 1, len(live))
        alone = steps.count(step) == 1
        result += (*waiting, merged(live[at], element, shape.items) if alone else element)
        waiting = []
    result += (live[each] for each in range(cursor, len(live)) if steps[each] not in desired)
    result += waiting
    unchanged = len(result) == len(live) and all(mine is new for mine, new in zip(live, result, strict=True))
    return live if unchanged else result


def _pruned_map(value: dict[str, Any], last: Fields, owned: Fields, shape: Shape) -> dict[str, Any] | None:
    kept = value
    for step, below in last.items():
        name = step[2:]
        if step == SELF or name not in value:
            continue
        theirs = owned.get(step)
        declared = shape.declares(name)
        if _has(below, declared) and not _has(theirs, declared):
            kept = {key: each for key, each in kept.items() if key != name}
            continue
        left = pruned(value[name], below, theirs or {}, shape.field(name))
        if left is value[name]:
            continue
        kept = {**kept, name: left}
        if left is not None and _has(below, declared) and not owned_by_applier(left, shape.field(name)):
            del kept[name]  # nothing but empty lists is left, which do not count as fields
    return kept or None if kept is not value else value


def _pruned_list(value: list[Any], last: Fields, owned: Fields, shape: Shape) -> list[Any] | None:
    kept: list[Any] = []
    for element in value:
        step = shape.step(element)
        below, theirs = last.get(step), owned.get(step)
        if below is None:
            kept.append(element)
        elif _has(theirs, False) or not _has(below, False):
            kept.append(pruned(element, below, theirs or {}, shape.items))
    if len(kept) == len(value) and all(mine is new for mine, new in zip(value, kept, strict=True)):
        return value
    return kept or None


def _has(fields: Fields | None, declared: bool) -> bool:
    """Report whether the field of a step is in the set; one that the schema declares is there with its parts."""
    return fields is not None and (not fields or SELF in fields or declared)
