"""Negotiation of an answer's form and of a body's: Accept, Content-Type, Accept-Encoding.

Differs from Kubernetes: no answers in protobuf, which is passed over in favour of the next type that a client accepts.
A key that stands twice in a body is not warned of, and references in YAML are refused.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import orjson
import yaml

from kube_simulator.errors import ApiError, bad_request
from kube_simulator.schema import protobuf

JSON_TYPE = "application/json"
YAML_TYPE = "application/yaml"
PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf"
# Of answers, and of the events of a watch.
_MEDIA_TYPES = (JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE)
STREAM_TYPES = (f"{JSON_TYPE};stream=watch", f"{PROTOBUF_TYPE};stream=watch")
# The API server's limit for the body of a request.
BODY_LIMIT_BYTES = 3 * 2**20
# The API server compresses answers from this size on.
GZIP_FROM_BYTES = 128 * 2**10
# The lowest level, as in the API server: a busy server has more network than processor.
_GZIP_LEVEL = 1
_TRUE = ("1", "true")

PatchKind = Literal["merge", "json", "strategic", "apply"]
_PATCH_KINDS: Mapping[str, PatchKind] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}


@dataclass(frozen=True, slots=True)
class Representation:
    """Form of an answer."""

    form: Literal["object", "table", "metadata", "metadata-list"] = "object"
    version: str = "v1"
    """Of the Table or the PartialObjectMetadata: v1 or v1beta1."""
    yaml: bool = False

    @property
    def content_type(self) -> str:
        """Content type without parameters."""
        return YAML_TYPE if self.yaml else JSON_TYPE


PLAIN = Representation()
_AS = {"Table": "table", "PartialObjectMetadata": "metadata", "PartialObjectMetadataList": "metadata-list"}


@lru_cache(maxsize=256)
def representation(accept: str) -> Representation:
    """The first form that a client accepts and the simulator speaks; what it would rather have comes first.

    Raises:
        ApiError: 406, there is none.
    """
    offers = list(_offers(accept or "*/*"))
    for kind, parameters in offers:
        if (found := _understood(kind, parameters)) is not None:
            return found
    raise not_acceptable()


@lru_cache(maxsize=256)
def discovery_representation(accept: str) -> Representation:
    """Choose the form for /api and /apis, which are no objects, as `representation` does for objects."""
    for kind, parameters in _offers(accept or "*/*"):
        if (found := _understood(kind, parameters)) is not None and found.form == "object":
            return found
    raise not_acceptable()


def _understood(kind: str, parameters: Mapping[str, str]) -> Representation | None:
    if kind not in (JSON_TYPE, YAML_TYPE, "*/*"):
        return None
    in_yaml = kind == YAML_TYPE
    desired = parameters.get("as")
    if desired is None:
        return Representation(yaml=in_yaml)
    group, version = parameters.get("g"), parameters.get("v", "")
    if group == "meta.k8s.io" and version in ("v1", "v1beta1") and desired in _AS:
        return Representation(_AS[desired], version, in_yaml)  # type: ignore[arg-type]
    return None


def _offers(accept: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Type and parameters of each clause, the best first."""
    clauses = []
    for clause in accept.split(","):
        kind, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        try:
            weight = float(parameters.get("q", "1"))
        except ValueError:
            weight = 0.0
        clauses.append((weight, kind.lower(), parameters))
    clauses.sort(key=lambda clause: -clause[0])
    return ((kind, parameters) for _, kind, parameters in clauses)


def not_acceptable(media_types: Iterable[str] = _MEDIA_TYPES) -> ApiError:
    """406: nothing that the client accepts can be had; the types are those of Kubernetes."""
    return ApiError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(media_types)}")


