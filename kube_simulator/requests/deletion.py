"""Outcome of a deletion: at once, after finalizers, or after a pod's grace period."""

from __future__ import annotations

from datetime import datetime, timedelta

from kube_simulator.errors import conflict
from kube_simulator.requests.types import DeleteOptions
from kube_simulator.resources import Resource
from kube_simulator.values import Json

_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_CRD_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
# Kubernetes has code of its own for their deletion, which sets the time and nothing else.
_MARKED_ALONE = frozenset({"customresourcedefinitions.apiextensions.k8s.io", "namespaces"})
# terminationGracePeriodSeconds where the pod does not say.
_GRACE_PERIOD_S = 30


def outcome(resource: Resource, found: Json, options: DeleteOptions, now: datetime) -> Json | None:
    """The object as the deletion leaves it: None for gone, `found` itself for no change.

    Raises:
        ApiError: 409, a precondition does not hold.
    """
    meta = found["metadata"]
    for what, desired, present in (
        ("UID", options.uid, meta["uid"]),
        ("ResourceVersion", options.resource_version, meta["resourceVersion"]),
    ):
        if desired and desired != present:
            why = f"Precondition failed: {what} in precondition: {desired}, {what} in object meta: {present}"
            raise conflict(resource, meta["name"], why)
    finalizers = _finalizers(resource, meta.get("finalizers") or [], options)
    grace_s = _grace_s(resource, found, options)
    if not finalizers and not _holds_itself(resource, found) and grace_s == 0:
        return None
    changed = {key: value for key, value in meta.items() if key != "finalizers"}
    changed |= {"finalizers": finalizers} if finalizers else {}
    first = "deletionTimestamp" not in meta
    if first or grace_s < meta.get("deletionGracePeriodSeconds", 0):
        changed["deletionTimestamp"] = (now + timedelta(seconds=grace_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
        if resource.collection not in _MARKED_ALONE:
            changed["deletionGracePeriodSeconds"] = grace_s
            if first and "generation" in meta:
                changed["generation"] = meta["generation"] + 1
    if changed == meta:
        return found
    left = {**found, "metadata": changed}
    if resource.collection == "namespaces":
        left["status"] = {**found.get("status", {}), "phase": "Terminating"}
    return left


def may_go(resource: Resource, found: Json) -> bool:
    """Report whether nothing holds an object any longer whose deletion was requested before."""
    meta = found["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    return not _holds_itself(resource, found) and meta.get("deletionGracePeriodSeconds", 0) == 0


def _finalizers(resource: Resource, present: list[str], options: DeleteOptions) -> list[str]:
    """Add the finalizers that have the garbage collector do its part, or remove them, by the policy."""
    desired = list(present)
    if options.propagation is not None:
        desired = [each for each in present if each not in (_ORPHAN, _FOREGROUND)]
        desired += {"Orphan": [_ORPHAN], "Foreground": [_FOREGROUND]}.get(options.propagation, [])
    if resource.plural == "customresourcedefinitions" and _CRD_CLEANUP not in desired:
        desired.append(_CRD_CLEANUP)
    return desired


def _holds_itself(resource: Resource, found: Json) -> bool:
    """A namespace has finalizers in its spec, which the namespace controller takes away."""
    return resource.collection == "namespaces" and bool(found.get("spec", {}).get("finalizers"))


def _grace_s(resource: Resource, found: Json, options: DeleteOptions) -> int:
    """A pod that runs on a node is given time to end; its kubelet deletes it again with none."""
    spec, phase = found.get("spec", {}), found.get("status", {}).get("phase")
    if resource.collection != "pods" or not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    if options.grace_period_s is not None:
        return options.grace_period_s
    return int(spec.get("terminationGracePeriodSeconds", _GRACE_PERIOD_S))
