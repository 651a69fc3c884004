"""A node of an OpenAPI v3 schema: what may stand at one place of an object, with its `$ref`s resolved.

Nodes are made when they are first asked for, and kept: recursive schemas (`JSONSchemaProps`) are no matter, and a
second walk costs dictionary lookups. Kubernetes writes a reference that has a default or a description of its own as
`{"allOf": [{"$ref": ...}], "default": ...}`; that is one node here, the keywords next to the reference coming first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal, cast

from kube_simulator.values import Json


class Missing:
    """The type of `MISSING`: no value at all, where null is a value."""

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()
"""No value at all: not even null."""

REFERENCE_PREFIX: Final = "#/components/schemas/"

# Definitions of `type: object` whose fields are anybody's; the other opaque ones have no type at all.
_OPAQUE: Final = (
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
)


class Node:
    """One node of a schema; compared by identity, never changed once made."""

    def __init__(self, schema: Json, definitions: Definitions, name: str = "") -> None:
        target = _reference(schema)
        self._definitions = definitions
        self._target = definitions.named(target) if target else None
        self.raw: Json = schema
        """The schema as JSON, the definition that it refers to and what stands next to the reference in one."""
        if self._target is not None:
            others = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
            self.raw = {**self._target.raw, **others}
        raw = self.raw
        self.ref: str = target or name
        """Name of the definition that says what stands here (`io.k8s.api.core.v1.Container`), or empty."""
        self.type: str = raw.get("type", "")
        """`object`, `array`, `string`, `integer`, `number`, `boolean`; empty where several or all are good."""
        self.format: str = raw.get("format", "")
        """Such as `int32`, `int64`, `date-time`, `byte`; empty where there is none."""
        self.default: object = raw.get("default", MISSING)
        """Default of a field, or `MISSING`. Built-in schemas write Go's zero values here: no news."""
        self.int_or_string = raw.get("x-kubernetes-int-or-string") is True or self.format == "int-or-string"
        """Whether both 80 and "http" are good."""
        self.preserve_unknown = (
            raw.get("x-kubernetes-preserve-unknown-fields") is True
            or self.ref in _OPAQUE
            or (not self.type and not self.int_or_string and not raw.keys() & {"oneOf", "properties"})
        )
        """Whether fields stay that the schema does not name, as in an opaque value."""
        self.nullable = raw.get("nullable") is True
        """Whether null is a value of its own, rather than an absent field."""
        self.embedded = raw.get("x-kubernetes-embedded-resource") is True
        """Whether this is a whole object of Kubernetes, with apiVersion, kind and metadata."""
        self.list_type: Literal["atomic", "set", "map"] = raw.get("x-kubernetes-list-type", "atomic")
        """Type of a list's merge by server-side apply."""
        self.list_keys: tuple[str, ...] = tuple(raw.get("x-kubernetes-list-map-keys", ()))
        """The fields that tell the elements of a `map` list apart."""
        self.splits_lists = self.type == "array" and (self.list_type == "set" or bool(self.list_keys))
        """Whether the elements of a list are owned one by one."""
        self.splits_objects = raw.get("x-kubernetes-map-type") != "atomic" and (
            self.type == "object" or (not self.type and (self.int_or_string or self.preserve_unknown))
        )
        """Whether the fields of an object are owned one by one."""
        self.patch_strategy = frozenset(filter(None, raw.get("x-kubernetes-patch-strategy", "").split(",")))
        """Strategy of a strategic merge patch: of `merge`, `replace`, `retainKeys`."""
        self.patch_merge_key: str = raw.get("x-kubernetes-patch-merge-key", "")
        """The field by which a strategic merge patch knows the elements of a list."""

    def field(self, name: str) -> Node | None:
        """The node of a field: that of the property, else that of any value of a map, else None (unknown)."""
        return self.properties.get(name, self.additional)

    def items(self) -> Node | None:
        """The node of each element of a list; None where this is no list."""
        return self._items

    def alternatives(self, keyword: Literal["allOf", "anyOf", "oneOf", "not"]) -> tuple[Node, ...]:
        """The nodes of the schemas that a value must fit besides: all, any, just one, or none of them."""
        return self._alternatives.get(keyword, ())

    # What stands in a definition is made once, for all that refer to it.

    @cached_property
    def properties(self) -> Mapping[str, Node]:
        """The fields that are known by name."""
        properties = self.raw.get("properties") or {}
        if self._target is not None and properties is self._target.raw.get("properties"):
            return self._target.properties
        return {name: self._definitions.node(each) for name, each in properties.items()}

    @cached_property
    def additional(self) -> Node | None:
        """Schema of each value of a map; None where unknown fields are unknown."""
        additional = self.raw.get("additionalProperties") or None
        if self._target is not None and additional is self._target.raw.get("additionalProperties"):
            return self._target.additional
        return None if additional is None else self._definitions.node({} if additional is True else additional)

    @cached_property
    def _items(self) -> Node | None:
        items = self.raw.get("items")
        if self._target is not None and items is self._target.raw.get("items"):
            return self._target.items()
        return None if items is None else self._definitions.node(items)

    @cached_property
    def _alternatives(self) -> Mapping[str, tuple[Node, ...]]:
        found = {}
        for keyword in self.raw.keys() & {"allOf", "anyOf", "oneOf", "not"}:
            schemas = self.raw[keyword]
            listed = schemas if isinstance(schemas, list) else [schemas]
            found[keyword] = tuple(self._definitions.node(schema) for schema in listed)
        return found


class Definitions:
    """The schemas that may be referred to by name, and the nodes made of them so far, which all share."""

    def __init__(self, schemas: Mapping[str, Json]) -> None:
        self._schemas = schemas
        self._nodes: dict[str, Node] = {}

    def named(self, name: str) -> Node:
        """The node of a definition; KeyError if there is none of that name."""
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = Node(self._schemas[name], self, name)
        return node

    def node(self, schema: Json) -> Node:
        """The node of a schema: for a bare reference the definition's own, so that all who refer to it share one."""
        return self.named(_reference(schema)) if schema.keys() == {"$ref"} else Node(schema, self)


def _reference(schema: Json) -> str:
    """The name of the definition that a schema refers to, or empty."""
    single = schema.get("allOf")
    if single is not None and len(single) == 1 and "$ref" in single[0]:
        schema = single[0]
    return cast(str, schema.get("$ref", "")).removeprefix(REFERENCE_PREFIX)


ANYTHING: Final = Definitions({}).node({"x-kubernetes-preserve-unknown-fields": True})
"""The node of what no schema describes."""
