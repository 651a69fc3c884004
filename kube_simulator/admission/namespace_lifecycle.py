"""Namespaces as admission sees them (plugin NamespaceLifecycle): no creation in one that is missing or on its way out,
and no deletion of those that a cluster cannot do without.

Differs from Kubernetes: a namespace that was created a moment ago is known at once.
"""

from __future__ import annotations

from kube_simulator.admission.request import AdmissionRequest
from kube_simulator.errors import ApiError, forbidden
from kube_simulator.requests.types import Target
from kube_simulator.store.store import Store
from kube_simulator.values import Json

COLLECTION = "namespaces"
_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


def admit(store: Store, request: AdmissionRequest) -> None:
    """Raises ApiError 403 or 404."""
    if request.resource_name == COLLECTION:
        if request.operation == "DELETE" and request.name in _IMMORTAL:
            raise forbidden(request.target.resource, request.name, "this namespace may not be deleted")
    elif request.operation == "CREATE":
        check_open(store, request.target)


def check_open(store: Store, target: Target) -> None:
    """Raises ApiError unless something may be created where the target is: 404 or, while it is terminating, 403."""
    if not target.namespace:
        return
    found = store.get(COLLECTION, "", target.namespace)
    if found is None:
        details = {"name": target.namespace, "kind": COLLECTION}
        raise ApiError(404, "NotFound", f'namespaces "{target.namespace}" not found', details)
    if is_terminating(found):
        name = target.namespace
        why = f"unable to create new content in namespace {name} because it is being terminated"
        refused = forbidden(target.resource, target.name, why)
        message = f"namespace {name} is being terminated"
        cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
        refused.details["causes"] = [cause]
        raise refused


def is_terminating(namespace: Json) -> bool:
    """Report whether the deletion was requested."""
    return "deletionTimestamp" in namespace["metadata"]
