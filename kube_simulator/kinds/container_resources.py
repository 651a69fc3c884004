"""What a container asks for: amounts as Kubernetes keeps them, and what is wrong with them.

The rules are those of `k8s.io/kubernetes/pkg/apis/core/validation` (validateResourceRequirements).

Differs from Kubernetes: huge pages are not held to the size of a page, and claims are not looked at.
"""

from __future__ import annotations

from kube_simulator.errors import Cause
from kube_simulator.kinds.causes import NOT_NEGATIVE, forbidden, invalid, required, unlike
from kube_simulator.kinds.names import qualified_name
from kube_simulator.kinds.quantities import amount, canonical, in_thousandths
from kube_simulator.kinds.sharing import shared
from kube_simulator.values import Json

_FOR_CONTAINERS = frozenset({"cpu", "memory", "ephemeral-storage"})
# Of quotas and of other kinds: known, and none of a container's.
_COUNTED = (
    *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
)
_STANDARD = frozenset(
    {
        *(*_FOR_CONTAINERS, *_COUNTED, "storage", "requests.storage"),
        *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _FOR_CONTAINERS),
    }
)
_HUGE = "hugepages-"
_NATIVE = "kubernetes.io/"


def defaulted(resources: Json) -> Json:
    """With amounts of whole thousandths, rounded up."""
    new = {
        key: {name: in_thousandths(each) for name, each in value.items()} if key in ("limits", "requests") else value
        for key, value in resources.items()
    }
    return resources if new == resources else shared(new, resources)


def resource_problems(resources: Json, at: str) -> list[Cause]:
    """Of a container's requests and limits."""
    found: list[Cause] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in sorted(amounts.items()):
            found += _name_problems(name, f"{at}.{kind}[{name}]") + _amount_problems(
                name, quantity, f"{at}.{kind}[{name}]"
            )
            if kind == "requests":
                found += _limit_problems(name, quantity, limits, at)
    names = limits.keys() | requests.keys()
    if any(name.startswith(_HUGE) for name in names) and not names & {"cpu", "memory"}:
        found.append(forbidden(at, "HugePages require cpu or memory"))
    return found


def _name_problems(name: str, at: str) -> list[Cause]:
    if "/" in name:
        return unlike(at, name, qualified_name(name))
    if name in _FOR_CONTAINERS or name.startswith(_HUGE):
        return []
    found = unlike(at, name, qualified_name(name))
    if not found and name not in _STANDARD:
        found.append(invalid(at, name, "must be a standard resource type or fully qualified"))
    return [*found, invalid(at, name, "must be a standard resource for containers")]


def _amount_problems(name: str, quantity: object, at: str) -> list[Cause]:
    value = amount(quantity)
    if value is None:
        return []
    found = [invalid(at, canonical(quantity), NOT_NEGATIVE)] if value < 0 else []
    if (name in _COUNTED or _is_extended(name)) and value != value.to_integral_value():
        found.append(invalid(at, canonical(quantity), "must be an integer"))
    return found


def _limit_problems(name: str, quantity: object, limits: Json, at: str) -> list[Cause]:
    """Of a request: it is below its limit and, of what a node cannot promise twice, the limit itself."""
    single = _is_extended(name) or name.startswith(_HUGE)
    if name not in limits:
        return [required(f"{at}.limits", "Limit must be set for non overcommitable resources")] if single else []
    value, limit = amount(quantity), amount(limits[name])
    if value is None or limit is None or value == limit or (value < limit and not single):
        return []
    relation = "equal to" if single else "less than or equal to"
    return [
        invalid(f"{at}.requests", canonical(quantity), f"must be {relation} {name} limit of {canonical(limits[name])}")
    ]


def _is_extended(name: str) -> bool:
    """What a node has beyond Kubernetes' own, such as devices."""
    return "/" in name and _NATIVE not in name
