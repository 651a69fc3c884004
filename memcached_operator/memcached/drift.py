"""Pure: how a live object differs from the wanted one, field by field.

Only what the wanted object says is compared. Labels, annotations, containers and owner references that others added
stay as they are; a field that we say nothing about is not ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

# By which field an entry of a list is known, as Kubernetes' own list-maps have it. Other lists are compared as a whole:
# an argument more is another command.
_KEYS = {"Container": "name", "OwnerReference": "uid"}
# Of which fields we also say that they must not be there: a user id that was wanted once, and is none any more.
_ABSENCE_IS_OURS = {("PodSecurity", "runAsUser"), ("PodSecurity", "runAsGroup")}
_KEYS_IN_PATHS = re.compile(r"\[[^\]]*\]")


class Difference(NamedTuple):
    """One field that is not as wanted.

    Attributes:
        path: as `kubectl explain` names it, list entries by their key: `spec.containers[memcached].image`.
        wanted: the value that we want, None where there must be none.
        live: the value that is there, None when there is none.
    """

    path: str
    wanted: object
    live: object

    def __str__(self) -> str:
        return f"{self.path} was {_shown(self.live)}, is to be {_shown(self.wanted)}"


def differences(wanted: object, live: object, path: str = "") -> Iterator[Difference]:
    """The fields of `wanted` that `live` has not, or has otherwise; None in `wanted` means not ours, but for few."""
    match wanted:
        case None:
            return
        case msgspec.Struct():
            if type(live) is not type(wanted):
                yield Difference(path, wanted, live)
                return
            for field in wanted.__struct_fields__:
                inner = f"{path}.{field}" if path else field
                ours, theirs = getattr(wanted, field), getattr(live, field)
                if ours is None and theirs is not None and (type(wanted).__name__, field) in _ABSENCE_IS_OURS:
                    yield Difference(inner, None, theirs)
                yield from differences(ours, theirs, inner)
        case dict():
            held = live if isinstance(live, dict) else {}
            for key, value in wanted.items():
                if held.get(key) != value:
                    yield Difference(f"{path}[{key}]", value, held.get(key))
        case tuple() if wanted and (key_field := _KEYS.get(type(wanted[0]).__name__)):
            entries = {getattr(entry, key_field): entry for entry in (live if isinstance(live, tuple) else ())}
            for entry in wanted:
                key = getattr(entry, key_field)
                if key in entries:
                    yield from differences(entry, entries[key], f"{path}[{key}]")
                else:
                    yield Difference(f"{path}[{key}]", entry, None)
        case _:
            if wanted != live:
                yield Difference(path, wanted, live)


def field_names(wanted: object, path: str = "") -> Iterator[str]:
    """The names that `differences` can give to fields of `wanted`, without the keys of lists and labels."""
    match wanted:
        case None:
            return
        case msgspec.Struct():
            if path:
                yield path
            for field in wanted.__struct_fields__:
                yield from field_names(getattr(wanted, field), f"{path}.{field}" if path else field)
        case tuple() if wanted and type(wanted[0]).__name__ in _KEYS:
            for entry in wanted:
                yield from field_names(entry, path)
        case _:
            yield path


def field_name(path: str) -> str:
    """The name of a difference's field, without the keys of lists and labels, of which there is no end."""
    return _KEYS_IN_PATHS.sub("", path)


def _shown(value: object) -> str:
    """A value for a log line or an event: as JSON, "absent" for None."""
    return "absent" if value is None else msgspec.json.encode(value).decode()
