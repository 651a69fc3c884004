"""Pure: what a manager wrote of an object otherwise than by apply, made part of what it has applied.

A create and a patch leave an entry of the operation `Update` in `metadata.managedFields`, and an apply takes back only
what the entry `Apply` has. So the fields of the one go into the other before an apply, as client-go's `csaupgrade` does
for `kubectl apply --server-side`: then those that the body leaves out vanish, and those of other managers stay theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import orjson

from operator_runtime.client.errors import UNDECODABLE

Fields = dict[str, Any]


class _Entry(msgspec.Struct, omit_defaults=True):
    manager: str = ""
    operation: str = ""
    apiVersion: str = ""
    time: str = ""
    fieldsType: str = ""
    fieldsV1: Fields = {}
    subresource: str = ""


class _Meta(msgspec.Struct):
    uid: str = ""
    resourceVersion: str = ""
    managedFields: tuple[msgspec.Raw, ...] = ()


class _Object(msgspec.Struct):
    metadata: _Meta


class _Places(NamedTuple):
    """Where in managedFields a manager's own entries stand, None where it has none."""

    applied: int | None
    updated: int | None


_decode = msgspec.json.Decoder(_Object).decode
_decode_entry = msgspec.json.Decoder(_Entry).decode


def taken_over(body: bytes, manager: str, api_version: str) -> Mapping[str, object] | None:
    """The metadata of a merge patch after which the manager has applied what it wrote; None where it has already.

    Finalizers stay as they are: who put one there by a patch takes it away by a patch.

    Args:
        body: the object's JSON. Of what cannot be read, nothing is taken over.
        manager: who wrote.
        api_version: in which it writes. Fields of another version may be named otherwise, and are left.
    """
    try:
        metadata = _decode(body).metadata
        entries = [_decode_entry(raw) for raw in metadata.managedFields]
    except UNDECODABLE:
        return None
    places = _places(entries, manager, api_version)
    if places.updated is None:
        return None
    update = entries[places.updated]
    fields, finalizers = _apart(update.fieldsV1)
    if not fields:
        return None
    apply = msgspec.structs.replace(update, operation="Apply", fieldsV1=fields)
    if places.applied is not None:
        before = entries[places.applied]
        if before.apiVersion != api_version:
            return None  # the next apply writes its entry in this version
        apply = msgspec.structs.replace(
            apply, fieldsV1=_union(before.fieldsV1, fields), time=max(before.time, update.time)
        )
    listed: list[orjson.Fragment] = []
    for place, raw in enumerate(metadata.managedFields):
        if place == places.updated and finalizers:
            listed.append(_encoded(msgspec.structs.replace(update, fieldsV1=finalizers)))
        if place == (places.updated if places.applied is None else places.applied):
            listed.append(_encoded(apply))
        elif place != places.updated:
            listed.append(orjson.Fragment(bytes(raw)))
    return {"uid": metadata.uid, "resourceVersion": metadata.resourceVersion, "managedFields": listed}


def _places(entries: list[_Entry], manager: str, api_version: str) -> _Places:
    applied = updated = None
    for place, each in enumerate(entries):
        if each.manager != manager or each.subresource:
            continue
        if each.operation == "Apply":
            applied = place
        elif each.operation == "Update" and each.apiVersion == api_version:
            updated = place
    return _Places(applied, updated)


def _apart(fields: Fields) -> tuple[Fields, Fields]:
    """The fields without the finalizers, and the finalizers alone."""
    metadata = fields.get("f:metadata") or {}
    if "f:finalizers" not in metadata:
        return fields, {}
    rest = {step: part for step, part in metadata.items() if step != "f:finalizers"}
    without = {step: part for step, part in fields.items() if step != "f:metadata"}
    return (without | {"f:metadata": rest} if rest else without), {
        "f:metadata": {"f:finalizers": metadata["f:finalizers"]}
    }


def _union(one: Fields, other: Fields) -> Fields:
    """What is in either: `{}` is a field as a whole, which beside its parts is written as "."."""
    if not one and not other:
        return {}
    if not one or not other:
        return {".": {}} | (one or other)
    return one | {step: _union(one[step], part) if step in one else part for step, part in other.items()}


def _encoded(entry: _Entry) -> orjson.Fragment:
    return orjson.Fragment(msgspec.json.encode(entry))
