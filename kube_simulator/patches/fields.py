"""Sets of fields: those that an object has, those that a write changes, and how `fieldsV1` of managedFields has them.

A field is a path, a tuple of steps: `f:NAME` to a field, `k:{"name":"web"}` to the element of a list that has these
keys, `v:"x"` to a value of a set. What is owned as a whole, such as a list without keys, is one field. In `fieldsV1`
the paths are a tree of dicts; what a step leads to is in the set if its dict is empty or has the key `.`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from kube_simulator.schema.node import ANYTHING, MISSING, Node
from kube_simulator.values import Json, same

Path = tuple[str, ...]
Fields = frozenset[Path]

_SELF: Final = "."
# Objects that are written by the same hands have equal sets but for a few steps.
_SETS_KEPT: Final = 4096


class Changes(NamedTuple):
    """The difference between two objects."""

    changed: Fields
    """Added, or with another value."""
    removed: Fields


def parts(value: Any, node: Node) -> dict[str, tuple[Any, Node]]:
    """The parts of a value whose fields are owned one by one, with their schemas; none of a leaf.

    Where the schema does not say (`x-kubernetes-preserve-unknown-fields`, no type), objects are made of parts.
    """
    if isinstance(value, dict) and node.splits_objects:
        return {f"f:{name}": (each, node.field(name) or ANYTHING) for name, each in value.items()}
    if isinstance(value, list) and node.splits_lists:
        return {step(each, node): (each, node.items() or ANYTHING) for each in value}
    return {}


def step(element: Any, node: Node) -> str:
    """The step to an element of a list that is made of parts."""
    if not node.list_keys or not isinstance(element, dict):
        return f"v:{_dumped(element)}"
    keys = {}
    for key in sorted(node.list_keys):
        below = (node.items() or ANYTHING).field(key)
        default = None if below is None or below.default is MISSING else below.default
        keys[key] = element.get(key, default)
    return f"k:{_dumped(keys)}"


def compare(before: Json, after: Json, node: Node) -> Changes:
    """Compare one state of an object with the next; what both share is not traversed."""
    changed: set[Path] = set()
    removed: set[Path] = set()
    _compare(before, after, node, (), changed, removed)
    return Changes(frozenset(changed), frozenset(removed))


def owned(value: Any, node: Node) -> Fields:
    """The fields that an applied object has, as its applier owns them.

    A field that holds others is not owned itself, unless it is an element of a list or a key that the schema does not
    know by name.
    """
    return frozenset(_owned(value, node, ()))


@lru_cache(_SETS_KEPT)
def written(fields: Fields) -> Json:
    """The set as `fieldsV1` has it."""
    tree: Json = {}
    for path in sorted(fields):
        at = tree
        for name in path:
            if name not in at:
                at[name] = {}
            elif not at[name]:  # the end of a path before this one
                at[name][_SELF] = {}
            at = at[name]
    return tree


def read(tree: Json) -> Fields:
    """The set that `fieldsV1` has."""
    return _read(orjson.dumps(tree))


def text(path: Path) -> str:
    """A path as messages have it: `.spec.containers[name="web"].image`."""
    return "".join(map(_step_text, path))


@lru_cache(_SETS_KEPT)
def _read(tree: bytes) -> Fields:
    return frozenset(_paths(orjson.loads(tree), ()))


def _paths(tree: Json, at: Path) -> Iterator[Path]:
    for name, below in tree.items():
        if name != _SELF:
            if not below or _SELF in below:
                yield (*at, name)
            yield from _paths(below, (*at, name))


def _compare(old: Any, new: Any, node: Node, at: Path, changed: set[Path], removed: set[Path]) -> None:
    if old is new:
        return
    before, after = parts(old, node), parts(new, node)
    if not before and not after:
        if not same(old, new):
            changed.add(at)
        return
    for name, (value, below) in after.items():
        if name in before:
            _compare(before[name][0], value, below, (*at, name), changed, removed)
        else:
            changed.update(_all(value, below, (*at, name)))
    for name, (value, below) in before.items():
        if name not in after:
            removed.update(_all(value, below, (*at, name)))
    # A scalar in the place of a map, or the other way round: the field itself has another value, too.
    if not all(value is None or isinstance(value, dict | list) for value in (old, new)):
        changed.add(at)


def _all(value: Any, node: Node, at: Path) -> Iterator[Path]:
    yield at
    for name, (each, below) in parts(value, node).items():
        yield from _all(each, below, (*at, name))


def _owned(value: Any, node: Node, at: Path) -> Iterator[Path]:
    found = parts(value, node)
    if not found:
        if value != [] or not node.splits_lists:
            yield at
        return
    for name, (each, below) in found.items():
        path = (*at, name)
        if not name.startswith("f:") or name[2:] not in node.properties:
            yield path
        yield from _owned(each, below, path)


def _step_text(name: str) -> str:
    kind, _, rest = name.partition(":")
    match kind:
        case "f":
            return f".{rest}"
        case "k":
            return f"[{','.join(f'{key}={_dumped(value)}' for key, value in orjson.loads(rest).items())}]"
        case "v":
            return f"[={rest}]"
    return f"[{rest}]"


def _dumped(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
