"""Resources of a container: amounts as Kubernetes keeps them, and what is wrong with them.

The rules are those of `k8s.io/kubernetes/pkg/apis/core/validation` (validateResourceRequirements).

Differs from Kubernetes: any name will do, and what a node cannot promise twice needs no limit.
"""

from __future__ import annotations

from kube_simulator.errors import Cause
from kube_simulator.kinds.field_causes import NOT_NEGATIVE, invalid
from kube_simulator.kinds.quantities import amount, canonical, in_thousandths
from kube_simulator.kinds.sharing import shared
from kube_simulator.values import Json


def defaulted(resources: Json) -> Json:
    """Round amounts up to whole thousandths."""
    new = {
        key: {name: in_thousandths(each) for name, each in value.items()} if key in ("limits", "requests") else value
        for key, value in resources.items()
    }
    return resources if new == resources else shared(new, resources)


def resource_problems(resources: Json, at: str) -> list[Cause]:
    """List what is wrong with a container's requests, which are below its limits."""
    found: list[Cause] = []
    limits = resources.get("limits") or {}
    for kind in ("limits", "requests"):
        for name, quantity in sorted((resources.get(kind) or {}).items()):
            value, limit = amount(quantity), amount(limits.get(name))
            if value is not None and value < 0:
                found.append(invalid(f"{at}.{kind}[{name}]", canonical(quantity), NOT_NEGATIVE))
            if kind == "requests" and value is not None and limit is not None and value > limit:
                why = f"must be less than or equal to {name} limit of {canonical(limits[name])}"
                found.append(invalid(f"{at}.requests", canonical(quantity), why))
    return found
