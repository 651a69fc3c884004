"""Bearer tokens: those of service accounts, as the TokenRequest API gives them, and opaque ones for other users.

Differs from Kubernetes: an API server remembers for 10 s that a token was good; here a revoked token is refused at
once. Tokens are bound to no object (501).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec

from kube_simulator.access.identities import (
    CREDENTIAL_ID,
    account_groups,
    account_name,
    with_authenticated,
)
from kube_simulator.access.jwt import BadSignature, Malformed, Signer
from kube_simulator.errors import ApiError, not_implemented
from kube_simulator.requests.types import User
from kube_simulator.schema.causes import invalid
from kube_simulator.store.store import Store
from kube_simulator.values import Json

AUDIENCE: Final = "https://kubernetes.default.svc"
"""Who issues the tokens, and for whom they are unless somebody else is named: the API server itself."""
# The bounds and the default of spec.expirationSeconds.
_DEFAULT_LIFETIME_S = 3600
_SHORTEST_LIFETIME_S = 600
_LONGEST_LIFETIME_S = 2**32
# Clocks differ; so much later a token, and an object that is being deleted, still counts.
_LEEWAY_S = 60
_READ_TOKENS = 1024  # whose signatures are remembered to be good
_INVALID = "invalid bearer token"


class InvalidToken(Exception):
    """The token is not good; the message says why, as the status of a TokenReview does."""


@dataclass(frozen=True, slots=True)
class Verified:
    """User of a token, and for which of the requested audiences it is good."""

    user: User
    audiences: tuple[str, ...]


class Tokens:
    """Issues tokens and knows them again. A token is good as long as its service account exists."""

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], datetime],
        key: ec.EllipticCurvePrivateKey | None = None,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        """
        Args:
            store: of the service accounts.
            now: the present time, in UTC.
            key: on the curve P-256, for the signatures; None makes one.
            new_id: the `jti` of the next token.
        """
        self._store = store
        self._now = now
        self._signer = Signer(key)
        self._new_id = new_id
        self._opaque: dict[str, User] = {}
        self._claims = lru_cache(_READ_TOKENS)(self._read)

    def add(self, token: str, user: User) -> None:
        """Take this token for this user's from now on."""
        self._opaque[token] = User(user.name, with_authenticated(user.groups), user.uid, user.extra)

    def request(self, namespace: str, name: str, body: Json) -> Json:
        """Answer a POST to `serviceaccounts/NAME/token`.

        Args:
            body: a TokenRequest that fits its schema and the path's namespace.

        Raises:
            ApiError: 404, there is no such account; 422, the request is not good.
        """
        spec, account = body.get("spec") or {}, self._store.get("serviceaccounts", namespace, name)
        if account is None:
            details = {"name": name, "kind": "serviceaccounts"}
            raise ApiError(404, "NotFound", f'serviceaccounts "{name}" not found', details)
        uid = account["metadata"]["uid"]
        lifetime_s = _lifetime_s(spec.get("expirationSeconds"))
        if spec.get("boundObjectRef") is not None:
            raise not_implemented("a token that is bound to a Pod, a Secret or a Node")
        audiences = spec.get("audiences") or [AUDIENCE]
        now = self._now()
        token = self.issue(account, audiences=audiences, lifetime_s=lifetime_s)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": _time(now)},
            "spec": {"audiences": audiences, "expirationSeconds": lifetime_s, "boundObjectRef": None},
            "status": {"token": token, "expirationTimestamp": _time(now + timedelta(seconds=lifetime_s))},
        }

    def issue(
        self, account: Json, *, audiences: Sequence[str] = (AUDIENCE,), lifetime_s: int = _DEFAULT_LIFETIME_S
    ) -> str:
        """A new token of a service account."""
        name, namespace = account["metadata"]["name"], account["metadata"]["namespace"]
        now_s = int(self._now().timestamp())
        claims = {
            "aud": list(audiences),
            "exp": now_s + lifetime_s,
            "iat": now_s,
            "iss": AUDIENCE,
            "jti": self._new_id(),
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": {"name": name, "uid": account["metadata"]["uid"]},
            },
            "nbf": now_s,
            "sub": account_name(namespace, name),
        }
        return self._signer.sign(claims)

    def user_of(self, token: str) -> User | None:
        """Return the user of a token for the API server; None if it is not good."""
        try:
            return self.verify(token).user
        except InvalidToken:
            return None

    def verify(self, token: str, audiences: Sequence[str] = ()) -> Verified:
        """Verify a token, and return its user.

        Args:
            audiences: one of them must be among the token's; none: the API server.

        Raises:
            InvalidToken: it is not good.
        """
        desired = tuple(audiences) or (AUDIENCE,)
        if (user := self._opaque.get(token)) is not None:
            return Verified(user, desired)
        claims = self._claims(token)
        shared = tuple(each for each in desired if each in claims["aud"])
        if not shared:
            raise _bad(f"token audiences {_go_list(claims['aud'])} is invalid for the target audiences "
                       f"{_go_list(desired)}")  # fmt: skip
        now_s = self._now().timestamp()
        if now_s > claims["exp"] + _LEEWAY_S:
            raise _bad("service account token has expired")
        if now_s < claims["nbf"] - _LEEWAY_S:
            raise _bad("service account token is not valid yet")
        return Verified(self._account(claims), shared)

    def _account(self, claims: Json) -> User:
        """The user of the token, provided that the account is still there."""
        namespace, reference = claims["kubernetes.io"]["namespace"], claims["kubernetes.io"]["serviceaccount"]
        name, uid = reference["name"], reference["uid"]
        account = self._store.get("serviceaccounts", namespace, name)
        if account is None:
            raise _bad(f'serviceaccounts "{name}" not found')
        if account["metadata"]["uid"] != uid:
            raise _bad(f"service account UID ({account['metadata']['uid']}) does not match claim ({uid})")
        if self._is_ending(account):
            raise _bad(f"service account {namespace}/{name} has been deleted")
        extra = {CREDENTIAL_ID: (f"JTI={claims['jti']}",)}
        return User(account_name(namespace, name), with_authenticated(account_groups(namespace)), uid, extra)

    def _is_ending(self, object: Json) -> bool:
        """Report whether an object that finalizers hold should have been gone for a while."""
        ends = object["metadata"].get("deletionTimestamp")
        if ends is None:
            return False
        return datetime.fromisoformat(ends) < self._now() - timedelta(seconds=_LEEWAY_S)

    def _read(self, token: str) -> Json:
        """The claims of a token that was made here."""
        try:
            claims = self._signer.read(token)
        except Malformed:
            raise InvalidToken(_INVALID) from None
        except BadSignature:
            raise _bad("go-jose/go-jose: error in cryptographic primitive") from None
        if claims.get("iss") != AUDIENCE:
            raise InvalidToken(_INVALID)
        return claims


def _lifetime_s(desired: int | None) -> int:
    if desired is None:
        return _DEFAULT_LIFETIME_S
    if _SHORTEST_LIFETIME_S <= desired <= _LONGEST_LIFETIME_S:
        return desired
    cause = invalid("spec.expirationSeconds", desired, "may be from 10 minutes to 2^32 seconds")
    details = {"group": "authentication.k8s.io", "kind": "TokenRequest", "causes": [cause.json()]}
    raise ApiError(422, "Invalid", f"TokenRequest is invalid: {cause.field}: {cause.message}", details)


def _bad(why: str) -> InvalidToken:
    return InvalidToken(f"[{_INVALID}, {why}]")


def _go_list(values: Sequence[str]) -> str:
    return f"[{' '.join(values)}]"


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
