"""The permissions that an install of the operator needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from memcached_operator.check.findings import Finding, Verdict
from memcached_operator.check.required_permissions import RequiredPermission, Scope, required_permissions
from memcached_operator.permissions import TENANTS, Permission

_APPLY: Final = ("get", "create", "patch")
_RBAC: Final = "rbac.authorization.k8s.io"
DEFINITION: Final = RequiredPermission(Permission("apiextensions.k8s.io", "customresourcedefinitions", _APPLY), None)
"""To install the CRD."""
_CLUSTER_ROLES: Final = RequiredPermission(Permission(_RBAC, "clusterroles", _APPLY), None)

_BY_ADMINISTRATOR: Final = "ask an administrator of the cluster to install it"

# What an administrator of the cluster applies once, so that those of namespaces can install operators in them: the
# CRD, and the ClusterRoles by which they have all permissions that they are to grant.
CRDS: Final = "manifests/install/crds.yaml"

# The namespace that the install for the whole cluster brings.
HOME: Final = "memcached-operator-system"


def command(watched: tuple[str, ...], home: str) -> str:
    """Return the command that installs the operator.

    Args:
        watched: the namespaces that it is to watch, () for all of them.
    """
    if watched == (home,):
        return f"kubectl apply --server-side -n {home} -f manifests/install/namespaced.yaml"
    if watched:
        # As docs/namespaces.md shows; the component names namespaces of its own, which are to be replaced.
        account = "" if home == HOME else f" and {home} in that of {HOME}"
        return (
            "kubectl apply --server-side -k FOLDER, with manifests/cluster as its base and a copy of the component"
            f" manifests/components/several-namespaces that has {', '.join(watched)} in the place of team-a and"
            f" team-b{account} (docs/namespaces.md)"
        )
    if home == HOME:
        return "kubectl apply --server-side -f manifests/install/cluster.yaml"
    return f"kubectl apply --server-side -k FOLDER, with manifests/cluster as its base and the namespace {home}"


def definition_command(watched: tuple[str, ...], *, force: bool) -> str:
    """Return the command that installs the CRD.

    Args:
        watched: the namespaces that the operator is to watch, () for all of them: that install brings the users'
            permissions along, others' administrators need them before.
        force: take over what another tool has applied.
    """
    options = "--server-side --force-conflicts" if force or not watched else "--server-side"
    return f"kubectl apply {options} -f {CRDS}" if watched else f"memcached-operator crd | kubectl apply {options} -f -"


def judge_install(required: RequiredPermission, granted: Collection[str]) -> Finding:
    """Judge a permission of the user who runs the command, of which these verbs are granted."""
    if (lacking := required.lacking(granted)) is not None:
        return Finding("install", Verdict.MISSING, f"you may not {lacking}", _BY_ADMINISTRATOR)
    return Finding("install", Verdict.OK, f"you may {required}")


def judge_granting(lacking: Collection[RequiredPermission], scope: Scope, home: str) -> Finding:
    """Judge whether the user who runs the command may create Roles with the operator's permissions.

    Args:
        lacking: those of these permissions that they do not have; () if they may grant them all the same.
    """
    if not lacking:
        return Finding("install", Verdict.OK, "you may give the operator its permissions")
    text = (
        "you may not give the operator its permissions: you lack some of them yourself, and escalate and bind on roles"
    )
    remedy = _BY_ADMINISTRATOR
    if scope.watched == (home,) and all(_of_tenants(each.permission) for each in lacking):
        remedy = (
            "ask an administrator of the cluster to create the ClusterRole memcached-admin, which gives them to the "
            f"administrators of namespaces: {definition_command(scope.watched, force=False)}"
        )
    details = tuple(f"you may not {each}" for each in lacking)
    return Finding("install", Verdict.MISSING, text, remedy, details=details)


def _of_tenants(permission: Permission) -> bool:
    return any(
        (each.group, each.resource) == (permission.group, permission.resource) and {*permission.verbs} <= {*each.verbs}
        for each in TENANTS
    )


def definition_permissions(scope: Scope) -> Iterator[RequiredPermission]:
    """Yield the permissions that `definition_command` takes."""
    yield DEFINITION
    if scope.watched:
        yield _CLUSTER_ROLES


def install_permissions(scope: Scope, home: str, *, rbac_only: bool = False) -> Iterator[RequiredPermission]:
    """Yield the permissions that an install of the operator takes, the CRD apart: to create the objects of `command`.

    Args:
        home: the namespace that the operator is to run in.
        rbac_only: it is there, and lacks permissions.
    """
    whole = not rbac_only and _built_on_cluster(scope, home)
    if not rbac_only:
        yield RequiredPermission(Permission("", "serviceaccounts", _APPLY), home)
        yield RequiredPermission(Permission("apps", "deployments", _APPLY), home)
        yield RequiredPermission(Permission("policy", "poddisruptionbudgets", _APPLY), home)
    if whole:
        yield RequiredPermission(Permission("", "namespaces", _APPLY), None)
    for namespace in dict.fromkeys((home, *scope.watched)):
        for resource in ("roles", "rolebindings"):
            yield RequiredPermission(Permission(_RBAC, resource, _APPLY), namespace)
    everywhere = _is_for_cluster(scope)
    if whole or everywhere:
        yield _CLUSTER_ROLES
    if everywhere:
        yield RequiredPermission(Permission(_RBAC, "clusterrolebindings", _APPLY), None)


def granted_by_install(scope: Scope, home: str, *, rbac_only: bool = False) -> Iterator[RequiredPermission]:
    """Yield what an install grants to others: it takes a user who has all of it, or the `escalation_permissions`."""
    yield from required_permissions(scope)
    if not rbac_only and _built_on_cluster(scope, home):
        yield from (RequiredPermission(permission, None) for permission in TENANTS)


def escalation_permissions(scope: Scope, home: str, *, rbac_only: bool = False) -> Iterator[RequiredPermission]:
    """Yield the permissions by which a user can grant others that they lack."""
    for namespace in dict.fromkeys((home, *scope.watched)):
        yield RequiredPermission(Permission(_RBAC, "roles", ("escalate", "bind")), namespace)
    if _is_for_cluster(scope) or (not rbac_only and _built_on_cluster(scope, home)):
        yield RequiredPermission(Permission(_RBAC, "clusterroles", ("escalate", "bind")), None)


def _is_for_cluster(scope: Scope) -> bool:
    return any(each.namespace is None for each in required_permissions(scope))


def _built_on_cluster(scope: Scope, home: str) -> bool:
    """Report whether the install has the objects of manifests/cluster, the users' ClusterRoles among them."""
    return scope.watched != (home,)
