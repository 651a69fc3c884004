"""Custom resources whose definition is on its way out: they can be read, changed and deleted, and no longer created."""

from __future__ import annotations

from memcached_operator.simulator.admission.request import AdmissionRequest
from memcached_operator.simulator.errors import forbidden
from memcached_operator.simulator.store.store import Store

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
