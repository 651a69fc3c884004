"""The OpenAPI v2 document of all that is served, made of those of v3: as JSON, and as the protobuf that kubectl wants.

kubectl looks here for kinds of which it finds no schema in v3, and up to 1.28 for all that it applies. v2 knows less of
schemas: what it has no word for is left out, as Kubernetes does.

Differs from Kubernetes: no defaults, and of paths no more than v3 says here; parameters stand where they are used.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kube_simulator.schema.node import REFERENCE_PREFIX
from kube_simulator.values import Json

PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The media type of the answer; clients mostly ask for it as `…spec.v2@v1.0+protobuf`."""

_PREFIX: Final = "#/definitions/"
_JSON: Final = ["application/json"]
# What v2 has no word for, and what it is better not told, as kubectl would refuse what the server takes.
_LEFT_OUT: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "nullable", "default", "$ref"})
_OF_VALUES: Final = ("type", "properties", "items", "additionalProperties")


def document(documents: Iterable[Json]) -> Json:
    """One document of those of all groups and versions in v3."""
    paths: Json = {}
    definitions: Json = {}
    info: Json = {}
    for each in documents:
        info = each["info"]
        paths |= {path: _path_item(path, item) for path, item in each["paths"].items()}
        definitions |= {name: _schema(schema) for name, schema in each["components"]["schemas"].items()}
    return {
        "swagger": "2.0",
        "info": info,
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def _path_item(path: str, item: Json) -> Json:
    names = re.findall(r"\{(\w+)\}", path)
    parameters = [{"name": name, "in": "path", "required": True, "type": "string"} for name in names]
    return {
        **{method: _operation(found) for method, found in item.items()},
        **({"parameters": parameters} if parameters else {}),
    }


def _operation(found: Json) -> Json:
    body = found.get("requestBody")
    consumes = list(body["content"]) if body else ["*/*"]
    parameters: list[Json] = []
    if body:
        schema = _schema(body["content"][consumes[0]]["schema"])
        parameters.append({"name": "body", "in": "body", "required": True, "schema": schema})
    for each in found["parameters"]:
        parameters.append({"name": each["name"], "in": "query", "type": each["schema"]["type"], "uniqueItems": True})
    responses = {
        code: {"description": each["description"], "schema": _schema(each["content"]["application/json"]["schema"])}
        for code, each in found["responses"].items()
    }
    rest = {key: value for key, value in found.items() if key.startswith("x-")}
    return {"consumes": consumes, "produces": _JSON, "parameters": parameters, "responses": responses, **rest}


def _schema(schema: Json) -> Json:
    """A schema in v2; one that may be null, or is more than one type, is of none, for kubectl knows neither."""
    found: Json = {}
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf") or () if "$ref" in part), "")
    if reference:
        found["$ref"] = _PREFIX + reference.removeprefix(REFERENCE_PREFIX)
    elif schema.get("oneOf") and "type" not in schema and "string" in (part.get("type") for part in schema["oneOf"]):
        found["type"] = "string"  # IntOrString and Quantity
    for key, value in schema.items():
        if key in _LEFT_OUT or (schema.get("nullable") and key in _OF_VALUES):
            continue
        if key == "properties":
            found[key] = {name: _schema(each) for name, each in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            found[key] = _schema(value)
        else:
            found[key] = value
    return found


def encoded(document: Json) -> bytes:
    """The document as a message of gnostic's `openapi.v2.Document`, whose numbers these are."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = _named(2, document["paths"], _path_bytes)
    definitions = _named(1, document["definitions"], _schema_bytes)
    return _text(1, document["swagger"]) + _message(2, info) + _message(8, paths) + _message(9, definitions)


_METHODS: Final = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_NUMBERS: Final = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_FLAGS: Final = {"exclusiveMaximum": 8, "exclusiveMinimum": 10, "uniqueItems": 16}
_LENGTHS: Final = {
    **{"maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15},
    **{"maxProperties": 17, "minProperties": 18},
}


def _path_bytes(item: Json) -> bytes:
    found = b"".join(_message(number, _operation_bytes(item[key])) for key, number in _METHODS.items() if key in item)
    return found + b"".join(_message(9, _parameter_bytes(each)) for each in item.get("parameters", ()))


def _operation_bytes(found: Json) -> bytes:
    listed = [_text(6, each) for each in found["produces"]] + [_text(7, each) for each in found["consumes"]]
    listed += [_message(8, _parameter_bytes(each)) for each in found["parameters"]]
    return b"".join(listed) + _message(9, _named(1, found["responses"], _response_bytes)) + _extensions(13, found)


def _parameter_bytes(found: Json) -> bytes:
    if found["in"] == "body":
        body = _text(2, found["name"]) + _text(3, "body") + _flag(4, True) + _message(5, _schema_bytes(found["schema"]))
        return _message(1, _message(1, body))
    required = _flag(1, bool(found.get("required")))
    query = found["in"] == "query"
    said = required + _text(2, found["in"]) + _text(4, found["name"]) + _text(6 if query else 5, found["type"])
    said += _flag(20, True) if query else b""
    return _message(1, _message(2, _message(3 if query else 4, said)))


def _response_bytes(found: Json) -> bytes:
    schema = _message(2, _message(1, _schema_bytes(found["schema"])))
    return _message(1, _text(1, found["description"]) + schema)


def _schema_bytes(schema: Json) -> bytes:
    parts: list[bytes] = []
    for key, value in schema.items():
        if key in _TEXTS:
            parts.append(_text(_TEXTS[key], value))
        elif key in _NUMBERS:
            parts.append(_varint(_NUMBERS[key] << 3 | 1) + struct.pack("<d", value))
        elif key in _FLAGS:
            parts.append(_flag(_FLAGS[key], value))
        elif number := _LENGTHS.get(key):
            parts.append(_varint(number << 3) + _varint(value))
        elif key == "required":
            parts += [_text(19, each) for each in value]
        elif key == "enum":
            parts += [_message(20, _text(2, json.dumps(each))) for each in value]
        elif key == "additionalProperties":
            values = _flag(2, value) if isinstance(value, bool) else _message(1, _schema_bytes(value))
            parts.append(_message(21, values))
        elif key == "type":
            parts.append(_message(22, _text(1, value)))
        elif key == "items":
            parts.append(_message(23, _message(1, _schema_bytes(value))))
        elif key == "properties":
            parts.append(_message(25, _named(1, value, _schema_bytes)))
    return b"".join(parts) + _extensions(31, schema)


def _extensions(number: int, found: Json) -> bytes:
    """Values of any shape, in YAML, which JSON is."""
    extra = {key: value for key, value in found.items() if key.startswith("x-")}
    return _named(number, extra, lambda value: _text(2, json.dumps(value)))


def _named(number: int, values: Mapping[str, Any], write: Callable[[Any], bytes]) -> bytes:
    """A map, which is a list of names and values."""
    return b"".join(_message(number, _text(1, name) + _message(2, write(each))) for name, each in values.items())


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode())


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _flag(number: int, value: bool) -> bytes:
    return _varint(number << 3) + b"\x01" if value else b""


def _varint(value: int) -> bytes:
    return bytes(_septets(value))


def _septets(value: int) -> Iterator[int]:
    while value > 0x7F:
        yield value & 0x7F | 0x80
        value >>= 7
    yield value
