"""What is wrong with the schema of a CRD: Kubernetes takes structural ones only.

Differs from Kubernetes: a whole schema that is shown stands as it was sent; a pattern or a format that the simulator
cannot check is answered with 501.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.schema import causes, formats, patterns
from kube_simulator.schema.node import of_schema
from kube_simulator.schema.rule_definitions import (
    children,
    default_rule_problems,
    rule_definition_problems,
)
from kube_simulator.schema.structural import prune, validate
from kube_simulator.values import Json

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_NAMES: Final = frozenset({"name", "generateName"})
# What the root may say beside a status subresource, with the names that Kubernetes' own type has for it.
_WITH_STATUS: Final = {
    **{name: name[0].upper() + name[1:] for name in ("description", "type", "format", "title")},
    **{name: name[0].upper() + name[1:] for name in ("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum")},
    **{name: name[0].upper() + name[1:] for name in ("maxLength", "minLength", "pattern", "maxItems", "minItems")},
    **{name: name[0].upper() + name[1:] for name in ("uniqueItems", "multipleOf", "required", "items", "properties")},
    **{"externalDocs": "ExternalDocs", "example": "Example"},
    **{"x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields", "x-kubernetes-validations": "XValidations"},
}
# What a schema may say beneath allOf, anyOf, oneOf and not: only what judges values.
_SHAPING: Final = (
    *(("type", "must be empty to be structural"), ("additionalProperties", "must be undefined to be structural")),
    *(("default", "must be undefined to be structural"), ("title", "must be empty to be structural")),
    *(("description", "must be empty to be structural"), ("nullable", "must be false to be structural")),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def schema_problems(schema: Json, path: str, *, has_status: bool) -> list[Cause]:
    """What Kubernetes refuses in a schema (`openAPIV3Schema`), and for a good one what it refuses in its rules.

    Raises:
        ApiError: 501 for formats, patterns and rules that Kubernetes may know and the simulator does not.
    """
    found = list(_status_problems(schema, path)) if has_status else []
    found += sorted(_structural(schema, path, _Place()), key=lambda cause: (cause.field, cause.message))
    if schema.get("nullable"):
        found.append(causes.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    found += _keyword_problems(schema, path, _Place())
    if not found:
        found += _default_problems(schema, path, _Place())
    if not found:
        found += rule_definition_problems(schema, path)
    if not found:
        _refuse_the_unknown(schema, path)
        found += default_rule_problems(schema, path)
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a schema a part of it stands."""

    level: str = "root"
    """`root`, `items` or `field`."""
    no_default: str = ""
    """Why no default may stand there."""


def _status_problems(schema: Json, path: str) -> Iterator[Cause]:
    """With a status subresource the root may say only what can be said of the status apart."""
    said = {key for key, value in schema.items() if value not in (None, False, [], {}, "")}
    if said - _WITH_STATUS.keys():
        listed = " ".join(dict.fromkeys(_WITH_STATUS.values()))
        why = f"only [{listed}] fields are allowed at the root of the schema if the status subresource is enabled"
        yield causes.invalid(path, schema, why)


def _structural(schema: Json, path: str, place: _Place) -> Iterator[Cause]:
    type_ = schema.get("type") or ""
    embedded = schema.get("x-kubernetes-embedded-resource") is True
    open_ = schema.get("x-kubernetes-preserve-unknown-fields") is True
    either = schema.get("x-kubernetes-int-or-string") is True
    whole = place.level == "root" or embedded
    if type_ == "array" and not isinstance(schema.get("items"), dict):
        yield causes.required(f"{path}.items", "must be specified")
    if embedded and type_ != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        yield causes.invalid(f"{path}.type", type_, why) if type_ else causes.required(f"{path}.type", why)
    elif not type_ and not either and not open_:
        where = {"root": "at the root", "items": "for specified array items", "field": "for specified object fields"}
        yield causes.required(f"{path}.type", f"must not be empty {where[place.level]}")
    if place.level == "root" and type_ and type_ != "object":
        yield causes.invalid(f"{path}.type", type_, "must be object at the root")
    if schema.get("additionalProperties") is not None:
        if place.level == "root":
            yield causes.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if embedded:
            why = "must not be used if x-kubernetes-embedded-resource is set"
            yield causes.forbidden(f"{path}.additionalProperties", why)
    if either and open_:
        why = "must be false if x-kubernetes-int-or-string is true"
        yield causes.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", True, why)
    if either and embedded:
        why = "must be false if x-kubernetes-int-or-string is true"
        yield causes.invalid(f"{path}.x-kubernetes-embedded-resource", True, why)
    if embedded and not open_ and not schema.get("properties"):
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield causes.required(f"{path}.properties", why)
    yield from _identity_problems(schema, path, place, whole=whole)
    yield from _judging(schema, path)
    if place.level == "root":
        yield from _incomplete(schema, schema, path, path)
    for key, child, level in children(schema):
        yield from _structural(child, f"{path}.{key}", _Place(level))


