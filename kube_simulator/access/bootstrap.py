"""Objects of every cluster from its beginning: namespaces, its own Service, and the roles and bindings of Kubernetes.

Roles name only what the simulator serves. Rules of v1.36.

Differs from Kubernetes: there are no roles `admin`, `edit` and `view`, and none for controllers, nodes and monitoring,
as the simulator's controllers do not ask RBAC; no managedFields on these objects; and what somebody changes or deletes
of them stays so.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime

from kube_simulator.access.authorizer import CLUSTER_BINDINGS, CLUSTER_ROLES
from kube_simulator.access.identities import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from kube_simulator.access.policy_rules import RBAC_GROUP
from kube_simulator.kinds import services
from kube_simulator.values import Json

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""These cannot be deleted for good: Kubernetes makes them again."""

_HEALTH = ("/healthz", "/livez", "/readyz")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz")
_VERSION = ("/version", "/version/")


def objects(now: datetime, port: int, new_uid: Callable[[], str] = lambda: str(uuid.uuid4())) -> list[tuple[str, Json]]:
    """List each collection and object, complete but for the resourceVersion, in an order that can be stored.

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


def _roles() -> list[Json]:
    everything = [_rule(("*",), ("*",), ("*",)), _paths("*", verbs=("*",))]
    basic = [
        _rule(("authorization.k8s.io",), ("selfsubjectaccessreviews",), ("create",)),
        _rule(("authentication.k8s.io",), ("selfsubjectreviews",), ("create",)),
    ]
    delegated = [
        _rule(("authentication.k8s.io",), ("tokenreviews",), ("create",)),
        _rule(("authorization.k8s.io",), ("subjectaccessreviews",), ("create",)),
    ]
    return [
        _role("cluster-admin", everything),
        _role("system:auth-delegator", delegated),
        _role("system:basic-user", basic),
        _role("system:discovery", [_paths(*_DISCOVERY, *_VERSION)]),
        _role("system:public-info-viewer", [_paths(*_HEALTH, *_VERSION)]),
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


def _role(name: str, rules: list[Json]) -> Json:
    return {**_common("ClusterRole", name), "rules": rules}


def _binding(role: str, *groups: str) -> Json:
    return {
        **_common("ClusterRoleBinding", role),
        "subjects": [{"kind": "Group", "apiGroup": RBAC_GROUP, "name": group} for group in groups],
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
    }


def _common(kind: str, name: str) -> Json:
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    }


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
