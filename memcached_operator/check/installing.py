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


_ASK: Final = "let an administrator of the cluster install it"


# The namespace that the install for the whole cluster brings.
HOME: Final = "memcached-operator-system"


def command(watched: tuple[str, ...], home: str) -> str:
    """What installs the operator.

    Args:
        watched: the namespaces that it is to watch, () for all of them.
        home: the namespace that it is to run in.
    """
    if watched:
        return f"kubectl apply -n {home} -f manifests/install/namespaced.yaml"
    if home == HOME:
        return "kubectl apply --server-side -f manifests/install/cluster.yaml"
    return f"kubectl apply --server-side -k FOLDER, with manifests/cluster as its base and the namespace {home}"


def judge_install(demand: Demand, granted: Collection[str]) -> Finding:
    """What is found of a right of who asks, of which these verbs are granted."""
    right = demand.right
    missing = [verb for verb in right.verbs if verb not in granted]
    if missing:
        lacking = replace(demand, right=replace(right, verbs=tuple(missing)))
        return Finding("install", Verdict.MISSING, f"you may not {lacking}", _ASK)
    return Finding("install", Verdict.OK, f"you may {demand}")


def judge_handing_on(may: bool) -> Finding:
    """Whether who asks may make Roles with the operator's rights."""
    if may:
        return Finding("install", Verdict.OK, "you may give the operator its rights")
    text = "you may not give the operator its rights: you have them not all yourself, nor escalate and bind on roles"
    return Finding("install", Verdict.MISSING, text, _ASK)


def install_demands(scope: Scope, home: str, *, rights_alone: bool = False) -> Iterator[Demand]:
    """What who installs the operator must be allowed to make, the CRD apart: the objects of manifests/install.

    Args:
        home: the namespace that the operator is to run in.
        rights_alone: it is there, and lacks rights.
    """
    if not rights_alone:
        yield Demand(Right("", "serviceaccounts", _APPLY), home)
        yield Demand(Right("apps", "deployments", _APPLY), home)
        yield Demand(Right("policy", "poddisruptionbudgets", _APPLY), home)
        if not scope.watched:
            yield Demand(Right("", "namespaces", _APPLY), None)
    for namespace in dict.fromkeys((home, *scope.watched)):
        for resource in ("roles", "rolebindings"):
            yield Demand(Right(_RBAC, resource, _APPLY), namespace)
    if any(each.namespace is None for each in demands(scope)):
        for resource in ("clusterroles", "clusterrolebindings"):
            yield Demand(Right(_RBAC, resource, _APPLY), None)


def handed_on(scope: Scope) -> Iterator[Demand]:
    """The rights that an install gives to others: who makes a Role must have them, or be let off by `passes`."""
    yield from demands(scope)
    if not scope.watched:
        yield from (Demand(right, None) for right in TENANTS)


def passes(scope: Scope, home: str) -> Iterator[Demand]:
    """The rights that let somebody hand on what they do not have."""
    for namespace in dict.fromkeys((home, *scope.watched)):
        yield Demand(Right(_RBAC, "roles", ("escalate", "bind")), namespace)
    if any(each.namespace is None for each in demands(scope)):
        yield Demand(Right(_RBAC, "clusterroles", ("escalate", "bind")), None)
