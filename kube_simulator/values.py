"""Decoded JSON for the whole simulator: its name, whether two values are the same, and new values out of old ones.

What is written again mostly has the spec that is stored already. As long as it is the very same dict, it is kept in
memory once, however many versions and templates there are of it, and comparing it takes no time.
"""

from collections.abc import Callable
from operator import is_
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


def shared(new: Json, old: Json) -> Json:
    """The new object; the old one, if both have the same fields and the very same values."""
    return old if len(new) == len(old) and all(key in new and new[key] is old[key] for key in old) else new


def mapped(change: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    """Change each element; return the list itself, if each stays what it is."""
    new = [change(each) for each in values]
    return values if all(map(is_, new, values)) else new


def completed(given: Json, defaults: Json) -> Json:
    """Add the defaults that are not given; return what is given itself, if that is everything."""
    return given if given.keys() >= defaults.keys() else {**defaults, **given}
