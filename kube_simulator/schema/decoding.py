"""Whether a body of a built-in kind can be read: Kubernetes decodes it into types of Go, and says what does not fit.

Differs from Kubernetes: names of Go types that the schemas do not have (`types.UID`) are those of what they hold.
"""

from __future__ import annotations

import calendar
import re
import string
from typing import Any, Final

from kube_simulator.schema.node import Node
from kube_simulator.store.go_text import quoted

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
# resource.Quantity's own expression and words.
_QUANTITY_FORM: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_SUFFIXES: Final = re.compile("([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?")
_BASE64: Final = frozenset(string.ascii_letters + string.digits + "+/")
_INTEGERS: Final = {"int32": range(-(2**31), 2**31), "int64": range(-(2**63), 2**63)}
# The parts of Go's layouts of times, and what each accepts.
_LAYOUT: Final = (
    *(("2006", "[0-9]{4}"), ("-", "-"), ("01", "[0-9]{2}"), ("-", "-"), ("02", "[0-9]{2}"), ("T", "T")),
    *(("15", "[0-9]{2}"), (":", ":"), ("04", "[0-9]{2}"), (":", ":"), ("05", "[0-9]{2}")),
)
_ZONE: Final = ("Z07:00", "Z|[+-][0-9]{2}:[0-9]{2}")
# Nearly all times there are, on days that every month has: what looks so needs no closer look.
_USUAL_TIME: Final = re.compile(
    "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?P<micro>[.][0-9]{6})?Z"
)


def decode_problems(node: Node, value: object) -> str | None:
    """What Go's decoder says of the first value that does not fit its type; None if all do.

    Of a custom resource, whose schema is judged later, only the metadata is decoded.
    """
    if not node.embedded:
        return _problem(node, value, [])
    metadata = node.properties.get("metadata")
    if metadata is None or not isinstance(value, dict):
        return None
    return _problem(metadata, value.get("metadata"), [])


def _problem(node: Node, value: Any, path: list[str], struct: str = "") -> str | None:
    if value is None or (node.preserve_unknown and not node.properties):
        return None
    if node.ref == _QUANTITY:
        return _quantity_problem(value)
    if node.int_or_string:
        fits = isinstance(value, str) or _is_integer(value, "int32")
        return None if fits else _mismatch(value, path, struct, "int32")
    match node.type:
        case "object":
            return _object_problem(node, value, path, struct)
        case "array":
            return _array_problem(node, value, path, struct)
        case "string":
            return _string_problem(node, value, path, struct)
        case "integer":
            fits = _is_integer(value, node.format or "int64")
        case "number":
            fits = isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            fits = isinstance(value, bool)
        case _:
            fits = True
    return None if fits else _mismatch(value, path, struct, _go_type(node))


def _object_problem(node: Node, value: Any, path: list[str], struct: str) -> str | None:
    if not isinstance(value, dict):
        return _mismatch(value, path, struct, _go_type(node))
    own = node.ref.rpartition(".")[2] if node.properties else struct
    for name, each in value.items():
        child = node.field(name)
        if child is not None:
            at = [*path, name] if name in node.properties else path
            if (problem := _problem(child, each, at, own)) is not None:
                return problem
    return None


def _array_problem(node: Node, value: Any, path: list[str], struct: str) -> str | None:
    if not isinstance(value, list):
        return _mismatch(value, path, struct, _go_type(node))
    item = node.items()
    problems = (_problem(item, each, path, struct) for each in value) if item is not None else iter(())
    return next((problem for problem in problems if problem is not None), None)


def _string_problem(node: Node, value: Any, path: list[str], struct: str) -> str | None:
    if not isinstance(value, str):
        return _mismatch(value, path, struct, _go_type(node))
    if node.format == "byte":
        return _base64_problem(value)
    if node.format == "date-time":
        return _time_problem(value, micro=node.ref == f"{_META}MicroTime")
    return None


