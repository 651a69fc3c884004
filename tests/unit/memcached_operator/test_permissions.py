"""The permissions that are asked for are those that the manifests grant."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from memcached_operator.permissions import (
    LEASE,
    LIFE,
    LIFE_CLUSTER,
    OWN_POD,
    REVIEWS,
    SERVER_CREDENTIALS,
    TENANTS,
    WATCHED,
    Permission,
)

MANIFESTS = Path(__file__).parents[3] / "manifests"
LIFE_PART, METRICS = "components/leader-for-life", "components/secure-metrics"
CREDENTIALS = "components/server-credentials"


def granted(path: str, kind: str, name: str) -> set[tuple[str, str, str, bool]]:
    """What a Role in a file grants: group, resource, verb, and whether of named objects alone."""
    documents: list[dict[str, Any]] = list(yaml.safe_load_all((MANIFESTS / path).read_text()))
    (role,) = (each for each in documents if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return {
        (group, resource, verb, "resourceNames" in rule)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def required(permissions: Iterable[Permission]) -> set[tuple[str, str, str, bool]]:
    return {(each.group, each.resource, verb, each.named) for each in permissions for verb in each.verbs}


@pytest.mark.parametrize(
    ("path", "kind", "name", "permissions"),
    [
        ("rbac/role.yaml", "Role", "operator", WATCHED + LEASE + OWN_POD),
        ("rbac/cluster_role.yaml", "ClusterRole", "operator", WATCHED),
        ("rbac/cluster_role.yaml", "Role", "operator-leader-election", LEASE + OWN_POD),
        ("install/namespaced.yaml", "Role", "operator", WATCHED + LEASE + OWN_POD),
        ("install/cluster.yaml", "ClusterRole", "operator", WATCHED),
        (f"{LIFE_PART}/role.yaml", "Role", "operator-leader-for-life", LIFE),
        (f"{LIFE_PART}/nodes_cluster_role.yaml", "ClusterRole", "operator-leader-for-life", LIFE_CLUSTER),
        (f"{METRICS}/metrics_auth_cluster_role.yaml", "ClusterRole", "operator-metrics-auth", REVIEWS),
        (f"{CREDENTIALS}/cluster_role.yaml", "ClusterRole", "operator-server-credentials", SERVER_CREDENTIALS),
        (f"{CREDENTIALS}/namespaced/role.yaml", "Role", "operator-server-credentials", SERVER_CREDENTIALS),
        ("tenants/memcached_admin.yaml", "ClusterRole", "admin", TENANTS),
    ],
)
def test_the_permissions_that_are_asked_for_are_those_that_the_manifests_grant(
    path: str, kind: str, name: str, permissions: tuple[Permission, ...]
) -> None:
    assert granted(path, kind, f"memcached-{name}") == required(permissions)


def test_of_secrets_the_operator_has_nothing_unless_it_is_asked_to() -> None:
    others = (*WATCHED, *LEASE, *LIFE, *LIFE_CLUSTER, *REVIEWS, *TENANTS)
    assert not [each for each in others if each.resource in ("secrets", "*")]


@pytest.mark.parametrize("name", ["edit", "view"])
def test_no_user_is_given_more_than_the_admin(name: str) -> None:
    given = granted(f"tenants/memcached_{name}.yaml", "ClusterRole", f"memcached-{name}")
    assert given <= granted("tenants/memcached_admin.yaml", "ClusterRole", "memcached-admin")


def test_a_permission_is_named_as_kubectl_names_it() -> None:
    status = Permission("cache.example.com", "memcacheds/status", ())
    assert status.qualified_name == "memcacheds.cache.example.com/status"
    assert Permission("", "pods", ()).qualified_name == "pods"
