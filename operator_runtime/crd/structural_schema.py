"""A model -> a structural schema.

The API server takes a subset of OpenAPI 3.0: every node has a type, nothing is referenced, nothing is a union. What a
model has beyond that is expressed either in the subset's own words (`X | None` becomes a field that may be left out,
and where X is an object without required fields one that may be null, a `set` a list of type set) or refused with the
field's path. Kubernetes' own keywords come from `json_schema_extra`, so that the models need no import from here:

    size: Annotated[int, Field(ge=0, json_schema_extra={"format": "int32"})] = Field(default=1, description="…")
    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": [{"rule": "…", "message": "…"}]})

A model is pydantic's, or a msgspec struct, which `kinds.typed` reads objects into without loading pydantic:

    size: Annotated[int, Meta(ge=0, description="…", extra_json_schema={"format": "int32"})] = 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pydantic import BaseModel

    Model = type[BaseModel] | type[msgspec.Struct]

_Schema = dict[str, Any]

_TYPES = frozenset({"array", "boolean", "integer", "number", "object", "string"})
# Keywords that mean the same in JSON Schema and in a structural schema, and go through as they are.
_CARRIED = frozenset(
    {
        *("type", "description", "default", "enum", "pattern", "multipleOf", "minimum", "maximum"),
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        *("x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys"),
        *("x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields"),
        "x-kubernetes-validations",
    }
)
# Those that hold for values of one type and let all others pass.
_RULES_OF_ONE_TYPE = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern"),
    }
)
# Keywords that mean nothing to the API server.
_DROPPED = frozenset({"title", "examples"})
# What `_node` puts in other words.
_TRANSLATED = frozenset(
    {
        *("additionalProperties", "const", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "nullable"),
        *("properties", "required", "uniqueItems"),
    }
)
# The formats that the API server checks as pydantic does; it ignores unknown ones with a warning, and its "duration"
# is Go's (1h30m) where pydantic's is ISO 8601 (PT1H30M).
_FORMATS = frozenset(
    {"byte", "date", "date-time", "double", "email", "float", "int32", "int64", "ipv4", "ipv6", "uri", "uuid"}
)
# A bound that the format states already would only double the API server's message.
_FORMAT_BOUNDS = {
    "int32": {"minimum": -(2**31), "maximum": 2**31 - 1},
    "int64": {"minimum": -(2**63), "maximum": 2**63 - 1},
}


class SchemaError(TypeError):
    """A model that a structural schema cannot hold; the message names the field's path and the remedy."""


def structural_schema(model: Model, path: str) -> dict[str, object]:
    """The structural schema of `model`; `path`, such as "spec", is where it stands and how errors name it.

    Raises:
        SchemaError: unions, recursion, fields without a description, or a keyword that the API server does not know.
    """
    schema = _json_schema(model)
    return _node(schema, _Place(path, schema.pop("$defs", {})))


def _json_schema(model: Model) -> _Schema:
    if not issubclass(model, msgspec.Struct):
        return model.model_json_schema()
    schema = msgspec.json.schema(model)
    for definition in schema.get("$defs", {}).values():
        for each in definition.get("properties", {}).values():
            # How a struct reads what is absent, and nothing that the API server is to write into an object.
            if each.get("default") in ("", (), [], {}):
                del each["default"]
    return schema


@dataclass(frozen=True, slots=True)
class _Place:
    """Position of the walk in a model: the path for people, the model's definitions, and those that it is inside of."""

    path: str
    definitions: Mapping[str, _Schema]
    inside: frozenset[str] = field(default=frozenset())

    def at(self, step: str) -> _Place:
        return replace(self, path=self.path + step)

    def error(self, message: str) -> SchemaError:
        return SchemaError(f"{self.path}: {message}")


def _node(schema: _Schema, place: _Place, *, optional: bool = False) -> _Schema:
    """One node of a model's JSON schema as a node of a structural schema; `optional` fields may also be None."""
    schema, place = _resolved(schema, place, optional=optional)
    if unknown := schema.keys() - _CARRIED - _DROPPED - _TRANSLATED:
        raise place.error(f"a structural schema has no {', '.join(sorted(unknown))}; say it with a CEL rule instead")
    node = {keyword: value for keyword, value in schema.items() if keyword in _CARRIED}
    if "description" in node:
        node["description"] = _unwrapped(node["description"])
    if "default" in node:
        node["default"] = _written(node["default"])
    if "const" in schema:
        node["enum"] = [schema["const"]]
    _check_type(node, place)
    _put_format_and_bounds(schema, node, place)
    if node.get("type") == "array":
        _put_list(schema, node, place)
    if node.get("type") == "object":
        _put_object(schema, node, place)
        # Server-side apply leaves null where an object has lost its last field. What has a default gets that instead,
        # and what needs a field is not to be taken for what was left out.
        if schema.get("nullable") and not node.keys() & {"default", "required"}:
            node["nullable"] = True
    return node


