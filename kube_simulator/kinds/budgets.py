"""PodDisruptionBudgets: rules and status. What they allow is counted by a controller, and evictions ask for it.

Differs from Kubernetes: the conditions of a PodDisruptionBudget's status are not judged.
"""

from __future__ import annotations

from kube_simulator.errors import Cause
from kube_simulator.kinds.base import Strategy, with_subresource
from kube_simulator.kinds.causes import at_least_zero, invalid, one_of
from kube_simulator.kinds.compaction import POLICY_V1, compact
from kube_simulator.kinds.selectors import selector_problems, selector_shown, selects
from kube_simulator.kinds.workloads import more_than_all, share_problems
from kube_simulator.values import Json

_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def protects(budget: Json, pod: Json) -> bool:
    """Whether the pod is one of the budget's: no selector selects none, an empty one all."""
    selector = budget["spec"].get("selector")
    return selector is not None and selects(selector, pod["metadata"].get("labels") or {})


def _default(new: Json) -> Json:
    spec = compact(new.get("spec") or {}, f"{POLICY_V1}PodDisruptionBudgetSpec")
    status = compact(new.get("status") or {}, f"{POLICY_V1}PodDisruptionBudgetStatus")
    return {**new, "spec": spec, "status": status}


def _validate(new: Json, _old: Json | None) -> list[Cause]:
    spec, status = new["spec"], new.get("status") or {}
    found: list[Cause] = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        found.append(invalid("spec", _shown(spec), "minAvailable and maxUnavailable cannot be both set"))
    for key in ("minAvailable", "maxUnavailable"):
        if key in spec:
            field = f"spec.{key}"
            found += share_problems(spec[key], field) + more_than_all(spec[key], field)
    policies = ("AlwaysAllow", "IfHealthyBudget")
    found += one_of("spec.unhealthyPodEvictionPolicy", spec.get("unhealthyPodEvictionPolicy"), policies)
    found += selector_problems(spec.get("selector") or {}, "spec.selector")
    for key in _COUNTS:
        found += at_least_zero(f"status.{key}", status.get(key))
    return found


def _shown(spec: Json) -> Json:
    """In the order of Kubernetes' own type, whose names are those of Go."""
    selector = spec.get("selector")
    return {
        "MinAvailable": spec.get("minAvailable"),
        "Selector": None if selector is None else selector_shown(selector),
        "MaxUnavailable": spec.get("maxUnavailable"),
        "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
    }


STRATEGY: Strategy = with_subresource(_default, _validate, first_status={})
