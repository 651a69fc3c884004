"""Pure: which fields of an object were applied, and by whom, as far as a later apply must know it.

A field that an apply leaves out vanishes if its manager applied it before, and stays if it is somebody else's. Which of
both it is stands in `metadata.managedFields` alone, of which caches keep this much: the applied fields, without values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from operator_runtime.cache.sharing import shared
from operator_runtime.client.errors import UNDECODABLE
from operator_runtime.client.nesting import decode_nested


class Applied(msgspec.Struct, frozen=True, gc=False):
    """What one manager has applied.

    Attributes:
        manager: the name under which it applies.
        fields: `fieldsV1` as it came, in JSON.
    """

    manager: str
    fields: bytes


class _Entry(msgspec.Struct):
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fieldsV1: msgspec.Raw = msgspec.Raw()


_decode_entries = msgspec.json.Decoder(tuple[_Entry, ...]).decode
_decode_fields = msgspec.json.Decoder(dict[str, Any]).decode


def applied_of(managed_fields: msgspec.Raw) -> tuple[Applied, ...]:
    """What was applied to an object itself, and not to a subresource of it.

    Args:
        managed_fields: the list as it came. What cannot be read counts as nothing.
    """
    if not bytes(managed_fields):
        return ()
    try:
        entries = _decode_entries(managed_fields)
    except UNDECODABLE:
        return ()
    return tuple(
        Applied(shared(each.manager), bytes(each.fieldsV1))
        for each in entries
        if each.operation == "Apply" and not each.subresource
    )


def fields_of(applied: Iterable[Applied], manager: str) -> Mapping[str, Any]:
    """The fields that a manager has applied, as managedFields have them: `{"f:spec": {"f:replicas": {}}}`.

    What cannot be read counts as nothing.
    """
    ours = next((each.fields for each in applied if each.manager == manager), b"")
    try:
        return decode_nested(_decode_fields, ours) if ours else {}
    except UNDECODABLE:
        return {}
