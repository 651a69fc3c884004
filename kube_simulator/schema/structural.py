"""Schema's work on an object on its way in: decode, drop what is unknown, and fill in defaults.

`decode_problems` is for built-in kinds, whose bodies Go decodes into a type; `default` and `validate` are for custom
ones, whose schema says all that is known of them; `prune` is for both. Values are never changed in place: what is not
touched is shared with the result.
"""

from __future__ import annotations

import base64
import binascii
import re
from copy import deepcopy
from datetime import datetime
from itertools import count
from typing import Any, Final, cast

from kube_simulator.schema.node import MISSING, Node
from kube_simulator.schema.validation import validate
from kube_simulator.values import Json, mapped, shared

__all__ = ["decode_problems", "default", "prune", "type_problem", "validate"]

_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_QUANTITY_FORM: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?")
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})")
_BITS: Final = {"int32": 32, "int64": 64}


def decode_problems(node: Node, value: Json) -> str | None:
    """Describe the first value that does not fit its type; None if all do.

    Of a custom resource, whose schema is judged later, only the metadata is decoded.
    """
    if node.embedded:
        return type_problem(node.properties["metadata"], value.get("metadata"), "metadata")
    return type_problem(node, value)


def type_problem(node: Node, value: Any, path: str = "") -> str | None:
    """Describe the first value that does not fit its type; None if all do."""
    if value is None or (node.preserve_unknown and not node.properties):
        return None
    children: list[tuple[Node | None, Any, str]] = []
    if node.type == "object" and isinstance(value, dict):
        children = [(node.field(name), each, f"{path}.{name}") for name, each in value.items()]
    elif node.type == "array" and isinstance(value, list):
        children = [(node.items(), each, f"{path}[{index}]") for index, each in enumerate(value)]
    elif not _fits(node, value):
        return f"cannot unmarshal the value of field {path or 'value'} into {node.format or node.type or node.ref}"
    found = (type_problem(child, each, at.removeprefix(".")) for child, each, at in children if child is not None)
    return next(filter(None, found), None)


def _fits(node: Node, value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if node.ref == _QUANTITY:
        return (number or isinstance(value, str)) and _QUANTITY_FORM.fullmatch(str(value)) is not None
    bits = _BITS.get("int32" if node.int_or_string else node.format, 64)
    whole = number and isinstance(value, int) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
    if node.int_or_string:
        return isinstance(value, str) or whole
    match node.type:
        case "string":
            return isinstance(value, str) and _text_fits(node, value)
        case "integer":
            return whole
        case "number":
            return number
        case "boolean":
            return isinstance(value, bool)
    return node.type not in ("object", "array")


def _text_fits(node: Node, value: str) -> bool:
    try:
        if node.format == "byte":
            base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
        elif node.format == "date-time":
            return _TIME.fullmatch(value) is not None and bool(datetime.fromisoformat(value))
    except (binascii.Error, ValueError):
        return False
    return True


def prune(node: Node, value: Any) -> tuple[Any, list[str]]:
    """The value without the fields that its schema does not know, and where they stood: `spec.ports[0].nmae`."""
    unknown: list[str] = []
    return _pruned(node, value, "", unknown), unknown


def _pruned(node: Node | None, value: Any, path: str, unknown: list[str]) -> Any:
    if isinstance(value, list):
        item = None if node is None else node.items()
        if node is not None and item is None and node.preserve_unknown:
            return value
        places = count()
        return mapped(lambda each: _pruned(item, each, f"{path}[{next(places)}]", unknown), value)
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, each in value.items():
        child, at = None if node is None else node.field(name), f"{path}.{name}" if path else name
        if node is not None and child is not None:
            kept[name] = _pruned(None if _is_blind(node, name) else child, each, at, unknown)
        elif node is not None and node.preserve_unknown:
            kept[name] = each
        else:
            unknown.append(at)
    return shared(kept, value)


def default(node: Node, value: Any) -> Any:
    """The value with the defaults of its schema, and without the nulls that it has neither a use nor a default for.

    Only for custom resources: what the schemas of built-in kinds call defaults are Go's zero values.
    """
    if isinstance(value, list) and (item := node.items()) is not None:
        return mapped(lambda each: default(item, _filled(item, each)), value)
    if not isinstance(value, dict):
        return value
    absent = {
        name: deepcopy(child.default)
        for name, child in node.properties.items()
        if name not in value and child.default not in (MISSING, None) and not (node.embedded and name == "metadata")
    }
    new = {}
    for name, each in {**value, **absent}.items():
        # The metadata of an object is Kubernetes' own affair.
        known = not (node.embedded and name == "metadata") and not _is_blind(node, name)
        child = node.field(name) if known else None
        if child is None:
            new[name] = each
        elif (filled := _filled(child, each)) is not None or child.nullable:
            new[name] = default(child, filled)
    return shared(new, value)


def _is_blind(node: Node, name: str) -> bool:
    """Report whether `additionalProperties: true` lets the name stand, and knows nothing of what is in it."""
    return name not in node.properties and node.raw.get("additionalProperties") is True


def _filled(node: Node, value: Any) -> Any:
    """The default in the place of a null that is no value here; null where there is none either."""
    if value is not None or node.nullable:
        return value
    return None if node.default is MISSING else deepcopy(cast(Any, node.default))
