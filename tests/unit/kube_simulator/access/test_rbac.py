"""What roles and bindings allow, and the words in which it is refused: all as an API server v1.36 answered."""

from __future__ import annotations

import pytest

from kube_simulator.access.rbac import (
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    ROLES,
    Authorizer,
    Decision,
    refusal,
)
from kube_simulator.access.rules import Attributes, of_target, parse
from kube_simulator.requests.types import User
from kube_simulator.store.store import Store
from kube_simulator.values import Json
from tests.unit.kube_simulator.access.access_support import MASTER, binding, grant, paths, role, rule, target

JANE = User("jane", frozenset({"developers", "system:authenticated"}))


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def authorizer(store: Store) -> Authorizer:
    return Authorizer(store)


@pytest.mark.parametrize(
    ("given", "asked", "allowed"),
    [
        (rule("core", "pods", "get list"), Attributes("list", "", "pods"), True),
        (rule("core", "pods", "get list"), Attributes("delete", "", "pods"), False),
        (rule("core", "pods", "get"), Attributes("get", "metrics.k8s.io", "pods"), False),
        (rule("core", "pods", "*"), Attributes("whatever", "", "pods"), True),
        (rule("*", "pods", "get"), Attributes("get", "metrics.k8s.io", "pods"), True),
        (rule("core", "*", "get"), Attributes("get", "", "pods", "log"), True),
        (rule("core", "pods", "get"), Attributes("get", "", "pods", "log"), False),
        (rule("core", "pods/log", "get"), Attributes("get", "", "pods", "log"), True),
        (rule("core", "pods/log", "get"), Attributes("get", "", "pods"), False),
        (rule("core", "pods/*", "get"), Attributes("get", "", "pods", "log"), False),
        (rule("core", "pods/*", "get"), Attributes("get", "", "pods", "*"), True),
        (rule("apps", "*/scale", "get"), Attributes("get", "apps", "deployments", "scale"), True),
        (rule("apps", "*/scale", "get"), Attributes("get", "apps", "deployments", "status"), False),
        (rule("apps", "*/scale", "get"), Attributes("get", "apps", "scale"), False),
        (rule("core", "secrets", "get", "one"), Attributes("get", "", "secrets", name="one"), True),
        (rule("core", "secrets", "get", "one"), Attributes("get", "", "secrets", name="two"), False),
        (rule("core", "secrets", "get list", "one"), Attributes("list", "", "secrets"), False),
        (paths("/a/* /b /c*", "get"), Attributes("get", path="/a"), False),
        (paths("/a/* /b /c*", "get"), Attributes("get", path="/a/"), True),
        (paths("/a/* /b /c*", "get"), Attributes("get", path="/a/b/c"), True),
        (paths("/a/* /b /c*", "get"), Attributes("get", path="/b"), True),
        (paths("/a/* /b /c*", "get"), Attributes("get", path="/b/"), False),
        (paths("/a/* /b /c*", "get"), Attributes("get", path="/cd"), True),
        (paths("/b", "get"), Attributes("post", path="/b"), False),
        (paths("*", "*"), Attributes("post", path="/anything"), True),
        (rule("*", "*", "*"), Attributes("get", path="/anything"), False),
        (paths("*", "*"), Attributes("get", "", "pods"), False),
    ],
)
def test_a_rule_allows_what_it_names_and_nothing_else(given: Json, asked: Attributes, allowed: bool) -> None:
    assert parse(given).allows(asked) is allowed


def test_without_a_binding_nothing_is_allowed(authorizer: Authorizer) -> None:
    assert authorizer.decide(JANE, Attributes("get", "", "pods", namespace="shop")) == Decision(False, "")


def test_masters_may_do_everything_without_any_binding(authorizer: Authorizer) -> None:
    assert authorizer.decide(MASTER, Attributes("delete", "", "nodes")) == Decision(True, "")


