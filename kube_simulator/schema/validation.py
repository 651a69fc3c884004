"""Validation of a custom resource: the causes that Kubernetes would find, in its words and its order.

What was wrong before an update and has not changed is let pass (ratcheting).

Differs from Kubernetes: apiVersion, kind and metadata of embedded objects are not looked at; of alternatives that all
fail the first is told; bounds and factors are taken to be of their field's type.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import Any, Final, Literal

from kube_simulator.errors import Cause
from kube_simulator.schema import formats, patterns, schema_causes
from kube_simulator.schema.exact_values import identical, join
from kube_simulator.schema.node import MISSING, Node
from kube_simulator.schema.uniqueness import correlated, list_problems
from kube_simulator.store.go_text import quoted
from kube_simulator.values import Json

_INT_BITS: Final = {"int32": 32, "int64": 64, "": 64}
_LARGEST_FLOAT32: Final = 3.4028235677973366e38  # what rounds to it; see IEEE 754


def validate(node: Node, value: object, path: str = "", old: object = MISSING) -> list[Cause]:
    """List what is wrong with a value, by its schema and the keys of its lists.

    Args:
        node: The schema; a custom resource's own is marked as embedded, and its metadata is looked at for what the
            schema says of the name alone.
        path: Of the value in its object, such as `status`.
        old: The value before an update, if there was one.
    """
    found = _checked(node, value, path, old)
    if old is MISSING or not list(list_problems(node, old, path)):
        found += list_problems(node, value, path)
    return found


def _checked(node: Node, value: object, path: str, old: object) -> list[Cause]:
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        value = float(value)  # as Go reads it
    found: list[Cause] = []
    if wrong_type := _type_problem(node, value, path):
        found.append(wrong_type)
    if value is not None:
        found += _combined(node, value, path, old)
        if isinstance(value, str):
            found += _string_problems(node, value, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found += _number_problems(node, value, path)
        elif isinstance(value, list):
            found += _items(node, value, path, old)
    found += _enum_problems(node, value, path)
    if isinstance(value, dict):
        found += _fields(node, value, path, old)
    return [] if found and old is not MISSING and identical(value, old) else found


def _type_problem(node: Node, value: object, path: str) -> Cause | None:
    types = _types(node)
    if value is None:
        return _wrong_type(path, ",".join(types), "null") if types and not node.nullable else None
    kind, width = _kind(value)
    format = _format(node)
    whole = kind == "number" and "integer" in types and _is_whole(value)
    fits = kind in types or whole or (kind == "integer" and "number" in types)
    if kind not in ("string", "array"):
        if format and not fits and width != format:
            return _wrong_type(path, format, width)
    elif format and not {"number", "integer"} & set(types):
        return None
    return None if fits or not types else _wrong_type(path, ",".join(types), kind)


def _string_problems(node: Node, value: str, path: str) -> Iterator[Cause]:
    raw = node.raw
    if (limit := raw.get("maxLength")) is not None and len(value) > limit:
        yield schema_causes.too_long(path, limit)
    elif (least := raw.get("minLength")) is not None and len(value) < least:
        yield schema_causes.invalid(path, value, f"{path} in body should be at least {least} chars long")
    elif (pattern := raw.get("pattern")) and not patterns.compiled(pattern).search(value):
        yield schema_causes.invalid(path, value, f"{path} in body should match '{pattern}'")
    format = _format(node)
    if format and not formats.fits(format, value):
        yield _wrong_type(path, format, value)


def _number_problems(node: Node, value: float, path: str) -> Iterator[Cause]:
    raw, type_, format = node.raw, "" if node.int_or_string else node.type, _format(node)
    if not _is_in_range(value, type_, format):
        expected = f"with format {format}" if format else "(default format)"
        yield schema_causes.invalid(
            schema_causes.NO_FIELD, "", f"Checked value must be of type {type_} {expected} in {path}"
        )
    if (factor := raw.get("multipleOf")) is not None:
        exact = isinstance(value, int) and isinstance(factor, int)
        if not (value % factor == 0 if exact else _is_whole(value * (1 / factor) if factor < 1 else value / factor)):
            yield schema_causes.invalid(
                path, value, f"{path} in body should be a multiple of {schema_causes.number(factor)}"
            )
    for key, exclusive, words in (
        ("maximum", "exclusiveMaximum", ("less than", "less than or equal to")),
        ("minimum", "exclusiveMinimum", ("greater than", "greater than or equal to")),
    ):
        if (bound := raw.get(key)) is None:
            continue
        strict = raw.get(exclusive) is True
        over = value - bound if key == "maximum" else bound - value
        if over > 0 or (strict and over == 0):
            why = f"{path} in body should be {words[0 if strict else 1]} {schema_causes.number(bound)}"
            yield schema_causes.invalid(path, value, why)


def _is_in_range(value: float, type: str, format: str) -> bool:
    if type != "integer":
        return format != "float" or abs(value) < _LARGEST_FLOAT32
    bits = _INT_BITS[format]
    # Kubernetes goes by the shortest digits that read back as the same float: -2^63 - 1 is -9223372036854776000.
    exact = Decimal(repr(value))
    return exact == exact.to_integral_value() and -(2 ** (bits - 1)) <= exact < 2 ** (bits - 1)


def _enum_problems(node: Node, value: object, path: str) -> Iterator[Cause]:
    allowed = node.raw.get("enum")
    if allowed and not any(_is_enumerated(value, each) for each in allowed):
        shown = [each if isinstance(each, str) else json.dumps(each, separators=(",", ":")) for each in allowed]
        yield schema_causes.not_supported(path, value, shown)


def _is_enumerated(value: object, allowed: object) -> bool:
    if isinstance(value, float) and type(allowed) is int:
        return math.trunc(value) == allowed  # Kubernetes converts to the type of what is allowed
    return identical(value, allowed)


def _items(node: Node, value: list[Any], path: str, old: object) -> Iterator[Cause]:
    if (item := node.items()) is not None:
        before = correlated(node, old)
        for index, each in enumerate(value):
            yield from _checked(item, each, f"{path}[{index}]", before(each))
    least, limit = node.raw.get("minItems"), node.raw.get("maxItems")
    if least is not None and len(value) < least:
        yield schema_causes.invalid(path, len(value), f"{path} in body should have at least {least} items")
    if limit is not None and len(value) > limit:
        yield schema_causes.too_many(path, len(value), limit)


def _fields(node: Node, value: Json, path: str, old: object) -> Iterator[Cause]:
    count = len(value)
    least, limit = node.raw.get("minProperties"), node.raw.get("maxProperties")
    if least is not None and count < least:
        yield schema_causes.invalid(path, count, f"{path} in body should have at least {least} properties")
    if limit is not None and count > limit:
        yield schema_causes.too_many(path, count, limit)
    before = old if isinstance(old, dict) else {}
    for name, each in value.items():
        if name not in node.properties and node.additional is not None:
            yield from _checked(node.additional, each, f"{path}.{name}", before.get(name, MISSING))
    for name, child in node.properties.items():
        if name not in value:
            continue
        if node.embedded and name == "metadata":
            yield from _names(child, value[name], join(path, name), before.get(name, MISSING))
        else:
            known = MISSING if not path and name in ("apiVersion", "kind") else before.get(name, MISSING)
            yield from _checked(child, value[name], join(path, name), known)
    for name in node.raw.get("required", ()):
        if name not in value:
            yield schema_causes.required(join(path, name))


def _names(node: Node, metadata: object, path: str, old: object) -> Iterator[Cause]:
    """Validate the names in the metadata, of which alone a schema may have rules."""
    before = old if isinstance(old, dict) else {}
    for name in ("name", "generateName"):
        if isinstance(metadata, dict) and name in metadata and (child := node.field(name)) is not None:
            yield from _checked(child, metadata[name], join(path, name), before.get(name, MISSING))


def _combined(node: Node, value: object, path: str, old: object) -> Iterator[Cause]:
    """`anyOf`, `oneOf`, `allOf` and `not`."""

    def results(keyword: Literal["allOf", "anyOf", "oneOf", "not"]) -> list[list[Cause]]:
        return [_checked(each, value, path, old) for each in node.alternatives(keyword)]

    if (any_of := results("anyOf")) and all(any_of):
        yield _no_field(f"{quoted(path)} must validate at least one schema (anyOf)")
        yield from any_of[0]
    if (one_of := results("oneOf")) and (good := one_of.count([])) != 1:
        count = f"Found {good} valid alternatives" if good else "Found none valid"
        yield _no_field(f"{quoted(path)} must validate one and only one schema (oneOf). {count}")
        yield from [] if good else one_of[0]
    if any(all_of := results("allOf")):
        for each in all_of:
            yield from each
        end = ". None validated" if all(all_of) else ""
        yield _no_field(f"{quoted(path)} must validate all the schemas (allOf){end}")
    for found in results("not"):
        if not found:
            yield _no_field(f"{quoted(path)} must not validate the schema (not)")


def _types(node: Node) -> tuple[str, ...]:
    if node.int_or_string:
        return ("integer", "string")
    return (node.type,) if node.type else ()


@cache
def _known_format(type: str, format: str) -> str:
    match type:
        case "integer":
            known = format in ("int32", "int64")
        case "number":
            known = format in ("float", "double")
        case "" | "string":
            known = formats.is_known(format)
        case _:
            known = False
    return format if known else ""


def _format(node: Node) -> str:
    """The format, or empty where Kubernetes does not know it for this type: it goes unchecked then."""
    return _known_format("" if node.int_or_string else node.type, node.format) if node.format else ""


def _kind(value: object) -> tuple[str, str]:
    """The JSON type of a value, and the name of the number's type in Go."""
    match value:
        case bool():
            return "boolean", ""
        case int():
            return "integer", "int64"
        case float():
            return "number", "float64"
        case str():
            return "string", ""
        case list():
            return "array", ""
    return "object", ""


def _is_whole(value: object) -> bool:
    # Beyond 2^53 not every whole number can be told from its neighbours.
    return isinstance(value, int | float) and abs(value) < 2**53 and float(value).is_integer()


def _wrong_type(path: str, desired: str, found: str) -> Cause:
    return schema_causes.type_invalid(path, found, f"{path} in body must be of type {desired}: {quoted(found)}")


def _no_field(why: str) -> Cause:
    return schema_causes.invalid(schema_causes.NO_FIELD, "", why)
