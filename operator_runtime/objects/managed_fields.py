"""Pure: writers of a field, by an object's `metadata.managedFields`.

The caches hold none, as they are half of an object's bytes: for the seldom case that another client must be named,
the object is read once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from operator_runtime.client.errors import UNDECODABLE
from operator_runtime.client.json_depth import decode_nested

# `spec.containers[memcached].image`: names, and keys of list-maps and maps in brackets.
_STEPS = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
_STATUS = "status"


class Writer(msgspec.Struct, frozen=True):
    """One entry of managedFields, whose fields (`fieldsV1`) last changed at `time` (RFC 3339).

    `subresource` is "status", "scale", … or "" for the object itself.
    """

    manager: str = ""
    time: str = ""
    subresource: str = ""
    fieldsV1: dict[str, Any] = {}


class _Meta(msgspec.Struct):
    managedFields: tuple[Writer, ...] = ()


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_decode = msgspec.json.Decoder(_Object).decode


class Writers:
    """Managers of one object's fields, from its JSON; what cannot be read has none."""

    def __init__(self, body: bytes) -> None:
        try:
            self._entries: Sequence[Writer] = decode_nested(_decode, body).metadata.managedFields
        except UNDECODABLE:
            self._entries = ()

    def owners(self, path: str) -> list[Writer]:
        """List the managers that own the field of that path, all around it or something in it; the latest first.

        A path is such as `spec.template.spec.containers[memcached].image`, `metadata.labels[app]`.
        """
        steps = [(name, key) for name, key in _STEPS.findall(path)]
        return _latest_first(each for each in self._entries if _owns(each.fieldsV1, steps))

    def latest(self, path: str) -> list[Writer]:
        """List the managers that wrote the object at all, the latest first: a field that was removed has no owner.

        A field of the status is written by other requests than the rest.
        """
        in_status = path.partition(".")[0] == _STATUS
        return _latest_first(each for each in self._entries if (each.subresource == _STATUS) == in_status)


def _latest_first(entries: Iterable[Writer]) -> list[Writer]:
    return sorted(entries, key=lambda each: each.time, reverse=True)


def _owns(fields: dict[str, Any], steps: Sequence[tuple[str, str]]) -> bool:
    for depth, (name, key) in enumerate(steps):
        if not fields:
            return depth > 0  # the whole of it, as one value
        found = fields.get(f"f:{name or key}")
        if found is None and key:
            found = next((value for entry, value in fields.items() if _is_keyed(entry, key)), None)
        if not isinstance(found, dict):
            return False
        fields = found
    return True


def _is_keyed(entry: str, key: str) -> bool:
    """Report whether `k:{"name":"memcached"}` or `v:"memcached"` names the entry of a list that has this key."""
    kind, _, value = entry.partition(":")
    if kind not in ("k", "v"):
        return False
    try:
        decoded = json.loads(value)
    except ValueError:
        return False
    return key in decoded.values() if isinstance(decoded, dict) else key == decoded
