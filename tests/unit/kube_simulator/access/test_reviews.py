"""Reviews: answers and refusals as an API server v1.36 gave them."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.access.authorizer import Authorizer
from kube_simulator.access.reviews import Access, answer
from kube_simulator.access.tokens import AUDIENCE, Tokens
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import User
from kube_simulator.store.store import Store
from kube_simulator.values import Json
from tests.unit.kube_simulator.access.access_support import (
    MASTER,
    RESOURCES,
    Clock,
    grant,
    paths,
    put_named,
    rule,
)

JANE = User("jane", frozenset({"system:authenticated"}))
PODS = {"verb": "get", "resource": "pods", "namespace": "shop"}


@pytest.fixture
def store() -> Store:
    """A cluster in which jane may read pods, and a path."""
    store = Store()
    grant(store, "jane", rule("core", "pods", "get"), paths("/metrics", "get"))
    return store


@pytest.fixture
def access(store: Store) -> Access:
    clock = Clock()
    return Access(Authorizer(store), Tokens(store, now=clock, new_id=lambda: "id-1"), clock)


def review(access: Access, plural: str, spec: Json, user: User = JANE, **metadata: Any) -> Json:
    group = "authentication.k8s.io" if plural in {"tokenreviews", "selfsubjectreviews"} else "authorization.k8s.io"
    namespace = "shop" if plural.startswith("local") else ""
    body = {"metadata": metadata, "spec": spec}
    return answer(RESOURCES[f"{plural}.{group}"], body, user, access, namespace=namespace)


def refused(access: Access, plural: str, spec: Json, namespace: str = "shop") -> int:
    """The code of the refusal of a review."""
    with pytest.raises(ApiError) as error:
        review(access, plural, spec, namespace=namespace)
    return error.value.code


class TestSubjectAccess:
    @pytest.mark.parametrize(
        ("spec", "status"),
        [
            ({"user": "jane", "resourceAttributes": PODS}, {"allowed": True}),
            ({"user": "jane", "resourceAttributes": {**PODS, "verb": "list"}}, {"allowed": False}),
            ({"user": "jane", "resourceAttributes": {**PODS, "subresource": "log"}}, {"allowed": False}),
            ({"groups": ["system:masters"], "resourceAttributes": PODS}, {"allowed": True}),
            (
                {"user": "jane", "nonResourceAttributes": {"verb": "get", "path": "/metrics"}},
                {"allowed": True},
            ),
            ({"user": "jane", "resourceAttributes": {}}, {"allowed": False}),
        ],
    )
    def test_it_answers_for_somebody_else(self, access: Access, spec: Json, status: Json) -> None:
        assert review(access, "subjectaccessreviews", spec, MASTER) == {
            "kind": "SubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": spec,
            "status": status,
        }


class TestLocalSubjectAccess:
    def test_it_answers_in_its_namespace(self, access: Access) -> None:
        found = review(access, "localsubjectaccessreviews", {"user": "jane", "resourceAttributes": PODS}, MASTER)
        assert (found["kind"], found["metadata"]) == ("LocalSubjectAccessReview", {"namespace": "shop"})
        assert found["status"] == {"allowed": True}

    @pytest.mark.parametrize("namespace", ["other", ""])
    def test_it_does_not_answer_for_another(self, access: Access, namespace: str) -> None:
        spec = {"user": "jane", "resourceAttributes": {**PODS, "namespace": namespace}}
        assert refused(access, "localsubjectaccessreviews", spec, namespace="shop") == 400


class TestOneself:
    def test_one_may_ask_what_one_may_do(self, access: Access) -> None:
        spec = {"resourceAttributes": PODS}
        assert review(access, "selfsubjectaccessreviews", spec) == {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": spec,
            "status": {"allowed": True},
        }
        assert review(access, "selfsubjectaccessreviews", spec, User("joe"))["status"] == {"allowed": False}
        assert review(access, "selfsubjectaccessreviews", spec, MASTER)["status"] == {"allowed": True}
        assert refused(access, "selfsubjectaccessreviews", {}) == 400


class TestTokens:
    def test_a_good_token_is_somebody(self, store: Store, access: Access) -> None:
        token = access.tokens.issue(put_named(store, "serviceaccounts", "robot", "uid-robot"))
        found = review(access, "tokenreviews", {"token": token, "audiences": ["other", AUDIENCE]}, name="x")
        assert (found["kind"], found["metadata"]) == ("TokenReview", {"name": "x"})
        assert found["status"] == {
            "authenticated": True,
            "user": {
                "username": "system:serviceaccount:shop:robot",
                "uid": "uid-robot",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
                "extra": {"authentication.kubernetes.io/credential-id": ["JTI=id-1"]},
            },
            "audiences": [AUDIENCE],
        }

    def test_a_bad_one_is_nobody_and_why_is_told(self, access: Access) -> None:
        found = review(access, "tokenreviews", {"token": "x"})
        assert found["spec"] == {"token": "x"}
        assert found["status"] == {"user": {}, "error": "invalid bearer token"}


def test_every_kind_that_is_served_and_not_stored_is_answered_or_refused_for_its_question(access: Access) -> None:
    reviews = {each.kind: each for each in RESOURCES.values() if not each.stored}
    answered = reviews.pop("SelfSubjectReview")
    assert answer(answered, {}, JANE, access)["kind"] == "SelfSubjectReview"
    assert len(reviews) == 4
    for each in reviews.values():
        with pytest.raises(ApiError) as caught:
            answer(each, {}, JANE, access)
        assert caught.value.code in {400, 422}, each.kind