def body_object(body: bytes, content_type: str, kind: str, api_version: str = "v1") -> Any:
    """The decoded body of a POST, PUT or DELETE, in JSON, YAML or protobuf.

    Args:
        kind: what is expected, for messages and for bodies in protobuf that do not say what they are.
        api_version: likewise.

    Raises:
        ApiError: 415 or 400; 501, protobuf of a kind that is not served.
    """
    media = _media_type(content_type)
    if media in ("", JSON_TYPE):
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            shown = body[:64].decode(errors="replace") or "<empty>"
            problem = "unexpected end of JSON input" if not body.strip() else str(error)
            message = f"couldn't get version/kind; json parse error: {problem} ({shown})"
            raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {message}") from None
    if media == YAML_TYPE:
        return _yaml(body)
    if media == PROTOBUF_TYPE:
        return protobuf.decode(body, kind, api_version)
    message = "the body of the request was in an unknown format - accepted media types include: "
    raise ApiError(415, "UnsupportedMediaType", message + f"{JSON_TYPE}, {YAML_TYPE}, {PROTOBUF_TYPE}")


def patch_kind(content_type: str, *, custom: bool) -> PatchKind:
    """Return the kind of a PATCH by its type; custom resources know no strategic merge patches.

    Raises:
        ApiError: 415.
    """
    found = _PATCH_KINDS.get(_media_type(content_type))
    if found is None:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", bare=True)
    if found == "strategic" and custom:
        message = "the body of the request was in an unknown format - accepted media types include: "
        others = ", ".join(media for media, kind in _PATCH_KINDS.items() if kind != "strategic")
        raise ApiError(415, "UnsupportedMediaType", message + others)
    return found


def patch_body(body: bytes, kind: PatchKind) -> Any:
    """The decoded body of a PATCH.

    Raises:
        ApiError: 400.
    """
    try:
        decoded = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if kind == "apply":  # YAML, of which JSON is a part that is read faster
            return _yaml(body)
        problem = str(error) if body.strip() else "unexpected end of JSON input"
        raise bad_request(f"error decoding patch: {problem}") from None
    if isinstance(decoded, list) != (kind == "json") or not isinstance(decoded, list | dict):
        desired = "[]handlers.jsonPatchOp" if kind == "json" else "map[string]interface {}"
        found = "object" if isinstance(decoded, dict) else "array" if isinstance(decoded, list) else "value"
        raise bad_request(f"error decoding patch: json: cannot unmarshal {found} into Go value of type {desired}")
    return decoded


def encoded(document: object, shape: Representation, query: Mapping[str, str]) -> bytes:
    """A document as the client wants it: JSON, indented for `pretty=true`, or YAML."""
    if shape.yaml:
        text: str = yaml.dump(document, Dumper=_Dumper, default_flow_style=False, allow_unicode=True)
        return text.encode()
    options = orjson.OPT_APPEND_NEWLINE
    if query.get("pretty") in _TRUE:
        options |= orjson.OPT_INDENT_2
    return orjson.dumps(document, option=options)


def compressed(body: bytes, accept_encoding: str) -> bytes | None:
    """The body in gzip where the client takes that and it is worth it, or None."""
    if len(body) < GZIP_FROM_BYTES or "gzip" not in accept_encoding:
        return None
    return gzip.compress(body, _GZIP_LEVEL, mtime=0)


def too_large() -> ApiError:
    """413: the body is over the limit."""
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_LIMIT_BYTES}")


def warning(text: str) -> str:
    """A `Warning` header's value."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", " ")
    return f'299 - "{escaped}"'


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


class _Loader(yaml.CSafeLoader):
    """Reads dates as the strings that JSON has for them."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


class _Dumper(yaml.CSafeDumper):
    """Writes shared parts of a document twice rather than by reference."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _yaml(body: bytes) -> Any:
    try:
        # A few lines of references stand for more than any memory holds, and one may stand for itself.
        if b"*" in body and any(isinstance(each, yaml.AliasEvent) for each in yaml.parse(body, _Loader)):
            raise yaml.YAMLError("references are not read")
        return _with_string_keys(yaml.load(body, _Loader))
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: yaml: {problem}") from None


def _with_string_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {_key(key): _with_string_keys(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_string_keys(each) for each in value]
    if not isinstance(value, str | int | float | None) or (isinstance(value, float) and not math.isfinite(value)):
        raise yaml.YAMLError(f"JSON has nothing for {value!r}")
    return value


def _key(key: object) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)
