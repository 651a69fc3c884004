"""Server-side apply: the applied object becomes part of the live one, and its fields its applier's.

A field that another manager owns and that would get another value is a conflict, unless the applier forces it. What
the applier applied before and leaves out now goes, unless somebody else owns it too.

Differs from Kubernetes: kubectl does not take over what it applied on the client's side before; it must force it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from kube_simulator.errors import ApiError, Cause, bad_request, internal
from kube_simulator.patches.compare import Changes, compare
from kube_simulator.patches.fieldsets import (
    ALONE,
    Fields,
    difference,
    intersection,
    paths,
    text,
    union,
    without_trees,
)
from kube_simulator.patches.managed import (
    changes_between,
    entries_of,
    entry_without,
    identity,
    new_entry,
    ordered,
    unless_only_times,
    with_entries,
    without_own_metadata,
)
from kube_simulator.patches.merging import merged, pruned
from kube_simulator.patches.shapes import Shape, shape_of
from kube_simulator.patches.typed import owned, problem
from kube_simulator.resources import Resource
from kube_simulator.schema.builtin_decoding import decode_problems
from kube_simulator.values import Json, same

BEFORE_FIRST_APPLY: Final = "before-first-apply"
"""The manager of what an object had whose fields nobody owned when it was first applied to."""

_SERVERS_OWN: Final[Fields] = {
    "f:metadata": {
        f"f:{name}": ALONE
        for name in (
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "managedFields",
            "selfLink",
        )
    }
}
"""Fields that stay as they are, whatever is applied."""


def server_side_apply(
    live: Json | None,
    applied: Json,
    *,
    resource: Resource,
    manager: str,
    force: bool,
    subresource: str = "",
    now: str,
    reset: Sequence[str] | None = None,
) -> Json:
    """The live object with the applied one in it, and with its managedFields as they are then.

    The body's uid and resourceVersion are not looked at: preconditions are the caller's matter.

    Args:
        live: None if the object is made by this.
        subresource: to whose endpoint the object was sent, such as `status`.
        now: the time as objects have it.
        reset: fields (`status`, `metadata.labels`) that this endpoint leaves as they are, and that nobody comes to own
            by it; by default those of the endpoint.

    Returns:
        `live` itself if nothing changes.

    Raises:
        ApiError: 409 with a cause for each field in conflict; 500, as Kubernetes answers, if a field is unknown or has
            a value of another type; 400 for managedFields in the body.
    """
    shape = shape_of(resource.schema)
    _check(applied, resource, shape)
    untouched = _trees(_reset(resource, subresource) if reset is None else reset)
    has = owned(applied, shape)
    fields = without_trees(without_own_metadata(has), untouched)
    desired = _only(_only(applied, untouched), _SERVERS_OWN)
    before = live if live is not None else {key: applied[key] for key in ("apiVersion", "kind")} | {"metadata": {}}
    base = with_entries(before, [])
    laid = merged(base, desired, shape)
    version, mine = resource.api_version, (manager, "Apply", "", subresource)
    others, own = _entries(live, shape, version, subresource, mine, now)
    if own is not None:
        everybody = has
        for entry in others:
            everybody = union(everybody, entry["fieldsV1"])
        if difference(own["fieldsV1"], everybody):
            laid = pruned(laid, own["fieldsV1"], everybody, shape)
    changes, unchanged = compare(base, laid, shape), same(laid, base)
    if not force and live is not None:
        _check_conflicts(others, changes)
    if wrong := decode_problems(resource.schema, laid):
        what = f"convert new object ({_named(applied, resource)}) to proper version"
        raise internal(f"failed to {what}: unable to convert unstructured object to {_kind(resource)}: {wrong}")
    entries = [left for entry in others if (left := entry_without(entry, changes)) is not None]
    if fields:
        time = (own or {}).get("time") if unchanged else now
        entries.append(new_entry(manager, "Apply", version, subresource, fields, time))
    result = with_entries(laid, ordered(entries))
    return result if live is None else unless_only_times(live, result)


def _check(applied: Json, resource: Resource, shape: Shape) -> None:
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    if wrong := problem(applied, shape):
        raise internal(f"failed to create typed patch object ({_named(applied, resource)}): {wrong}")


def _entries(
    live: Json | None, shape: Shape, version: str, subresource: str, mine: tuple[str, str, str, str], now: str
) -> tuple[list[Json], Json | None]:
    """The entries of others, and the applier's own if it has applied before."""
    entries = entries_of(live)
    if live is not None and not entries:
        changed = changes_between(None, live, shape).changed
        if changed:
            entries = [new_entry(BEFORE_FIRST_APPLY, "Update", version, subresource, changed, now)]
    own = next((entry for entry in entries if identity(entry) == mine), None)
    return [entry for entry in entries if entry is not own], own


def _check_conflicts(others: Sequence[Json], changes: Changes) -> None:
    """
    Raises:
        ApiError: 409 if somebody else owns what is changed.
    """
    found: list[tuple[str, str]] = []
    for entry in sorted(others, key=identity):
        fields = intersection(entry["fieldsV1"], changes.changed)
        found += ((_described(entry), text(path)) for path in paths(fields))
    if not found:
        return
    causes = [Cause("FieldManagerConflict", f"conflict with {who}", path).json() for who, path in found]
    listed = "; ".join(f"conflict with {who}: {path}" for who, path in found)
    message = f"Apply failed with {len(found)} conflict{'s' if len(found) > 1 else ''}: {listed}"
    raise ApiError(409, "Conflict", message, {"causes": causes})


def _described(entry: Json) -> str:
    """A manager as messages name it: `"stranger" with subresource "status" using v1`."""
    text = json.dumps(entry.get("manager", ""), ensure_ascii=False)
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    return f"{text} using {entry['apiVersion']}" if entry["operation"] == "Update" else text


def _reset(resource: Resource, subresource: str) -> Sequence[str]:
    """Return the fields that an endpoint leaves alone."""
    if subresource == "status":
        return ("metadata", "spec") if resource.custom else ("metadata.labels", "spec")
    return ("status",) if "status" in resource.subresources else ()


def _trees(dotted: Sequence[str]) -> Fields:
    """Paths as a tree of steps that ends in ALONE."""
    tree: Fields = {}
    for path in dotted:
        below = tree
        *before, last = path.split(".")
        for name in before:
            below = below.setdefault(f"f:{name}", {})
        below[f"f:{last}"] = ALONE
    return tree


def _only(applied: Json, untouched: Mapping[str, Fields]) -> Json:
    """The applied object without the fields that stay as they are."""
    kept = {}
    for key, value in applied.items():
        below = untouched.get(f"f:{key}")
        if below is None:
            kept[key] = value
        elif below and isinstance(value, dict):
            kept[key] = _only(value, below)
    return kept


def _named(applied: Json, resource: Resource) -> str:
    """Name an applied object as messages do: `default/web; apps/v1, Kind=Deployment`."""
    metadata = applied.get("metadata")
    namespace, name = (
        (metadata.get("namespace") or "", metadata.get("name") or "") if isinstance(metadata, dict) else ("", "")
    )
    return f"{namespace}/{name}; {_kind(resource)}"


def _kind(resource: Resource) -> str:
    return f"{resource.group}/{resource.version}, Kind={resource.kind}"
