"""A model -> a CustomResourceDefinition with a structural schema, for any kind.

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
from typing import TYPE_CHECKING, Any, Literal

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


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One column of `kubectl get`.

    Attributes:
        name: heading; kubectl prints it in capitals.
        type: type of the cell; a "date" is printed as an age.
        json_path: where the value stands in the object, such as `.spec.size`.
        description: what the column means.
        priority: 0 is always shown, more only with `-o wide`.
    """

    name: str
    type: Literal["integer", "number", "string", "boolean", "date"]
    json_path: str
    description: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Scale:
    """Paths at which the scale subresource (`kubectl scale`, the HorizontalPodAutoscaler) finds its fields."""

    spec_replicas_path: str
    status_replicas_path: str
    label_selector_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomResource:
    """A kind in one version, as its CustomResourceDefinition describes it.

    Attributes:
        description: what `kubectl explain` shows of the kind.
        spec: model of `spec`; where none of its fields is required, `spec` itself may be left out.
        status: model of `status`; with one, the kind has the status subresource.
        name_pattern, name_max_length: rules for `metadata.name` on top of the API server's. They stand in the schema
            because a rule there binds new objects only; a CEL rule on the root would also block every later write,
            removal of finalizers included, to objects that are older than the rule.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    description: str
    spec: Model
    status: Model | None = None
    namespaced: bool = True
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    columns: Sequence[PrinterColumn] = ()
    scale: Scale | None = None
    name_pattern: str | None = None
    name_max_length: int | None = None


def custom_resource_definition(resource: CustomResource) -> dict[str, object]:
    """The CustomResourceDefinition (apiextensions.k8s.io/v1) of `resource`.

    Raises:
        SchemaError: a model holds what a structural schema cannot.
    """
    names: _Schema = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.singular,
    }
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    if resource.categories:
        names["categories"] = list(resource.categories)
    version: _Schema = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _object_schema(resource)},
    }
    if resource.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in resource.columns]
    if subresources := _subresources(resource):
        version["subresources"] = subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [version],
        },
    }


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


def to_yaml(document: Mapping[str, object], comment: str) -> str:
    """Return `document` as YAML below a line of `comment`: the same bytes for the same content, wherever it runs.

    No `---` follows the comment: programs that read the first document alone, as OLM does, would read the comment.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    return f"# {comment}\n" + yaml.dump(document, Dumper=Dumper, width=110, allow_unicode=True)


def _object_schema(resource: CustomResource) -> _Schema:
    spec: _Schema = structural_schema(resource.spec, "spec")
    properties: _Schema = {
        "apiVersion": {
            "type": "string",
            "description": "Group and version of the API that this object is written in: "
            f"{resource.group}/{resource.version}.",
        },
        "kind": {"type": "string", "description": f"Kind of this object: {resource.kind}."},
        "metadata": {"type": "object"},
        "spec": spec,
    }
    # The API server allows a few rules here, and no description.
    name = {"maxLength": resource.name_max_length, "pattern": resource.name_pattern}
    if rules := {keyword: value for keyword, value in name.items() if value is not None}:
        properties["metadata"]["properties"] = {"name": {"type": "string", **rules}}
    if resource.status is not None:
        properties["status"] = structural_schema(resource.status, "status")
    schema: _Schema = {"type": "object", "description": resource.description, "properties": properties}
    if "required" in spec:
        schema["required"] = ["spec"]
    else:
        # Without a default of its own, the defaults inside spec would not apply to an object that has no spec. Where
        # spec has rules, the API server tries them on this default as it stands, so it names every field that has one.
        fields = spec.get("properties", {}) if "x-kubernetes-validations" in spec else {}
        spec["default"] = {name: node["default"] for name, node in fields.items() if "default" in node}
    return schema


def _column(column: PrinterColumn) -> _Schema:
    described = {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.json_path,
        "description": column.description,
    }
    return {**described, "priority": column.priority} if column.priority else described


def _subresources(resource: CustomResource) -> _Schema:
    subresources: _Schema = {}
    if resource.status is not None:
        subresources["status"] = {}
    if scale := resource.scale:
        subresources["scale"] = {
            "specReplicasPath": scale.spec_replicas_path,
            "statusReplicasPath": scale.status_replicas_path,
            "labelSelectorPath": scale.label_selector_path,
        }
    return subresources


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
        node["default"] = _without_nulls(node["default"])
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


def _without_nulls(value: object) -> object:
    """`value` without the fields that are None, which are absent in the API."""
    match value:
        case dict():
            return {key: _without_nulls(item) for key, item in value.items() if item is not None}
        case list():
            return [_without_nulls(item) for item in value]
        case _:
            return value
