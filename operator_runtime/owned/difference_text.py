"""Pure: a difference between a live field and the desired one, as a log line and an event show it.

Of two lists it names the elements that differ, and no others: a command line has some twenty of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

import msgspec

# So many elements of a list, and so many characters of each, say what has changed. An event has 1,024 in all.
ELEMENTS: Final = 3
CHARACTERS: Final = 100


class _Element(NamedTuple):
    """An element of two lists that differs, by its name or its index; a side is None where it has none."""

    key: object
    live: object
    desired: object


def difference_text(path: str, live: object, desired: object) -> str:
    """The former and the new value of a field, such as `spec.replicas: 3 → 4`; None where there is none."""
    if not (changed := _changed(live, desired)):
        return f"{path}: {_shown(live)} → {_shown(desired)}"
    texts = [f"{path}[{each.key}]: {_cut(each.live)} → {_cut(each.desired)}" for each in changed[:ELEMENTS]]
    if more := len(changed) - len(texts):
        texts.append(f"{more} more of {path}")
    return "; ".join(texts)


def _changed(live: object, desired: object) -> list[_Element]:
    """The elements that differ between two lists, none where either is no list or has no elements."""
    if not (isinstance(live, list | tuple) and isinstance(desired, list | tuple) and live and desired):
        return []
    return _by_name(live, desired) or [*_by_index(live, desired)]


def _by_name(live: Sequence[object], desired: Sequence[object]) -> list[_Element]:
    """The elements that differ, none where not all have names of their own, or nothing but their order differs."""
    former, new = _named(live), _named(desired)
    if former is None or new is None:
        return []
    names = [*former, *(name for name in new if name not in former)]
    found = (_Element(name, former.get(name), new.get(name)) for name in names)
    return [each for each in found if each.live != each.desired]


def _named(elements: Sequence[object]) -> dict[str, object] | None:
    named = {name: each for each in elements if isinstance(name := _name(each), str)}
    return named if len(named) == len(elements) else None


def _name(element: object) -> object:
    return element.get("name") if isinstance(element, Mapping) else getattr(element, "name", None)


def _by_index(live: Sequence[object], desired: Sequence[object]) -> Iterator[_Element]:
    """The elements between what both lists begin and end with."""
    shorter = min(len(live), len(desired))
    first = next((at for at in range(shorter) if live[at] != desired[at]), shorter)
    alike = next((at for at in range(shorter - first) if live[-1 - at] != desired[-1 - at]), shorter - first)
    between = zip_longest(live[first : len(live) - alike], desired[first : len(desired) - alike])
    for index, (former, new) in enumerate(between, first):
        if former != new:
            yield _Element(index, former, new)


def _shown(value: object) -> str:
    """A value as JSON, "absent" for None."""
    return "absent" if value is None else msgspec.json.encode(value).decode()


def _cut(value: object) -> str:
    text = _shown(value)
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"
