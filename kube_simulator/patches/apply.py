"""Server-side apply: the applied object becomes part of the live one, and its fields its applier's.

A field that another manager owns and that would get another value is a conflict, unless the applier forces it. What
the applier applied before and leaves out now goes, unless somebody else owns it too. Nothing is changed in place: what
both have in common, the result shares with the live object.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import is_
from typing import Any, Final

from kube_simulator.errors import ApiError, Cause, bad_request, internal
from kube_simulator.patches.fields import Fields, Path, compare, owned, parts, read, step, text
from kube_simulator.patches.managed import (
    Entry,
    entries_of,
    entry_without,
    identity,
    new_entry,
    ordered,
    ownable,
    unless_only_times,
    with_entries,
)
from kube_simulator.resources import Resource
from kube_simulator.schema.node import ANYTHING, Node
from kube_simulator.schema.structural import decode_problems, prune, type_problem
from kube_simulator.values import Json, same

_SERVERS_OWN: Final = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("managedFields", "selfLink"),
)
"""Fields of metadata that stay as they are, whatever is applied."""


def server_side_apply(
    live: Json | None,
    applied: Json,
    *,
    resource: Resource,
    manager: str,
    force: bool,
    subresource: str = "",
    now: str,
) -> Json:
    """The live object with the applied one in it, and with its managedFields as they are then.

    The body's uid and resourceVersion are not looked at: preconditions are the caller's matter.

    Args:
        live: None if the object is made by this.
        subresource: to whose endpoint the object was sent, such as `status`.
        now: the time as objects have it.

    Returns:
        `live` itself if nothing changes.

    Raises:
        ApiError: 409 with a cause for each field in conflict; 500, as Kubernetes answers, if a field is unknown or has
            a value of another type; 400 for managedFields in the body.
    """
    node, mine = resource.schema, Entry(manager, "Apply", "", subresource)
    _check(applied, node)
    has = owned(applied, node)
    desired, fields = applied, ownable(has)
    for path in _untouched(resource, subresource):
        desired, fields = _without(desired, path), _fields_without(fields, path)
    for name in _SERVERS_OWN:
        desired = _without(desired, ("metadata", name))
    before = live if live is not None else {key: applied[key] for key in ("apiVersion", "kind")} | {"metadata": {}}
    base = with_entries(before, [])
    laid = _merged(base, desired, node)
    entries = entries_of(live)
    own = next((entry for entry in entries if identity(entry) == mine), None)
    others = [entry for entry in entries if entry is not own]
    if own is not None:
        last, everybody = read(own["fieldsV1"]), has.union(*(read(entry["fieldsV1"]) for entry in others))
        if last - everybody:
            laid = _pruned(laid, node, (), (last, _prefixes(last)), (everybody, _prefixes(everybody)))
    changes, unchanged = compare(base, laid, node), same(laid, base)
    if not force and live is not None:
        _check_conflicts(others, changes.changed)
    if wrong := decode_problems(node, laid):
        raise internal(f"failed to convert new object to proper version: {wrong}")
    left = [kept for entry in others if (kept := entry_without(entry, changes)) is not None]
    if fields:
        left.append(new_entry(mine, resource.api_version, fields, (own or {}).get("time") if unchanged else now))
    result = with_entries(laid, ordered(left))
    return result if live is None else unless_only_times(live, result)


def _check(applied: Json, node: Node) -> None:
    metadata = applied.get("metadata") or {}
    if metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    wrong = type_problem(node, applied)
    if wrong is None and (unknown := prune(node, applied)[1]):
        wrong = f".{unknown[0]}: field not declared in schema"
    if wrong is not None:
        raise internal(f"failed to create typed patch object ({metadata.get('name', '')}): {wrong}")


def _check_conflicts(others: Sequence[Json], changed: Fields) -> None:
    """
    Raises:
        ApiError: 409 if somebody else owns what is changed.
    """
    causes = []
    for entry in sorted(others, key=identity):
        who = json.dumps(entry.get("manager", ""), ensure_ascii=False)
        who += f' with subresource "{entry["subresource"]}"' if entry.get("subresource") else ""
        who += f" using {entry['apiVersion']}" if entry["operation"] == "Update" else ""
        shared = sorted(read(entry["fieldsV1"]) & changed)
        causes += [Cause("FieldManagerConflict", f"conflict with {who}", text(path)) for path in shared]
    if causes:
        listed = "; ".join(f"{each.message}: {each.field}" for each in causes)
        message = f"Apply failed with {len(causes)} conflict{'s' if len(causes) > 1 else ''}: {listed}"
        raise ApiError(409, "Conflict", message, {"causes": [each.json() for each in causes]})


def _untouched(resource: Resource, subresource: str) -> tuple[Path, ...]:
    """Return the fields that an endpoint leaves alone, and that nobody comes to own by it."""
    if subresource == "status":
        return (("metadata",) if resource.custom else ("metadata", "labels")), ("spec",)
    return (("status",),) if "status" in resource.subresources else ()


def _without(found: Json, path: Path) -> Json:
    """The object without a field."""
    name, *below = path
    if below and isinstance(found.get(name), dict):
        return {**found, name: _without(found[name], tuple(below))}
    return found if below else {key: value for key, value in found.items() if key != name}


def _fields_without(fields: Fields, path: Path) -> Fields:
    steps = tuple(f"f:{name}" for name in path)
    return frozenset(each for each in fields if each[: len(steps)] != steps)


def _merged(live: Any, applied: Any, node: Node) -> Any:
    """The live value with the applied one laid over it, which fits the schema."""
    if applied is None and parts(live, node):
        return live  # null takes nothing away from what is made of parts
    if isinstance(applied, dict) and isinstance(live, dict) and node.splits_objects:
        new = {
            name: _merged(live[name], value, node.field(name) or ANYTHING) if name in live else value
            for name, value in applied.items()
        }
        return live if all(name in live and new[name] is live[name] for name in new) else {**live, **new}
    if isinstance(applied, list) and isinstance(live, list) and node.splits_lists:
        return _merged_lists(live, applied, node) if applied else live
    return live if same(live, applied) else applied


def _merged_lists(live: list[Any], applied: list[Any], node: Node) -> list[Any]:
    """The live elements in their places, with the applied ones laid over theirs, and the new ones behind them."""
    desired = {step(element, node): element for element in applied}
    names = [step(element, node) for element in live]
    below = node.items() or ANYTHING
    result = [
        _merged(each, desired.pop(name), below) if name in desired else each
        for name, each in zip(names, live, strict=True)
    ]
    result += desired.values()
    return live if len(result) == len(live) and all(map(is_, result, live)) else result


_Owned = tuple[Fields, Fields]
"""A set of fields, and all paths that lead to one of them."""


def _prefixes(fields: Fields) -> Fields:
    return frozenset(path[:length] for path in fields for length in range(1, len(path) + 1))


def _pruned(value: Any, node: Node, at: Path, last: _Owned, present: _Owned) -> Any:
    """The value without what its applier owned and nobody owns now; None where no part is left.

    Args:
        last: what the applier owned before.
        present: what anybody owns now, the applier included.
    """
    kept: dict[str, Any] = {}
    found = parts(value, node)
    for name, (each, below) in found.items():
        path = (*at, name)
        # One that the schema declares is there with its parts.
        which = 1 if name.startswith("f:") and name[2:] in node.properties else 0
        if path in last[which] and path not in present[which]:
            continue
        left = _pruned(each, below, path, last, present) if path in last[1] else each
        if left is not each and left is not None and path in last[which] and not owned(left, below):
            continue  # nothing but empty lists is left, which do not count as fields
        if left is not None or isinstance(value, dict):  # a field whose parts are all gone is null
            kept[name] = left
    if len(kept) == len(found) and all(kept[name] is each for name, (each, _) in found.items()):
        return value
    if isinstance(value, list):
        return list(kept.values()) or None
    return {name[2:]: each for name, each in kept.items()} or None
