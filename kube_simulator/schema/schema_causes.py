"""Causes that a schema finds in a value, in the words of Kubernetes: one function for each reason."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Final

from kube_simulator.errors import Cause
from kube_simulator.store.go_text import quoted

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


def not_supported(field: str, value: object, supported: Iterable[str]) -> Cause:
    """The value is none of the few that the field may have."""
    listed = ", ".join(map(quoted, supported))
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}", field)


def too_long(field: str, limit: int) -> Cause:
    """The text is longer than the field may be; Kubernetes says bytes and counts characters."""
    return Cause(
        "FieldValueTooLong", f"Too long: may not be more than {limit} {'byte' if limit == 1 else 'bytes'}", field
    )


def too_many(field: str, count: int, limit: int) -> Cause:
    """The list or the map has more elements than it may have."""
    items = "item" if limit == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} {items}", field)


def shown(value: object) -> str:
    """A value as messages show it: numbers and truth bare, texts in quotes, the rest as Go writes JSON."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, str):
        return quoted(value)
    return json_text(value)


def json_text(value: object, *, sort_keys: bool = True) -> str:
    """A value as Go writes it in JSON: the keys of a map are sorted, those of a type are in the type's own order."""
    text = json.dumps(_plain(value), separators=(",", ":"), sort_keys=sort_keys, ensure_ascii=False)
    # Go's encoder keeps JSON safe inside HTML.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def number(value: float) -> str:
    """A number as Go's `%v` prints it: a whole one without a point, a very large or small one with an exponent."""
    if isinstance(value, int):
        return str(value)
    if math.isinf(value) or math.isnan(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)  # the shortest digits that read back the same, as in Go
    if "e" not in text and abs(value) < 1e-4:
        text = f"{value:e}"
    return text


def _plain(value: object) -> object:
    """Convert whole floats to integers, which is how Go writes them in JSON."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value
