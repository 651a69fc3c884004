"""Tokens of service accounts: how long they are good, and what revokes them; and reviews of tokens and permissions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kube_simulator.access.authorizer import CLUSTER_BINDINGS, CLUSTER_ROLES, Authorizer
from kube_simulator.access.reviews import Reviews
from kube_simulator.access.tokens import AUDIENCE, InvalidToken, Tokens
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import User
from kube_simulator.schema.kubernetes import builtin_resources
from kube_simulator.store.store import Store
from kube_simulator.values import Json

RESOURCES = {resource.plural: resource for resource in builtin_resources()}
NOW = datetime(2026, 11, 21, 15, tzinfo=UTC)
ROBOT = "system:serviceaccount:shop:robot"
JANE = User("jane")
PODS = {"verb": "get", "resource": "pods", "namespace": "shop"}


class Access:
    """A namespace with an account; jane may read pods, and a path."""

    def __init__(self) -> None:
        self.now = NOW
        self.store = Store()
        self.tokens = Tokens(self.store, lambda: self.now)
        self.reviews = Reviews(Authorizer(self.store), self.tokens)
        self.put_account("uid-robot")
        rules = [
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
            {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
        ]
        self.store.put(CLUSTER_ROLES, {"metadata": {"name": "r"}, "rules": rules})
        binding = {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "User", "name": "jane"}]}
        self.store.put(CLUSTER_BINDINGS, {"metadata": {"name": "b"}, **binding})

    def put_account(self, uid: str) -> None:
        self.store.put("serviceaccounts", {"metadata": {"name": "robot", "namespace": "shop", "uid": uid}})

    def token(self, **spec: object) -> str:
        return str(self.tokens.request("shop", "robot", {"spec": spec})["status"]["token"])

    def review(self, plural: str, spec: Json, user: User = JANE, namespace: str = "") -> Json:
        found = self.reviews.answer(RESOURCES[plural], {"spec": spec}, user, NOW, namespace=namespace)
        assert found["kind"] == RESOURCES[plural].kind
        return dict(found["status"])


@pytest.fixture
def access() -> Access:
    return Access()


def test_a_token_is_its_account_s_until_a_minute_after_its_time(access: Access) -> None:
    token = access.token(expirationSeconds=600)
    access.now += timedelta(seconds=660)
    assert access.tokens.authenticate(None, f"Bearer {token}").name == ROBOT
    access.now += timedelta(seconds=1)
    with pytest.raises(InvalidToken, match="invalid bearer token"):
        access.tokens.verify(token)


def test_a_token_dies_with_its_account(access: Access) -> None:
    token = access.token()
    access.store.delete("serviceaccounts", "shop", "robot")
    with pytest.raises(InvalidToken, match="invalid bearer token"):
        access.tokens.verify(token)
    access.put_account("uid-new")
    with pytest.raises(InvalidToken, match="invalid bearer token"):
        access.tokens.verify(token)


def test_another_audience_s_token_is_not_for_the_api_server(access: Access) -> None:
    token = access.token(audiences=["a", "b"])
    assert access.tokens.verify(token, ["b", "a", "c"])[1] == ("b", "a")
    with pytest.raises(ApiError) as refused:
        access.tokens.authenticate(None, f"Bearer {token}")
    assert refused.value.code == 401


def test_a_review_of_a_token_tells_whose_it_is_or_that_it_is_not_good(access: Access) -> None:
    found = access.review("tokenreviews", {"token": access.token(), "audiences": ["other", AUDIENCE]})
    assert (found["authenticated"], found["audiences"]) == (True, [AUDIENCE])
    assert (found["user"]["username"], found["user"]["uid"]) == (ROBOT, "uid-robot")
    assert found["user"]["groups"] == ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"]
    assert access.review("tokenreviews", {"token": "x"}) == {"user": {}, "error": "invalid bearer token"}


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"user": "jane", "resourceAttributes": PODS}, True),
        ({"user": "jane", "resourceAttributes": {**PODS, "verb": "list"}}, False),
        ({"user": "jane", "resourceAttributes": {**PODS, "subresource": "log"}}, False),
        ({"user": "joe", "resourceAttributes": PODS}, False),
        ({"groups": ["system:masters"], "resourceAttributes": PODS}, True),
        ({"user": "jane", "nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, True),
        ({"user": "jane", "nonResourceAttributes": {"verb": "get", "path": "/metrics/x"}}, False),
    ],
)
def test_a_review_of_permissions_answers_for_whom_it_names(access: Access, spec: Json, allowed: bool) -> None:
    assert access.review("subjectaccessreviews", spec) == {"allowed": allowed}
