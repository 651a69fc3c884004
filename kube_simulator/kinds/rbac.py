"""Roles and bindings: defaults and rules. What they allow is decided elsewhere.

Differs from Kubernetes: ClusterRoles with an aggregationRule are refused with 501; rules for paths are not told from
others, and names of subjects are not looked at.
"""

from __future__ import annotations

from dataclasses import replace

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.kinds.compaction import RBAC_V1, compact_object
from kube_simulator.kinds.field_causes import invalid, not_supported, required
from kube_simulator.kinds.kind_strategy import Strategy, plain
from kube_simulator.values import Json

GROUP = "rbac.authorization.k8s.io"
_PEOPLE = ("User", "Group")
_SUBJECTS = ("ServiceAccount", *_PEOPLE)


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
        compacted["subjects"] = [_subject(each) for each in compacted["subjects"]]
    role = compacted["roleRef"]
    return {**compacted, "roleRef": {**role, "apiGroup": role["apiGroup"] or GROUP}}


def _subject(subject: Json) -> Json:
    group = {"apiGroup": GROUP} if subject["kind"] in _PEOPLE else {}
    return {**group, **subject}


def _role_problems(new: Json, _old: Json | None) -> list[Cause]:
    found: list[Cause] = []
    if new.get("aggregationRule") is not None:
        raise not_implemented("a ClusterRole that is put together from others (aggregationRule)")
    for index, rule in enumerate(new["rules"] or []):
        at = f"rules[{index}]"
        if not rule["verbs"]:
            found.append(required(f"{at}.verbs", "verbs must contain at least one value"))
        for key, what in (("apiGroups", "api group"), ("resources", "resource")):
            if not rule.get(key) and not rule.get("nonResourceURLs"):
                found.append(required(f"{at}.{key}", f"resource rules must supply at least one {what}"))
    return found


def _binding_problems(new: Json, old: Json | None, *, namespaced: bool) -> list[Cause]:
    role, found = new["roleRef"], []
    if not role["name"]:
        found.append(required("roleRef.name"))
    if old is not None and role != old["roleRef"]:
        shown = {"APIGroup": role["apiGroup"], "Kind": role["kind"], "Name": role["name"]}
        found.append(invalid("roleRef", shown, "cannot change roleRef"))
    for index, subject in enumerate(new.get("subjects") or []):
        at = f"subjects[{index}]"
        if subject["kind"] not in _SUBJECTS:
            found.append(not_supported(f"{at}.kind", subject["kind"], _SUBJECTS))
        elif subject["kind"] == "ServiceAccount" and not (namespaced or subject.get("namespace")):
            found.append(required(f"{at}.namespace"))
    return found


ROLE: Strategy = replace(plain(_default_role, _role_problems), complete=_complete_role)
"""Of Roles and of ClusterRoles."""


def binding(*, namespaced: bool) -> Strategy:
    """Make the strategy of RoleBindings, or of ClusterRoleBindings."""
    return plain(_default_binding, lambda new, old: _binding_problems(new, old, namespaced=namespaced))
