"""Validation of a custom resource by its schema.

Differs from Kubernetes: what was wrong before an update is wrong after it too (no ratcheting); apiVersion, kind and
metadata of embedded objects are not looked at; of alternatives that all fail none is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from kube_simulator.errors import Cause
from kube_simulator.schema import causes, formats, patterns
from kube_simulator.schema.causes import join
from kube_simulator.schema.node import Node
from kube_simulator.values import Json, same

_INT_BITS: Final = {"int32": 32}
_TYPES: Final[dict[type, str]] = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object", type(None): "null"
}  # fmt: skip


def validate(node: Node, value: object, path: str = "") -> list[Cause]:
    """List what is wrong with a value.

    Args:
        node: The schema; a custom resource's own is marked as embedded, and its metadata is looked at for what the
            schema says of the name alone.
        path: Of the value in its object, such as `status`.
    """
    return list(_problems(node, value, path))


def _problems(node: Node, value: Any, path: str) -> Iterator[Cause]:
    types = ("integer", "string") if node.int_or_string else (node.type,) if node.type else ()
    kind = _TYPES[type(value)]
    if value is None and (node.nullable or not types):
        return
    whole = kind == "number" and value.is_integer() and "integer" in types
    if types and kind not in types and not whole and not (kind == "integer" and "number" in types):
        yield causes.type_invalid(path, kind, f'{path} in body must be of type {",".join(types)}: "{kind}"')
        return
    yield from _combined(node, value, path)
    if (allowed := node.raw.get("enum")) and not any(same(value, each) for each in allowed):
        yield causes.not_supported(path, value, allowed)
    match kind:
        case "string":
            yield from _string_problems(node, value, path)
        case "integer" | "number":
            yield from _number_problems(node, value, path)
        case "array":
            yield from _list_problems(node, value, path)
        case "object":
            yield from _object_problems(node, value, path)


def _string_problems(node: Node, value: str, path: str) -> Iterator[Cause]:
    raw = node.raw
    if len(value) > raw.get("maxLength", math.inf):
        yield causes.too_long(path, raw["maxLength"])
    elif len(value) < raw.get("minLength", 0):
        yield causes.invalid(path, value, f"{path} in body should be at least {raw['minLength']} chars long")
    elif (pattern := raw.get("pattern")) and not patterns.compiled(pattern).search(value):
        yield causes.invalid(path, value, f"{path} in body should match '{pattern}'")
    if node.format and not node.int_or_string and not formats.fits(node.format, value):
        yield causes.type_invalid(path, value, f'{path} in body must be of type {node.format}: "{value}"')


def _number_problems(node: Node, value: float, path: str) -> Iterator[Cause]:
    raw = node.raw
    bits = _INT_BITS.get(node.format, 64)
    if node.type == "integer" and not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        why = f"Checked value must be of type integer with format {node.format or 'int64'} in {path}"
        yield causes.invalid(causes.NO_FIELD, "", why)
    if (factor := raw.get("multipleOf")) is not None and not float(value / factor).is_integer():
        yield causes.invalid(path, value, f"{path} in body should be a multiple of {factor}")
    for key, exclusive, words in (("maximum", "exclusiveMaximum", "less"), ("minimum", "exclusiveMinimum", "greater")):
        if (bound := raw.get(key)) is None:
            continue
        strict = raw.get(exclusive) is True
        over = value - bound if key == "maximum" else bound - value
        if over > 0 or (strict and over == 0):
            yield causes.invalid(
                path, value, f"{path} in body should be {words} than {'' if strict else 'or equal to '}{bound}"
            )


def _list_problems(node: Node, value: list[Any], path: str) -> Iterator[Cause]:
    if (item := node.items()) is not None:
        for index, each in enumerate(value):
            yield from _problems(item, each, f"{path}[{index}]")
    yield from _count_problems(node, len(value), "Items", path)
    keys: list[Any] = []
    for index, each in enumerate(value if node.list_type != "atomic" else ()):
        key = {key: each.get(key) for key in node.list_keys} if node.list_keys and isinstance(each, dict) else each
        if any(same(key, other) for other in keys):
            yield causes.duplicate(f"{path}[{index}]", key)
        keys.append(key)


def _count_problems(node: Node, count: int, what: str, path: str) -> Iterator[Cause]:
    if count < node.raw.get(f"min{what}", 0):
        least = node.raw[f"min{what}"]
        yield causes.invalid(path, count, f"{path} in body should have at least {least} {what.lower()}")
    if count > node.raw.get(f"max{what}", math.inf):
        yield causes.too_many(path, count, node.raw[f"max{what}"])


def _object_problems(node: Node, value: Json, path: str) -> Iterator[Cause]:
    yield from _count_problems(node, len(value), "Properties", path)
    for name, each in value.items():
        at = join(path, name)
        if node.embedded and name == "metadata":
            yield from _names(node.properties[name], each, at)
        elif (child := node.field(name)) is not None:
            yield from _problems(child, each, at)
    for name in node.raw.get("required", ()):
        if name not in value:
            yield causes.required(join(path, name))


def _names(node: Node, metadata: Json, path: str) -> Iterator[Cause]:
    """Validate the names in the metadata, of which alone a schema may have rules."""
    for name in ("name", "generateName"):
        if name in metadata and (child := node.field(name)) is not None:
            yield from _problems(child, metadata[name], join(path, name))


def _combined(node: Node, value: object, path: str) -> Iterator[Cause]:
    """`anyOf`, `oneOf`, `allOf` and `not`."""

    def wrong(why: str) -> Cause:
        return causes.invalid(causes.NO_FIELD, "", f'"{path}" must {why}')

    def fitting(which: tuple[Node, ...]) -> int:
        return sum(not validate(each, value, path) for each in which)

    if (any_of := node.alternatives("anyOf")) and not fitting(any_of):
        yield wrong("validate at least one schema (anyOf)")
    if (one_of := node.alternatives("oneOf")) and fitting(one_of) != 1:
        yield wrong("validate one and only one schema (oneOf)")
    for each in node.alternatives("allOf"):
        yield from _problems(each, value, path)
    if fitting(node.alternatives("not")):
        yield wrong("not validate the schema (not)")