def _resolved(schema: _Schema, place: _Place, *, optional: bool) -> tuple[_Schema, _Place]:
    """`schema` with its references followed and `X | None` reduced to X."""
    while True:
        outer = dict(schema)
        if (reference := outer.pop("$ref", None)) is not None:
            name = reference.removeprefix("#/$defs/")
            if name in place.inside:
                raise place.error(f"{name} holds itself; a structural schema has no recursion, so limit the depth")
            place = replace(place, inside=place.inside | {name})
            schema = _merged(place.definitions[name], outer)
        elif (union := outer.pop("anyOf", None) or outer.pop("oneOf", None)) is not None:
            members = [member for member in union if member != {"type": "null"}]
            if len(members) < len(union) and not optional:
                raise place.error("cannot be null here; give a field the default None, and lists and maps no None")
            if len(members) < len(union):
                outer["nullable"] = True
            if outer.get("x-kubernetes-int-or-string"):
                schema = _int_or_string(members, outer, place)
            elif len(members) == 1:
                schema = _merged(members[0], outer)
            else:
                raise place.error(
                    'is a union; use one type, or int | str with json_schema_extra={"x-kubernetes-int-or-string": True}'
                )
        else:
            if optional and outer.get("default", ...) is None:
                del outer["default"]
            return outer, place


def _merged(inner: _Schema, outer: _Schema) -> _Schema:
    """Merge the schema of a field (`outer`) into that of its type (`inner`); the rules of both hold."""
    rules = [*inner.get("x-kubernetes-validations", ()), *outer.get("x-kubernetes-validations", ())]
    return {**inner, **outer, **({"x-kubernetes-validations": rules} if rules else {})}


def _int_or_string(members: Sequence[_Schema], outer: _Schema, place: _Place) -> _Schema:
    """The field with the rules of both types: a rule for numbers means nothing for strings, nor the other way round."""
    if sorted(member.get("type", "") for member in members) != ["integer", "string"]:
        raise place.error("x-kubernetes-int-or-string is for int | str alone")
    rules: _Schema = {}
    for member in members:
        if unknown := member.keys() - _RULES_OF_ONE_TYPE - _DROPPED - {"type"}:
            raise place.error(
                f"{', '.join(sorted(unknown))} would hold for numbers and strings; use a bound or a pattern"
            )
        rules |= {keyword: value for keyword, value in member.items() if keyword in _RULES_OF_ONE_TYPE}
    return {**rules, **outer}


def _check_type(node: _Schema, place: _Place) -> None:
    kind = node.get("type")
    if node.get("x-kubernetes-int-or-string"):
        node.pop("type", None)
    elif kind is None and not node.get("x-kubernetes-preserve-unknown-fields"):
        raise place.error(
            "has no single type; name one, or let anything pass with "
            'json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}'
        )
    elif kind is not None and kind not in _TYPES:
        raise place.error(f"a structural schema has no type {kind}")


def _put_format_and_bounds(schema: _Schema, node: _Schema, place: _Place) -> None:
    for keyword, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if exclusive in schema:
            # OpenAPI 3.0 has the number in one keyword and a flag in the other.
            node[keyword], node[exclusive] = schema[exclusive], True
    if (name := schema.get("format")) is None:
        return
    if name not in _FORMATS:
        raise place.error(f"to the API server the format {name} means nothing or another thing; use a pattern")
    node["format"] = name
    for keyword, bound in _FORMAT_BOUNDS.get(name, {}).items():
        if node.get(keyword) == bound:
            del node[keyword]


def _put_list(schema: _Schema, node: _Schema, place: _Place) -> None:
    items = node["items"] = _node(schema.get("items", {}), place.at("[]"))
    if schema.get("uniqueItems"):
        # The API server refuses uniqueItems, which would compare each item with each.
        node.setdefault("x-kubernetes-list-type", "set")
    if node.get("x-kubernetes-list-type") != "map":
        return
    for key in node.get("x-kubernetes-list-map-keys", ()) or [""]:
        if key not in items.get("properties", ()):
            raise place.error("a list of type map needs x-kubernetes-list-map-keys, which name fields of its items")
        if key not in items.get("required", ()) and "default" not in items["properties"][key]:
            raise place.error(f"{key} is a key of this list: make it required, or give it a default")


def _put_object(schema: _Schema, node: _Schema, place: _Place) -> None:
    required = set(schema.get("required", ()))
    if properties := schema.get("properties"):
        node["properties"] = {
            name: _property(prop, place.at(f".{name}"), optional=name not in required)
            for name, prop in properties.items()
        }
    if required:
        node["required"] = sorted(required)
    # False: the API server prunes unknown fields by itself, or refuses them where the client requests that.
    values = schema.get("additionalProperties", False)
    if values in (True, {}):
        node["x-kubernetes-preserve-unknown-fields"] = True
    elif values and properties:
        raise place.error("has named fields and others of any name; give the others a field that is a map")
    elif values:
        node["additionalProperties"] = _node(values, place.at("[*]"))


def _property(schema: _Schema, place: _Place, *, optional: bool) -> _Schema:
    node = _node(schema, place, optional=optional)
    if not node.get("description"):
        raise place.error(
            "has no description; give the field Field(description=…) or Meta(description=…), or its model a docstring"
        )
    return node


def _unwrapped(text: str) -> str:
    """`text` without the line breaks inside its paragraphs: a printer wraps it."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _written(value: object) -> object:
    """The default of a field as the API server is to write it: of an object, without what holds nothing."""
    match value:
        case dict():
            return {key: _written(item) for key, item in value.items() if item not in (None, [], {})}
        case list():
            return [_written(item) for item in value]
        case _:
            return value
