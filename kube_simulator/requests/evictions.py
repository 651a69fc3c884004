"""Evictions: deletions of pods that are asked for by `policy/v1` Eviction, posted to `pods/eviction`.

Differs from Kubernetes: no disruption budget is asked, a pod's status does not say why it goes (DisruptionTarget), and
a precondition that does not hold is refused at once.
"""

from __future__ import annotations

from dataclasses import replace

from kube_simulator.errors import ApiError, not_found
from kube_simulator.requests.api import Api
from kube_simulator.requests.types import DeleteOptions, Target
from kube_simulator.values import Json


async def evict(api: Api, target: Target, options: DeleteOptions) -> None:
    """Delete a pod.

    Args:
        target: the pod, by its subresource.

    Raises:
        ApiError: 404; 409, a precondition does not hold.
    """
    pod = api.store.get("pods", target.namespace, target.name)
    if pod is None:
        raise not_found(target.resource, target.name)
    _check(pod, options)
    await api.delete(replace(target, subresource=""), replace(options, uid="", resource_version=""))


def _check(pod: Json, options: DeleteOptions) -> None:
    """Raises the 409 of a precondition that does not hold."""
    meta = pod["metadata"]
    for what, desired, found, done in (
        ("UID", options.uid, meta["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, meta["resourceVersion"], "modified"),
    ):
        if desired and desired != found:
            why = (
                f"the {what} in the precondition ({desired}) does not match the {what} in record ({found}). "
                f"The object might have been {done}"
            )
            message = f'Operation cannot be fulfilled on Pod "{meta["name"]}": {why}'
            raise ApiError(409, "Conflict", message, {"name": meta["name"], "kind": "Pod"})
