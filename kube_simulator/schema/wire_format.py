"""Protobuf's wire format: the fields of a message by number, before anything is known of their meaning.

What is wrong with bytes is said in the words of the code that Kubernetes generates for each of its types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)
"""Wire types, by protobuf's numbers."""

_FIXED_BYTES: Final = {FIXED64: 8, FIXED32: 4}
_VARINT_LIMIT_BITS: Final = 64
_NEGATIVE: Final = "proto: negative length found during unmarshaling"


class Malformed(Exception):
    """Message of Kubernetes about bytes that are no such message."""


class Expected(NamedTuple):
    """A field that a message may have."""

    name: str
    """In Go, for messages of errors."""
    wire_type: int
    repeated: bool = False
    """Numbers may then come packed: many in one value."""


def read(message: str, data: bytes, expected: Mapping[int, Expected]) -> dict[int, list[Any]]:
    """The values of the expected fields by number, in their order; what else there is, is passed over.

    Args:
        message: its name in Go, for messages of errors.

    Returns:
        Of each value an unsigned int (varint) or its bytes.

    Raises:
        Malformed: these bytes are no such message.
    """
    found: dict[int, list[Any]] = {}
    for number, wire_type, value in _fields(message, data):
        if (field := expected.get(number)) is None:
            continue
        if wire_type == field.wire_type:
            found.setdefault(number, []).append(value)
        elif wire_type == BYTES and field.repeated:
            found.setdefault(number, []).extend(_packed(value, field.wire_type))
        else:
            raise Malformed(f"proto: wrong wireType = {wire_type} for field {field.name}")
    return found


def _fields(message: str, data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value of each field; of a group, which Kubernetes has none of, no value."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire_type = _signed_32(tag >> 3), tag & 7
        if wire_type == GROUP_END:
            raise Malformed(f"proto: {message}: wiretype end group for non-group")
        if number <= 0:
            raise Malformed(f"proto: {message}: illegal tag {number} (wire type {tag})")
        value, at = _value(data, at, wire_type)
        yield number, wire_type, value


def _value(data: bytes, at: int, wire_type: int) -> tuple[Any, int]:
    """The value that begins here, and where it ends."""
    if wire_type == VARINT:
        return _varint(data, at)
    if wire_type == GROUP:
        return None, _group_end(data, at)
    if wire_type == BYTES:
        length, at = _varint(data, at)
        if length >> (_VARINT_LIMIT_BITS - 1):
            raise Malformed(_NEGATIVE)
    elif wire_type in _FIXED_BYTES:
        length = _FIXED_BYTES[wire_type]
    else:
        raise Malformed(f"proto: illegal wireType {wire_type}")
    if at + length > len(data):
        raise Malformed("unexpected EOF")
    return data[at : at + length], at + length


def _group_end(data: bytes, at: int) -> int:
    depth = 1
    while depth:
        tag, at = _varint(data, at)
        if tag & 7 == GROUP:
            depth += 1
        elif tag & 7 == GROUP_END:
            depth -= 1
        else:
            _, at = _value(data, at, tag & 7)
    return at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, _VARINT_LIMIT_BITS, 7):
        if at >= len(data):
            raise Malformed("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << _VARINT_LIMIT_BITS) - 1), at
    raise Malformed("proto: integer overflow")


def _packed(data: bytes, wire_type: int) -> Iterator[Any]:
    at = 0
    while at < len(data):
        value, at = _value(data, at, wire_type)
        yield value


def _signed_32(value: int) -> int:
    return int.from_bytes((value & 0xFFFFFFFF).to_bytes(4), signed=True)
