"""Causes for fields that have a wrong value: one function for each reason, and rules that many kinds share."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from kube_simulator.errors import Cause

MAX_INT32: Final = 2**31 - 1
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
IMMUTABLE: Final = "field is immutable"
NO_FIELD: Final = "<nil>"
"""How Kubernetes names the field where it has lost the path, as in what it says of `anyOf`."""


def invalid(field: str, value: object, why: str) -> Cause:
    """The value is none that the field may have."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {why}", field)


def type_invalid(field: str, value: object, why: str) -> Cause:
    """The value is of another type or format than the field."""
    return Cause("FieldValueTypeInvalid", f"Invalid value: {shown(value)}: {why}", field)


def required(field: str, why: str = "") -> Cause:
    """The field must be there, and is not."""
    return Cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", field)


def forbidden(field: str, why: str) -> Cause:
    """The field may not be there, or not with this value."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)


def duplicate(field: str, value: object) -> Cause:
    """Return the cause of an element that the list has twice."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def not_supported(field: str, value: object, supported: Iterable[object]) -> Cause:
    """The value is none of the few that the field may have."""
    listed = ", ".join(map(shown, supported))
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}", field)


def too_long(field: str, limit: int) -> Cause:
    """The text is longer than the field may be; Kubernetes says bytes and counts characters."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def too_many(field: str, count: int, limit: int) -> Cause:
    """The list or the map has more elements than it may have."""
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} items", field)


def unlike(field: str, value: object, why: str) -> list[Cause]:
    """The cause of a text that a rule of names (see `names`) finds something wrong with; none if it is good."""
    return [invalid(field, value, why)] if why else []


def at_least_zero(field: str, value: object) -> list[Cause]:
    """A number that is below zero; what is absent is not."""
    return [invalid(field, value, NOT_NEGATIVE)] if isinstance(value, int) and value < 0 else []


def one_of(field: str, value: object, supported: Iterable[str]) -> list[Cause]:
    """A value that is none of those; what is absent is left to the caller."""
    allowed = list(supported)
    return [] if value in (None, *allowed) else [not_supported(field, value, allowed)]


def shown(value: object) -> str:
    """A value as messages show it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def join(path: str, name: str) -> str:
    """The path of a field of what stands at a path."""
    return f"{path}.{name}" if path else name