def _identity_problems(schema: Json, path: str, place: _Place, *, whole: bool) -> Iterator[Cause]:
    properties = schema.get("properties") or {}
    for name in ("kind", "apiVersion"):
        if whole and name in properties and properties[name].get("type") != "string":
            yield causes.invalid(
                f"{path}.properties[{name}].type", properties[name].get("type") or "", "must be string"
            )
    metadata = properties.get("metadata")
    if metadata is None:
        return
    at = f"{path}.properties[metadata]"
    if whole and metadata.get("type") != "object":
        yield causes.invalid(f"{at}.type", metadata.get("type") or "", "must be object")
    if place.level == "root":
        others = metadata.keys() - {"type", "properties", "default"}
        names = set(metadata.get("properties") or ())
        if others or not names <= _NAMES:
            why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield causes.forbidden(at, why)


def _judging(schema: Json, path: str, *, nested: bool = False) -> Iterator[Cause]:
    """Of the pattern, which must be one, and of allOf, anyOf, oneOf and not, which may only judge."""
    pattern = schema.get("pattern")
    if pattern:
        try:
            patterns.compiled(pattern)
        except patterns.InvalidPattern as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield causes.invalid(f"{path}.pattern", pattern, why)
        except patterns.UnknownPattern:
            pass  # `_refuse_the_unknown` says so, once all else is known to be good
    for at, part in _parts(schema):
        keyword = at.partition("[")[0]
        if not nested and keyword == "anyOf" and schema["anyOf"] == _INT_OR_STRING:
            continue
        either = not nested and at == "allOf[0]" and part.get("anyOf") == _INT_OR_STRING
        yield from _nested(part, f"{path}.{at}", either=either)


def _nested(part: Json, path: str, *, either: bool = False) -> Iterator[Cause]:
    for key, why in _SHAPING:
        if part.get(key) not in (None, "", [], False):
            yield causes.forbidden(f"{path}.{key}", why)
    judged = {key: each for key, each in part.items() if key != "anyOf"} if either else part
    yield from _judging(judged, path, nested=True)
    if isinstance(part.get("items"), dict):
        yield from _nested(part["items"], f"{path}.items")
    for name, child in (part.get("properties") or {}).items():
        if name == "metadata":
            why = "must not be specified in a nested context"
            yield causes.forbidden(f"{path}.properties[metadata]", why)
        yield from _nested(child, f"{path}.properties[{name}]")


def _incomplete(part: Json, shape: Json | None, path: str, shape_path: str) -> Iterator[Cause]:
    """What is judged beneath the root's allOf, anyOf, oneOf and not, and no property says what it is."""
    if shape is None:
        yield causes.required(shape_path, f"because it is defined in {path}")
        return
    for at, child in _parts(part):
        yield from _incomplete(child, shape, f"{path}.{at}", shape_path)
    if part is shape:
        return
    if isinstance(part.get("items"), dict):
        yield from _incomplete(part["items"], shape.get("items"), f"{path}.items", f"{shape_path}.items")
    for name, child in (part.get("properties") or {}).items():
        at = f".properties[{name}]"
        yield from _incomplete(child, (shape.get("properties") or {}).get(name), path + at, shape_path + at)


def _parts(schema: Json) -> Iterator[tuple[str, Json]]:
    """The schemas of allOf, anyOf, oneOf and not, each with its part of the path."""
    for keyword in ("anyOf", "allOf", "oneOf"):
        for index, part in enumerate(schema.get(keyword) or ()):
            yield f"{keyword}[{index}]", part
    if isinstance(schema.get("not"), dict):
        yield "not", schema["not"]


def _keyword_problems(schema: Json, path: str, place: _Place) -> Iterator[Cause]:
    type_ = schema.get("type") or ""
    if type_ == "null":
        why = "type cannot be set to null, use nullable as an alternative"
        yield causes.not_supported(f"{path}.type", type_, _TYPES)
        yield causes.forbidden(f"{path}.type", why)
    elif type_ and type_ not in _TYPES:
        yield causes.not_supported(f"{path}.type", type_, _TYPES)
    if place.no_default and schema.get("default") is not None:
        yield causes.forbidden(f"{path}.default", f"must not be set {place.no_default}")
    for key in _UNSUPPORTED:
        if schema.get(key):
            yield causes.forbidden(f"{path}.{key}", f"{key} is not supported")
    if isinstance(schema.get("items"), list):
        yield causes.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield causes.forbidden(f"{path}.uniqueItems", why)
    if schema.get("properties") and schema.get("additionalProperties") not in (None, True):
        why = "additionalProperties and properties are mutual exclusive"
        yield causes.forbidden(f"{path}.additionalProperties", why)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield causes.invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    yield from _merge_problems(schema, path, type_)
    for key, child, level in children(schema):
        name = key.removeprefix("properties[").removesuffix("]")
        own = place.level == "root" and name in ("apiVersion", "kind", "metadata")
        no_default = f"in top-level {name}" if own else place.no_default
        yield from _keyword_problems(child, f"{path}.{key}", _Place(level, no_default))


