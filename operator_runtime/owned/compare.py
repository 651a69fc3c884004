"""Pure: differences of a live object from the desired one, field by field.

Only fields of the desired object are compared. Labels, annotations, containers and owner references that others added
stay; a field that the desired object leaves out is not owned. managedFields, which know of those that were desired
before, may be cleared. An operator that may desire less of an object later keeps the names of its fields in an
annotation (`names_of`), and takes away what is `no_longer` desired.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from operator_runtime.owned.difference_text import difference_text

# By which field an entry is known of the lists that Kubernetes merges, "" for plain values.
_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "ephemeralContainers", "env", "volumes"), "name"),
    **dict.fromkeys(("imagePullSecrets", "resourceClaims", "schedulingGates", "secrets"), "name"),
    **dict.fromkeys(("webhooks", "matchConditions", "variables"), "name"),
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "hostAliases": "ip",
    "ownerReferences": "uid",
    "finalizers": "",
}
# It merges these by a field that two entries may share, such as a port for TCP and UDP. They are one owner's.
_PORTS, _SPREAD = "ports", "topologySpreadConstraints"
# Of lists that stand next to `metadata` and not in a part of the object, it merges these alone, and these in it alone.
_AT_THE_TOP, _IN_METADATA = ("webhooks", "secrets"), ("ownerReferences", "finalizers")
REPLACED = ("policy", ("spec", "selector"))
"""The one dict of all kinds that a strategic merge patch replaces, by the kind's group: a PodDisruptionBudget's."""
# Fields whose keys are no fields.
_NAMED_BY_PEOPLE = ("labels", "annotations", "matchLabels", "nodeSelector", "data", "binaryData", "stringData")
# Dicts of which each entry is a field of its own, whatever becomes of the others. The latter go where they get empty.
_APART = (*_NAMED_BY_PEOPLE, "metadata", "limits", "requests")
_PARTS_APART = ("affinity", "lifecycle", "resources", "securityContext")
_LEAF = 0
_PLAIN_NAME = re.compile(r"\w+")
_KEYS_IN_PATHS = re.compile(r"\[[^\]]*\]")


class Entry(NamedTuple):
    """The step to an entry of a list: the one whose `field` is `key`, or, with the field "", the value `key` itself."""

    field: str
    key: object


class Order(NamedTuple):
    """The step to the order of a list's entries; values are lists of their keys by `field`. Others come last."""

    field: str


Steps = tuple[str | Entry | Order, ...]
"""The path to a field: names of fields, keys of labels and the like, and entries of lists or their order."""


