"""`metadata.managedFields`: who last wrote which field, and what a write does to that.

An entry belongs to a manager, an operation (`Apply` or `Update`), a subresource and, for `Update`, an apiVersion.
Whoever adds a field or changes its value owns it alone; a field that goes has no owner; an entry of no fields vanishes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kube_simulator.patches.fields import Changes, Fields, Path, compare, read, written
from kube_simulator.schema.node import Node
from kube_simulator.values import Json, same

_NOBODYS_METADATA: Final = frozenset(
    {"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields"}
    | {"resourceVersion"}
)
"""Fields of metadata that are owned by nobody, as apiVersion and kind are not either."""


class Entry(NamedTuple):
    """Identity of an entry; two of one object never have the same."""

    manager: str
    operation: str
    api_version: str
    """Empty for `Apply`, which is one whatever the version."""
    subresource: str


def after_update(before: Json | None, after: Json, own: Entry, node: Node, now: str) -> Json:
    """The object with its owners after a POST, a PUT, or a patch other than apply.

    Args:
        before: as it is stored; None if the object is new.
        after: as it shall be stored, with the managedFields that the client sent: `[]` and `[{}]` forget all owners
            for good, all else is passed over.
        own: of the writer.
        now: the time as objects have it.

    Returns:
        `before` itself if nothing changed.
    """
    old = entries_of(before)
    entries = [] if _forgotten(after) and not (before is not None and own.subresource) else old
    if before is not None and not entries:  # nobody is recorded any more, until somebody applies
        after = with_entries(after, [])
        return before if same(after, before) else after
    changes = changes_between(before, after, node)
    kept = [left for entry in entries if (left := entry_without(entry, changes)) is not None]
    if changes.changed:
        mine = [entry for entry in kept if identity(entry) == own]
        fields = changes.changed.union(*(read(entry["fieldsV1"]) for entry in mine))
        kept = [entry for entry in kept if entry not in mine]
        kept.append(new_entry(own, own.api_version, fields, now))
    after = with_entries(after, ordered(kept) if kept != old else old)
    return before if before is not None and same(after, before) else after


def changes_between(before: Json | None, after: Json, node: Node) -> Changes:
    """Return what a write changed, without the fields that nobody owns; `before` is None for a new object."""
    if before is None:
        # The status of a built-in kind is the server's until somebody writes to it.
        after = {key: value for key, value in after.items() if key != "status"} if node.ref else after
        before = {}
    changes = compare(_ownable(before), _ownable(after), node)
    return Changes(ownable(changes.changed), ownable(changes.removed))


def ownable(fields: Fields) -> Fields:
    """A set of fields without those that nobody owns."""
    return frozenset(filter(_is_ownable, fields))


def entries_of(found: Json | None) -> list[Json]:
    """The entries of an object; none if it is None."""
    return [] if found is None else found["metadata"].get("managedFields") or []


def identity(entry: Json) -> Entry:
    """Return the identity of an entry."""
    version = "" if entry["operation"] == "Apply" else entry.get("apiVersion", "")
    return Entry(entry.get("manager", ""), entry["operation"], version, entry.get("subresource", ""))


def new_entry(owner: Entry, api_version: str, fields: Fields, time: str | None) -> Json:
    """An entry; those of writes to `scale` have no time in Kubernetes either."""
    return {
        "manager": owner.manager or "unknown",
        "operation": owner.operation,
        "apiVersion": api_version,
        **({"time": time} if time and owner.subresource != "scale" else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": written(fields),
        **({"subresource": owner.subresource} if owner.subresource else {}),
    }


def entry_without(entry: Json, changes: Changes) -> Json | None:
    """The entry of somebody else after these changes; itself if they do not concern it, None if nothing is left."""
    fields = read(entry["fieldsV1"])
    left = fields - changes.changed - changes.removed
    if len(left) == len(fields):
        return entry
    return {**entry, "fieldsV1": written(left)} if left else None


def ordered(entries: Iterable[Json]) -> list[Json]:
    """Order entries as Kubernetes writes them: Apply first, and older ones first."""
    keys = ("operation", "time", "manager", "apiVersion", "subresource")
    return sorted(entries, key=lambda entry: [entry.get(key) or "" for key in keys])


def with_entries(found: Json, entries: Sequence[Json]) -> Json:
    """The object with these entries and no others."""
    metadata = {key: value for key, value in found["metadata"].items() if key != "managedFields"}
    return {**found, "metadata": {**metadata, "managedFields": entries} if entries else metadata}


def unless_only_times(before: Json, after: Json) -> Json:
    """`after`; or `before`, if they differ in the times of managedFields alone, which is no change."""
    old, new = entries_of(before), entries_of(after)
    if [{**entry, "time": ""} for entry in old] == [{**entry, "time": ""} for entry in new]:
        after = with_entries(after, old)
    return before if same(after, before) else after


def _forgotten(after: Json) -> bool:
    """Report whether the client wants all owners to be forgotten."""
    return after["metadata"].get("managedFields") in ([], [{}])


def _ownable(found: Json) -> Json:
    metadata = {key: value for key, value in (found.get("metadata") or {}).items() if key not in _NOBODYS_METADATA}
    return {**found, "apiVersion": "", "kind": "", "metadata": metadata}


def _is_ownable(path: Path) -> bool:
    if path[0] == "f:metadata":
        return len(path) > 1 and path[1][2:] not in _NOBODYS_METADATA
    return path[0] not in ("f:apiVersion", "f:kind")
