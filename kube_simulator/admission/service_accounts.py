"""Service accounts of pods (plugin ServiceAccount): a pod runs as one that exists.

Differs from Kubernetes: what the account says of image pull secrets and of its token is not taken over into the pod.
"""

from __future__ import annotations

from kube_simulator.admission.request import AdmissionRequest
from kube_simulator.errors import forbidden
from kube_simulator.store.store import Store


def admit(store: Store, request: AdmissionRequest) -> None:
    """Raises ApiError 403."""
    pod = request.new
    if pod is None or request.operation != "CREATE" or request.resource_name != "pods" or not request.whole:
        return
    namespace, account = request.namespace, pod["spec"].get("serviceAccountName", "default")
    if store.get("serviceaccounts", namespace, account) is None:
        why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise forbidden(request.target.resource, pod["metadata"]["name"], why)
