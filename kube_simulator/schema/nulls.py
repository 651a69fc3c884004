"""Nulls in the body of a built-in kind: to Go's decoder a null is no value, and leaves the zero of the type.

A field that is null is therefore none. An element of a list, or a value of a map, is there all the same: an empty
struct or text, a zero. Their schemas have these zeros as defaults, but for types in which null is a value (`JSON`, by
which the schema of a CRD lists what may be chosen) or a pointer to none.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from kube_simulator.schema.node import MISSING, Node
from kube_simulator.values import Json

_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"


def without_nulls(node: Node, value: Json) -> Json:
    """The object as Go reads it, of which a custom resource decodes the metadata alone; itself if it has no nulls."""
    if not node.embedded:
        read = _read(node, value)
        assert isinstance(read, dict)
        return read
    metadata = node.properties.get("metadata")
    given = value.get("metadata")
    if metadata is None or given is None:
        return value
    read = _read(metadata, given)
    return value if read is given else {**value, "metadata": read}


def _read(node: Node, value: Any) -> Any:
    if isinstance(value, dict):
        return _read_object(node, value)
    item = node.items() if isinstance(value, list) else None
    if item is None:
        return value
    read = [_read(item, _zero(item) if each is None else each) for each in value]
    return read if any(new is not old for new, old in zip(read, value, strict=True)) else value


def _read_object(node: Node, value: Json) -> Json:
    read: Json = {}
    for name, each in value.items():
        child = node.field(name)
        if child is None:  # anybody's, as in an object within an object
            read[name] = each
        elif each is not None:
            read[name] = _read(child, each)
        elif name not in node.properties and (zero := _zero(child)) is not None:
            read[name] = zero
    same = len(read) == len(value) and all(read[name] is value[name] for name in read)
    return value if same else read


def _zero(node: Node) -> Any:
    # Of these the schemas have no default.
    if node.format == "byte":
        return ""
    if node.ref == _QUANTITY:
        return "0"
    return None if node.default is MISSING else deepcopy(node.default)
