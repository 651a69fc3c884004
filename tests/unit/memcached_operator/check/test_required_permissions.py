from __future__ import annotations

import pytest
import yaml

from memcached_operator.check.findings import Verdict
from memcached_operator.check.required_permissions import (
    RequiredPermission,
    Scope,
    judge_permission,
    required_permissions,
    rule_text,
)
from memcached_operator.permissions import (
    LEASE,
    LIFE,
    LIFE_CLUSTER,
    OWN_POD,
    REVIEWS,
    SERVER_CREDENTIALS,
    WATCHED,
    Permission,
)
from operator_runtime.cache.store import ObjectKey

LOCK = ObjectKey("ops", "memcached-operator-lock")
PODS = Permission("", "pods", ("list",))
DEPLOYMENTS = Permission("apps", "deployments", ("get", "create", "patch"), "nothing is made")


def permitted(scope: Scope) -> set[tuple[str | None, str]]:
    return {(required.namespace, required.permission.resource) for required in required_permissions(scope)}


def of(permissions: tuple[Permission, ...], namespace: str | None) -> set[tuple[str | None, str]]:
    return {(namespace, permission.resource) for permission in permissions}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope(()), of(WATCHED, None)),
        (Scope(("a", "b")), of(WATCHED, "a") | of(WATCHED, "b")),
        (Scope(("a",), "lease", LOCK), of(WATCHED, "a") | of(LEASE, "ops")),
        (Scope(("a",), own_pod="ops"), of(WATCHED, "a") | of(OWN_POD, "ops")),
        (Scope((), "life", LOCK), of(WATCHED, None) | of(LIFE, "ops") | of(LIFE_CLUSTER, None)),
        (Scope((), server_credentials=True), of(WATCHED, None) | of(SERVER_CREDENTIALS, None)),
        (Scope(("a",), secure_metrics=True), of(WATCHED, "a") | of(REVIEWS, None)),
    ],
)
def test_permissions_are_asked_where_settings_need_them(scope: Scope, expected: set[tuple[str | None, str]]) -> None:
    assert permitted(scope) == expected


@pytest.mark.parametrize(
    ("mode", "resource", "verbs"),
    [("lease", "leases", {"get", "list", "watch", "patch"}), ("life", "configmaps", {"get"})],
)
def test_the_lock_is_asked_for_by_its_name_but_for_its_creation(mode: str, resource: str, verbs: set[str]) -> None:
    scope = Scope(("a",), "lease" if mode == "lease" else "life", LOCK)
    named = [each for each in required_permissions(scope) if each.name]
    assert {(each.permission.resource, each.name) for each in named} == {(resource, LOCK.name)}
    assert {verb for each in named for verb in each.permission.verbs} == verbs


@pytest.mark.parametrize(
    ("required", "words"),
    [
        (RequiredPermission(DEPLOYMENTS, "shop"), "get, create, patch deployments.apps in shop"),
        (RequiredPermission(DEPLOYMENTS, None), "get, create, patch deployments.apps in all namespaces"),
        (RequiredPermission(LEASE[0], "ops", "lock"), "get, list, watch, patch leases.coordination.k8s.io lock in ops"),
        (RequiredPermission(REVIEWS[0], None), "create tokenreviews.authentication.k8s.io"),
    ],
)
def test_a_permission_says_where_it_is(required: RequiredPermission, words: str) -> None:
    assert str(required) == words
    finding = judge_permission(required, required.permission.verbs, "jane")
    assert (finding.verdict, finding.text, finding.remedy) == (Verdict.OK, words, "")


def test_what_is_missing_is_named_with_what_is_missed_and_the_rule_to_add() -> None:
    finding = judge_permission(RequiredPermission(DEPLOYMENTS, "shop"), {"get"}, "jane")
    assert finding.verdict is Verdict.MISSING
    assert finding.text == "create, patch deployments.apps in shop: without it nothing is made"
    assert finding.remedy == (
        "add the rule {apiGroups: [apps], resources: [deployments], verbs: [create, patch]} to a Role in shop that is"
        " bound to jane"
    )
    everywhere = judge_permission(RequiredPermission(DEPLOYMENTS, None), (), "")
    assert everywhere.remedy.endswith("to a ClusterRole that is bound to the current account")
    rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create", "patch"]}
    assert finding.missing == {"namespace": "shop", "rule": rule}


@pytest.mark.parametrize(
    ("required", "text"),
    [
        (RequiredPermission(PODS, None), '{apiGroups: [""], resources: [pods], verbs: [list]}'),
        (RequiredPermission(PODS, "a", "b"), '{apiGroups: [""], resources: [pods], resourceNames: [b], verbs: [list]}'),
    ],
)
def test_a_rule_can_be_pasted_into_a_role(required: RequiredPermission, text: str) -> None:
    assert rule_text(required.rule()) == text
    assert yaml.safe_load(text) == required.rule()
