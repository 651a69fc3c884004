"""Admission: everything that may turn down a write once it is authorised, well-formed and valid, in Kubernetes' order.

Nothing here waits, so that nobody comes between the decision and the write. Nothing here leaves a trace either, so that
a dry run is the same as any other.

Differs from Kubernetes: there are no webhooks, no policies and no quotas; what the labels of pod security say of a
namespace is not enforced; whoever may write a role or a binding may give away more than they have. What the built-in
plugins fill in is a matter of the kinds.
"""

from __future__ import annotations

from kube_simulator.admission import namespace_lifecycle, service_accounts, terminating_definitions
from kube_simulator.admission.request import AdmissionRequest, Operation
from kube_simulator.requests.types import Target
from kube_simulator.store.store import Store
from kube_simulator.values import Json


class Admission:
    """The gate before the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, operation: Operation, target: Target, new: Json | None, old: Json | None) -> None:
        """Let a write in, or refuse it.

        Args:
            target: with the name of the object, also of one that is created.
            new: as the object would be, whole also if a subresource is written; None in a deletion.
            old: as it is; None in a creation.

        Raises:
            ApiError: the first refusal.
        """
        request = AdmissionRequest(operation, target, new, old)
        namespace_lifecycle.admit(self._store, request)
        service_accounts.admit(self._store, request)
        terminating_definitions.admit(self._store, request)
