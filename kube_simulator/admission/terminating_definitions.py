"""Custom resources whose definition is on its way out: they can be read, changed and deleted, and no longer created."""

from __future__ import annotations

from kube_simulator.admission.request import AdmissionRequest
from kube_simulator.errors import forbidden
from kube_simulator.store.store import Store

COLLECTION = "customresourcedefinitions.apiextensions.k8s.io"


def admit(store: Store, request: AdmissionRequest) -> None:
    """Raises ApiError 403."""
    resource = request.target.resource
    if request.operation != "CREATE" or not resource.custom:
        return
    # A CRD bears the name under which its objects are stored.
    definition = store.get(COLLECTION, "", resource.full_name)
    if definition is not None and "deletionTimestamp" in definition["metadata"]:
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(resource, request.name, why)
