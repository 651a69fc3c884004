"""What may be wrong with a field of a built-in kind, in the words of Kubernetes.

What is said of a schema's values (see `schema.causes`) is said here too. But Kubernetes' own kinds are Go structs, and
shown with their fields in the order of the struct: here in that of the dict, not of the names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from kube_simulator.errors import Cause
from kube_simulator.schema import causes as schema_causes
from kube_simulator.schema.causes import forbidden, required, too_long
from kube_simulator.values import Json

__all__ = ["forbidden", "required", "too_long"]

MAX_INT32 = 2**31 - 1
NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


def invalid(field: str, value: object, why: str) -> Cause:
    """The value is none that the field may have."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {why}", field)


def duplicate(field: str, value: object) -> Cause:
    """Another element of the list has this value."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def not_supported(field: str, value: object, supported: Iterable[str]) -> Cause:
    """The value is none of the few that the field may have."""
    listed = ", ".join(map(shown, supported))
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}", field)


def not_found(field: str, value: object) -> Cause:
    """The value refers to something that is not there."""
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}", field)


def unlike(field: str, value: object, why: Iterable[str]) -> list[Cause]:
    """One cause for each of the things that a rule of names (see `names`) finds wrong with a text."""
    return [invalid(field, value, each) for each in why]


def at_least_zero(field: str, value: object) -> list[Cause]:
    """A number that is below zero; what is absent is not."""
    return [invalid(field, value, NOT_NEGATIVE)] if _number(value) < 0 else []


def one_of(field: str, value: object, supported: Iterable[str]) -> list[Cause]:
    """A value that is none of those; what is absent is left to the caller."""
    allowed = list(supported)
    return [] if value in (None, *allowed) else [not_supported(field, value, allowed)]


def shown(value: object) -> str:
    """A value as messages show it: numbers bare, texts in quotes, the rest as JSON."""
    if not isinstance(value, dict | list):
        return schema_causes.shown(value)
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    # Go's encoder keeps JSON safe inside HTML.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def ordered(value: Mapping[str, object], fields: Iterable[str]) -> Json:
    """With its fields in the order of Kubernetes' type, in which messages show them."""
    return {name: value[name] for name in fields if name in value}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