def test_a_role_counts_in_its_namespace_alone(store: Store, authorizer: Authorizer) -> None:
    grant(store, "jane", rule("core", "pods", "get"), namespace="shop", name="readers")
    said = 'RBAC: allowed by RoleBinding "readers/shop" of Role "readers" to User "jane"'
    assert authorizer.decide(JANE, Attributes("get", "", "pods", namespace="shop")) == Decision(True, said)
    assert not authorizer.decide(JANE, Attributes("get", "", "pods", namespace="other")).allowed
    assert not authorizer.decide(JANE, Attributes("get", "", "pods")).allowed


def test_a_cluster_role_binding_counts_everywhere(store: Store, authorizer: Authorizer) -> None:
    grant(store, "jane", rule("core", "pods", "get"), paths("/metrics", "get"))
    said = 'RBAC: allowed by ClusterRoleBinding "of-jane" of ClusterRole "of-jane" to User "jane"'
    for asked in (
        Attributes("get", "", "pods"),
        Attributes("get", "", "pods", namespace="shop"),
        Attributes("get", path="/metrics"),
    ):
        assert authorizer.decide(JANE, asked) == Decision(True, said)


def test_a_cluster_role_bound_in_a_namespace_counts_there_and_gives_no_paths(
    store: Store, authorizer: Authorizer
) -> None:
    store.put(CLUSTER_ROLES, role("viewer", rule("core", "pods", "get"), paths("/metrics", "get")))
    store.put(BINDINGS, binding("b", "ClusterRole/viewer", "User/jane", namespace="shop"))
    assert authorizer.decide(JANE, Attributes("get", "", "pods", namespace="shop")).allowed
    assert not authorizer.decide(JANE, Attributes("get", "", "pods")).allowed
    assert not authorizer.decide(JANE, Attributes("get", path="/metrics")).allowed


@pytest.mark.parametrize(
    ("subject", "user", "said"),
    [
        ("Group/developers", JANE, 'Group "developers"'),
        ("ServiceAccount/robot/home", User("system:serviceaccount:home:robot"), 'ServiceAccount "robot/home"'),
        ("ServiceAccount/robot", User("system:serviceaccount:shop:robot"), 'ServiceAccount "robot/shop"'),
        ("User/system:serviceaccount:home:robot", User("system:serviceaccount:home:robot"), None),
    ],
)
def test_subjects_are_users_groups_and_service_accounts(
    store: Store, authorizer: Authorizer, subject: str, user: User, said: str | None
) -> None:
    store.put(ROLES, role("r", rule("core", "pods", "get"), namespace="shop"))
    store.put(BINDINGS, binding("b", "Role/r", "Group/jane", "User/developers", subject, namespace="shop"))
    decision = authorizer.decide(user, Attributes("get", "", "pods", namespace="shop"))
    assert decision.allowed
    assert decision.reason.endswith(said or 'User "system:serviceaccount:home:robot"')
    assert not authorizer.decide(User("other"), Attributes("get", "", "pods", namespace="shop")).allowed


def test_a_change_of_a_role_or_a_binding_counts_at_once(store: Store, authorizer: Authorizer) -> None:
    asked = Attributes("get", "", "pods", namespace="shop")

    def allowed() -> bool:
        return authorizer.decide(JANE, asked).allowed

    store.put(BINDINGS, binding("b", "Role/r", "User/jane", namespace="shop"))
    assert not allowed()
    store.put(ROLES, role("r", rule("core", "pods", "get"), namespace="shop"))
    assert allowed()
    store.put(ROLES, role("r", rule("core", "pods", "list"), namespace="shop"))
    assert not allowed()
    store.put(CLUSTER_BINDINGS, binding("c", "ClusterRole/r", "User/jane"))
    assert not allowed()
    store.put(CLUSTER_ROLES, role("r", rule("core", "pods", "get")))
    assert allowed()
    store.delete(CLUSTER_BINDINGS, "", "c")
    assert not allowed()
    store.put(BINDINGS, binding("b2", "ClusterRole/r", "User/jane", namespace="shop"))
    assert allowed()
    store.delete(CLUSTER_ROLES, "", "r")
    assert not allowed()


