"""What a cluster has from its beginning."""

from __future__ import annotations

import pytest

from kube_simulator.access.bootstrap import aggregated, objects
from kube_simulator.access.identities import ANONYMOUS
from kube_simulator.access.rbac import CLUSTER_ROLES, Authorizer
from kube_simulator.access.rules import Attributes
from kube_simulator.requests.types import User
from kube_simulator.store.store import Store
from kube_simulator.values import Json
from tests.unit.kube_simulator.access.access_support import RESOURCES, Clock, binding, role, rule

ANYBODY = User("anybody", frozenset({"system:authenticated"}))


@pytest.fixture
def store() -> Store:
    store = Store()
    for collection, each in objects(Clock().now, 6443):
        store.put(collection, each)
    return store


def test_every_object_is_complete_and_of_a_kind_that_is_served() -> None:
    made = objects(Clock().now, 6443, new_uid=iter(map(str, range(100))).__next__)
    for collection, each in made:
        resource = RESOURCES[collection]
        assert (each["apiVersion"], each["kind"]) == (resource.api_version, resource.kind)
        assert each["metadata"]["creationTimestamp"] == "2026-11-21T15:00:00Z"
    assert len({each["metadata"]["uid"] for _, each in made}) == len(made)


def test_the_namespaces_are_there_and_active(store: Store) -> None:
    found = {each["metadata"]["name"]: each for each in store.list("namespaces")}
    assert found.keys() == {"default", "kube-node-lease", "kube-public", "kube-system"}
    for name, namespace in found.items():
        assert namespace["status"] == {"phase": "Active"}
        assert namespace["spec"] == {"finalizers": ["kubernetes"]}
        assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}


def test_roles_name_only_what_is_served(store: Store) -> None:
    for each in store.list(CLUSTER_ROLES):
        for given in each["rules"]:
            for group in given.get("apiGroups", ()):
                for name in given["resources"]:
                    plural, _, subresource = name.partition("/")
                    served = RESOURCES.get(f"{plural}.{group}" if group else plural)
                    known = name == "*" or (served and (not subresource or subresource in served.subresources))
                    assert known, (each["metadata"]["name"], group, name)


@pytest.mark.parametrize(
    ("asked", "anybody", "anonymous"),
    [
        (Attributes("get", path="/version"), True, True),
        (Attributes("get", path="/readyz"), True, True),
        (Attributes("get", path="/apis/apps/v1"), True, False),
        (Attributes("get", path="/openapi/v3"), True, False),
        (Attributes("get", path="/metrics"), False, False),
        (Attributes("create", "authorization.k8s.io", "selfsubjectaccessreviews"), True, False),
        (Attributes("create", "authentication.k8s.io", "selfsubjectreviews"), True, False),
        (Attributes("create", "authentication.k8s.io", "tokenreviews"), False, False),
        (Attributes("get", "", "pods", namespace="default"), False, False),
    ],
)
def test_everybody_may_look_round(store: Store, asked: Attributes, anybody: bool, anonymous: bool) -> None:
    authorizer = Authorizer(store)
    assert authorizer.decide(ANYBODY, asked).allowed is anybody
    assert authorizer.decide(ANONYMOUS, asked).allowed is anonymous


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (Attributes("list", "", "pods", namespace="shop"), "view edit admin"),
        (Attributes("delete", "", "pods", namespace="shop"), "edit admin"),
        (Attributes("get", "", "secrets", namespace="shop"), "edit admin"),
        (Attributes("patch", "apps", "deployments", "scale", "shop"), "edit admin"),
        (Attributes("update", "coordination.k8s.io", "leases", namespace="shop"), "edit admin"),
        (Attributes("create", "", "serviceaccounts", "token", "shop"), "edit admin"),
        (Attributes("create", "rbac.authorization.k8s.io", "roles", namespace="shop"), "admin"),
        (Attributes("create", "authorization.k8s.io", "localsubjectaccessreviews", namespace="shop"), "admin"),
        (Attributes("get", "", "pods", namespace="other"), ""),
    ],
)
def test_view_edit_and_admin_allow_ever_more(store: Store, asked: Attributes, allowed: str) -> None:
    authorizer = Authorizer(store)
    for name in ("view", "edit", "admin"):
        bound = binding(name, f"ClusterRole/{name}", f"User/{name}", namespace="shop")
        store.put("rolebindings.rbac.authorization.k8s.io", bound)
        assert authorizer.decide(User(name), asked).allowed is (name in allowed.split()), name


class TestAggregation:
    def test_the_roles_of_the_beginning_have_what_their_selectors_find(self, store: Store) -> None:
        for name in ("view", "edit", "admin"):
            found = store.get(CLUSTER_ROLES, "", name)
            assert found is not None
            assert aggregated(store, found) == found["rules"], name

    def test_a_role_with_the_label_is_taken_in(self, store: Store) -> None:
        extra = rule("cache.example.com", "memcacheds", "get list")
        label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        store.put(CLUSTER_ROLES, {"metadata": {"name": "memcached-viewer", "labels": label}, "rules": [extra, extra]})
        rules = self.rules(store, "view")
        assert rules.count(extra) == 1
        assert rules[0] == extra, "in the order of the roles' names"

    def test_a_role_is_no_part_of_itself(self, store: Store) -> None:
        selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
        own = role("sum", rule("core", "pods", "get"), aggregationRule=selector)
        own["metadata"]["labels"] = {"a": "b"}
        store.put(CLUSTER_ROLES, own)
        assert aggregated(store, own) == []

    def test_several_selectors_find_the_union(self, store: Store) -> None:
        for name in "xy":
            part = role(name, rule("core", name, "get"))
            part["metadata"]["labels"] = {"part": name}
            store.put(CLUSTER_ROLES, part)
        selectors = [{"matchLabels": {"part": "y"}}, {"matchExpressions": [{"key": "part", "operator": "Exists"}]}]
        found = aggregated(store, role("sum", aggregationRule={"clusterRoleSelectors": selectors}))
        assert found == [rule("core", "y", "get"), rule("core", "x", "get")]

    def test_other_roles_keep_the_rules_that_they_have(self, store: Store) -> None:
        assert aggregated(store, role("plain", rule("core", "pods", "get"))) is None

    def rules(self, store: Store, name: str) -> list[Json]:
        found = store.get(CLUSTER_ROLES, "", name)
        assert found is not None
        rules = aggregated(store, found)
        assert rules is not None
        return rules