def _merge_problems(schema: Json, path: str, type: str) -> Iterator[Cause]:
    """Of `x-kubernetes-list-type` and its like."""
    for key, wanted, known in (
        ("x-kubernetes-map-type", "object", ("atomic", "granular")),
        ("x-kubernetes-list-type", "array", ("atomic", "set", "map")),
    ):
        said = schema.get(key)
        if said is None:
            continue
        if type != wanted:
            why = f"must be {wanted} if {key} is specified"
            yield causes.invalid(f"{path}.type", type, why) if type else causes.required(f"{path}.type", why)
        if said not in known:
            yield causes.not_supported(f"{path}.{key}", said, known)
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    items = schema.get("items") if isinstance(schema.get("items"), dict) else None
    if keys and list_type != "map":
        at, why = f"{path}.x-kubernetes-list-type", "must be map if x-kubernetes-list-map-keys is non-empty"
        yield causes.required(at, why) if list_type is None else causes.invalid(at, list_type, why)
    if list_type == "set" and items is not None:
        why = "must be atomic as item of a list with x-kubernetes-list-type=set"
        if items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
            yield causes.invalid(f"{path}.items.x-kubernetes-list-type", items["x-kubernetes-list-type"], why)
        if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            yield causes.invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-list-type"), why)
    if list_type in ("set", "map") and items is not None and items.get("nullable"):
        why = f"cannot be nullable when x-kubernetes-list-type is {list_type}"
        yield causes.forbidden(f"{path}.items.nullable", why)
    if list_type == "map":
        yield from _key_problems(schema, items, keys, path)


def _key_problems(schema: Json, items: Json | None, keys: list[str], path: str) -> Iterator[Cause]:
    if not keys:
        why = "must not be empty if x-kubernetes-list-type is map"
        yield causes.required(f"{path}.x-kubernetes-list-map-keys", why)
    if items is None:
        yield causes.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        yield causes.invalid(f"{path}.items.type", items.get("type") or "", why)
        return
    for index, key in enumerate(keys):
        known = (items.get("properties") or {}).get(key)
        at = f"{path}.items.properties[{key}]"
        if known is None:
            why = "entries must all be names of item properties"
            yield causes.invalid(f"{path}.x-kubernetes-list-map-keys", keys, why)
        elif known.get("type") in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield causes.invalid(f"{at}.type", items["type"], why)
        if key in keys[:index]:
            yield causes.invalid(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries")
        if known is not None:
            said = "this property is in x-kubernetes-list-map-keys, so it"
            if key not in (items.get("required") or ()) and known.get("default") is None:
                yield causes.required(f"{at}.default", f"{said} must have a default or be a required property")
            if known.get("nullable"):
                yield causes.forbidden(f"{at}.nullable", f"{said} cannot be nullable")


def _default_problems(schema: Json, path: str, place: _Place) -> Iterator[Cause]:
    if (value := schema.get("default")) is not None:
        node = of_schema(schema)
        at = f"{path}.default"
        _, unknown = prune(node, value)
        if unknown:
            yield causes.invalid(at, value, "must not have unknown fields")
        if isinstance(value, dict) and (place.level == "root" or node.embedded):
            yield from (causes.required(f"{at}.{name}") for name in ("apiVersion", "kind") if name not in value)
        for cause in validate(node, value):
            beneath = cause.field if cause.field.startswith("[") or not cause.field else f".{cause.field}"
            yield cause if cause.field == causes.NO_FIELD else replace(cause, field=at + beneath)
    for key, child, level in children(schema):
        if key != "additionalProperties":
            yield from _default_problems(child, f"{path}.{key}", _Place(level))


def _refuse_the_unknown(schema: Json, path: str) -> None:
    """501 for formats and patterns that Kubernetes checks and the simulator cannot."""
    if schema.get("type", "string") == "string" and (schema.get("format") or "").replace("-", "") in formats.UNCHECKED:
        raise not_implemented(f"the format {schema['format']} at {path}")
    if schema.get("pattern"):
        try:
            patterns.compiled(schema["pattern"])
        except patterns.UnknownPattern as error:
            raise not_implemented(f"the pattern at {path}: {error}") from error
    for key, child in (*((key, child) for key, child, _ in children(schema)), *_parts(schema)):
        _refuse_the_unknown(child, f"{path}.{key}")
