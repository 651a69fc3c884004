"""Protobuf the other way round, for tests: from JSON to what a client written in Go would send, and JSON by chance."""

from __future__ import annotations

import base64
import json
import random
import struct
from datetime import UTC, datetime
from typing import Any

from kube_simulator.schema import protobuf
from kube_simulator.schema.protobuf import Field
from kube_simulator.values import Json

META = "k8s.io/apimachinery/pkg/apis/meta/v1."
EXTENSIONS = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1."
QUANTITY = "k8s.io/apimachinery/pkg/api/resource.Quantity"
INT_OR_STRING = "k8s.io/apimachinery/pkg/util/intstr.IntOrString"
SCHEMA = f"{EXTENSIONS}JSONSchemaProps"
OPAQUE = (f"{EXTENSIONS}JSON", f"{META}FieldsV1")
# How deep messages made by chance may lie in each other: that of a pod's volume's projection's selector.
DEPTH = 8


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def number(field: int, value: int) -> bytes:
    """A field that is a varint."""
    return varint(field << 3) + varint(value)


def part(field: int, value: bytes | str) -> bytes:
    """A field that has a length: a string, bytes or a message."""
    content = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(content)) + content


def body(api_version: str, kind: str, message: bytes) -> bytes:
    """What is sent for an object whose own message this is."""
    return protobuf.PREFIX + part(1, part(1, api_version) + part(2, kind)) + part(2, message)


def encoded(value: Json) -> bytes:
    """The body that stands for an object."""
    name = protobuf.kinds()[f"{value['apiVersion']}/{value['kind']}"]
    return body(value["apiVersion"], value["kind"], message(name, value))


def message(name: str, value: Any) -> bytes:
    """A message, from what it is in JSON."""
    if name in _SPECIAL:
        return _SPECIAL[name](value)
    return b"".join(_field(field, value) for field in protobuf.messages()[name].fields)


def _field(field: Field, value: Any) -> bytes:
    if not field.name:  # embedded, or a list that is a message
        return b"".join(_one(field, each) for each in value) if field.shape == "list" else _one(field, value)
    if field.name not in value:
        return b""
    found = value[field.name]
    if found is None:  # nil, or a time that is none
        nil = field.shape in ("list", "map") or field.type == "bytes" or (field.shape == "pointer" and not field.omit)
        return b"" if nil else part(field.number, b"")
    if field.shape == "list":
        return b"".join(_one(field, each) for each in found)
    if field.shape == "map":
        as_value = Field(2, "value", "Value", field.type, "", False)
        return b"".join(part(field.number, part(1, key) + _one(as_value, each)) for key, each in found.items())
    return _one(field, found)


def _one(field: Field, value: Any) -> bytes:
    match field.type:
        case "string":
            return part(field.number, value)
        case "bytes":
            return part(field.number, base64.b64decode(value))
        case "bool" | "int32" | "int64":
            return number(field.number, int(value))
        case "double":
            return varint(field.number << 3 | 1) + struct.pack("<d", value)
    return part(field.number, message(field.type, value))


def _time(value: str | None) -> bytes:
    if value is None:
        return b""
    moment = datetime.fromisoformat(value).astimezone(UTC)
    return number(1, int(moment.replace(microsecond=0).timestamp())) + number(2, moment.microsecond * 1000)


def _opaque(value: Any) -> bytes:
    return part(1, json.dumps(value))


def _int_or_string(value: int | str) -> bytes:
    return number(1, 1) + part(3, value) if isinstance(value, str) else number(1, 0) + number(2, value)


def _schema_or_list(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(part(2, message(SCHEMA, each)) for each in value)
    return part(1, message(SCHEMA, value))


def _schema_or_bool(value: Any) -> bytes:
    return number(1, value) if isinstance(value, bool) else number(1, 1) + part(2, message(SCHEMA, value))


def _schema_or_strings(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(part(2, each) for each in value)
    return part(1, message(SCHEMA, value))


_SPECIAL = {
    **dict.fromkeys((f"{META}Time", f"{META}MicroTime"), _time),
    **dict.fromkeys(OPAQUE, _opaque),
    QUANTITY: lambda value: part(1, value),
    INT_OR_STRING: _int_or_string,
    f"{EXTENSIONS}JSONSchemaPropsOrArray": _schema_or_list,
    f"{EXTENSIONS}JSONSchemaPropsOrBool": _schema_or_bool,
    f"{EXTENSIONS}JSONSchemaPropsOrStringArray": _schema_or_strings,
}


class Chance:
    """Makes objects as Go writes them: what may be absent is there or not, and what may not, always."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self.seen: set[str] = set()
        """Names of messages that were made."""

    def object(self, api_version: str, kind: str) -> Json:
        made: Json = self._message(protobuf.kinds()[f"{api_version}/{kind}"], 0)
        return {"kind": kind, "apiVersion": api_version, **made}

    def _message(self, name: str, depth: int) -> Any:
        self.seen.add(name)
        if name in _SPECIAL:
            return self._special(name, depth)
        made: Json = {}
        for field in protobuf.messages()[name].fields:
            if not field.name and field.shape == "list":
                return self._many(field, depth)
            if not field.name:
                made.update(self._message(field.type, depth + 1))
            elif field.shape or field.type == "bytes":
                if depth < DEPTH and self._random.random() < 0.5:
                    made[field.name] = self._shaped(field, depth)
                elif not field.omit:
                    made[field.name] = None
            elif (value := self._value(field.type, depth)) or not field.omit:
                made[field.name] = value
        return made

    def _shaped(self, field: Field, depth: int) -> Any:
        if field.shape == "list":
            return self._many(field, depth)
        if field.shape == "map":
            return {self._text(): value for value in self._many(field, depth)}
        return self._value(field.type, depth)

    def _many(self, field: Field, depth: int) -> list[Any]:
        return [self._value(field.type, depth) for _ in range(self._random.randint(1, 2))]

    def _value(self, type: str, depth: int) -> Any:
        match type:
            case "string":
                return self._text()
            case "bytes":
                return base64.b64encode(self._random.randbytes(self._random.randint(1, 5))).decode()
            case "bool":
                return self._random.random() < 0.5
            case "int32":
                return self._random.choice((0, 1, -1, 8080, 2**31 - 1, -(2**31)))
            case "int64":
                return self._random.choice((0, 1, -1, 2**63 - 1, -(2**63)))
            case "double":
                return self._random.choice((0, 1, -2.5, 1e300))
        return self._message(type, depth + 1)

    def _text(self) -> str:
        return self._random.choice(("", "a", "kubernetes.io/x", "zwölf €", "\u0000\n", "k" * 200))

    def _special(self, name: str, depth: int) -> Any:
        strings = ["a", "b"]
        deeper = self._message(SCHEMA, depth + 1) if name.startswith(EXTENSIONS) else None
        return self._random.choice(
            {
                f"{META}Time": (None, "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "2026-01-02T03:04:05Z"),
                f"{META}MicroTime": (None, "1969-12-31T23:59:59.000001Z", "2026-01-02T03:04:05.678900Z"),
                QUANTITY: ("0", "1500m", "1Gi", "-3"),
                INT_OR_STRING: (0, -1, 8080, "", "25%", "http"),
                f"{EXTENSIONS}JSONSchemaPropsOrBool": (True, False, deeper),
                f"{EXTENSIONS}JSONSchemaPropsOrArray": (deeper, [deeper, deeper]),
                f"{EXTENSIONS}JSONSchemaPropsOrStringArray": (strings, deeper),
            }.get(name, ({"a": [1, None, "ü"]}, "text", 0, False, []))
        )
