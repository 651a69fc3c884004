"""Sets of fields, in the form in which objects carry them (`metadata.managedFields[].fieldsV1`).

A set is a tree of dicts. Its keys are steps: `f:NAME` to a field, `k:{"name":"web"}` to the element of a list that has
these keys, `v:"x"` to a value of a set, `i:0` to a place. What a step leads to is in the set if its dict is empty or
has the key `.`; other keys lead on:

    {"f:spec": {"f:containers": {"k:{\\"name\\":\\"web\\"}": {".": {}, "f:image": {}}}}}

At the root the empty dict is the empty set. Sets are never changed in place, and an operation that changes nothing
gives its first operand itself, so that `is` tells whether anything happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from kube_simulator.values import Json

Fields = dict[str, Any]
"""A set of fields: dicts of dicts all the way down."""

SELF: Final = "."
"""The key that says that the dict's own field is in the set, where other keys lead on from it."""

EMPTY: Final[Fields] = {}
ALONE: Final[Fields] = {}
"""Below a step: its field is in the set, and nothing beneath it."""

_SELF_ONLY: Final[Fields] = {SELF: {}}
# The sets that objects of a few dozen kinds have in common, and what is beneath each of their steps: some 2 MB.
_SETS_KEPT: Final = 1024
_KINDS: Final = {"f": 0, "k": 1, "v": 2, "i": 3}


def field_step(name: str) -> str:
    """The step to a field of an object."""
    return f"f:{name}"


def key_step(keys: Mapping[str, Any]) -> str:
    """The step to the element of a list that has these values of the list's keys."""
    return f"k:{_dumped(dict(keys))}"


def value_step(value: Any) -> str:
    """The step to a value of a set."""
    return f"v:{_dumped(value)}"


def union(one: Fields, other: Fields) -> Fields:
    """Return the fields that are in either of them."""
    if not one or not other:
        return one or other
    return _union(one, other)


def difference(one: Fields, other: Fields) -> Fields:
    """Return what is in the first and not in the other. That a field leaves does not make what is beneath it leave."""
    if not one or not other:
        return one
    left = _difference(one, other)
    return EMPTY if left is None else left


def intersection(one: Fields, other: Fields) -> Fields:
    """Return what is in both."""
    if not one or not other:
        return EMPTY
    shared = _intersection(one, other)
    return EMPTY if shared is None else shared


def without_trees(one: Fields, steps: Mapping[str, Any]) -> Fields:
    """The set without these fields and all that is beneath them; ALONE in `steps` ends a path."""
    kept: Fields | None = None
    for step, below in steps.items():
        mine = one.get(step)
        if mine is None:
            continue
        left = without_trees(mine, below) if below else EMPTY
        if left is mine:
            continue
        kept = dict(one) if kept is None else kept
        # A field that was in the set alone has no steps beneath it, and came back as it was.
        if left:
            kept[step] = ALONE if left.keys() == {SELF} else left
        else:
            del kept[step]
    return one if kept is None else kept


def interned(fields: Fields) -> Fields:
    """The set, made of the same dicts as other sets wherever they are equal.

    Objects that are written by the same hands have equal sets but for a few steps (to addresses, to owners), which
    otherwise would be the greater part of what a store of them holds.
    """
    return _interned(orjson.dumps(fields)) if fields else fields


def paths(fields: Fields) -> Iterator[tuple[str, ...]]:
    """The steps to each field that is in the set, in the order in which Kubernetes writes them."""
    return _paths(fields, ())


def text(path: tuple[str, ...]) -> str:
    """A path as messages have it: `.spec.containers[name="web"].image`."""
    return "".join(map(_step_text, path))


def canonical(fields: object) -> Fields:
    """A set as a client wrote it, in our form; steps of unknown kinds are left out, as Kubernetes does.

    Raises:
        ValueError: it cannot be read.
    """
    if not isinstance(fields, dict):
        raise ValueError("a set of fields must be an object")
    read: Fields = {}
    for step, value in fields.items():
        if step == SELF:
            read[SELF] = ALONE
            continue
        kind, colon, rest = step.partition(":")
        if not colon:
            raise ValueError(f"no kind of step: {step}")
        below = canonical(value)
        if kind == "f":
            read[step] = below
        elif kind == "k":
            keys = orjson.loads(rest)
            if not isinstance(keys, dict) or not keys:
                raise ValueError(f"no keys: {step}")
            read[key_step(keys)] = below
        elif kind == "v":
            read[value_step(orjson.loads(rest))] = below
        elif kind == "i":
            read[f"i:{int(rest)}"] = below
    return ALONE if read.keys() == {SELF} else _sorted(read)


@lru_cache(_SETS_KEPT)
def _interned(text: bytes) -> Fields:
    return {step: _interned(orjson.dumps(below)) if below else ALONE for step, below in orjson.loads(text).items()}


def _union(one: Fields, other: Fields) -> Fields:
    if one is other:
        return one
    joined: Fields | None = None
    mine = one or _SELF_ONLY
    for step, theirs in (other or _SELF_ONLY).items():
        below = mine.get(step)
        if below is None:
            new = theirs
        else:
            new = below if step == SELF else _union(below, theirs)
            if new is below:
                continue
        if joined is None:
            joined = dict(mine)
        joined[step] = new
    return one if joined is None else _sorted(joined)


def _difference(one: Fields, other: Fields) -> Fields | None:
    """Return the rest; None if nothing is left, which below the root is not the empty dict."""
    left: Fields | None = None
    mine = one or _SELF_ONLY
    for step, theirs in (other or _SELF_ONLY).items():
        below = mine.get(step)
        if below is None:
            continue
        rest = None if step == SELF else _difference(below, theirs)
        if rest is below:
            continue
        if left is None:
            left = dict(mine)
        if rest is None:
            del left[step]
        else:
            left[step] = rest
    return one if left is None else _tidy(left)


def _intersection(one: Fields, other: Fields) -> Fields | None:
    mine, theirs = one or _SELF_ONLY, other or _SELF_ONLY
    shared: Fields = {}
    for step, below in mine.items():
        if step not in theirs:
            continue
        both = ALONE if step == SELF else _intersection(below, theirs[step])
        if both is not None:
            shared[step] = both
    return _tidy(shared)


def _tidy(fields: Fields) -> Fields | None:
    if not fields:
        return None
    return ALONE if fields.keys() == {SELF} else fields


def _paths(fields: Fields, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for step in sorted(fields, key=_order):
        if step != SELF:
            below, path = fields[step], (*before, step)
            if not below or SELF in below:
                yield path
            yield from _paths(below, path)


def _sorted(fields: Fields) -> Fields:
    return {step: fields[step] for step in sorted(fields, key=_order)}


def _order(step: str) -> tuple[int, str]:
    return (-1, "") if step == SELF else (_KINDS.get(step[0], 9), step)


def _step_text(step: str) -> str:
    kind, _, rest = step.partition(":")
    match kind:
        case "f":
            return f".{rest}"
        case "k":
            return f"[{','.join(f'{key}={_dumped(value)}' for key, value in orjson.loads(rest).items())}]"
        case "v":
            return f"[={rest}]"
    return f"[{rest}]"


def _dumped(value: Json | Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
