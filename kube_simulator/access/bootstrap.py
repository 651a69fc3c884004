"""What every cluster has from its beginning: namespaces, its own Service, and the roles and bindings of Kubernetes.

Roles name only what the simulator serves. Rules of v1.36.

Differs from Kubernetes: there are no roles for controllers, nodes and monitoring, as the simulator's controllers do
not ask RBAC; no managedFields on these objects; and what somebody changes or deletes of them stays so.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime

from kube_simulator.access.identities import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from kube_simulator.access.rbac import CLUSTER_BINDINGS, CLUSTER_ROLES
from kube_simulator.access.rules import RBAC_GROUP
from kube_simulator.kinds import services
from kube_simulator.store.label_selectors import from_label_selector
from kube_simulator.store.store import Store
from kube_simulator.values import Json

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""These cannot be deleted for good: Kubernetes makes them again."""

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_HEALTH = ("/healthz", "/livez", "/readyz")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz")
_VERSION = ("/version", "/version/")
_EVENT_GROUPS = ("", "events.k8s.io")
_WORKLOADS = (
    *("deployments", "deployments/scale", "replicasets", "replicasets/scale"),
    *("statefulsets", "statefulsets/scale"),
)


def objects(now: datetime, port: int, new_uid: Callable[[], str] = lambda: str(uuid.uuid4())) -> list[tuple[str, Json]]:
    """Each collection and object, complete but for the resourceVersion, in an order that can be stored.

    Args:
        now: when they are made, in UTC.
        port: the API server's own.
        new_uid: the uid of the next.
    """
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    made = [
        *(("namespaces", _namespace(name)) for name in NAMESPACES),
        ("services", _service(port)),
        *((CLUSTER_ROLES, role) for role in _roles()),
        *((CLUSTER_BINDINGS, binding) for binding in _bindings()),
    ]
    return [
        (kind, {**each, "metadata": {**each["metadata"], "uid": new_uid(), "creationTimestamp": stamp}})
        for kind, each in made
    ]


def aggregated(store: Store, role: Json) -> list[Json] | None:
    """The rules that a ClusterRole should have by its aggregationRule; None if it has none.

    They are those of the roles that its selectors find, in order of selector and name, each rule once. A controller
    writes them, and asks again whenever a ClusterRole changes.
    """
    if "aggregationRule" not in role:
        return None
    rules: list[Json] = []
    for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
        labels = from_label_selector(selector)
        for other in store.list(CLUSTER_ROLES):
            metadata = other["metadata"]
            if metadata["name"] == role["metadata"]["name"] or not labels.matches(metadata.get("labels") or {}):
                continue
            for rule in other.get("rules") or ():
                if rule not in rules:
                    rules.append(rule)
    return rules


def _roles() -> list[Json]:
    view, edit, admin = _view_rules(), _edit_rules(), _admin_rules()
    everything = [_rule(("*",), ("*",), ("*",)), _paths("*", verbs=("*",))]
    reviews = ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
    basic = [
        _rule(("authorization.k8s.io",), reviews, ("create",)),
        _rule(("authentication.k8s.io",), ("selfsubjectreviews",), ("create",)),
    ]
    delegated = [
        _rule(("authentication.k8s.io",), ("tokenreviews",), ("create",)),
        _rule(("authorization.k8s.io",), ("subjectaccessreviews",), ("create",)),
    ]
    return [
        _aggregating("admin", "", [*edit, *view, *admin]),
        _role("cluster-admin", everything),
        _aggregating("edit", "admin", [*edit, *view]),
        _role("system:aggregate-to-admin", admin, "admin"),
        _role("system:aggregate-to-edit", edit, "edit"),
        _role("system:aggregate-to-view", view, "view"),
        _role("system:auth-delegator", delegated),
        _role("system:basic-user", basic),
        _role("system:discovery", [_paths(*_DISCOVERY, *_VERSION)]),
        _role("system:public-info-viewer", [_paths(*_HEALTH, *_VERSION)]),
        _aggregating("view", "edit", view),
    ]


