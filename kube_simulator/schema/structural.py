"""Schema's work on an object on its way in: decode, drop what is unknown, fill in defaults, and judge.

`decode_problems` is for built-in kinds, whose bodies Go decodes into a type; `default` and `validate` are for custom
ones, whose schema says all that is known of them; `prune` is for both. Values are never changed in place: what is not
touched is shared with the result.

Differs from Kubernetes: a null that server-side apply leaves of an object is dropped like any other, and not refused.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, cast

from kube_simulator.schema.builtin_decoding import decode_problems
from kube_simulator.schema.node import MISSING, Node
from kube_simulator.schema.validation import validate
from kube_simulator.values import Json

__all__ = ["MISSING", "decode_problems", "default", "prune", "validate"]


def prune(node: Node, value: Any) -> tuple[Any, list[str]]:
    """The value without the fields that its schema does not know, and where they stood: `spec.ports[0].nmae`."""
    unknown: list[str] = []
    return _pruned(node, value, "", unknown), unknown


def _pruned(node: Node | None, value: Any, path: str, unknown: list[str]) -> Any:
    if isinstance(value, dict):
        return _pruned_object(node, value, path, unknown)
    if isinstance(value, list):
        item = None if node is None else node.items()
        if node is not None and item is None and node.preserve_unknown:
            return value
        kept = [_pruned(item, each, f"{path}[{index}]", unknown) for index, each in enumerate(value)]
        return kept if any(map(_differ, kept, value)) else value
    return value


def _pruned_object(node: Node | None, value: Json, path: str, unknown: list[str]) -> Json:
    kept, whole = {}, True
    for name, each in value.items():
        child = None if node is None else node.field(name)
        if child is not None and node is not None:
            if isinstance(each, dict | list):
                at = f"{path}.{name}" if path else name
                # `additionalProperties: true` lets any name stand, and knows nothing of what is in it.
                blind = name not in node.properties and node.raw.get("additionalProperties") is True
                kept[name] = _pruned(None if blind else child, each, at, unknown)
                whole = whole and kept[name] is each
            else:
                kept[name] = each
        elif node is not None and node.preserve_unknown:
            kept[name] = each
        else:
            unknown.append(f"{path}.{name}" if path else name)
    return value if whole and len(kept) == len(value) else kept


def default(node: Node, value: Any) -> Any:
    """The value with the defaults of its schema, and without the nulls that it has neither a use nor a default for.

    Only for custom resources: what the schemas of built-in kinds call defaults are Go's zero values.
    """
    return _defaulted(node, _without_nulls(node, value))


def _without_nulls(node: Node | None, value: Any) -> Any:
    if isinstance(value, dict):
        kept = {}
        for name, each in value.items():
            child = None if node is None else _known_field(node, name)
            if each is None and child is not None and not child.nullable and child.default in (MISSING, None):
                continue
            kept[name] = _without_nulls(child, each)
        return kept if len(kept) != len(value) or any(kept[name] is not value[name] for name in kept) else value
    if isinstance(value, list):
        item = None if node is None else node.items()
        new = [_without_nulls(item, each) for each in value]
        return new if any(map(_differ, new, value)) else value
    return value


def _known_field(node: Node, name: str) -> Node | None:
    """The field's node where the schema itself has one: the metadata of an object is Kubernetes' own affair."""
    if node.embedded and name == "metadata":
        return None
    if name not in node.properties and node.raw.get("additionalProperties") is True:
        return None
    return node.field(name)


def _defaulted(node: Node, value: Any) -> Any:
    if isinstance(value, dict):
        return _defaulted_object(node, value)
    item = node.items()
    if isinstance(value, list) and item is not None:
        new = [_defaulted(item, _filled(item, each)) for each in value]
        return new if any(map(_differ, new, value)) else value
    return value


def _defaulted_object(node: Node, value: Json) -> Json:
    new = value
    for name, child in node.properties.items():
        if child.default is MISSING or child.default is None or (node.embedded and name == "metadata"):
            continue
        filled = _filled(child, value.get(name)) if name in value else deepcopy(child.default)
        if name not in value or filled is not value[name]:
            new = {**new, name: filled}
    for name in list(new):
        child_node = _known_field(node, name)
        if child_node is None:
            continue
        before = new[name]
        after = _defaulted(child_node, before if name in node.properties else _filled(child_node, before))
        if after is not before:
            new = {**new, name: after}
    return new


def _filled(node: Node, value: Any) -> Any:
    """The default in the place of a null that is no value here; null where there is none either."""
    if value is not None or node.nullable:
        return value
    return None if node.default is MISSING else deepcopy(cast(Any, node.default))


def _differ(one: object, other: object) -> bool:
    return one is not other
