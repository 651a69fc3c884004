"""Bodies that clients send in protobuf, as kubectl does for kinds that it knows: read into the JSON they stand for.

A body is the prefix `k8s\\0` and a message `runtime.Unknown`, which holds apiVersion, kind and the message of the
object. Protobuf has numbers for fields; their names and shapes stand in `protobuf.json.gz`, made by
`./dev simulator-schemas` from the Go types of Kubernetes (see NOTICE). What comes out is what Go writes as JSON for the
object that it reads: embedded structs flattened, empty fields there or not as the json tag says, times as strings.

Differs from Kubernetes: messages may not be nested deeper than `DEPTH_LIMIT`. A custom resource is refused as a kind
that is not known here; a real API server cuts the connection. JSON inside a message, such as that of managedFields, is
read with it, and refused if it is malformed.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import resources as files
from typing import Any, Final, Literal

import orjson

from kube_simulator.errors import ApiError, bad_request, not_implemented
from kube_simulator.schema.wire_format import BYTES, FIXED64, VARINT, Expected, Malformed, read
from kube_simulator.values import Json

PREFIX: Final = b"k8s\x00"
DEPTH_LIMIT: Final = 200
"""Messages in messages, so that no body exhausts the stack; schemas of CRDs go deepest, rarely beyond 50."""

# How much of a body that it cannot read the API server shows.
_SHOWN_BYTES: Final = 30


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message. Without a name it is embedded: what it holds stands beside the other fields."""

    number: int
    name: str
    go: str
    """Its name in Go."""
    type: str
    """A message, or one of string, bytes, raw (bytes that are no base64), bool, int32, int64, double."""
    shape: Literal["", "pointer", "list", "map"]
    """Only a pointer tells an absent value from a zero one; maps are from strings to the type."""
    omit: bool
    """Left out of JSON when empty."""


@dataclass(frozen=True, slots=True)
class Message:
    """A type that has fields, in the order of Go."""

    name: str
    fields: tuple[Field, ...]
    expected: Mapping[int, Expected]


@dataclass(frozen=True, slots=True)
class _Table:
    kinds: Mapping[str, str]
    messages: Mapping[str, Message]


def decode(body: bytes, expected: str = "object", expected_version: str = "") -> Json:
    """The object that a body stands for.

    Args:
        expected: the kind that the path is for: that of a body that names none, and the one that errors name.
        expected_version: the apiVersion of a body that names none.

    Raises:
        ApiError: 400, the body is malformed; 501, it is of a kind that the simulator does not serve.
    """
    try:
        api_version, kind, raw = _envelope(body)
    except Malformed as error:
        context = f"the object provided is unrecognized (must be of type {expected}): "
        raise _refused(error, expected, before=context, after=f" ({_shown(body)})") from None
    kind, api_version = kind or expected, api_version or expected_version
    # Every group has the same DeleteOptions.
    name = kinds().get("v1/DeleteOptions" if kind == "DeleteOptions" else f"{api_version}/{kind}")
    if name is None:
        raise not_implemented(f"read {kind} of {api_version or 'no version'} in protobuf")
    try:
        decoded = _message(name, raw, 0)
    except Malformed as error:
        context = f'{kind} in version "{api_version.rpartition("/")[2]}" cannot be handled as a {expected}: '
        raise _refused(error, expected, before=context) from None
    return {"kind": kind, "apiVersion": api_version, **decoded}


def kinds() -> Mapping[str, str]:
    """The message of each kind that is known, by `apiVersion/kind`."""
    return _table().kinds


def messages() -> Mapping[str, Message]:
    """Return all that is known of Kubernetes' messages, by the names of their Go types."""
    return _table().messages


def _refused(error: Malformed, expected: str, *, before: str, after: str = "") -> ApiError:
    """The API server says what it was about for objects, and not for the options of a deletion."""
    return bad_request(str(error) if expected == "DeleteOptions" else f"{before}{error}{after}")


def _shown(body: bytes) -> str:
    if not body:
        return "<empty>"
    start = body[:_SHOWN_BYTES]
    shown = _text(start) if body.startswith(b"{") else start.hex()
    return f"{shown} ..." if len(body) > _SHOWN_BYTES else shown


@cache
def _table() -> _Table:
    packed = files.files(__package__).joinpath("protobuf.json.gz").read_bytes()
    table = json.loads(gzip.decompress(packed))
    return _Table(table["kinds"], {name: _made(name, fields) for name, fields in table["messages"].items()})


def _made(name: str, rows: list[Json]) -> Message:
    fields = tuple(
        Field(each["number"], each.get("name", ""), each["go"], each["type"], each.get("shape", ""), "omit" in each)
        for each in rows
    )
    return Message(name, fields, {field.number: _expected(field) for field in fields})


def _expected(field: Field) -> Expected:
    wire_type = BYTES if field.shape == "map" else _wire_type(field.type)
    return Expected(field.go, wire_type, field.shape == "list" and wire_type != BYTES)


def _wire_type(type: str) -> int:
    return _SCALARS[type].wire_type if type in _SCALARS else BYTES


