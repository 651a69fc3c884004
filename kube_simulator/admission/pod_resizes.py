"""Resizes that the pod's node could never carry out (plugin PodResizeValidator): refused before anybody tries.

Differs from Kubernetes: the one node has room for everything, unless `simulator.resizes.allocatable` says otherwise.
"""

from __future__ import annotations

from decimal import Decimal

from kube_simulator.admission.request import AdmissionRequest
from kube_simulator.errors import forbidden
from kube_simulator.kinds.quantities import amount
from kube_simulator.resizes import NODE, Resizes
from kube_simulator.values import Json

# How Kubernetes counts each: thousandths of a processor, and bytes.
_UNITS = {"cpu": Decimal("0.001"), "memory": Decimal(1)}


def admit(resizes: Resizes, request: AdmissionRequest) -> None:
    """Raises ApiError 403."""
    new, old = request.new, request.old
    if request.resource_name != "pods" or request.target.subresource != "resize" or new is None or old is None:
        return
    node = new["spec"].get("nodeName")
    if not node or new["spec"] == old["spec"]:
        return
    resource, name = request.target.resource, request.name
    if node != NODE:
        raise forbidden(resource, name, f'node "{node}" not found')
    if lacking := _lacking(new, resizes):
        why = f"node didn't have enough allocatable resources: {'; '.join(lacking)}"
        refused = forbidden(resource, name, why)
        refused.details["causes"] = [{"reason": "NodeCapacity"}]
        raise refused


def _lacking(pod: Json, resizes: Resizes) -> list[str]:
    found = []
    for name, unit in _UNITS.items():
        allocatable = amount(resizes.allocatable.get(name))
        requested = _requested(pod["spec"], name)
        if allocatable is not None and requested > allocatable:
            found.append(f"{name}, requested: {int(requested / unit)}, allocatable: {int(allocatable / unit)}")
    return found


def _requested(spec: Json, name: str) -> Decimal:
    """What a pod asks for: all its containers together or, if that is more, what it takes to start them in turn.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers.
    """
    running = sum((_amount(each, name) for each in spec["containers"]), Decimal(0))
    sidecars = starting = Decimal(0)
    for each in spec.get("initContainers") or ():
        starting = max(starting, sidecars + _amount(each, name))
        if each.get("restartPolicy") == "Always":
            sidecars += _amount(each, name)
    return max(running + sidecars, starting)


def _amount(container: Json, name: str) -> Decimal:
    return amount((container["resources"].get("requests") or {}).get(name)) or Decimal(0)
