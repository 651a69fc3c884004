"""The JSONPath of printer columns, as far as CRDs use it.

Fields, indexes, `[*]`, and filters that compare one field with a constant, such as
`.status.conditions[?(@.type=="Ready")].status`.

Differs from Kubernetes: slices, unions, recursive descent and other filters are not implemented.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from kube_simulator.errors import not_implemented

Step = Callable[[object], Iterator[object]]

_FIELD = re.compile(r"\.((?:[^.\[\]\\*]|\\.)+)")
_QUOTED_FIELD = re.compile(r"""\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]""")
_INDEX = re.compile(r"\[(-?\d+)\]")
_ALL = re.compile(r"\[\*\]|\.\*")
_FILTER = re.compile(
    r"""\[\?\(\s*@\.(?P<field>[\w.-]+)\s*(?P<operator>==|!=)\s*"""
    r"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>true|false|-?\d+(?:\.\d+)?))\s*\)\]"""
)
_BARE = {"true": True, "false": False}


def find(path: str, value: object) -> list[object]:
    """Find what a path such as `.spec.size` leads to; nothing if a field on the way is absent.

    Raises:
        ApiError: 501, the path has something that is not implemented.
    """
    found = [value]
    for step in _steps(path):
        found = [each for one in found for each in step(one)]
    return found


@cache
def _steps(path: str) -> tuple[Step, ...]:
    rest = path if path.startswith((".", "[")) else f".{path}"
    steps: list[Step] = []
    while rest:
        for pattern, make in _SYNTAX:
            if match := pattern.match(rest):
                steps.append(make(match))
                rest = rest[match.end() :]
                break
        else:
            raise not_implemented(f"the JSONPath {path}, from {rest} on")
    return tuple(steps)


def _field(match: re.Match[str]) -> Step:
    name = re.sub(r"\\(.)", r"\1", next(group for group in match.groups() if group is not None))

    def step(value: object) -> Iterator[object]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(match: re.Match[str]) -> Step:
    index = int(match[1])

    def step(value: object) -> Iterator[object]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _all(_match: re.Match[str]) -> Step:
    def step(value: object) -> Iterator[object]:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value

    return step


def _filter(match: re.Match[str]) -> Step:
    fields, equal = match["field"].split("."), match["operator"] == "=="
    bare = match["bare"]
    desired: object = match["double"] if match["double"] is not None else match["single"]
    if bare is not None:
        desired = _BARE[bare] if bare in _BARE else float(bare)

    def step(value: object) -> Iterator[object]:
        for each in value if isinstance(value, list) else []:
            found: object = each
            for field in fields:
                found = found.get(field) if isinstance(found, dict) else None
            if found is not None and (_same(found, desired) is equal):
                yield each

    return step


def _same(found: object, desired: object) -> bool:
    """Compare two values, where unlike in Python True is not 1."""
    return isinstance(found, bool) is isinstance(desired, bool) and found == desired


_SYNTAX: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_FILTER, _filter),
    (_ALL, _all),
    (_INDEX, _index),
    (_QUOTED_FIELD, _field),
    (_FIELD, _field),
)
