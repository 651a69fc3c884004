"""What a cluster has from its beginning."""

from __future__ import annotations

import pytest

from kube_simulator.access.bootstrap import objects
from kube_simulator.access.identities import ANONYMOUS
from kube_simulator.access.rbac import CLUSTER_ROLES, Authorizer
from kube_simulator.access.rules import Attributes
from kube_simulator.requests.types import User
from kube_simulator.store.store import Store
from tests.unit.kube_simulator.access.access_support import RESOURCES, Clock

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
