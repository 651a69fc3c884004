"""NetworkPolicies: defaults.

Differs from Kubernetes: nothing is enforced (as on a cluster whose network plugin does not know them), and of what is
written the shape alone is checked.
"""

from __future__ import annotations

from typing import Final

from kube_simulator.kinds.compaction import NETWORKING_V1, compact
from kube_simulator.kinds.kind_strategy import Strategy, plain
from kube_simulator.kinds.sharing import completed, mapped, shared
from kube_simulator.values import Json

_DIRECTIONS: Final = ("ingress", "egress")


def _default(new: Json) -> Json:
    spec = compact(new.get("spec") or {}, f"{NETWORKING_V1}NetworkPolicySpec")
    rules = {each: mapped(_rule, spec[each]) for each in _DIRECTIONS if spec.get(each)}
    types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    return {**new, "spec": shared({**spec, **rules, "policyTypes": types}, spec)}


def _rule(rule: Json) -> Json:
    if not rule.get("ports"):
        return rule
    ports = mapped(lambda port: completed(port, {"protocol": "TCP"}), rule["ports"])
    return shared({**rule, "ports": ports}, rule)


STRATEGY: Strategy = plain(_default, generation=True)
