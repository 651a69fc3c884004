"""Whether a custom resource fits its schema: the causes that Kubernetes would find, in its words and its order.

What was wrong before an update and has not changed is let pass (ratcheting).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any, Final

from kube_simulator.errors import Cause
from kube_simulator.schema import causes, formats, patterns
from kube_simulator.schema.embedded import embedded_problems
from kube_simulator.schema.node import MISSING, Node
from kube_simulator.schema.uniqueness import correlated, list_problems
from kube_simulator.schema.values import identical, join
from kube_simulator.store.go_text import quoted
from kube_simulator.values import Json

_INT_BITS: Final = {"int32": 32, "int64": 64, "": 64}
_LARGEST_FLOAT32: Final = 3.4028235677973366e38  # what rounds to it; see IEEE 754


def validate(node: Node, value: object, path: str = "", old: object = MISSING) -> list[Cause]:
    """What is wrong with a value, by its schema, the keys of its lists, and the objects embedded in it.

    Args:
        node: The schema; a custom resource's own is marked as embedded, and its metadata is looked at for what the
            schema says of the name alone.
        path: Of the value in its object, such as `status`.
        old: The value before an update, if there was one.
    """
    found = list(_checked(node, value, path, old).causes)
    found += embedded_problems(node, value, path, root=path == "")
    if old is MISSING or not list(list_problems(node, old, path)):
        found += list_problems(node, value, path)
    return found


@dataclass(slots=True)
class _Result:
    """What was found, and how many checks were made: of alternatives that all fail, the one with the most is told."""

    causes: list[Cause] = field(default_factory=list)
    checks: int = 0

    def add(self, other: _Result) -> None:
        self.causes += other.causes
        self.checks += other.checks


def _checked(node: Node, value: object, path: str, old: object) -> _Result:
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        value = float(value)  # as Go reads it
    result = _Result()
    if wrong_type := _type_problem(node, value, path):
        result.causes.append(wrong_type)
    if value is not None:
        result.add(_combined(node, value, path, old))
        if isinstance(value, str):
            result.causes += _string_problems(node, value, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            result.causes += _number_problems(node, value, path)
        elif isinstance(value, list):
            result.add(_items(node, value, path, old))
    result.causes += _enum_problems(node, value, path)
    if isinstance(value, dict):
        result.add(_fields(node, value, path, old))
    result.checks += 1
    if result.causes and old is not MISSING and identical(value, old):
        result.causes = []
    return result


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
        yield causes.too_long(path, limit)
    elif (least := raw.get("minLength")) is not None and len(value) < least:
        yield causes.invalid(path, value, f"{path} in body should be at least {least} chars long")
    elif (pattern := raw.get("pattern")) and not patterns.compiled(pattern).search(value):
        yield causes.invalid(path, value, f"{path} in body should match '{pattern}'")
    format = _format(node)
    if format and not formats.fits(format, value):
        yield _wrong_type(path, format, value)


def _number_problems(node: Node, value: float, path: str) -> Iterator[Cause]:
    raw, type_, format = node.raw, "" if node.int_or_string else node.type, _format(node)
    if problem := _range_problem(value, type_, format, "Checked", path):
        yield problem
    if (factor := raw.get("multipleOf")) is not None:
        yield from _multiple_problems(value, factor, type_, format, path)
    for key, exclusive, prefix, words in (
        ("maximum", "exclusiveMaximum", "Maximum boundary", ("less than", "less than or equal to")),
        ("minimum", "exclusiveMinimum", "Minimum boundary", ("greater than", "greater than or equal to")),
    ):
        if (bound := raw.get(key)) is None:
            continue
        if problem := _range_problem(bound, type_, format, prefix, path):
            yield problem
        elif isinstance(value, int):
            bound = int(bound)
        strict = raw.get(exclusive) is True
        over = value - bound if key == "maximum" else bound - value
        if over > 0 or (strict and over == 0):
            why = f"{path} in body should be {words[0 if strict else 1]} {causes.number(bound)}"
            yield causes.invalid(path, value, why)


def _multiple_problems(value: float, factor: float, type: str, format: str, path: str) -> Iterator[Cause]:
    if problem := _range_problem(factor, type, format, "MultipleOf", path):
        yield problem
    elif isinstance(value, int):
        factor = int(factor)
    if factor <= 0:
        why = f"factor MultipleOf declared for {path} must be positive: {causes.number(factor)}"
        yield causes.invalid(path, factor, why)
        return
    quotient = value * (1 / factor) if factor < 1 else value / factor
    divides = value % factor == 0 if isinstance(value, int) and isinstance(factor, int) else _is_whole(quotient)
    if not divides:
        yield causes.invalid(path, value, f"{path} in body should be a multiple of {causes.number(factor)}")


def _range_problem(value: float, type: str, format: str, what: str, path: str) -> Cause | None:
    if type == "integer":
        bits = _INT_BITS[format]
        # Kubernetes goes by the shortest digits that read back as the same float: -2^63 - 1 is -9223372036854776000.
        exact = Decimal(repr(value))
        good = exact == exact.to_integral_value() and -(2 ** (bits - 1)) <= exact < 2 ** (bits - 1)
    else:
        good = format != "float" or abs(value) < _LARGEST_FLOAT32
    said = f"with format {format}" if format else "(default format)"
    return (
        None if good else causes.invalid(causes.NO_FIELD, "", f"{what} value must be of type {type} {said} in {path}")
    )


def _enum_problems(node: Node, value: object, path: str) -> Iterator[Cause]:
    allowed = node.raw.get("enum")
    if allowed and not any(_is_enumerated(value, each) for each in allowed):
        shown = [each if isinstance(each, str) else json.dumps(each, separators=(",", ":")) for each in allowed]
        yield causes.not_supported(path, value, shown)


def _is_enumerated(value: object, allowed: object) -> bool:
    if isinstance(value, float) and type(allowed) is int:
        return math.trunc(value) == allowed  # Kubernetes converts to the type of what is allowed
    return identical(value, allowed)


def _items(node: Node, value: list[Any], path: str, old: object) -> _Result:
    result = _Result(checks=1)
    if (item := node.items()) is not None:
        before = correlated(node, old)
        for index, each in enumerate(value):
            result.add(_checked(item, each, f"{path}[{index}]", before(each)))
    least, limit = node.raw.get("minItems"), node.raw.get("maxItems")
    if least is not None and len(value) < least:
        why = f"{path} in body should have at least {least} items"
        result.causes.append(causes.invalid(path, len(value), why))
    if limit is not None and len(value) > limit:
        result.causes.append(causes.too_many(path, len(value), limit))
    return result


def _fields(node: Node, value: Json, path: str, old: object) -> _Result:
    result = _Result()
    count = len(value)
    least, limit = node.raw.get("minProperties"), node.raw.get("maxProperties")
    if least is not None and count < least:
        why = f"{path} in body should have at least {least} properties"
        result.causes.append(causes.invalid(path, count, why))
    if limit is not None and count > limit:
        result.causes.append(causes.too_many(path, count, limit))
    before = old if isinstance(old, dict) else {}
    for name, each in value.items():
        if name not in node.properties and node.additional is not None:
            result.add(_checked(node.additional, each, f"{path}.{name}", before.get(name, MISSING)))
    for name, child in node.properties.items():
        if name not in value:
            continue
        if node.embedded and name == "metadata":
            result.add(_names(child, value[name], join(path, name), before.get(name, MISSING)))
        else:
            known = MISSING if not path and name in ("apiVersion", "kind") else before.get(name, MISSING)
            result.add(_checked(child, value[name], join(path, name), known))
    for name in node.raw.get("required", ()):
        if name not in value:
            result.causes.append(causes.required(join(path, name)))
    return result


def _names(node: Node, metadata: object, path: str, old: object) -> _Result:
    """What the schema says of the names in the metadata: it may say nothing of the rest."""
    result = _Result()
    before = old if isinstance(old, dict) else {}
    for name in ("name", "generateName"):
        if isinstance(metadata, dict) and name in metadata and (child := node.field(name)) is not None:
            result.add(_checked(child, metadata[name], join(path, name), before.get(name, MISSING)))
    return result


def _combined(node: Node, value: object, path: str, old: object) -> _Result:
    """`anyOf`, `oneOf`, `allOf` and `not`."""
    result = _Result(checks=1)
    if any_of := node.alternatives("anyOf"):
        results = [_checked(each, value, path, old) for each in any_of]
        chosen = next((each for each in results if not each.causes), None)
        if chosen is None:
            result.causes.append(_no_field(f"{quoted(path)} must validate at least one schema (anyOf)"))
            chosen = max(results, key=lambda each: each.checks)
        result.add(chosen)
    if one_of := node.alternatives("oneOf"):
        results = [_checked(each, value, path, old) for each in one_of]
        good = [each for each in results if not each.causes]
        if len(good) == 1:
            result.add(good[0])
        else:
            count = f"Found {len(good)} valid alternatives" if good else "Found none valid"
            result.causes.append(_no_field(f"{quoted(path)} must validate one and only one schema (oneOf). {count}"))
            if not good:
                result.add(max(results, key=lambda each: each.checks))
    if all_of := node.alternatives("allOf"):
        results = [_checked(each, value, path, old) for each in all_of]
        for each in results:
            result.add(each)
        bad = sum(bool(each.causes) for each in results)
        if bad:
            end = ". None validated" if bad == len(results) else ""
            result.causes.append(_no_field(f"{quoted(path)} must validate all the schemas (allOf){end}"))
    for forbidden in node.alternatives("not"):
        if not _checked(forbidden, value, path, old).causes:
            result.causes.append(_no_field(f"{quoted(path)} must not validate the schema (not)"))
    return result


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


def _wrong_type(path: str, wanted: str, found: str) -> Cause:
    return causes.type_invalid(path, found, f"{path} in body must be of type {wanted}: {quoted(found)}")


def _no_field(why: str) -> Cause:
    return causes.invalid(causes.NO_FIELD, "", why)
