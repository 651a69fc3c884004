"""Pure: conversion of differences to the one patch that repairs them, and nothing else.

What is to go is set to null by its name, whichever client wrote it: managedFields, which may be cleared, do not count.
Kubernetes' own kinds take a strategic merge patch, which merges lists by their entries' keys. All others take a JSON
merge patch, in which a list is there as a whole, as it is live but for what differs.

What may not stay next to a field that is written goes with the same patch. Of some fields one alone may be there, such
as the handlers of a probe: the API server refuses a second one. Others the API server fills in by the value of a field,
and keeps when that changes: what is there would depend on what was there before, and not on what is desired.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from operator_runtime.client.resources import Resource
from operator_runtime.objects.bodies import merge_diff
from operator_runtime.owned.compare import (
    REPLACED,
    Difference,
    Entry,
    Order,
    Steps,
    is_merged,
    last_field,
    outermost,
    value_at,
    value_of,
)

# Whose kinds take strategic merge patches. Kinds that are not built in may be of a group that ends in k8s.io, too.
_BUILT_IN: Final = frozenset(
    (
        *("", "admissionregistration.k8s.io", "apps", "autoscaling", "batch", "certificates.k8s.io"),
        *("coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io"),
        *("networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "resource.k8s.io"),
        *("scheduling.k8s.io", "storage.k8s.io"),
    )
)
_HOOKS: Final = ("exec", "httpGet", "sleep", "tcpSocket")
_PROBES: Final = ("exec", "grpc", "httpGet", "tcpSocket")
# Fields of which one alone may be there, by the field that has them; k8s.io/kubernetes/pkg/apis/*/validation.
_ALTERNATIVES: Final = {
    **dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"), _PROBES),
    **dict.fromkeys(("postStart", "preStop"), _HOOKS),
    "env": ("value", "valueFrom"),
    "valueFrom": ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"),
    "clientConfig": ("service", "url"),
    "defaultBackend": ("resource", "service"),
}
_OF_BUDGETS: Final = ("maxUnavailable", "minAvailable")
# Fields that one value of `type` alone allows next to it; of a strategy it is the default.
_OF_A_TYPE: Final = {
    **dict.fromkeys(("strategy", "updateStrategy"), ("RollingUpdate", "rollingUpdate")),
    **dict.fromkeys(("appArmorProfile", "seccompProfile"), ("Localhost", "localhostProfile")),
}
# What the API server fills in by another field; k8s.io/kubernetes/pkg/apis/*/*/defaults.go and conversion.go. An
# account has two names, of which the older one counts where the other is missing.
_FILLED_IN: Final = {
    **{(each, "image"): "imagePullPolicy" for each in ("containers", "initContainers", "ephemeralContainers")},
    ("spec", "egress"): "policyTypes",
    ("spec", "serviceAccountName"): "serviceAccount",
}
_VOLUMES: Final = "volumes"

Json = dict[str, Any]


def is_strategic(resource: Resource) -> bool:
    """Report whether that kind takes a strategic merge patch; else a JSON merge patch."""
    return resource.group in _BUILT_IN


def needs_live(found: Iterable[Difference], resource: Resource) -> bool:
    """Report whether the patch has a whole field that others may add to, so that `patch_of` needs the live object."""
    return any(_whole(each.steps, resource) is not None for each in found)


def patch_of(
    found: Iterable[Difference],
    resource: Resource,
    live: Mapping[str, Any] | None = None,
    desired: Mapping[str, Any] | None = None,
) -> Json:
    """The patch that puts these differences right.

    Args:
        live: the object's body, where `needs_live` is True. The patch is of that version alone then.
        desired: the desired body. An entry that is new to a merged list goes where it stands there, and what depends on
            a field is left as it is where it is desired, too.
    """
    strategic = is_strategic(resource)
    patch: Json = {}
    sent: list[Difference] = []
    wholes: dict[Steps, list[Difference]] = {}
    for each in _by_entries(outermost(found)) if strategic else outermost(found):
        if (whole := _whole(each.steps, resource)) is None:
            _put(patch, each.steps, _sent(each, resource))
            sent.append(each)
        else:
            wholes.setdefault(whole, []).append(each)
    if strategic:
        for each in sent:
            _put_companions(patch, each, desired or {})
        for each in sent:
            _order(patch, each, desired or {})
    for steps, inside in wholes.items():
        body = copy.deepcopy(dict(live or {}))
        for each in inside:
            _change(body, each.steps, msgspec.to_builtins(each.desired))
        entries = value_at(body, steps)
        _put(patch, steps, _replacing(entries) if strategic and is_merged(steps) else entries)
    if wholes and live is not None:
        patch.setdefault("metadata", {})["resourceVersion"] = live["metadata"]["resourceVersion"]
    return patch


def _by_entries(found: Iterable[Difference]) -> Iterator[Difference]:
    """The same, with lists of texts that Kubernetes merges text by text: no directive replaces such a list."""
    for each in found:
        if each.desired is None or not is_merged(each.steps, ""):
            yield each
            continue
        desired, there = (list(texts) if isinstance(texts, list | tuple) else [] for texts in each[1:])
        yield from (Difference((*each.steps, Entry("", text)), None, text) for text in there if text not in desired)
        yield from (Difference((*each.steps, Entry("", text)), text, None) for text in desired if text not in there)


def _whole(steps: Steps, resource: Resource) -> Steps | None:
    """The path to the first thing on a path that the patch must have as a whole; None where it has the field alone."""
    strategic = is_strategic(resource)
    if (resource.group, steps[:-1][: len(REPLACED[1])]) == REPLACED:
        return REPLACED[1]
    for at, step in enumerate(steps):
        if isinstance(step, Entry | Order) and not (strategic and is_merged(steps[:at], step.field)):
            return steps[:at]
    return None


def _put_companions(patch: Json, each: Difference, desired: Mapping[str, Any]) -> None:
    """Have the patch remove what cannot stay next to what it writes, and what the API server is to fill in anew."""
    new = each.live is None and isinstance(each.steps[-1], Entry)
    for path in companions(each.steps, msgspec.to_builtins(each.desired), new=new):
        if value_at(desired, path) is None and value_at(patch, path) is None:
            _put(patch, path, None)
    if each.desired is not None and (volume := retained(each.steps, new=new)) is not None:
        entry = value_at(patch, volume)
        set_here = sorted(field for field, value in entry.items() if value is not None and not field.startswith("$"))
        if "$patch" not in entry and len(set_here) > 1:
            entry["$retainKeys"] = set_here


def _sent(each: Difference, resource: Resource) -> Any:
    desired = msgspec.to_builtins(each.desired)
    match desired, each.live:
        case dict(), Mapping() if (resource.group, each.steps) != REPLACED:
            desired = merge_diff(each.live, desired)
        case dict(), _:
            return desired
    return _with_lists(desired, each.steps) if is_strategic(resource) else desired


def _with_lists(patch: Any, steps: Steps) -> Any:
    """A strategic merge patch whose lists are there as a whole."""
    if isinstance(patch, dict):
        return {field: _with_lists(value, (*steps, field)) for field, value in patch.items()}
    merged = isinstance(patch, list | tuple) and is_merged(steps) and not is_merged(steps, "")
    return _replacing(patch) if merged else patch


def _replacing(entries: Iterable[Any]) -> list[Any]:
    return [{"$patch": "replace"}, *entries]


def _put(patch: Json, steps: Steps, value: Any) -> None:
    """Put a value into a patch that merges the lists on its path."""
    name, rest = str(steps[0]), steps[1:]
    if not rest:
        patch[name] = value
    elif isinstance(rest[0], str):
        _put(patch.setdefault(name, {}), rest, value)
    elif isinstance(rest[0], Order):
        patch[f"$setElementOrder/{name}"] = [{rest[0].field: key} for key in value]
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


def _order(patch: Json, new: Difference, desired: Mapping[str, Any]) -> None:
    """Have a new entry of a list stand among the owned ones as desired; a merge would put it before them."""
    entry, at = new.steps[-1], new.steps[:-1]
    if new.live is not None or not isinstance(entry, Entry) or not entry.field:
        return
    keys = [value_of(each, entry.field) for each in value_at(desired, at) or ()]
    if len(keys) > 1:
        _sort(value_at(patch, at), entry.field, keys)
        _put(patch, (*at, Order(entry.field)), keys)


def _change(body: Any, steps: Steps, value: Any) -> None:
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
    if isinstance(step, Order):
        _sort(body, step.field, value)
        return
    at = next((at for at, each in enumerate(body) if value_of(each, step.field) == step.key), len(body))
    if rest:
        if at == len(body):
            body.append({step.field: step.key})
        _change(body[at], rest, value)
    else:
        body[at : at + 1] = [] if value is None else [value]


def _sort(entries: list[Any], field: str, keys: Sequence[object]) -> None:
    """Sort in place; entries without one of these keys come last."""
    entries.sort(key=lambda each: keys.index(key) if (key := value_of(each, field)) in keys else len(keys))


def companions(steps: Steps, value: object, *, new: bool) -> Iterator[Steps]:
    """The paths to what must go, or be filled in anew, where a value is written (None: it goes), unless desired as
    well.

    The sources of volumes, of which there are some thirty, are left to `retained`. `new`: an entry that is not there
    yet.
    """
    for at, step in enumerate(steps):
        if isinstance(step, str):
            yield from _of_field(steps[:at], step, value if value is None or at == len(steps) - 1 else ...)
    yield from _within(steps, value, new=new)


def retained(steps: Steps, *, new: bool) -> Steps | None:
    """The path to the volume that is to have no source but the one which is written on that path; None without one."""
    for at, step in enumerate(steps[:-1] if new else steps):
        if isinstance(step, Entry) and last_field(steps[:at]) == _VOLUMES:
            return steps[: at + 1]
    return None


def _within(steps: Steps, value: object, *, new: bool) -> Iterator[Steps]:
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        if not new or last_field(steps) in _ALTERNATIVES:
            yield from _of_field(steps, name, inner)
        if not new:
            yield from _within((*steps, name), inner, new=False)


def _of_field(above: Steps, field: str, value: object) -> Iterator[Steps]:
    part = last_field(above)
    if value is not None:
        alternatives = _OF_BUDGETS if above == ("spec",) else _ALTERNATIVES.get(part, ())
        if field in alternatives:
            yield from ((*above, each) for each in alternatives if each != field)
        type_, of_that = _OF_A_TYPE.get(part, ("", ""))
        if field == of_that:
            yield (*above, "type")
        elif field == "type" and of_that and value != type_:
            yield (*above, of_that)
    if (filled_in := _FILLED_IN.get((part, field))) is not None:
        yield (*above, filled_in)
