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
from kube_simulator.store.go_text import quoted

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
# resource.Quantity's own expression and words.
_QUANTITY_SYNTAX: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_SUFFIXES: Final = re.compile("([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?")
_INTEGERS: Final = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}
_TIME: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})")
_MICRO: Final = re.compile(".{19}[.][0-9]{6}(Z|[+-].*)")
# Nearly all times there are, on days that every month has: what looks so needs no closer look.
_USUAL_TIME: Final = re.compile(
    "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?P<micro>[.][0-9]{6})?Z"
)


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
    if node.ref == _QUANTITY:
        return _quantity_problem(value)
    if node.int_or_string:
        fits = isinstance(value, str) or _is_integer(value, "int32")
        return None if fits else _mismatch(value, path, "int32")
    match node.type:
        case "object" if isinstance(value, dict):
            children = ((node.field(name), each, f"{path}.{name}") for name, each in value.items())
        case "array" if isinstance(value, list):
            children = ((node.items(), each, f"{path}[{index}]") for index, each in enumerate(value))
        case "string" if isinstance(value, str):
            return _text_problem(node, value)
        case _:
            return None if _is_scalar(node, value) else _mismatch(value, path, node.format or node.type)
    found = (_problem(child, each, at.removeprefix(".")) for child, each, at in children if child is not None)
    return next((problem for problem in found if problem is not None), None)


def _is_scalar(node: Node, value: Any) -> bool:
    match node.type:
        case "integer":
            return _is_integer(value, node.format or "int64")
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
    return node.type not in ("object", "array", "string")


def _text_problem(node: Node, value: str) -> str | None:
    if node.format == "byte":
        try:
            base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
        except binascii.Error:
            return "illegal base64 data"
    elif node.format == "date-time":
        return _time_problem(value, micro=node.ref == f"{_META}MicroTime")
    return None


def _quantity_problem(value: Any) -> str | None:
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    match = re.match(_QUANTITY_SYNTAX, text) if isinstance(text, str) else None
    if match is None or not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", match[1]):
        return f"quantities must match the regular expression '{_QUANTITY_SYNTAX}'"
    return None if _SUFFIXES.fullmatch(match[2]) else "unable to parse quantity's suffix"


def _time_problem(value: str, *, micro: bool) -> str | None:
    """A MicroTime must have six digits after the point, a Time may have any number."""
    usual = _USUAL_TIME.fullmatch(value)
    if usual is not None and (usual["micro"] or not micro):
        return None
    if _TIME.fullmatch(value) and (_MICRO.fullmatch(value) or not micro):
        try:
            # Python knows no year 0, which Go has, with 29 days in its February.
            datetime.strptime(value[:19].replace("0000-", "0004-", 1), "%Y-%m-%dT%H:%M:%S")
        except ValueError:
            pass
        else:
            return None
    return f"parsing time {quoted(value)}: it is none"


def _is_integer(value: object, format: str) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INTEGERS.get(format, range(0))


def _mismatch(value: Any, path: str, desired: str) -> str:
    kinds = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return f"json: cannot unmarshal {kinds[type(value)]} into field {path or 'value'} of type {desired}"
