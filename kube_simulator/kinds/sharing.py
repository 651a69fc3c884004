"""New values out of old ones that are the old ones themselves where nothing has changed.

What is written again mostly has the spec that is stored already. As long as it is the very same dict, it is kept in
memory once, however many versions and templates there are of it, and comparing it takes no time.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import Any

from kube_simulator.values import Json


def shared(new: Json, old: Json) -> Json:
    """The new object; the old one, if both have the same fields and the very same values."""
    same = len(new) == len(old) and all(key in new and new[key] is value for key, value in old.items())
    return old if same else new


def mapped(change: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    """Change each element; return the list itself, if each stays what it is."""
    new = [change(each) for each in values]
    return values if all(map(is_, new, values)) else new


def completed(given: Json, defaults: Json) -> Json:
    """Add the defaults that are not given; return what is given itself, if that is everything."""
    return given if given.keys() >= defaults.keys() else {**defaults, **given}
