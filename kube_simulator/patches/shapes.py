"""Schemas as server-side apply sees them: each place is a map, a list or a leaf, and atomic or made of parts.

Where the schema does not say (`x-kubernetes-preserve-unknown-fields`, no type), the value does: objects are maps of
parts, lists are atomic.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, Final, Literal

from kube_simulator.patches.fieldsets import key_step, value_step
from kube_simulator.schema.node import MISSING, Node, of_schema

Kind = Literal["map", "list", "scalar", "any"]

# More than there are kinds in any cluster that somebody simulates.
_SHAPES_KEPT: Final = 1024


class Shape:
    """One place of a schema; made when first asked for and kept."""

    def __init__(self, node: Node, *, preserving: bool) -> None:
        """
        Args:
            preserving: unknown fields stay, here and in all that is beneath.
        """
        self.node = node
        self.preserving = preserving or node.preserve_unknown
        self.properties = node.properties
        """The fields that the schema knows by name."""
        self.kind: Kind = _kind(node)
        """`any` is what the value says."""
        self.is_set = self.kind == "list" and node.list_type == "set"
        self.keys: tuple[str, ...] = tuple(sorted(node.list_keys)) if self.kind == "list" else ()
        self.atomic = node.map_type == "atomic" if self.kind == "map" else not (self.is_set or self.keys)
        self.is_map = self.kind == "any" or (self.kind == "map" and not self.atomic)
        self.is_list = self.kind == "list" and not self.atomic
        self._fields: dict[str, Shape] = {}

    def parts(self, value: Any) -> dict[str, Any] | list[Any] | None:
        """The parts of a value whose fields are owned one by one; None for a leaf."""
        if isinstance(value, dict):
            return value if self.is_map else None
        return value if self.is_list and isinstance(value, list) else None

    def field(self, name: str) -> Shape:
        """Return the shape of a field of a map."""
        shape = self._fields.get(name)
        if shape is not None:
            return shape
        if name in self.properties:
            shape = self._fields[name] = Shape(self.properties[name], preserving=self.preserving)
            return shape
        return self._of_values

    def declares(self, name: str) -> bool:
        """Report whether the schema knows the field by its name."""
        return name in self.properties

    @cached_property
    def open(self) -> bool:
        """Report whether a map may have fields of any name."""
        return self.preserving or self.node.additional is not None or not self.properties

    @cached_property
    def items(self) -> Shape:
        """Shape of each element of a list."""
        node = self.node.items()
        return ANY if node is None else Shape(node, preserving=self.preserving)

    def step(self, element: Any) -> str:
        """The step to an element of a list that is not atomic."""
        if self.keys and isinstance(element, dict):
            return key_step({key: element.get(key, default) for key, default in self._defaults.items()})
        return value_step(element)

    @cached_property
    def _of_values(self) -> Shape:
        node = self.node.additional
        return ANY if node is None else Shape(node, preserving=self.preserving)

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        """Values of the list's keys where an element does not have them."""
        items = self.node.items()
        defaults: dict[str, Any] = {}
        for key in self.keys:
            node = None if items is None else items.field(key)
            defaults[key] = None if node is None or node.default is MISSING else node.default
        return defaults


@lru_cache(_SHAPES_KEPT)
def shape_of(node: Node) -> Shape:
    """The shape of the whole objects that have this schema."""
    return Shape(node, preserving=False)


def _kind(node: Node) -> Kind:
    if node.int_or_string:
        return "any"
    match node.type:
        case "object":
            return "map"
        case "array":
            return "list"
        case "":
            return "any" if node.preserve_unknown else "scalar"
    return "scalar"


ANY: Final = Shape(of_schema({"x-kubernetes-preserve-unknown-fields": True}), preserving=True)
"""The shape of what no schema describes."""
