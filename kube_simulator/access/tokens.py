"""Bearer tokens of service accounts, as the TokenRequest API gives them, and whom a request comes from."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kube_simulator.access import users
from kube_simulator.errors import ApiError, not_implemented, unauthorized
from kube_simulator.requests.types import User
from kube_simulator.store.store import Store
from kube_simulator.values import Json

AUDIENCE: Final = "https://kubernetes.default.svc"
"""For whom tokens are unless somebody else is named: the API server itself."""
# The default and the lower bound of spec.expirationSeconds.
_DEFAULT_LIFETIME_S: Final = 3600
_SHORTEST_S: Final = 600
# Clocks differ; so much later a token still counts.
_LEEWAY: Final = timedelta(seconds=60)


class InvalidToken(Exception):
    """The token is not good; the message says why, as the status of a TokenReview does."""


@dataclass(frozen=True, slots=True)
class _Issued:
    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...]
    expires: datetime


class Tokens:
    """Issues tokens and knows them again. A token is good as long as its service account exists."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._issued: dict[str, _Issued] = {}

    def request(self, namespace: str, name: str, body: Json) -> Json:
        """Answer a TokenRequest. Raises ApiError: 404, there is no such account; 422, the request is not good."""
        spec, account = body.get("spec") or {}, self._store.get("serviceaccounts", namespace, name)
        if account is None:
            details = {"name": name, "kind": "serviceaccounts"}
            raise ApiError(404, "NotFound", f'serviceaccounts "{name}" not found', details)
        lifetime_s = spec.get("expirationSeconds") or _DEFAULT_LIFETIME_S
        if lifetime_s < _SHORTEST_S:
            raise ApiError(422, "Invalid", "TokenRequest is invalid: spec.expirationSeconds: may be from 10 minutes on")
        if spec.get("boundObjectRef") is not None:
            raise not_implemented("a token that is bound to a Pod, a Secret or a Node")
        audiences, now, uid = spec.get("audiences") or [AUDIENCE], self._now(), account["metadata"]["uid"]
        token, expires = secrets.token_urlsafe(32), now + timedelta(seconds=lifetime_s)
        self._issued[token] = _Issued(namespace, name, uid, tuple(audiences), expires)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": _time(now)},
            "spec": {"audiences": audiences, "expirationSeconds": lifetime_s, "boundObjectRef": None},
            "status": {"token": token, "expirationTimestamp": _time(expires)},
        }

    def verify(self, token: str, audiences: Sequence[str] = ()) -> tuple[User, tuple[str, ...]]:
        """Verify a token, and return its user, and for which of the requested audiences it is good.

        Raises InvalidToken where it is for none of them; without any the API server is meant.
        """
        found = self._issued.get(token)
        if found is None:
            raise InvalidToken("invalid bearer token")
        shared = tuple(each for each in tuple(audiences) or (AUDIENCE,) if each in found.audiences)
        account = self._store.get("serviceaccounts", found.namespace, found.name) or {"metadata": {"uid": ""}}
        if not shared or self._now() > found.expires + _LEEWAY or account["metadata"]["uid"] != found.uid:
            raise InvalidToken("[invalid bearer token, for others, expired, or its account is gone]")
        return users.account(found.namespace, found.name, found.uid), shared

    def authenticate(self, certificate: bytes | None, authorization: str | None) -> User:
        """The user behind a request; anonymous if it shows no credential.

        Args:
            certificate: the client's, as DER, verified by TLS. It comes first: nobody looks at the token of a request
                that has one.
            authorization: the header of that name. Schemes other than Bearer are no credential.

        Raises:
            ApiError: 401, the bearer token is not good. Why, is not told.
        """
        if certificate and (user := users.of_certificate(certificate)) is not None:
            return user
        scheme, _, credential = (authorization or "").strip().partition(" ")
        if scheme.lower() != "bearer" or not credential:
            return users.ANONYMOUS
        try:
            return self.verify(credential)[0]
        except InvalidToken:
            raise unauthorized() from None


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
