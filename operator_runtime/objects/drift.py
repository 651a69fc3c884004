"""Pure: whether an apply would change nothing of a live object.

An apply that changes nothing costs the API server as much as a write, so a reconcile compares first: `Client.covers`
and `Client.keep` do so by this. What an apply does follows from the object, the body and the fields that its manager
owns by applies before (`Metadata.applied`): those that the body leaves out vanish, those that somebody else wrote since
are taken back. So an object is as wanted where the manager owns what the body has, no more and no less, and each of it
has the body's value.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from operator_runtime.objects.api_objects import Object, PlainObject
from operator_runtime.objects.applied import fields_of
from operator_runtime.objects.bodies import without_nones

Fields = Mapping[str, Any]
"""A part of managedFields: `f:NAME`, `k:KEYS` and `v:VALUE` to what is in it, {} for what is owned as a whole."""

# Nobody owns which object it is: the API server keeps this out of managedFields.
_IDENTITY = ("namespace", "name", "uid", "resourceVersion")


def covers(live: PlainObject | Object[Any, Any], wanted: Mapping[str, Any], manager: str) -> bool:
    """Whether an apply of `wanted` by `manager` would change nothing of `live`.

    Args:
        live: the object, from a store or the client.
        wanted: the body of the apply.
        manager: applies it.

    Raises:
        TypeError: the kind's type does not keep what `wanted` is about.
    """
    body = {part: value for part, value in without_nones(wanted).items() if part not in ("apiVersion", "kind")}
    held = _body_of(live, body)
    metadata = body.pop("metadata", {})
    if any(metadata[field] != held["metadata"].get(field) for field in _IDENTITY if field in metadata):
        return False
    if rest := {field: value for field, value in metadata.items() if field not in _IDENTITY}:
        body["metadata"] = rest
    applied = fields_of(live.metadata.applied, manager)
    return bool(applied) and _has(held, body, applied)


def _body_of(live: PlainObject | Object[Any, Any], wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(live, PlainObject):
        return live.body
    held: dict[str, Any] = {"metadata": _metadata_of(live)}
    for part in wanted.keys() - held.keys():
        value = getattr(live, part, None)
        if not isinstance(value, Mapping):
            raise TypeError(
                f"what is cached of {live.key} has no whole {part!r} to compare with the body's: make its kind by "
                "`plain`, or by `typed` with spec=dict[str, Any]"
            )
        held[part] = value
    return held


def _metadata_of(live: Object[Any, Any]) -> dict[str, Any]:
    metadata = live.metadata
    return {
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
        "labels": metadata.labels,
        "annotations": metadata.annotations,
        "finalizers": list(metadata.finalizers),
        "ownerReferences": without_nones(msgspec.to_builtins(metadata.owners)),
    }


def _has(live: object, wanted: object, applied: Fields) -> bool:
    """Whether a part of the object is the wanted one, as far as it is ours."""
    steps = applied.keys() - {"."}
    if not steps:
        # The API server leaves out of most kinds what is empty.
        return _is(live, wanted) or (live is None and wanted in ({}, []))
    match live, wanted:
        case Mapping(), Mapping():
            return steps == {f"f:{field}" for field in wanted} and all(
                _has(live.get(field), part, applied[f"f:{field}"] or {}) for field, part in wanted.items()
            )
        case str(), _:
            return False
        case Sequence(), Sequence():
            return len(steps) == len(wanted) and all(_has_entry(live, each, applied, steps) for each in wanted)
        case _:
            return False


def _has_entry(live: Sequence[object], wanted: object, applied: Fields, steps: Collection[str]) -> bool:
    """Whether a list has an entry that is ours, and as wanted."""
    for step in steps:
        kind, _, text = step.partition(":")
        key = json.loads(text)
        if kind == "v" and _is(key, wanted) and key in live:
            return True
        if kind == "k" and _is_known_by(key, wanted, whole=False):
            inner = applied[step] or {}
            if any(_is_known_by(key, held, whole=True) and _has(held, wanted, inner) for held in live):
                return True
    return False


def _is_known_by(key: Mapping[str, Any], entry: object, *, whole: bool) -> bool:
    """Whether an entry has these keys; one that a body leaves to its default, such as a protocol, is any."""
    return isinstance(entry, Mapping) and all(
        entry[field] == value if field in entry else not whole for field, value in key.items()
    )


def _is(live: object, wanted: object) -> bool:
    """Whether both are the same to JSON, where true is not 1."""
    match live, wanted:
        case Mapping(), Mapping():
            return live.keys() == wanted.keys() and all(_is(live[field], part) for field, part in wanted.items())
        case str(), _:
            return live == wanted
        case Sequence(), Sequence() if not isinstance(wanted, str):
            return len(live) == len(wanted) and all(map(_is, live, wanted))
        case _:
            return live == wanted and isinstance(live, bool) == isinstance(wanted, bool)
