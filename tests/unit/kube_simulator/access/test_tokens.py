"""Tokens of service accounts: what they say, how long they are good, and what revokes them."""

from __future__ import annotations

import base64
import json
import re

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kube_simulator.access.jwt import BadSignature, Signer
from kube_simulator.access.tokens import AUDIENCE, InvalidToken, Tokens
from kube_simulator.requests.types import User
from kube_simulator.store.store import Store
from kube_simulator.values import Json
from tests.unit.kube_simulator.access.access_support import Clock, put_named

KEY = ec.generate_private_key(ec.SECP256R1())
NAME = "system:serviceaccount:shop:robot"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store() -> Store:
    """A namespace with an account, a Secret and a Pod of that account."""
    store = Store()
    put_named(store, "serviceaccounts", "robot", "uid-robot")
    put_named(store, "secrets", "s", "uid-s")
    put_named(store, "pods", "p", "uid-p", spec={"serviceAccountName": "robot"})
    return store


@pytest.fixture
def tokens(store: Store, clock: Clock) -> Tokens:
    return Tokens(store, now=clock, key=KEY, new_id=lambda: "id-1")


def request(tokens: Tokens, **spec: object) -> Json:
    return tokens.request("shop", "robot", {"spec": spec})


def token_of(tokens: Tokens, **spec: object) -> str:
    token = request(tokens, **spec)["status"]["token"]
    assert isinstance(token, str)
    return token


def decoded(part: str) -> Json:
    found: Json = json.loads(base64.urlsafe_b64decode(part + "=="))
    return found


class TestRequests:
    def test_the_answer_is_completed_with_what_was_left_out(self, tokens: Tokens) -> None:
        answer = request(tokens)
        assert answer.pop("status").keys() == {"token", "expirationTimestamp"}
        assert answer == {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": "robot",
                "namespace": "shop",
                "uid": "uid-robot",
                "creationTimestamp": "2026-11-21T15:00:00Z",
            },
            "spec": {"audiences": [AUDIENCE], "expirationSeconds": 3600, "boundObjectRef": None},
        }
        assert request(tokens)["status"]["expirationTimestamp"] == "2026-11-21T16:00:00Z"

    def test_a_token_names_its_account_and_its_time(self, tokens: Tokens, clock: Clock) -> None:
        header, claims, _ = token_of(tokens, expirationSeconds=700, audiences=["a", "b"]).split(".")
        assert decoded(header)["alg"] == "ES256"
        now_s = int(clock.now.timestamp())
        assert decoded(claims) == {
            "aud": ["a", "b"],
            "exp": now_s + 700,
            "iat": now_s,
            "iss": AUDIENCE,
            "jti": "id-1",
            "kubernetes.io": {"namespace": "shop", "serviceaccount": {"name": "robot", "uid": "uid-robot"}},
            "nbf": now_s,
            "sub": NAME,
        }


class TestVerification:
    def test_another_audience_s_token_is_not_for_the_api_server(self, tokens: Tokens) -> None:
        token = token_of(tokens, audiences=["a", "b"])
        assert tokens.user_of(token) is None
        assert tokens.verify(token, ["b", "a", "c"]).audiences == ("b", "a")
        with pytest.raises(InvalidToken, match="invalid for the target audiences"):
            tokens.verify(token)

    def test_a_token_expires_a_minute_after_its_time(self, tokens: Tokens, clock: Clock) -> None:
        token = token_of(tokens, expirationSeconds=600)
        clock.forward(660)
        assert tokens.user_of(token) is not None
        clock.forward(1)
        with pytest.raises(InvalidToken, match="service account token has expired"):
            tokens.verify(token)

    def test_a_token_of_the_future_is_not_good_yet(self, tokens: Tokens, clock: Clock) -> None:
        token = token_of(tokens)
        clock.forward(-60)
        assert tokens.user_of(token) is not None
        clock.forward(-1)
        with pytest.raises(InvalidToken, match="not valid yet"):
            tokens.verify(token)

    def test_a_token_dies_with_its_account(self, tokens: Tokens, store: Store) -> None:
        token = token_of(tokens)
        assert tokens.user_of(token) is not None
        store.delete("serviceaccounts", "shop", "robot")
        with pytest.raises(InvalidToken, match=re.escape('[invalid bearer token, serviceaccounts "robot" not found]')):
            tokens.verify(token)
        put_named(store, "serviceaccounts", "robot", "uid-new")
        message = "service account UID (uid-new) does not match claim (uid-robot)"
        with pytest.raises(InvalidToken, match=re.escape(message)):
            tokens.verify(token)

    def test_an_opaque_token_is_the_user_it_was_given_to(self, tokens: Tokens) -> None:
        tokens.add("secret", User("jane", frozenset({"g"})))
        assert tokens.user_of("secret") == User("jane", frozenset({"g", "system:authenticated"}))
        assert tokens.user_of("secret2") is None


class TestForgeries:
    @pytest.mark.parametrize("text", ["", "wrong", "a.b", "a.b.c", "!.!.!", "e30.e30", "W10.W10.AAAA", "é.é.é"])
    def test_what_is_no_token_is_not_good(self, tokens: Tokens, text: str) -> None:
        with pytest.raises(InvalidToken, match=r"^invalid bearer token$"):
            tokens.verify(text)

    def test_a_token_of_another_key_is_not_good(self, store: Store, tokens: Tokens, clock: Clock) -> None:
        foreign = token_of(Tokens(store, now=clock))
        with pytest.raises(InvalidToken, match="error in cryptographic primitive"):
            tokens.verify(foreign)

    def test_claims_cannot_be_changed(self, tokens: Tokens) -> None:
        header, claims, signature = token_of(tokens).split(".")
        later = {**decoded(claims), "exp": 9999999999}
        forged = base64.urlsafe_b64encode(json.dumps(later).encode()).rstrip(b"=").decode()
        assert tokens.user_of(f"{header}.{forged}.{signature}") is None

    def test_a_token_without_a_signature_is_not_good(self, tokens: Tokens) -> None:
        _, claims, _ = token_of(tokens).split(".")
        header = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
        with pytest.raises(BadSignature):
            Signer(KEY).read(f"{header}.{claims}.")
        assert tokens.user_of(f"{header}.{claims}.") is None
