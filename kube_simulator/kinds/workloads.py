"""Deployments and ReplicaSets: defaults and rules.

Differs from Kubernetes: any counts may be written into a status.
"""

from __future__ import annotations

import re
from typing import Final

from kube_simulator.errors import Cause
from kube_simulator.kinds.compaction import APPS_V1, compact
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.kinds.pod_defaults import defaulted_template
from kube_simulator.kinds.pod_specs import template_problems
from kube_simulator.kinds.selectors import selection_problems
from kube_simulator.kinds.sharing import completed, shared
from kube_simulator.schema.causes import IMMUTABLE, at_least_zero, forbidden, invalid, not_supported
from kube_simulator.values import Json

_PERCENT: Final = "[0-9]+%"
_QUARTER: Final = "25%"


def _default_deployment(new: Json) -> Json:
    spec = compact(new.get("spec") or {}, f"{APPS_V1}DeploymentSpec")
    strategy = completed(spec["strategy"], {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        rolling = completed(strategy.get("rollingUpdate", {}), {"maxUnavailable": _QUARTER, "maxSurge": _QUARTER})
        strategy = shared({**strategy, "rollingUpdate": rolling}, strategy)
    defaults = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
    template = defaulted_template(spec["template"])
    spec = shared({**defaults, **spec, "strategy": strategy, "template": template}, spec)
    return {**new, "spec": spec, "status": compact(new.get("status") or {}, f"{APPS_V1}DeploymentStatus")}


def _default_replica_set(new: Json) -> Json:
    spec = completed(compact(new.get("spec") or {}, f"{APPS_V1}ReplicaSetSpec"), {"replicas": 1})
    spec = shared({**spec, "template": defaulted_template(spec["template"])}, spec)
    return {**new, "spec": spec, "status": compact(new.get("status") or {}, f"{APPS_V1}ReplicaSetStatus")}


def _workload_problems(new: Json, old: Json | None) -> list[Cause]:
    """List what is wrong with Deployments and ReplicaSets alike; a spec that has not changed is good."""
    spec = new["spec"]
    if old is not None and spec == old["spec"]:
        return []
    found: list[Cause] = []
    for key in ("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        found += at_least_zero(f"spec.{key}", spec.get(key))
    found += selection_problems(spec, "deployment") + template_problems(spec["template"], "spec.template")
    if old is not None and spec.get("selector") != old["spec"].get("selector"):
        found.append(invalid("spec.selector", spec.get("selector"), IMMUTABLE))
    return found + (_strategy_problems(spec["strategy"]) if "strategy" in spec else [])


def _strategy_problems(strategy: Json) -> list[Cause]:
    rolling: Json | None = strategy.get("rollingUpdate")
    field = "spec.strategy.rollingUpdate"
    if strategy["type"] == "Recreate":
        return [] if rolling is None else [forbidden(field, "may not be specified when strategy `type` is 'Recreate'")]
    if strategy["type"] != "RollingUpdate" or rolling is None:
        return [not_supported("spec.strategy", strategy["type"], ("Recreate", "RollingUpdate"))]
    unavailable = rolling["maxUnavailable"]
    found = [each for key in ("maxUnavailable", "maxSurge") for each in _share_problems(rolling[key], f"{field}.{key}")]
    if unavailable in (0, "0%") and rolling["maxSurge"] in (0, "0%"):
        found.append(invalid(f"{field}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return found


def _share_problems(share: int | str, field: str) -> list[Cause]:
    """List what is wrong with a number of pods, or a percentage."""
    if isinstance(share, int):
        return at_least_zero(field, share)
    return [] if re.fullmatch(_PERCENT, share) else [invalid(field, share, f"must match {_PERCENT}")]


DEPLOYMENT: Final[Strategy] = with_subresource(
    _default_deployment, _workload_problems, first_status={}, kept_on_status=("labels",)
)
REPLICA_SET: Final[Strategy] = with_subresource(_default_replica_set, _workload_problems, first_status={"replicas": 0})
