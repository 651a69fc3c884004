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
        *((CLUSTER_ROLES, {**_common("ClusterRole", name), "rules": rules}) for name, (rules, _) in _ROLES.items()),
        *((CLUSTER_BINDINGS, _binding(name, groups)) for name, (_, groups) in _ROLES.items() if groups),
    ]
    return [
        (kind, {**each, "metadata": {**each["metadata"], "uid": new_uid(), "creationTimestamp": stamp}})
        for kind, each in made
    ]


def _rule(group: str, resource: str, verb: str = "create") -> Json:
    return {"verbs": [verb], "apiGroups": [group], "resources": [resource]}


def _paths(*paths: str, verb: str = "get") -> Json:
    return {"verbs": [verb], "nonResourceURLs": list(paths)}


_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
# By name: the rules of a ClusterRole, and the groups that have it.
_ROLES: dict[str, tuple[list[Json], tuple[str, ...]]] = {
    "cluster-admin": ([_rule("*", "*", "*"), _paths("*", verb="*")], (MASTERS,)),
    "system:auth-delegator": (
        [_rule(_AUTHENTICATION, "tokenreviews"), _rule(_AUTHORIZATION, "subjectaccessreviews")],
        (),
    ),
    "system:basic-user": (
        [_rule(_AUTHORIZATION, "selfsubjectaccessreviews"), _rule(_AUTHENTICATION, "selfsubjectreviews")],
        (AUTHENTICATED,),
    ),
    "system:discovery": ([_paths(*_DISCOVERY, *_VERSION)], (AUTHENTICATED,)),
    "system:public-info-viewer": ([_paths(*_HEALTH, *_VERSION)], (AUTHENTICATED, UNAUTHENTICATED)),
}


def _binding(role: str, groups: Sequence[str]) -> Json:
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
