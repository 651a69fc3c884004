"""Admission: everything that may turn down a write once it is authorised, well-formed and valid.

Nothing here leaves a trace, so that a dry run is the same as any other. What the built-in plugins fill in is a matter
of the kinds.
"""

from __future__ import annotations

from kube_simulator.errors import ApiError, forbidden
from kube_simulator.requests.types import Target
from kube_simulator.store.store import Store
from kube_simulator.values import Json

_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


def admit_deletion(target: Target) -> None:
    """Raises ApiError 403 for a namespace that a cluster cannot do without."""
    if target.resource.full_name == "namespaces" and target.name in _IMMORTAL:
        raise forbidden(target.resource, target.name, "this namespace may not be deleted")


def admit_creation(store: Store, target: Target, new: Json) -> None:
    """Raises ApiError 403 or 404: in a namespace that is missing or on its way out, and of a pod as a service account
    that there is not."""
    resource = target.resource
    check_open(store, target)
    if resource.full_name == "pods":
        account = new["spec"].get("serviceAccountName", "default")
        if store.get("serviceaccounts", target.namespace, account) is None:
            at = f'{target.namespace}/{account}: serviceaccount "{account}" not found'
            raise forbidden(resource, target.name, f"error looking up service account {at}")


def check_open(store: Store, target: Target) -> None:
    """Raises ApiError unless something may be created where the target is: 404 or, while it is terminating, 403."""
    if not target.namespace:
        return
    found, name = store.get("namespaces", "", target.namespace), target.namespace
    if found is None:
        raise ApiError(404, "NotFound", f'namespaces "{name}" not found', {"name": name, "kind": "namespaces"})
    if "deletionTimestamp" in found["metadata"]:
        why = f"unable to create new content in namespace {name} because it is being terminated"
        refused = forbidden(target.resource, target.name, why)
        message = f"namespace {name} is being terminated"
        cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
        refused.details["causes"] = [cause]
        raise refused
