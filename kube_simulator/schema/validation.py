"""Validation of a custom resource by its schema."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from kube_simulator.errors import Cause
from kube_simulator.schema import causes
from kube_simulator.schema.causes import invalid, join
from kube_simulator.schema.node import Node
from kube_simulator.values import Json, same

_TYPES: Final[dict[type, str]] = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object", type(None): "null"
}  # fmt: skip
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d([.]\d+)?([Zz]|[+-]\d\d:\d\d)")
_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "byte": lambda value: base64.b64decode(value, validate=True),
    "datetime": lambda value: _TIME.fullmatch(value) is not None and datetime.fromisoformat(value.upper()),
}


def validate(node: Node, value: object, path: str = "") -> list[Cause]:
    """List what is wrong with a value.

    Args:
        node: The schema; a custom resource's own is marked as embedded, and its metadata is looked at for what the
            schema says of the name alone.
        path: Of the value in its object, such as `status`.
    """
    return list(_problems(node, value, path))


@lru_cache(maxsize=4096)
def compiled_pattern(text: str) -> re.Pattern[str]:
    """A pattern, ready to be searched for; `$` at its end is the end of the text, as in Go. Raises re.error."""
    return re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", text), re.ASCII)


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
        yield invalid(path, value, f"{path} in body should be at least {raw['minLength']} chars long")
    elif (pattern := raw.get("pattern")) and not compiled_pattern(pattern).search(value):
        yield invalid(path, value, f"{path} in body should match '{pattern}'")
    if not node.int_or_string and not _has_format(node.format, value):
        yield causes.type_invalid(path, value, f'{path} in body must be of type {node.format}: "{value}"')


def _has_format(format: str, value: str) -> bool:
    check = _FORMATS.get(format.replace("-", ""))
    try:
        return check is None or check(value) is not False
    except ValueError:
        return False


def _number_problems(node: Node, value: float, path: str) -> Iterator[Cause]:
    raw, limit = node.raw, 2 ** (31 if node.format == "int32" else 63)
    if node.type == "integer" and not -limit <= value < limit:
        why = f"Checked value must be of type integer with format {node.format or 'int64'} in {path}"
        yield invalid(causes.NO_FIELD, "", why)
    if (factor := raw.get("multipleOf")) is not None and not float(value / factor).is_integer():
        yield invalid(path, value, f"{path} in body should be a multiple of {factor}")
    for key, exclusive, words, sign in (
        ("maximum", "exclusiveMaximum", "less", 1),
        ("minimum", "exclusiveMinimum", "greater", -1),
    ):
        over, strict = sign * (value - raw.get(key, value - sign)), raw.get(exclusive) is True
        if key in raw and (over > 0 or (strict and over == 0)):
            bound = f"{'' if strict else 'or equal to '}{raw[key]}"
            yield invalid(path, value, f"{path} in body should be {words} than {bound}")


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
        yield invalid(path, count, f"{path} in body should have at least {node.raw[f'min{what}']} {what.lower()}")
    if count > node.raw.get(f"max{what}", math.inf):
        yield causes.too_many(path, count, node.raw[f"max{what}"])


def _object_problems(node: Node, value: Json, path: str) -> Iterator[Cause]:
    yield from _count_problems(node, len(value), "Properties", path)
    for name, each in value.items():
        at, child = join(path, name), node.field(name)
        if node.embedded and name == "metadata":  # of which a schema may have rules for names alone
            for key in each.keys() & {"name", "generateName"}:
                yield from _problems(node.properties[name].properties[key], each[key], join(at, key))
        elif child is not None:
            yield from _problems(child, each, at)
    yield from (causes.required(join(path, name)) for name in node.raw.get("required", ()) if name not in value)


def _combined(node: Node, value: object, path: str) -> Iterator[Cause]:
    """`anyOf`, `oneOf`, `allOf` and `not`."""

    def fitting(which: tuple[Node, ...]) -> int:
        return sum(not validate(each, value, path) for each in which)

    for each in node.alternatives("allOf"):
        yield from _problems(each, value, path)
    for broken, why in (
        ((any_of := node.alternatives("anyOf")) and not fitting(any_of), "validate at least one schema (anyOf)"),
        ((one_of := node.alternatives("oneOf")) and fitting(one_of) != 1, "validate one and only one schema (oneOf)"),
        (fitting(node.alternatives("not")), "not validate the schema (not)"),
    ):
        if broken:
            yield invalid(causes.NO_FIELD, "", f'"{path}" must {why}')