def _view_rules() -> list[Json]:
    core = ("configmaps", "endpoints", "pods", "serviceaccounts", "services", "services/status")
    limits = ("namespaces/status", "pods/status")
    workloads = tuple(sorted((*_WORKLOADS, "deployments/status", "replicasets/status", "statefulsets/status")))
    return [
        _rule(("",), core, _READ),
        _rule(("",), limits, _READ),
        _rule(("",), ("namespaces",), _READ),
        _rule(_EVENT_GROUPS, ("events",), _READ),
        _rule(("apps",), workloads, _READ),
        _rule(("policy",), ("poddisruptionbudgets", "poddisruptionbudgets/status"), _READ),
        _rule(("networking.k8s.io",), ("networkpolicies",), _READ),
    ]


def _edit_rules() -> list[Json]:
    return [
        _rule(("",), ("secrets",), _READ),
        _rule(("",), ("serviceaccounts",), ("impersonate",)),
        _rule(("",), ("pods",), _WRITE),
        _rule(("",), ("pods/eviction",), ("create",)),
        _rule(("",), ("configmaps", "secrets", "serviceaccounts", "services"), _WRITE),
        _rule(("",), ("serviceaccounts/token",), ("create",)),
        _rule(_EVENT_GROUPS, ("events",), _WRITE),
        _rule(("apps",), _WORKLOADS, _WRITE),
        _rule(("policy",), ("poddisruptionbudgets",), _WRITE),
        _rule(("networking.k8s.io",), ("networkpolicies",), _WRITE),
        _rule(("coordination.k8s.io",), ("leases",), _ALL),
    ]


def _admin_rules() -> list[Json]:
    return [
        _rule(("authorization.k8s.io",), ("localsubjectaccessreviews",), ("create",)),
        _rule((RBAC_GROUP,), ("rolebindings", "roles"), _ALL),
    ]


def _bindings() -> list[Json]:
    return [
        _binding("cluster-admin", MASTERS),
        _binding("system:basic-user", AUTHENTICATED),
        _binding("system:discovery", AUTHENTICATED),
        _binding("system:public-info-viewer", AUTHENTICATED, UNAUTHENTICATED),
    ]


def _rule(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str]) -> Json:
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}


def _paths(*paths: str, verbs: Sequence[str] = ("get",)) -> Json:
    return {"verbs": list(verbs), "nonResourceURLs": list(paths)}


def _role(name: str, rules: list[Json], aggregated_to: str = "") -> Json:
    """A ClusterRole; `aggregated_to` names the one that takes over its rules."""
    return {**_common("ClusterRole", name, aggregated_to), "rules": rules}


def _aggregating(name: str, aggregated_to: str, rules: list[Json]) -> Json:
    """A ClusterRole made of others, with the rules that it has of them in the beginning."""
    selector = {"matchLabels": {_aggregation_label(name): "true"}}
    return {**_role(name, rules, aggregated_to), "aggregationRule": {"clusterRoleSelectors": [selector]}}


def _binding(role: str, *groups: str) -> Json:
    return {
        **_common("ClusterRoleBinding", role),
        "subjects": [{"kind": "Group", "apiGroup": RBAC_GROUP, "name": group} for group in groups],
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
    }


def _common(kind: str, name: str, aggregated_to: str = "") -> Json:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if aggregated_to:
        labels[_aggregation_label(aggregated_to)] = "true"
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    }


def _aggregation_label(role: str) -> str:
    return f"{RBAC_GROUP}/aggregate-to-{role}"


def _service(port: int) -> Json:
    """The Service by which pods find the API server, with the first address of Services."""
    address = str(services.RANGE[1])
    https = {"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [https],
            "clusterIP": address,
            "clusterIPs": [address],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }


def _namespace(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
