"""Roles and bindings: defaults and rules. What they allow is decided elsewhere.

Differs from Kubernetes: ClusterRoles with an aggregationRule are refused with 501; rules for paths are not told from
others, and subjects are not looked at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.kinds.compaction import RBAC_V1, compact_object
from kube_simulator.kinds.kind_strategy import Strategy, plain
from kube_simulator.schema.causes import invalid, required
from kube_simulator.values import Json

GROUP: Final = "rbac.authorization.k8s.io"
_PEOPLE: Final = ("User", "Group")


def _default_role(new: Json) -> Json:
    # A rule without verbs shows that it has none; so does, in the end, a role without rules.
    compacted = compact_object(new, f"{RBAC_V1}{new['kind']}")
    if "rules" in compacted:
        compacted["rules"] = [{"verbs": [], **each} for each in compacted["rules"]]
    return compacted


def _complete_role(new: Json, _old: Json | None) -> Json:
    return {**new, "rules": new.get("rules") or None}


def _default_binding(new: Json) -> Json:
    compacted = compact_object(new, f"{RBAC_V1}{new['kind']}")
    if "subjects" in compacted:
        compacted["subjects"] = [
            {**({"apiGroup": GROUP} if each["kind"] in _PEOPLE else {}), **each} for each in compacted["subjects"]
        ]
    role = compacted["roleRef"]
    return {**compacted, "roleRef": {**role, "apiGroup": role["apiGroup"] or GROUP}}


def _role_problems(new: Json, _old: Json | None) -> list[Cause]:
    if new.get("aggregationRule") is not None:
        raise not_implemented("a ClusterRole that is put together from others (aggregationRule)")
    return [
        required(f"rules[{index}].{key}")
        for index, rule in enumerate(new["rules"] or [])
        for key in ("verbs", *(() if rule.get("nonResourceURLs") else ("apiGroups", "resources")))
        if not rule.get(key)
    ]


def _binding_problems(new: Json, old: Json | None) -> list[Cause]:
    found = [] if new["roleRef"]["name"] else [required("roleRef.name")]
    if old is not None and new["roleRef"] != old["roleRef"]:
        found.append(invalid("roleRef", new["roleRef"], "cannot change roleRef"))
    return found


ROLE: Final[Strategy] = replace(plain(_default_role, _role_problems), complete=_complete_role)
"""Of Roles and of ClusterRoles."""
BINDING: Final[Strategy] = plain(_default_binding, _binding_problems)
"""Of RoleBindings and of ClusterRoleBindings."""