def test_the_index_of_a_namespace_is_made_once_between_changes(store: Store, authorizer: Authorizer) -> None:
    grant(store, "jane", rule("core", "pods", "get"), namespace="shop")
    listed: list[str] = []
    plain = store.list

    def counting(collection: str, namespace: str = "") -> list[Json]:
        listed.append(namespace)
        return plain(collection, namespace)

    store.list = counting  # type: ignore[method-assign]
    for _ in range(3):
        authorizer.decide(JANE, Attributes("get", "", "pods", namespace="shop"))
    assert listed == ["", "shop"]
    grant(store, "joe", rule("core", "pods", "get"), namespace="other")
    authorizer.decide(JANE, Attributes("get", "", "pods", namespace="shop"))
    assert listed == ["", "shop"]


def test_roles_that_do_not_exist_are_named_in_the_refusal(store: Store, authorizer: Authorizer) -> None:
    store.put(BINDINGS, binding("a", "Role/absent", "User/jane", "Group/developers", namespace="shop"))
    store.put(BINDINGS, binding("b", "ClusterRole/absent2", "User/jane", namespace="shop"))
    store.put(BINDINGS, binding("c", "ClusterRole/absent2", "User/jane", namespace="shop"))
    store.put(CLUSTER_BINDINGS, binding("d", "ClusterRole/absent3", "User/joe"))
    pods = Attributes("get", "", "pods", namespace="shop")
    assert authorizer.decide(JANE, pods).reason == (
        'RBAC: [role.rbac.authorization.k8s.io "absent" not found, '
        'clusterrole.rbac.authorization.k8s.io "absent2" not found]'
    )
    alone = 'RBAC: clusterrole.rbac.authorization.k8s.io "absent3" not found'
    assert authorizer.decide(User("joe"), pods).reason == alone


def test_a_missing_role_does_not_hide_another_binding(store: Store, authorizer: Authorizer) -> None:
    store.put(BINDINGS, binding("a", "Role/absent", "User/jane", namespace="shop"))
    grant(store, "jane", rule("core", "pods", "get"), namespace="shop")
    assert authorizer.decide(JANE, Attributes("get", "", "pods", namespace="shop")).allowed


@pytest.mark.parametrize(
    ("asked", "message", "details"),
    [
        (
            Attributes("list", "", "pods", namespace="default"),
            'pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "default"',
            {"kind": "pods"},
        ),
        (
            Attributes("watch", "", "pods"),
            'pods is forbidden: User "u" cannot watch resource "pods" in API group "" at the cluster scope',
            {"kind": "pods"},
        ),
        (
            Attributes("patch", "apps", "deployments", "scale", "default", "x"),
            'deployments.apps "x" is forbidden: User "u" cannot patch resource "deployments/scale" '
            'in API group "apps" in the namespace "default"',
            {"name": "x", "group": "apps", "kind": "deployments"},
        ),
        (
            of_target("get", target("namespaces", name="x")),
            'namespaces "x" is forbidden: User "u" cannot get resource "namespaces" in API group "" '
            'in the namespace "x"',
            {"name": "x", "kind": "namespaces"},
        ),
        (
            of_target("update", target("customresourcedefinitions.apiextensions.k8s.io", name="x")),
            'customresourcedefinitions.apiextensions.k8s.io "x" is forbidden: User "u" cannot update resource '
            '"customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope',
            {"name": "x", "group": "apiextensions.k8s.io", "kind": "customresourcedefinitions"},
        ),
        (Attributes("get", path="/metrics"), 'forbidden: User "u" cannot get path "/metrics"', {}),
    ],
)
def test_a_refusal_says_who_what_and_where(asked: Attributes, message: str, details: dict[str, str]) -> None:
    refused = refusal(User("u"), asked)
    assert (refused.code, refused.reason, refused.message, refused.details) == (403, "Forbidden", message, details)
    assert refusal(User("u"), asked, "RBAC: odd").message == f"{message}: RBAC: odd"
