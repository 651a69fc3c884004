"""Strategic merge patch: a merge patch that knows from the schema which lists are merged, and by which key.

What the schema says (`x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`) and the directives of a patch:

- `$patch: delete | replace` in an object, or in an element of a list;
- `$retainKeys`: of an object, only these fields stay;
- `$setElementOrder/FIELD`: the order of the elements of a merged list;
- `$deleteFromPrimitiveList/FIELD`: values that leave a merged list of strings or numbers.

Nothing is changed in place: what the patch does not touch, the result shares with the target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kube_simulator.errors import internal
from kube_simulator.schema.node import Node
from kube_simulator.values import Json, same

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder"
_DELETE: Final = "$deleteFromPrimitiveList"


def strategic_merge(target: Json, patch: Json, node: Node) -> Json:
    """The target with the patch merged into it, by the schema; the target itself if that changes nothing.

    Raises:
        ApiError: 500, as Kubernetes answers, for fields that the schema has not and elements without the merge key.
    """
    if patch.get(_DIRECTIVE) in ("replace", "delete"):
        return {key: value for key, value in patch.items() if key != _DIRECTIVE and patch[_DIRECTIVE] == "replace"}
    retained = patch.get(_RETAIN)
    merged = dict(target) if retained is None else {key: target[key] for key in target if key in retained}
    for key, desired in patch.items():
        prefix, _, field = key.partition("/")
        if key == _RETAIN or prefix == _ORDER:
            continue  # done above; with the list, or below
        if prefix == _DELETE:
            if isinstance(found := merged.get(field), list):
                merged[field] = [value for value in found if not _contains(desired, value)]
        elif desired is None:
            merged.pop(key, None)
        elif key in merged:
            merged[key] = _merged(merged[key], desired, patch.get(f"{_ORDER}/{key}"), node, key)
        elif not _directs(desired):
            merged[key] = _fresh(desired)
    for key, order in patch.items():
        prefix, _, field = key.partition("/")
        if prefix == _ORDER and field not in patch and isinstance(found := merged.get(field), list):
            merged[field] = _merged_lists(found, [], order, _known(node, field))
    return target if same(merged, target) else merged


def _merged(found: Any, desired: Any, order: list[Any] | None, node: Node, key: str) -> Any:
    """A field that both have: objects and lists are merged where the schema says so, anything else is replaced."""
    if isinstance(found, dict) and isinstance(desired, dict):
        below = _known(node, key)
        return desired if "replace" in below.patch_strategy else strategic_merge(found, desired, below)
    if isinstance(found, list) and isinstance(desired, list):
        below = _known(node, key)
        if "merge" in below.patch_strategy:
            return _merged_lists(found, desired, order, below)
    return desired


def _merged_lists(found: list[Any], desired: list[Any], order: list[Any] | None, node: Node) -> list[Any]:
    elements, identity = node.items(), _identity(node)
    if elements is None or not node.patch_merge_key:
        both = [*found, *desired]
        distinct = [value for at, value in enumerate(both) if not _contains(both[:at], value)]
        return _ordered(distinct, found, desired if order is None else order, identity)
    if any(each.get(_DIRECTIVE) == "replace" for each in desired):
        return [each for each in desired if _DIRECTIVE not in each]
    gone = [identity(each) for each in desired if each.get(_DIRECTIVE) == "delete"]
    merged = [each for each in found if not _contains(gone, identity(each))]
    changes = [each for each in desired if each.get(_DIRECTIVE) != "delete"]
    for each in changes:
        at = _place([identity(mine) for mine in merged], identity(each))
        if at >= 0:
            merged[at] = strategic_merge(merged[at], each, elements)
        else:
            merged.append(each)
    return _ordered(merged, found, changes if order is None else order, identity)


def _ordered(merged: list[Any], found: list[Any], order: list[Any], identity: Callable[[Any], Any]) -> list[Any]:
    """The merged elements: those that the patch names in its order, the others where they stood before.

    An element that the patch does not name comes as soon as the next one that it names stood behind it.
    """
    named = [identity(each) for each in order]
    before = [identity(each) for each in found]
    kept = [each for each in merged if not _contains(named, identity(each))]
    ordered = [each for each in merged if _contains(named, identity(each))]
    result: list[Any] = []
    for each in sorted(ordered, key=lambda each: _place(named, identity(each))):
        place = _place(before, identity(each))
        while kept and -1 < _place(before, identity(kept[0])) < place:
            result.append(kept.pop(0))
        result.append(each)
    return result + kept


def _place(values: list[Any], value: Any) -> int:
    """Return the place of the value among the others; -1 where it has none."""
    return next((at for at, each in enumerate(values) if same(each, value)), -1)


def _contains(values: list[Any], value: Any) -> bool:
    return _place(values, value) != -1


def _fresh(value: Any) -> Any:
    """A value of the patch where the target has none: nulls and objects with a directive come to nothing."""
    if isinstance(value, dict):
        return {key: _fresh(each) for key, each in value.items() if each is not None and not _directs(each)}
    if isinstance(value, list):
        return [_fresh(each) for each in value if not _directs(each)]
    return value


def _directs(value: Any) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _identity(node: Node) -> Callable[[Any], Any]:
    """Make the identity of a merged list's elements: their merge key, or, of strings and numbers, the value."""

    def identity(element: Any) -> Any:
        if not isinstance(element, dict) or not node.patch_merge_key:
            return element
        if node.patch_merge_key not in element:
            raise internal(f"an element does not contain the declared merge key: {node.patch_merge_key}")
        return element[node.patch_merge_key]

    return identity


def _known(node: Node, key: str) -> Node:
    """The node of a field that is merged; without one there is no telling how."""
    below = node.field(key)
    if below is None:
        raise internal(f'unable to find api field for the json field "{key}"')
    return below
