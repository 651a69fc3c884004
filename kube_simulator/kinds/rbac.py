"""Roles and bindings: defaults and rules. What they allow is decided elsewhere.

Differs from Kubernetes: ClusterRoles with an aggregationRule are refused with 501.
"""

from __future__ import annotations

from dataclasses import replace

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.kinds.base import Strategy, plain
from kube_simulator.kinds.causes import invalid, not_supported, ordered, required, unlike
from kube_simulator.kinds.compaction import RBAC_V1, compact_object
from kube_simulator.kinds.names import dns_subdomain
from kube_simulator.values import Json

GROUP = "rbac.authorization.k8s.io"
_PEOPLE = ("User", "Group")


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


def _role_problems(new: Json, *, namespaced: bool) -> list[Cause]:
    found: list[Cause] = []
    if new.get("aggregationRule") is not None:
        raise not_implemented("a ClusterRole that is put together from others (aggregationRule)")
    for index, rule in enumerate(new["rules"] or []):
        at = f"rules[{index}]"
        if not rule["verbs"]:
            found.append(required(f"{at}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs") or []
        if not urls:
            for key, what in (("apiGroups", "api group"), ("resources", "resource")):
                if not rule.get(key):
                    found.append(required(f"{at}.{key}", f"resource rules must supply at least one {what}"))
            continue
        if namespaced:
            found.append(invalid(f"{at}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs"))
        if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            found.append(invalid(f"{at}.nonResourceURLs", urls, why))
    return found


def _binding_problems(new: Json, old: Json | None, *, namespaced: bool) -> list[Cause]:
    role, found = new["roleRef"], []
    if role["apiGroup"] != GROUP:
        found.append(not_supported("roleRef.apiGroup", role["apiGroup"], (GROUP,)))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if role["kind"] not in kinds:
        found.append(not_supported("roleRef.kind", role["kind"], kinds))
    if not role["name"]:
        found.append(required("roleRef.name"))
    if old is not None and role != old["roleRef"]:
        shown = {"APIGroup": role["apiGroup"], "Kind": role["kind"], "Name": role["name"]}
        found.append(invalid("roleRef", ordered(shown, ("APIGroup", "Kind", "Name")), "cannot change roleRef"))
    for index, subject in enumerate(new.get("subjects") or []):
        found += _subject_problems(subject, f"subjects[{index}]", namespaced=namespaced)
    return found


def _subject_problems(subject: Json, at: str, *, namespaced: bool) -> list[Cause]:
    kind, name, group = subject["kind"], subject["name"], subject.get("apiGroup") or ""
    found = [] if name else [required(f"{at}.name")]
    if kind == "ServiceAccount":
        found += unlike(f"{at}.name", name, dns_subdomain(name)) if name else []
        found += [not_supported(f"{at}.apiGroup", group, ("",))] if group else []
        found += [] if namespaced or subject.get("namespace") else [required(f"{at}.namespace")]
    elif kind in _PEOPLE:
        found += [] if group == GROUP else [not_supported(f"{at}.apiGroup", group, (GROUP,))]
    else:
        found.append(not_supported(f"{at}.kind", kind, ("ServiceAccount", "User", "Group")))
    return found


def role(*, namespaced: bool) -> Strategy:
    """Of Roles, or of ClusterRoles."""
    strategy = plain(_default_role, lambda new, _old: _role_problems(new, namespaced=namespaced))
    return replace(strategy, complete=_complete_role)


def binding(*, namespaced: bool) -> Strategy:
    """Of RoleBindings, or of ClusterRoleBindings."""
    return plain(_default_binding, lambda new, old: _binding_problems(new, old, namespaced=namespaced))