def _envelope(body: bytes) -> tuple[str, str, bytes]:
    """apiVersion, kind and the object's own message."""
    if not body:
        raise Malformed("empty data")
    if not body.startswith(PREFIX):
        prefix = " ".join(str(byte) for byte in PREFIX)
        raise Malformed(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    if body == PREFIX:
        raise Malformed("empty body")
    unknown = read("Unknown", body[len(PREFIX) :], {1: Expected("TypeMeta", BYTES), 2: Expected("Raw", BYTES)})
    type_meta = {1: Expected("APIVersion", BYTES), 2: Expected("Kind", BYTES)}
    named = read("TypeMeta", b"".join(unknown.get(1, ())), type_meta)
    api_version, kind = (_text(named[number][-1]) if number in named else "" for number in type_meta)
    return api_version, kind, unknown[2][-1] if 2 in unknown else b""


def _message(name: str, data: bytes, depth: int) -> Any:
    """Decode a message to JSON."""
    if depth > DEPTH_LIMIT:
        raise Malformed("exceeded max depth")
    if not data and name in _TIMES:
        return None  # not 1970
    message = messages()[name]
    found = read(name.rpartition(".")[2], data, message.expected)
    decoded: Json = {}
    for field in message.fields:
        values = found.get(field.number, [])
        value = _value(field, values, depth)
        if field.omit and (not values or (not field.shape and value == _zero(field.type, depth))):
            continue
        if field.name:
            decoded[field.name] = value
        elif field.shape == "list":
            return value  # the message is a list, as protobuf has no lists of lists otherwise
        else:
            decoded.update(value)
    special = _SPECIAL.get(name)
    return decoded if special is None else special(decoded)


def _value(field: Field, values: list[Any], depth: int) -> Any:
    """Return all values of a field; None where Go has nil."""
    if not values:
        return None if field.shape or field.type == "bytes" else _zero(field.type, depth)
    if field.shape == "list":
        return [_one(field.type, each, depth) for each in values]
    if field.shape == "map":
        entries = dict(_entry(field, each, depth) for each in values)
        return {key: entries[key] for key in sorted(entries)}
    if field.type in _SCALARS:
        return _one(field.type, values[-1], depth)
    return _message(field.type, b"".join(values), depth + 1)  # a message that comes twice is merged


def _entry(field: Field, data: bytes, depth: int) -> tuple[str, Any]:
    found = read(field.go, data, {1: Expected(field.go, BYTES), 2: Expected(field.go, _wire_type(field.type))})
    key = _text(found[1][-1]) if 1 in found else ""
    return key, _one(field.type, found[2][-1], depth) if 2 in found else _zero(field.type, depth)


def _one(type: str, value: Any, depth: int) -> Any:
    return _SCALARS[type].decode(value) if type in _SCALARS else _message(type, value, depth + 1)


def _zero(type: str, depth: int) -> Any:
    return _SCALARS[type].zero if type in _SCALARS else _message(type, b"", depth + 1)


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _integer(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _float(value: bytes) -> float | int:
    number: float = struct.unpack("<d", value)[0]
    if not math.isfinite(number):
        raise Malformed(f"json: unsupported value: {number}")
    return int(number) if number.is_integer() else number  # Go writes no point where nothing follows


@dataclass(frozen=True, slots=True)
class _Scalar:
    wire_type: int
    zero: object
    decode: Callable[[Any], Any]


_SCALARS: Final[Mapping[str, _Scalar]] = {
    "string": _Scalar(BYTES, "", _text),
    "bytes": _Scalar(BYTES, "", lambda value: base64.b64encode(value).decode()),
    "raw": _Scalar(BYTES, b"", lambda value: value),
    "bool": _Scalar(VARINT, False, bool),
    "int32": _Scalar(VARINT, 0, lambda value: _integer(value, 32)),
    "int64": _Scalar(VARINT, 0, lambda value: _integer(value, 64)),
    "double": _Scalar(FIXED64, 0, _float),
}

_EPOCH: Final = datetime(1970, 1, 1)
_GO_ZERO_TIME: Final = datetime(1, 1, 1)


def _time(found: Json) -> str | None:
    """Whole seconds: Kubernetes drops the parts of a second that protobuf could carry."""
    moment = _moment(found["seconds"], 0)
    return None if moment is None else f"{moment.isoformat()}Z"


def _micro_time(found: Json) -> str | None:
    moment = _moment(found["seconds"], found["nanos"] // 1000)
    return None if moment is None else f"{moment.isoformat(timespec='microseconds')}Z"


def _moment(seconds: int, microseconds: int) -> datetime | None:
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=microseconds)
    except OverflowError:
        raise Malformed("Time.MarshalJSON: year outside of range [0,9999]") from None
    return None if moment == _GO_ZERO_TIME else moment


def _opaque(found: Json) -> Any:
    """JSON that is carried as it is."""
    (raw,) = found.values()
    if not raw:
        return None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"json: error calling MarshalJSON: {error}") from None


_META: Final = "k8s.io/apimachinery/pkg/apis/meta/v1."
_EXTENSIONS: Final = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1."
_TIMES: Final = (f"{_META}Time", f"{_META}MicroTime")
_SPECIAL: Final[Mapping[str, Callable[[Json], Any]]] = {
    f"{_META}Time": _time,
    f"{_META}MicroTime": _micro_time,
    f"{_META}FieldsV1": _opaque,
    "k8s.io/apimachinery/pkg/api/resource.Quantity": lambda found: "0" if found["string"] is None else found["string"],
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": lambda found: found["strVal" if found["type"] else "intVal"],
    f"{_EXTENSIONS}JSON": _opaque,
    f"{_EXTENSIONS}JSONSchemaPropsOrBool": lambda found: (
        found["allows"] if found["schema"] is None else found["schema"]
    ),
    f"{_EXTENSIONS}JSONSchemaPropsOrArray": lambda found: found["jSONSchemas"] or found["schema"],
    f"{_EXTENSIONS}JSONSchemaPropsOrStringArray": lambda found: found["property"] or found["schema"],
}
"""Types that say themselves what they are in JSON, from the fields that they have in protobuf."""
