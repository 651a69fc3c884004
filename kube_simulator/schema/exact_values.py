"""JSON values: whether two are the same, and how the path of a field is written."""

from __future__ import annotations

import json


def identical(one: object, other: object) -> bool:
    """Report whether two JSON values are the same and of the same types: true is not 1, and 1.0 is not 1.

    Owners of fields are distinguished less strictly; see `patches.json_values.same`.
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(identical(each, other[key]) for key, each in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(identical, one, other))
    return one == other


def exact(value: object) -> str:
    """A text that two values share only if they are the same; the order of keys is no matter."""
    return json.dumps(value, sort_keys=True)


def join(path: str, name: str) -> str:
    """The path of a field of what stands at a path."""
    return f"{path}.{name}" if path else name
