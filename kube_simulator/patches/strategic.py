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

from kube_simulator.errors import ApiError, bad_request, internal
from kube_simulator.patches.json_values import printed, same
from kube_simulator.schema.node import Node
from kube_simulator.values import Json

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder"
_DELETE: Final = "$deleteFromPrimitiveList"


def strategic_merge(target: Json, patch: Json, node: Node) -> Json:
    """The target with the patch merged into it, by the schema; the target itself if that changes nothing.

    Raises:
        ApiError: 400 for a wrong `$retainKeys`; 500, as Kubernetes answers, for other directives that cannot be
            followed and for elements without the merge key.
    """
    if _DIRECTIVE in patch:
        return _directed(patch)
    target = _retained(target, patch)
    merged = dict(target)
    for key, desired in patch.items():
        prefix, _, field = key.partition("/")
        if key == _RETAIN or prefix == _ORDER:
            continue  # done above; with the list, or below
        if prefix == _DELETE:
            if isinstance(desired, list) and isinstance(found := merged.get(field), list):
                merged[field] = [value for value in found if not _contains(desired, value)]
        elif desired is None:
            merged.pop(key, None)
        elif key in merged:
            merged[key] = _merged(merged[key], desired, _order_of(patch, key), node, key)
        else:
            _check_new(desired, _order_of(patch, key), node, key)
            if not _directs(desired):
                merged[key] = _fresh(desired)
    merged = _reordered(merged, patch, node)
    return target if same(merged, target) else merged


def _directed(patch: Json) -> Json:
    """Apply the directive of an object."""
    match patch[_DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        case "delete":
            return {}
    raise _unknown(patch)


def _unknown(found: Json) -> ApiError:
    return internal(f"unknown patch type: {printed(found[_DIRECTIVE])} in map: {printed(found)}")


def _retained(target: Json, patch: Json) -> Json:
    """The target without the fields that the patch does not retain."""
    if _RETAIN not in patch:
        return target
    retained = patch[_RETAIN]
    set_here = {key for key, value in patch.items() if value is not None and not key.startswith("$")}
    if not isinstance(retained, list) or not set_here <= set(map(str, retained)):
        raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in target.items() if key in retained}


def _order_of(patch: Json, key: str) -> list[Any] | None:
    """The order that the patch asks for the elements of a list that it changes; None where it asks for none."""
    order = patch.get(f"{_ORDER}/{key}")
    return None if order is None else _list(order)


def _check_new(desired: Any, order: list[Any] | None, node: Node, key: str) -> None:
    """A list that the target does not have must stand in the order that the patch asks for, as any other."""
    if order is None or not isinstance(desired, list):
        return
    if not desired:
        raise internal("no elements in any of the given slices")
    _check_order(desired, order, _identity(_known(node, key)))


def _reordered(merged: Json, patch: Json, node: Node) -> Json:
    """The object with those lists ordered of which the patch asks for an order alone."""
    result = dict(merged)
    for key, desired in patch.items():
        prefix, _, field = key.partition("/")
        if prefix == _ORDER and field not in patch:
            order, found = _list(desired), result.get(field)
            if isinstance(found, list) or not field:
                result[field] = _merged_lists(found or [], [], order, _known(node, field))
    return result


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
    if len({isinstance(each, dict) for each in (*found, *desired)}) > 1:
        raise internal(f"list element types are not identical: {printed([found, desired])}")
    elements, identity = node.items(), _identity(node)
    if elements is None or not node.patch_merge_key or not all(isinstance(each, dict) for each in (*found, *desired)):
        return _ordered(_distinct([*found, *desired]), found, desired, order, identity)
    if any(each.get(_DIRECTIVE) == "replace" for each in desired):
        return [each for each in desired if _DIRECTIVE not in each]
    gone = [identity(each) for each in desired if each.get(_DIRECTIVE) == "delete"]
    kept = [each for each in found if not _contains(gone, identity(each))]
    changes = [each for each in desired if each.get(_DIRECTIVE) != "delete"]
    return _ordered(_changed(kept, changes, elements, identity), found, changes, order, identity)


def _distinct(values: list[Any]) -> list[Any]:
    distinct: list[Any] = []
    for value in values:
        if not _contains(distinct, value):
            distinct.append(value)
    return distinct


def _changed(kept: list[Json], changes: list[Json], node: Node, identity: Callable[[Any], Any]) -> list[Json]:
    """The elements with the changes merged into those of the same identity; the other changes are new elements."""
    changed = list(kept)
    for each in changes:
        _check_directive(each)
        places = [at for at, mine in enumerate(changed) if same(identity(mine), identity(each))]
        if places:
            changed[places[0]] = strategic_merge(changed[places[0]], each, node)
        else:
            changed.append(each)
    return changed


def _check_directive(element: Json) -> None:
    match element.get(_DIRECTIVE):
        case None:
            return
        case "merge":
            raise internal("merging lists cannot yet be specified in the patch")
    raise _unknown(element)


def _check_order(changes: list[Any], order: list[Any], identity: Callable[[Any], Any]) -> None:
    """The elements of the patch must stand in the order that it asks for, but for those that it deletes."""
    if not order:
        return
    remaining = iter([identity(each) for each in order])
    for each in changes:
        deleted = isinstance(each, dict) and each.get(_DIRECTIVE) == "delete"
        if not deleted and not any(same(identity(each), candidate) for candidate in remaining):
            raise internal(
                f"The order in patch list:\n{printed(changes)}\n doesn't match {_ORDER} list:\n{printed(order)}\n"
            )


def _ordered(
    merged: list[Any], found: list[Any], changes: list[Any], order: list[Any] | None, identity: Callable[[Any], Any]
) -> list[Any]:
    """The merged elements: those that the patch orders in its order, the others where they stood before.

    An element that the patch does not name comes as soon as the next one that it names stood behind it.

    Args:
        order: that the patch asks for; None for that of its changes.
    """
    if order is not None:
        _check_order(changes, order, identity)
    named = [identity(each) for each in (changes if order is None else order)]
    before = [identity(each) for each in found]
    kept = [each for each in merged if not _contains(named, identity(each))]
    ordered = sorted(
        (each for each in merged if _contains(named, identity(each))),
        key=lambda each: _place(named, identity(each)),
    )
    result: list[Any] = []
    for each in ordered:
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
            raise internal(f"map: {printed(element)} does not contain declared merge key: {node.patch_merge_key}")
        return element[node.patch_merge_key]

    return identity


def _known(node: Node, key: str) -> Node:
    """The node of a field that is merged; without one there is no telling how."""
    below = node.field(key)
    if below is None:
        kind = node.ref.rpartition(".")[2] or "object"
        raise internal(f'unable to find api field in struct {kind} for the json field "{key}"')
    return below


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise internal(f"expected a list, but received {printed(value)}")
    return value