def _quantity_problem(value: Any) -> str | None:
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    match = re.match(_QUANTITY_FORM, text) if isinstance(text, str) else None
    if match is None or not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", match[1]):
        return f"quantities must match the regular expression '{_QUANTITY_FORM}'"
    return None if _SUFFIXES.fullmatch(match[2]) else "unable to parse quantity's suffix"


def _base64_problem(value: str) -> str | None:
    """Go reads four characters at a time, and names the byte where it could not go on."""
    plain = [(index, character) for index, character in enumerate(value) if character not in "\r\n"]
    first = next((number for number, (_, character) in enumerate(plain) if character not in _BASE64), len(plain))
    begun = first % 4
    if first == len(plain):
        return _bad_base64(plain[first - begun][0]) if begun else None
    index, character = plain[first]
    if character != "=" or begun < 2:
        return _bad_base64(index)
    rest = plain[first + 1 :]
    if begun == 2:  # two characters want two marks of padding
        if not rest or rest[0][1] != "=":
            return _bad_base64(rest[0][0] if rest else len(value))
        rest = rest[1:]
    return _bad_base64(rest[0][0]) if rest else None


def _bad_base64(index: int) -> str:
    return f"illegal base64 data at input byte {index}"


def _time_problem(value: str, *, micro: bool) -> str | None:
    """What Go's `time.Parse` says; a MicroTime must have six digits after the point, a Time may have any number."""
    usual = _USUAL_TIME.fullmatch(value)
    if usual is not None and (usual["micro"] or not micro):
        return None
    layout = [*_LAYOUT, (".000000", r"\.[0-9]{6}"), _ZONE] if micro else [*_LAYOUT, _ZONE]
    name = "".join(part for part, _ in layout)
    rest, read = value, {}
    for part, form in layout:
        if part == "Z07:00" and not micro:
            rest = re.sub("^[.,][0-9]+", "", rest)
        match = re.match(form, rest)
        if match is None:
            return f"parsing time {quoted(value)} as {quoted(name)}: cannot parse {quoted(rest)} as {quoted(part)}"
        read[part], rest = match[0], rest[match.end() :]
    if rest:
        return f"parsing time {quoted(value)}: extra text: {quoted(rest)}"
    year, month, day = int(read["2006"]), int(read["01"]), int(read["02"])
    wrong = next((what for what, good in _in_range(year, month, day, read) if not good), None)
    return None if wrong is None else f"parsing time {quoted(value)}: {wrong} out of range"


def _in_range(year: int, month: int, day: int, read: dict[str, str]) -> list[tuple[str, bool]]:
    days = calendar.monthrange(year or 4, month)[1] if 1 <= month <= 12 else 31
    return [
        ("month", 1 <= month <= 12),
        ("hour", int(read["15"]) <= 23),
        ("minute", int(read["04"]) <= 59),
        ("second", int(read["05"]) <= 59),
        ("day", 1 <= day <= days),
    ]


def _is_integer(value: object, format: str) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INTEGERS.get(format, range(0))


def _mismatch(value: Any, path: list[str], struct: str, wanted: str) -> str:
    where = f"field {struct}.{'.'.join(path)}" if struct else "value"
    return (
        f"json: cannot unmarshal {_shape(value, wanted)} into Go {'struct ' if struct else ''}{where} of type {wanted}"
    )


def _shape(value: Any, wanted: str) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return f"number {value}" if wanted in _INTEGERS else "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _go_type(node: Node) -> str:
    match node.type:
        case "object" if node.additional is not None:
            return f"map[string]{_go_type(node.additional)}"
        case "object":
            return ".".join(node.ref.split(".")[-2:])
        case "array":
            item = node.items()
            return f"[]{_go_type(item)}" if item is not None else "[]interface {}"
        case "string":
            return "[]uint8" if node.format == "byte" else "string"
        case "integer":
            return node.format or "int64"
        case "number":
            return "float64"
        case "boolean":
            return "bool"
    return ".".join(node.ref.split(".")[-2:]) or "interface {}"
