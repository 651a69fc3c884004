"""Pure: the names of what was wanted of an object, so that what is wanted no more is taken away by its name.

A field that we say nothing about is not ours. One that we said something about before would look like somebody else's,
and managedFields, which know better, may be cleared by anybody. So who may want less of an object later keeps the names
of what was wanted in an annotation of the object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from operator_runtime.owned.comparison import NAMED_BY_PEOPLE, Difference, Entry, Steps, key_of, value_of

_LEAF = 0
# Dicts of which each entry is a field of its own, whatever becomes of the others.
_APART = (*NAMED_BY_PEOPLE, "metadata", "limits", "requests")


def names_of(wanted: Any, steps: Steps = ()) -> Any:
    """The fields of a body, without values: dicts as they are, lists where their entries have keys, 0 for all else."""
    match wanted:
        case Mapping():
            return {name: names_of(part, (*steps, name)) for name, part in wanted.items() if part is not None}
        case [_, *_] if (key := key_of(steps, wanted)) is not None:
            return [_entry_names(each, key, steps) if key else each for each in wanted]
        case _:
            return _LEAF


def no_longer(names: Any, wanted: Any, live: Any, steps: Steps = ()) -> Iterator[Difference]:
    """What a live object has by these names and is not wanted any more.

    Args:
        names: as `names_of` gives them.
        wanted: what is wanted now, as dicts and lists.
        live: likewise.
        steps: where in the object they stand.
    """
    if not isinstance(names, Mapping) or not isinstance(live, Mapping):
        return
    ours = wanted if isinstance(wanted, Mapping) else {}
    for name, inner in names.items():
        held, part, at = live.get(name), ours.get(name), (*steps, name)
        if held is None:
            continue
        if isinstance(inner, list) and inner and isinstance(held, Sequence) and (key := key_of(at, inner)) is not None:
            for each in inner:
                entry = Entry(key, value_of(each, key))
                there, mine = (_found(entries, entry) for entries in (held, part or ()))
                if there is not None and mine is None:
                    yield Difference((*at, entry), None, there)
                else:
                    yield from no_longer(each, mine, there, (*at, entry))
        elif part is None and not (isinstance(inner, Mapping) and name in _APART):
            yield Difference(at, None, held)
        else:
            yield from no_longer(inner, part, held, at)


def _entry_names(entry: Mapping[str, Any], key: str, steps: Steps) -> dict[str, Any]:
    if key == "uid":
        return {key: entry[key]}  # an owner is there with all that is said of it, or is not
    return {**names_of(entry, (*steps, Entry(key, entry[key]))), key: entry[key]}


def _found(entries: Sequence[Any], entry: Entry) -> Any:
    return next((each for each in entries if value_of(each, entry.field) == entry.key), None)
