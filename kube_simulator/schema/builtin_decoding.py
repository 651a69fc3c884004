"""Decoding of a body of a built-in kind: Kubernetes decodes it into types of Go, and refuses what does not fit.

Differs from Kubernetes: a value that does not fit is told in fewer words than Go's, by its field and the type that it
should have.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from typing import Any, Final

from kube_simulator.schema.node import Node

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_QUANTITY_FORM: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?")
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?P<part>\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_INTEGERS: Final = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}


def decode_problems(node: Node, value: object) -> str | None:
    """Describe the first value that does not fit its type; None if all do.

    Of a custom resource, whose schema is judged later, only the metadata is decoded.
    """
    if not node.embedded:
        return _problem(node, value, "")
    metadata = node.properties.get("metadata")
    if metadata is None or not isinstance(value, dict):
        return None
    return _problem(metadata, value.get("metadata"), "metadata")


def _problem(node: Node, value: Any, path: str) -> str | None:
    if value is None or (node.preserve_unknown and not node.properties):
        return None
    if node.type == "object" and isinstance(value, dict):
        children = ((node.field(name), each, f"{path}.{name}") for name, each in value.items())
    elif node.type == "array" and isinstance(value, list):
        children = ((node.items(), each, f"{path}[{index}]") for index, each in enumerate(value))
    elif _fits(node, value):
        return None
    else:
        return f"cannot unmarshal the value of field {path or 'value'} into {node.format or node.type or node.ref}"
    found = (_problem(child, each, at.removeprefix(".")) for child, each, at in children if child is not None)
    return next((problem for problem in found if problem is not None), None)


def _fits(node: Node, value: Any) -> bool:
    if node.ref == _QUANTITY:
        number = isinstance(value, str | int | float) and not isinstance(value, bool)
        return number and _QUANTITY_FORM.fullmatch(str(value)) is not None
    if node.int_or_string:
        return isinstance(value, str) or _is_integer(value, "int32")
    match node.type:
        case "string":
            return isinstance(value, str) and _text_fits(node, value)
        case "integer":
            return _is_integer(value, node.format or "int64")
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
    return node.type not in ("object", "array")


def _text_fits(node: Node, value: str) -> bool:
    try:
        if node.format == "byte":
            base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
        elif node.format == "date-time":
            match = _TIME.fullmatch(value)
            # A MicroTime must have six digits after the point, a Time may have any number.
            micro = node.ref == f"{_META}MicroTime"
            if match is None or (micro and len(match["part"] or "") != 7):
                return False
            datetime.fromisoformat(value)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_integer(value: object, format: str) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INTEGERS.get(format, range(0))
