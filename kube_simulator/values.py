"""Decoded JSON for the whole simulator: its name, and whether two values are the same."""

from typing import Any

Json = dict[str, Any]
"""A decoded JSON object. What is stored is never changed in place: a change begins with a copy."""


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values: 1 is 1.0, and, unlike in Python, true is not 1."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, dict):
        return all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return all(map(same, one, other))
    return isinstance(one, bool) is isinstance(other, bool)
