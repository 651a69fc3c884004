"""What somebody who installs the operator must be allowed to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from memcached_operator.check.demands import Demand, Scope, demands
from memcached_operator.check.findings import Finding, Verdict
from memcached_operator.rights import TENANTS, Right

_APPLY: Final = ("get", "create", "patch")
_RBAC: Final = "rbac.authorization.k8s.io"
DEFINITION: Final = Demand(Right("apiextensions.k8s.io", "customresourcedefinitions", _APPLY), None)
"""To install the CRD."""
_CLUSTER_ROLES: Final = Demand(Right(_RBAC, "clusterroles", _APPLY), None)

_ASK: Final = "let an administrator of the cluster install it"

# What an administrator of the cluster applies once, so that those of namespaces can install operators in them: the
# CRD, and the ClusterRoles by which they have all rights that they are to hand on.
CRDS: Final = "manifests/install/crds.yaml"

# The namespace that the install for the whole cluster brings.
HOME: Final = "memcached-operator-system"


def command(watched: tuple[str, ...], home: str) -> str:
    """What installs the operator.

    Args:
        watched: the namespaces that it is to watch, () for all of them.
        home: the namespace that it is to run in.
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
    """What installs the CRD.

    Args:
        watched: the namespaces that the operator is to watch, () for all of them: that install brings the users' rights
            along, others' administrators need them before.
        force: take over what another tool has applied: whoever runs this wants this release's definition.
    """
    options = "--server-side --force-conflicts" if force or not watched else "--server-side"
    return f"kubectl apply {options} -f {CRDS}" if watched else f"memcached-operator crd | kubectl apply {options} -f -"


def judge_install(demand: Demand, granted: Collection[str]) -> Finding:
    """What is found of a right of who asks, of which these verbs are granted."""
    right = demand.right
    missing = [verb for verb in right.verbs if verb not in granted]
    if missing:
        lacking = replace(demand, right=replace(right, verbs=tuple(missing)))
        return Finding("install", Verdict.MISSING, f"you may not {lacking}", _ASK)
    return Finding("install", Verdict.OK, f"you may {demand}")


def judge_handing_on(lacking: Collection[Demand], scope: Scope, home: str) -> Finding:
    """Whether who asks may make Roles with the operator's rights.

    Args:
        lacking: those of these rights that they do not have; () if they may hand on without.
    """
    if not lacking:
        return Finding("install", Verdict.OK, "you may give the operator its rights")
    text = "you may not give the operator its rights: you have them not all yourself, nor escalate and bind on roles"
    remedy = _ASK
    if scope.watched == (home,) and all(_of_tenants(each.right) for each in lacking):
        remedy = (
            f"let an administrator of the cluster make the ClusterRole memcached-admin, by which who administers a"
            f" namespace has them: {definition_command(scope.watched, force=False)}"
        )
    details = tuple(f"you may not {each}" for each in lacking)
    return Finding("install", Verdict.MISSING, text, remedy, details=details)


def _of_tenants(right: Right) -> bool:
    """Whether the ClusterRoles for users grant it."""
    return any(
        (each.group, each.resource) == (right.group, right.resource) and {*right.verbs} <= {*each.verbs}
        for each in TENANTS
    )


def definition_demands(scope: Scope) -> Iterator[Demand]:
    """What who runs `definition_command` must be allowed to make."""
    yield DEFINITION
    if scope.watched:
        yield _CLUSTER_ROLES


def install_demands(scope: Scope, home: str, *, rights_alone: bool = False) -> Iterator[Demand]:
    """What who installs the operator must be allowed to make, the CRD apart: the objects that `command` names.

    Args:
        home: the namespace that the operator is to run in.
        rights_alone: it is there, and lacks rights.
    """
    whole = not rights_alone and _built_on_cluster(scope, home)
    if not rights_alone:
        yield Demand(Right("", "serviceaccounts", _APPLY), home)
        yield Demand(Right("apps", "deployments", _APPLY), home)
        yield Demand(Right("policy", "poddisruptionbudgets", _APPLY), home)
    if whole:
        yield Demand(Right("", "namespaces", _APPLY), None)
    for namespace in dict.fromkeys((home, *scope.watched)):
        for resource in ("roles", "rolebindings"):
            yield Demand(Right(_RBAC, resource, _APPLY), namespace)
    everywhere = _asks_everywhere(scope)
    if whole or everywhere:
        yield _CLUSTER_ROLES
    if everywhere:
        yield Demand(Right(_RBAC, "clusterrolebindings", _APPLY), None)


def handed_on(scope: Scope, home: str, *, rights_alone: bool = False) -> Iterator[Demand]:
    """The rights that an install gives to others: who makes a Role must have them, or be let off by `passes`."""
    yield from demands(scope)
    if not rights_alone and _built_on_cluster(scope, home):
        yield from (Demand(right, None) for right in TENANTS)


def passes(scope: Scope, home: str, *, rights_alone: bool = False) -> Iterator[Demand]:
    """The rights that let somebody hand on what they do not have."""
    for namespace in dict.fromkeys((home, *scope.watched)):
        yield Demand(Right(_RBAC, "roles", ("escalate", "bind")), namespace)
    if _asks_everywhere(scope) or (not rights_alone and _built_on_cluster(scope, home)):
        yield Demand(Right(_RBAC, "clusterroles", ("escalate", "bind")), None)


def _asks_everywhere(scope: Scope) -> bool:
    return any(each.namespace is None for each in demands(scope))


def _built_on_cluster(scope: Scope, home: str) -> bool:
    """Whether the install has the objects of manifests/cluster, the users' ClusterRoles among them."""
    return scope.watched != (home,)