class Fields(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of an object as far as an owner has an opinion about it; None means that it has none.

    Class attributes:
        entry_key: by which field an entry of a list is known, as Kubernetes' own list-maps have it. Lists of others are
            compared as a whole: an argument more is another command.
        absent: fields of which None means that they must not be there.
        whole: fields whose dicts are compared as a whole: of a selector, one label more is another selector.
    """

    entry_key: ClassVar[str] = ""
    absent: ClassVar[tuple[str, ...]] = ()
    whole: ClassVar[tuple[str, ...]] = ()


class Difference(NamedTuple):
    """One field that is not as desired; a value is None where there is, or is to be, none: then it goes by its name."""

    steps: Steps
    desired: object
    live: object

    @property
    def path(self) -> str:
        """Path as `kubectl explain` names it, list entries by their key: `spec.containers[memcached].image`."""
        path = ""
        for step in self.steps:
            match step:
                case Entry():
                    path = f"{path}[{step.key}]"
                case Order():
                    path += "[order]"
                case _:
                    path = _inner(path, step)
        return path

    def is_in(self, path: str) -> bool:
        return self.path == path or self.path.startswith((f"{path}.", f"{path}["))

    def __str__(self) -> str:
        return difference_text(self.path, self.live, self.desired)


def differences(desired: object, live: object, steps: Steps = ()) -> Iterator[Difference]:
    """The fields of `desired` (`Fields`, or JSON) that `live`, of the same type, has not or has otherwise."""
    match desired:
        case None:
            return
        case Fields():
            yield from _of_fields(desired, live, steps)
        case Mapping():
            yield from _of_mapping(desired, live if isinstance(live, Mapping) else {}, steps)
        case list() | tuple() if (key_field := entry_field_of(steps, desired)) is not None:
            yield from _of_entries(desired, live if isinstance(live, list | tuple) else (), key_field, steps)
        case list() if steps[-1:] == (_PORTS,) and isinstance(live, list) and len(desired) == len(live):
            # These are the fields of a port that are owned: the protocol has a default.
            if any(next(differences(*each), None) for each in zip(desired, live, strict=True)):
                yield Difference(steps, desired, live)
        case [] if live is None:
            return  # the API server leaves out of most kinds what is empty
        case _:
            if desired != live:
                yield Difference(steps, desired, live)


def _of_fields(desired: Fields, live: object, steps: Steps) -> Iterator[Difference]:
    if type(live) is not type(desired):
        yield Difference(steps, desired, live)
        return
    if desired == live:
        return  # compared in C: most parts are equal
    for field in desired.__struct_fields__:
        inner = (*steps, field)
        value, actual = getattr(desired, field), getattr(live, field)
        if value is None and actual is not None and field in desired.absent:
            yield Difference(inner, None, actual)
        if field not in desired.whole:
            yield from differences(value, actual, inner)
        elif value is not None and value != actual:
            yield Difference(inner, value, actual)


def _of_mapping(desired: Mapping[str, Any], live: Mapping[str, Any], steps: Steps) -> Iterator[Difference]:
    for key, value in desired.items():
        inner = (*steps, key)
        if isinstance(value, Mapping | list):
            if value == {} and live.get(key) is None and is_source(inner):
                yield Difference(inner, value, None)
            yield from differences(value, live.get(key), inner)
        elif value is not None and live.get(key) != value:
            yield Difference(inner, value, live.get(key))


def _of_entries(desired: Sequence[Any], live: Sequence[Any], key_field: str, steps: Steps) -> Iterator[Difference]:
    entries = {value_of(entry, key_field): entry for entry in live}
    for entry in desired:
        key = value_of(entry, key_field)
        inner = (*steps, Entry(key_field, key))
        if key in entries:
            yield from differences(entry, entries[key], inner)
        else:
            yield Difference(inner, entry, None)


def field_names(desired: object, path: str = "") -> Iterator[str]:
    """The names that `differences` can give to fields of `desired`, without the keys of lists and labels."""
    match desired:
        case None:
            return
        case Fields():
            if path:
                yield path
            for field in desired.__struct_fields__:
                yield from field_names(getattr(desired, field), f"{path}.{field}" if path else field)
        case tuple() if desired and isinstance(desired[0], Fields) and desired[0].entry_key:
            for entry in desired:
                yield from field_names(entry, path)
        case _:
            yield path


def names_of(desired: Any, steps: Steps = ()) -> Any:
    """The fields of a body, without values: dicts as they are, lists where their entries have keys, 0 for all else."""
    match desired:
        case Mapping():
            return {name: names_of(part, (*steps, name)) for name, part in desired.items() if part is not None}
        case list() | tuple() if (key := entry_field_of(steps, desired)) is not None:
            return [_entry_names(each, key, steps) if key else each for each in desired]
        case _:
            return _LEAF


def no_longer(names: Any, desired: Any, live: Any, steps: Steps = ()) -> Iterator[Difference]:
    """Yield the parts that a live object has by these names and that are no longer desired."""
    if not isinstance(names, Mapping) or not isinstance(live, Mapping):
        return
    parts = desired if isinstance(desired, Mapping) else {}
    for name, inner in names.items():
        held, part = live.get(name), parts.get(name)
        if held is None or held == part:
            continue  # compared in C: most parts are equal
        at = (*steps, name)
        if isinstance(held, list | tuple) and (key := entry_field_of(at, held)) is not None:
            # Entry by entry; by names that are none of entries, such as another client may have written, not at all.
            for each in inner if isinstance(inner, list) and entry_field_of(at, inner) == key else ():
                entry = Entry(key, value_of(each, key))
                there, mine = (entry_of(entries, entry) for entries in (held, part or ()))
                if there is not None and mine is None:
                    yield Difference((*at, entry), None, there)
                else:
                    yield from no_longer(each, mine, there, (*at, entry))
        elif part is None and not (isinstance(inner, Mapping) and _is_apart(name, inner, held)):
            yield Difference(at, None, held)
        else:
            yield from no_longer(inner, part, held, at)


def _is_apart(name: str, names: Mapping[str, Any], live: object) -> bool:
    """Report whether the part of a dict that these names cover is removed alone, and what others have in it is left."""
    return name in _APART or (name in _PARTS_APART and not _is_all(names, live))


def _is_all(names: object, live: object) -> bool:
    """Report whether a dict has nothing besides these names, as far as its fields are removed alone."""
    if not isinstance(names, Mapping) or not isinstance(live, Mapping):
        return True
    apart = (*_APART, *_PARTS_APART)
    return all(field in names and (field not in apart or _is_all(names[field], live[field])) for field in live)


def field_name(path: str) -> str:
    """The name of a difference's field, without the keys of lists and labels, of which there is no end."""
    return _KEYS_IN_PATHS.sub("", path)


def entry_field_of(steps: Steps, entries: Sequence[object]) -> str | None:
    """Return the field by which the entries of a list are known, "" for values; None for a list compared as a whole."""
    if entries and isinstance(entries[0], Fields):
        return entries[0].entry_key or None
    if (key := _key(steps)) is None:
        return None
    known = all(isinstance(each, Mapping) and key in each if key else isinstance(each, str) for each in entries)
    return key if known else None


def _key(steps: Steps) -> str | None:
    return _KEYS.get(_field(steps)) if is_merged(steps) else None


def is_merged(steps: Steps, key: str | None = None) -> bool:
    """Report whether a strategic merge patch merges that list of one of Kubernetes' own kinds, and by that key."""
    field = _field(steps)
    if field in _IN_METADATA and steps[-2:-1] != ("metadata",):
        return False
    if len(steps) == 1 and field not in _AT_THE_TOP:
        return False
    return _KEYS.get(field) == key if key is not None else field in _KEYS or field in (_PORTS, _SPREAD)


def is_source(steps: Steps) -> bool:
    """Report whether that is the source of a volume, which may be there without a field of its own."""
    return (
        steps[-1] != "name" and len(steps) > 1 and isinstance(steps[-2], Entry) and last_field(steps[:-1]) == "volumes"
    )


def last_field(steps: Steps) -> str:
    """The last field on a path: of what is in the entry of a list, that list."""
    return next((step for step in reversed(steps) if isinstance(step, str)), "")


def value_at(body: Any, steps: Steps) -> Any:
    """Return the value at the end of a path into a body, None where there is nothing."""
    for step in steps:
        if isinstance(step, Entry):
            body = entry_of(body, step) if isinstance(body, Sequence) else None
        else:
            body = body.get(step) if isinstance(body, Mapping) else None
    return body


def outermost(found: Iterable[Difference]) -> list[Difference]:
    """The differences that are not within another one, which covers all of what it leads to."""
    listed = list(found)
    paths = {each.steps for each in listed}
    return [each for each in listed if not any(each.steps[:at] in paths for at in range(1, len(each.steps)))]


def _field(steps: Steps) -> str:
    return steps[-1] if steps and isinstance(steps[-1], str) else ""


def value_of(entry: object, field: str) -> object:
    """Key by which an entry of a list is known; None where it has none."""
    if not field:
        return entry
    return entry.get(field) if isinstance(entry, Mapping) else getattr(entry, field)


def entry_of(entries: Iterable[Any], entry: Entry) -> Any:
    """The entry of a list to which that step leads, None where there is none."""
    return next((each for each in entries if value_of(each, entry.field) == entry.key), None)


def _entry_names(entry: Mapping[str, Any], key: str, steps: Steps) -> dict[str, Any]:
    if key == "uid":
        return {key: entry[key]}  # an owner reference is there as a whole, or is not
    return {**names_of(entry, (*steps, Entry(key, entry[key]))), key: entry[key]}


def _inner(path: str, key: str) -> str:
    """Extend a path by an entry of a dict: a field of a body, or a name that people choose, such as a label."""
    named_by_people = path.rpartition(".")[2] in _NAMED_BY_PEOPLE or not _PLAIN_NAME.fullmatch(key)
    return f"{path}[{key}]" if path and named_by_people else f"{path}.{key}" if path else key
