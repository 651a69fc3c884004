"""Causes for fields of built-in kinds, in the words of Kubernetes, in addition to those of a schema."""

from __future__ import annotations

from collections.abc import Iterable

from kube_simulator.errors import Cause
from kube_simulator.schema.schema_causes import duplicate, forbidden, invalid, not_supported, required, shown, too_long

__all__ = ["duplicate", "forbidden", "invalid", "not_supported", "required", "too_long"]

MAX_INT32 = 2**31 - 1
NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


def not_found(field: str, value: object) -> Cause:
    """The value refers to something that is not there."""
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}", field)


def unlike(field: str, value: object, why: Iterable[str]) -> list[Cause]:
    """One cause for each of the things that a rule of names (see `name_validation`) finds wrong with a text."""
    return [invalid(field, value, each) for each in why]


def at_least_zero(field: str, value: object) -> list[Cause]:
    """A number that is below zero; what is absent is not."""
    return [invalid(field, value, NOT_NEGATIVE)] if isinstance(value, int) and value < 0 else []


def one_of(field: str, value: object, supported: Iterable[str]) -> list[Cause]:
    """A value that is none of those; what is absent is left to the caller."""
    allowed = list(supported)
    return [] if value in (None, *allowed) else [not_supported(field, value, allowed)]
