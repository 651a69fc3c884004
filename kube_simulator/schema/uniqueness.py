"""Uniqueness in a list: the elements of a set, the keys of a map list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kube_simulator.errors import Cause
from kube_simulator.schema import schema_causes
from kube_simulator.schema.exact_values import exact, join
from kube_simulator.schema.node import MISSING, Node
from kube_simulator.values import Json


def list_problems(node: Node, value: object, path: str) -> Iterator[Cause]:
    """The elements of sets and the keys of map lists, anywhere in a value, that are there twice."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name in node.properties:
                if not (node.embedded and name == "metadata"):
                    yield from list_problems(node.properties[name], each, join(path, name))
            elif node.additional is not None:
                yield from list_problems(node.additional, each, f"{path}[{name}]")
    elif isinstance(value, list):
        if node.list_type == "set":
            yield from (schema_causes.duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value))
        elif node.list_type == "map":
            yield from _key_problems(node, value, path)
        if (item := node.items()) is not None:
            for index, each in enumerate(value):
                yield from list_problems(item, each, f"{path}[{index}]")


def _key_problems(node: Node, value: list[Any], path: str) -> Iterator[Cause]:
    for index, each in enumerate(value):
        if each is not None and not isinstance(each, dict):
            yield schema_causes.invalid(f"{path}[{index}]", each, "must be an object for an array of list-type map")
            return
    keys = [{key: each[key] for key in node.list_keys if key in each} if each else {} for each in value]
    yield from (schema_causes.duplicate(f"{path}[{index}]", keys[index]) for index in _repeated(keys))


def _repeated(values: list[Any]) -> Iterator[int]:
    """Yield the place of each value that has been there before, the second time only."""
    times: dict[str, int] = {}
    for index, value in enumerate(values):
        text = exact(value)
        times[text] = times.get(text, 0) + 1
        if times[text] == 2:
            yield index


def correlated(node: Node, old: object) -> Callable[[object], object]:
    """Make the function that finds the old element of a new one, by its keys; `MISSING` in lists without keys."""
    if node.list_type != "map" or not isinstance(old, list):
        return lambda _: MISSING
    before = {_key(node, each): each for each in reversed(old) if isinstance(each, dict)}
    return lambda element: before.get(_key(node, element), MISSING) if isinstance(element, dict) else MISSING


def _key(node: Node, element: Json) -> str:
    return exact({key: element[key] for key in node.list_keys if key in element})
