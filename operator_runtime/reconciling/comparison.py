"""Pure: how a live object differs from the wanted one, field by field.

Only what the wanted object says is compared. Labels, annotations, containers and owner references that others added
stay as they are; a field that we say nothing about is not ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar, NamedTuple

import msgspec

# By which field an entry of a list is known, in bodies of dicts, as Kubernetes' own list-maps mostly have it.
_KEYS = ("uid", "name")
# Fields whose keys are no fields.
_NAMED_BY_PEOPLE = ("labels", "annotations", "matchLabels", "nodeSelector", "data", "binaryData", "stringData")
_PLAIN_NAME = re.compile(r"\w+")
_KEYS_IN_PATHS = re.compile(r"\[[^\]]*\]")


class Fields(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of an object as far as an owner has an opinion about it; None means that it has none.

    Class attributes:
        entry_key: by which field an entry of a list is known, as Kubernetes' own list-maps have it. Lists of others are
            compared as a whole: an argument more is another command.
        absent: fields of which None means that they must not be there.
        extensible: fields whose lists others may add to: an entry more is theirs.
        whole: fields whose dicts are compared as a whole: of a selector, one label more is another selector.
    """

    entry_key: ClassVar[str] = ""
    absent: ClassVar[tuple[str, ...]] = ()
    extensible: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[tuple[str, ...]] = ()


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
    """The fields of `wanted` that `live` has not, or has otherwise.

    Args:
        wanted: `Fields`, or dicts and lists as JSON has them.
        live: of the same type.
        path: where in the object they stand.
    """
    match wanted:
        case None:
            return
        case Fields():
            if type(live) is not type(wanted):
                yield Difference(path, wanted, live)
                return
            if wanted == live:
                return  # compared in C: most parts are equal
            for field in wanted.__struct_fields__:
                inner = f"{path}.{field}" if path else field
                ours, theirs = getattr(wanted, field), getattr(live, field)
                if ours is None and theirs is not None and field in wanted.absent:
                    yield Difference(inner, None, theirs)
                if field in wanted.whole:
                    if ours is not None and ours != theirs:
                        yield Difference(inner, ours, theirs)
                elif field in wanted.extensible:
                    if any(entry not in (theirs or ()) for entry in ours or ()):
                        yield Difference(inner, ours, theirs)
                else:
                    yield from differences(ours, theirs, inner)
        case Mapping():
            held = live if isinstance(live, Mapping) else {}
            for key, value in wanted.items():
                inner = _inner(path, key)
                if isinstance(value, Mapping | list):
                    yield from differences(value, held.get(key), inner)
                elif value is not None and held.get(key) != value:
                    yield Difference(inner, value, held.get(key))
        case list() | tuple() if wanted and (key_field := _key_field(wanted[0])):
            held_entries = live if isinstance(live, list | tuple) else ()
            entries = {_value(entry, key_field): entry for entry in held_entries}
            for entry in wanted:
                key = _value(entry, key_field)
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
        case Fields():
            if path:
                yield path
            for field in wanted.__struct_fields__:
                yield from field_names(getattr(wanted, field), f"{path}.{field}" if path else field)
        case tuple() if wanted and _key_field(wanted[0]):
            for entry in wanted:
                yield from field_names(entry, path)
        case _:
            yield path


def field_name(path: str) -> str:
    """The name of a difference's field, without the keys of lists and labels, of which there is no end."""
    return _KEYS_IN_PATHS.sub("", path)


def _key_field(entry: object) -> str:
    """By which field the entries of a list are known, "" for a list that is compared as a whole."""
    if isinstance(entry, Fields):
        return entry.entry_key
    if isinstance(entry, Mapping):
        return next((key for key in _KEYS if key in entry), "")
    return ""


def _value(entry: object, field: str) -> object:
    return entry.get(field) if isinstance(entry, Mapping) else getattr(entry, field)


def _inner(path: str, key: str) -> str:
    """Where an entry of a dict stands: a field of a body, or one of what people name themselves, such as a label."""
    named_by_people = path.rpartition(".")[2] in _NAMED_BY_PEOPLE or not _PLAIN_NAME.fullmatch(key)
    return f"{path}[{key}]" if path and named_by_people else f"{path}.{key}" if path else key


def _shown(value: object) -> str:
    """A value for a log line or an event: as JSON, "absent" for None."""
    return "absent" if value is None else msgspec.json.encode(value).decode()
