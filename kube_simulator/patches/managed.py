"""`metadata.managedFields`: who last wrote which field, and what a write does to that.

An entry belongs to a manager, an operation (`Apply` or `Update`), a subresource and, for `Update`, an apiVersion.
Whoever adds a field or changes its value owns it alone; a field that goes has no owner; an entry of no fields vanishes.

Differs from Kubernetes: entries of several versions of one group are taken to speak of the same fields, and the oldest
of many are not thrown together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kube_simulator.patches.compare import Changes, compare, unborn
from kube_simulator.patches.fieldsets import (
    EMPTY,
    SELF,
    Fields,
    canonical,
    difference,
    interned,
    union,
)
from kube_simulator.patches.shapes import Shape, shape_of
from kube_simulator.schema.node import Node
from kube_simulator.values import Json, same

_NOBODYS_METADATA: Final = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
"""Fields of metadata that are owned by nobody, as apiVersion and kind are not either."""

Identity = tuple[str, str, str, str]


def after_update(
    before: Json | None, after: Json, *, manager: str, api_version: str, subresource: str, node: Node, now: str
) -> Json:
    """The object with its owners after a POST, a PUT, or a patch other than apply.

    Args:
        before: as it is stored; None if the object is new.
        after: as it shall be stored, with the managedFields that the client sent: `[]` and `[{}]` forget all owners
            for good, what cannot be read is passed over.
        now: the time as objects have it.

    Returns:
        `before` itself if nothing changed.
    """
    old = entries_of(before)
    entries = old if before is not None and subresource else _sent(after, old)
    if before is not None and not entries:
        return _settled(before, with_entries(after, []))  # nobody is recorded any more, until somebody applies
    changes = changes_between(before, after, shape_of(node))
    own = new_entry(manager, "Update", api_version, subresource, changes.changed, now)
    kept = [remaining for entry in entries if (remaining := entry_without(entry, changes)) is not None]
    if changes.changed:
        kept = _joined(kept, own)
    if before is None:
        return with_entries(after, ordered(kept))
    return _settled(before, with_entries(after, old if _same_entries(kept, old) else ordered(kept)))


def changes_between(before: Json | None, after: Json, shape: Shape) -> Changes:
    """Return what a write changed, without the fields that nobody owns; `before` is None for a new object."""
    if before is None:
        builtin = bool(shape.node.ref)  # whose status is the server's until somebody writes to it
        after = {key: value for key, value in after.items() if key != "status"} if builtin else after
        before = unborn(shape.node)
    changes = compare(_ownable(before), _ownable(after), shape)
    return Changes(_without_metadata_itself(changes.changed), _without_metadata_itself(changes.removed))


def entries_of(found: Json | None) -> list[Json]:
    """The entries of an object; none if it is None."""
    entries: list[Json] = [] if found is None else found["metadata"].get("managedFields") or []
    return entries


def identity(entry: Json) -> Identity:
    """Return the identity of an entry; two of one object never have the same."""
    version = "" if entry["operation"] == "Apply" else entry.get("apiVersion", "")
    return entry.get("manager", ""), entry["operation"], version, entry.get("subresource", "")


def new_entry(
    manager: str, operation: str, api_version: str, subresource: str, fields: Fields, time: str | None
) -> Json:
    """An entry; those of writes to `scale` have no time in Kubernetes either."""
    return {
        "manager": manager or "unknown",
        "operation": operation,
        "apiVersion": api_version,
        **({"time": time} if time and subresource != "scale" else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": interned(fields),
        **({"subresource": subresource} if subresource else {}),
    }


def entry_without(entry: Json, changes: Changes) -> Json | None:
    """The entry of somebody else after these changes; itself if they do not concern it, None if nothing is left."""
    fields = difference(difference(entry["fieldsV1"], changes.changed), changes.removed)
    if fields is entry["fieldsV1"]:
        return entry
    return {**entry, "fieldsV1": interned(fields)} if fields else None


def ordered(entries: Iterable[Json]) -> list[Json]:
    """Order entries as Kubernetes writes them: Apply first, and older ones first."""
    return sorted(entries, key=_place)


def with_entries(found: Json, entries: Sequence[Json]) -> Json:
    """The object with these entries and no others."""
    metadata = {key: value for key, value in found["metadata"].items() if key != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**found, "metadata": metadata}


def unless_only_times(before: Json, after: Json) -> Json:
    """`after`; or `before`, if they differ in the times of managedFields alone, which is no change."""
    old, new = entries_of(before), entries_of(after)
    if old is not new and list(map(_timeless, old)) == list(map(_timeless, new)):
        after = with_entries(after, old)
    return _settled(before, after)


def without_own_metadata(fields: Fields) -> Fields:
    """A set of fields without those that nobody owns."""
    below = fields.get("f:metadata")
    kept = {step: value for step, value in fields.items() if step not in ("f:apiVersion", "f:kind", "f:metadata")}
    if below:
        ownable = {step: value for step, value in below.items() if step != SELF and step[2:] not in _NOBODYS_METADATA}
        if ownable:
            kept["f:metadata"] = ownable
    return dict(sorted(kept.items()))


def _sent(after: Json, old: list[Json]) -> list[Json]:
    """The entries that the client wants; the old ones if it says nothing that can be read."""
    sent = after["metadata"].get("managedFields")
    if sent is None or sent is old or sent == old:
        return old
    if sent in ([], [{}]):
        return []
    try:
        entries = {identity(entry): entry for entry in map(_read, sent)}
    except (AttributeError, KeyError, TypeError, ValueError):
        return old
    return [entry for entry in entries.values() if entry["fieldsV1"]]


def _read(entry: Mapping[str, Any]) -> Json:
    if entry["operation"] not in ("Apply", "Update") or entry["fieldsType"] != "FieldsV1" or not entry["apiVersion"]:
        raise ValueError("not an entry of managedFields")
    return {**entry, "fieldsV1": canonical(entry.get("fieldsV1") or EMPTY)}


def _joined(entries: list[Json], own: Json) -> list[Json]:
    """The entries with the fields of this one added to the one of the same identity."""
    mine = identity(own)
    earlier = next((entry for entry in entries if identity(entry) == mine), None)
    if earlier is None:
        return [*entries, own]
    own = {**own, "fieldsV1": interned(union(earlier["fieldsV1"], own["fieldsV1"]))}
    return [own if entry is earlier else entry for entry in entries]


def _settled(before: Json, after: Json) -> Json:
    """`before` if both are the same."""
    return before if same(after, before) else after


def _same_entries(entries: list[Json], old: list[Json]) -> bool:
    return len(entries) == len(old) and all(mine is theirs for mine, theirs in zip(entries, old, strict=True))


def _ownable(found: Json) -> Json:
    metadata = found.get("metadata")
    if metadata is None:
        return found
    ownable = {key: value for key, value in metadata.items() if key not in _NOBODYS_METADATA}
    return {**found, "apiVersion": "", "kind": "", "metadata": ownable}


def _without_metadata_itself(fields: Fields) -> Fields:
    return without_own_metadata(fields) if fields.keys() & {"f:metadata", "f:apiVersion", "f:kind"} else fields


def _place(entry: Json) -> tuple[str, str, str, str, str]:
    return (
        entry["operation"],
        entry.get("time") or "",
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def _timeless(entry: Json) -> Json:
    return {key: value for key, value in entry.items() if key != "time"}
