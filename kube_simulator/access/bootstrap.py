"""Objects of every cluster from its beginning: namespaces, its own Service, and the roles and bindings of Kubernetes.

Roles name only what the simulator serves. Rules of v1.36.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from kube_simulator.access.authorizer import CLUSTER_BINDINGS, CLUSTER_ROLES, RBAC_GROUP
from kube_simulator.access.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from kube_simulator.kinds import services
from kube_simulator.values import Json

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""These cannot be deleted for good: Kubernetes makes them again."""

_PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")


def _rule(group: str, *resources: str, verb: str = "create") -> Json:
    return {"verbs": [verb], "apiGroups": [group], "resources": [*resources]}


def _paths(*paths: str, verb: str = "get") -> Json:
    return {"verbs": [verb], "nonResourceURLs": [*paths]}


_TOKENS, _ACCESS = "authentication.k8s.io", "authorization.k8s.io"
# By name: the rules of a ClusterRole, and the groups that have it.
_ROLES: dict[str, tuple[list[Json], tuple[str, ...]]] = {
    "cluster-admin": ([_rule("*", "*", verb="*"), _paths("*", verb="*")], (MASTERS,)),
    "system:auth-delegator": ([_rule(_TOKENS, "tokenreviews"), _rule(_ACCESS, "subjectaccessreviews")], ()),
    "system:basic-user": (
        [_rule(_ACCESS, "selfsubjectaccessreviews"), _rule(_TOKENS, "selfsubjectreviews")],
        (AUTHENTICATED,),
    ),
    "system:discovery": (
        [_paths("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC)],
        (AUTHENTICATED,),
    ),
    "system:public-info-viewer": ([_paths(*_PUBLIC)], (AUTHENTICATED, UNAUTHENTICATED)),
}


def objects(now: datetime, port: int) -> list[tuple[str, Json]]:
    """List each collection and object, complete but for the resourceVersion, in an order that can be stored."""

    def made(version: str, kind: str, metadata: Json, **rest: Any) -> Json:
        stamps = {"uid": str(uuid.uuid4()), "creationTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        return {"apiVersion": version, "kind": kind, "metadata": {**metadata, **stamps}, **rest}

    found = []
    for name in NAMESPACES:
        meta = {"name": name, "labels": {"kubernetes.io/metadata.name": name}}
        spec, status = {"finalizers": ["kubernetes"]}, {"phase": "Active"}
        found.append(("namespaces", made("v1", "Namespace", meta, spec=spec, status=status)))
    labels = {"component": "apiserver", "provider": "kubernetes"}
    meta = {"name": "kubernetes", "namespace": "default", "labels": labels}
    found.append(("services", made("v1", "Service", meta, spec=_service(port), status={"loadBalancer": {}})))
    for name, (rules, groups) in _ROLES.items():
        default = {
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        }
        meta, version = {"name": name, **default}, f"{RBAC_GROUP}/v1"
        found.append((CLUSTER_ROLES, made(version, "ClusterRole", meta, rules=rules)))
        if groups:
            subjects = [{"kind": "Group", "apiGroup": RBAC_GROUP, "name": group} for group in groups]
            role = {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name}
            binding = made(version, "ClusterRoleBinding", meta, subjects=subjects, roleRef=role)
            found.append((CLUSTER_BINDINGS, binding))
    return found


def _service(port: int) -> Json:
    """The Service by which pods find the API server, with the first address of Services."""
    address = str(services.RANGE[1])
    return {
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
        "clusterIP": address,
        "clusterIPs": [address],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
