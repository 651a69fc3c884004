"""Pure: what differs -> the one patch that puts it right, and nothing else.

What is to go is set to null by its name, whichever client wrote it: managedFields, which may be cleared, have no say.
Kubernetes' own kinds take a strategic merge patch, which merges lists by their entries' keys. All others take a JSON
merge patch, in which a list is there as a whole, as it is live but for what differs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from operator_runtime.client.resources import Resource
from operator_runtime.objects.bodies import merge_diff
from operator_runtime.owned.compare import Difference, Entry, Steps, entry_of, is_merged, value_of

# Whose kinds take strategic merge patches. Kinds that are not built in may be of a group that ends in k8s.io, too.
_BUILT_IN: Final = frozenset(
    (
        *("", "admissionregistration.k8s.io", "apps", "autoscaling", "batch", "certificates.k8s.io"),
        *("coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io"),
        *("networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io"),
        *("scheduling.k8s.io", "storage.k8s.io"),
    )
)
# The one dict that a strategic merge patch replaces: a PodDisruptionBudget's.
_REPLACED: Final = ("policy", ("spec", "selector"))

Json = dict[str, Any]


def is_strategic(resource: Resource) -> bool:
    """Whether that kind takes a strategic merge patch; else a JSON merge patch."""
    return resource.group in _BUILT_IN


def needs_live(found: Iterable[Difference], resource: Resource) -> bool:
    """Whether the patch has a list as a whole that others may add to, so that `patch_of` must be given the object."""
    return any(_whole(each.steps, is_strategic(resource)) is not None for each in found)


def patch_of(
    found: Iterable[Difference],
    resource: Resource,
    live: Mapping[str, Any] | None = None,
    wanted: Mapping[str, Any] | None = None,
) -> Json:
    """The patch that puts these differences right.

    Args:
        found: what differs.
        resource: of the object.
        live: the object's body, where `needs_live` says so. The patch is of that version alone then.
        wanted: what is wanted, as a body: an entry that is new to a merged list is to stand where it stands there.
    """
    strategic = is_strategic(resource)
    patch: Json = {}
    new: list[Steps] = []
    lists: dict[Steps, list[Difference]] = {}
    for each in found:
        if (whole := _whole(each.steps, strategic)) is None:
            _put(patch, each.steps, _sent(each, resource))
            new += [each.steps] if each.live is None else []
        else:
            lists.setdefault(whole, []).append(each)
    if strategic and wanted is not None:
        for way in new:
            _order(patch, way, wanted)
    for steps, inside in lists.items():
        body = copy.deepcopy(dict(live or {}))
        for each in inside:
            _change(body, each.steps, msgspec.to_builtins(each.wanted))
        entries = _at(body, steps)
        _put(patch, steps, _replacing(entries) if strategic and is_merged(steps) else entries)
    if lists and live is not None:
        patch.setdefault("metadata", {})["resourceVersion"] = live["metadata"]["resourceVersion"]
    return patch


def _whole(steps: Steps, strategic: bool) -> Steps | None:
    """The way to the first list on a way that the patch must have as a whole; None where it has the entry alone."""
    for at, step in enumerate(steps):
        if isinstance(step, Entry) and not (strategic and is_merged(steps[:at], step.field)):
            return steps[:at]
    return None


def _sent(each: Difference, resource: Resource) -> Any:
    """What stands at the end of the way in a patch."""
    wanted = msgspec.to_builtins(each.wanted)
    match wanted, each.live:
        case dict(), Mapping() if (resource.group, each.steps) != _REPLACED:
            wanted = merge_diff(each.live, wanted)
        case dict(), _:
            return wanted
    return _with_lists(wanted, each.steps) if is_strategic(resource) else wanted


def _with_lists(patch: Any, steps: Steps) -> Any:
    """A strategic merge patch whose lists are there as a whole."""
    if isinstance(patch, dict):
        return {field: _with_lists(value, (*steps, field)) for field, value in patch.items()}
    return _replacing(patch) if isinstance(patch, list | tuple) and is_merged(steps) else patch


def _replacing(entries: Iterable[Any]) -> list[Any]:
    return [{"$patch": "replace"}, *entries]


def _put(patch: Json, steps: Steps, value: Any) -> None:
    """Put a value into a patch that merges the lists on the way."""
    name, rest = str(steps[0]), steps[1:]
    if not rest:
        patch[name] = value
    elif not isinstance(rest[0], Entry):
        _put(patch.setdefault(name, {}), rest, value)
    elif not rest[0].field:
        patch.setdefault(name if value is not None else f"$deleteFromPrimitiveList/{name}", []).append(rest[0].key)
    else:
        (field, key), entries = rest[0], patch.setdefault(name, [])
        entry = next((each for each in entries if each[field] == key), None)
        if entry is None:
            entries.append(entry := {field: key})
        if rest[1:]:
            _put(entry, rest[1:], value)
        else:
            entry.update({"$patch": "delete"} if value is None else value)


def _order(patch: Json, steps: Steps, wanted: Mapping[str, Any]) -> None:
    """Have a new entry of a list stand among ours as it is wanted; a merge would put it before them."""
    entry, at = steps[-1], steps[:-1]
    if not isinstance(entry, Entry) or not entry.field:
        return
    keys = [value_of(each, entry.field) for each in _at(wanted, at)]
    if len(keys) > 1:
        _at(patch, at).sort(key=lambda each: keys.index(each[entry.field]) if each[entry.field] in keys else len(keys))
        _put(patch, (*at[:-1], f"$setElementOrder/{at[-1]}"), [{entry.field: key} for key in keys])


def _change(body: Any, steps: Steps, value: Any) -> None:
    """Change a body in place."""
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if rest:
            if body.get(step) is None:
                body[step] = [] if isinstance(rest[0], Entry) else {}
            _change(body[step], rest, value)
        elif value is None:
            body.pop(step, None)
        else:
            body[step] = value
        return
    at = next((at for at, each in enumerate(body) if value_of(each, step.field) == step.key), len(body))
    if rest:
        if at == len(body):
            body.append({step.field: step.key})
        _change(body[at], rest, value)
    else:
        body[at : at + 1] = [] if value is None else [value]


def _at(body: Any, steps: Steps) -> Any:
    for step in steps:
        if isinstance(step, Entry):
            body = entry_of(body, step)
        else:
            body = body[step]
    return body
