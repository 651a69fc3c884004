"""Who asks: from a client certificate or a bearer token to a user with groups.

Differs from Kubernetes: the groups of a user have no order; where they are listed, they are sorted, and the group that
every user has stands last. A certificate of another authority is refused in the handshake and not with 401.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from memcached_operator.simulator.errors import Json, unauthorized
from memcached_operator.simulator.requests.types import User

if TYPE_CHECKING:
    from memcached_operator.simulator.access.tokens import Tokens

MASTERS: Final = "system:masters"
"""The group whose members may do everything, whatever RBAC says."""
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ANONYMOUS: Final = User("system:anonymous", frozenset({UNAUTHENTICATED}))
"""Whoever shows no credential."""
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
"""The key of `User.extra` that tells by which credential a user came."""
_ACCOUNT = "system:serviceaccount:"
# A certificate is read once for all requests that come with it; there are far fewer clients than this.
_CERTIFICATES = 1024


def authenticate(tokens: Tokens, *, certificate: bytes | None = None, authorization: str | None = None) -> User:
    """The user behind a request; anonymous if it shows no credential.

    Args:
        tokens: knows the good ones.
        certificate: the client's, as DER (`SSLObject.getpeercert(binary_form=True)`), verified by TLS. It comes first:
            nobody looks at the token of a request that has one.
        authorization: the header of that name. Schemes other than Bearer are no credential.

    Raises:
        ApiError: 401, the bearer token is not good. Why, is not told.
    """
    if certificate and (user := of_certificate(certificate)) is not None:
        return user
    token = bearer(authorization)
    if not token:
        return ANONYMOUS
    user = tokens.user_of(token)
    if user is None:
        raise unauthorized()
    return user


def bearer(authorization: str | None) -> str:
    """The token of an Authorization header; empty if there is none."""
    scheme, _, credential = (authorization or "").strip().partition(" ")
    return credential.partition(" ")[0] if scheme.lower() == "bearer" else ""


@lru_cache(_CERTIFICATES)
def of_certificate(certificate: bytes) -> User | None:
    """The user that a certificate (DER) names: CN is the name, each O a group. None without a CN."""
    read = x509.load_der_x509_certificate(certificate)
    names = [str(each.value) for each in read.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not names or not names[-1]:
        return None
    groups = [str(each.value) for each in read.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    fingerprint = read.fingerprint(hashes.SHA256()).hex()
    return User(names[-1], with_authenticated(groups), extra={CREDENTIAL_ID: (f"X509SHA256={fingerprint}",)})


def with_authenticated(groups: Iterable[str]) -> frozenset[str]:
    """These groups, and the one that every user has who is not anonymous."""
    given = frozenset(groups)
    return given if UNAUTHENTICATED in given else given | {AUTHENTICATED}


def account_name(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{_ACCOUNT}{namespace}:{name}"


def account_groups(namespace: str) -> frozenset[str]:
    """The groups of every service account of a namespace, without that of every user."""
    return frozenset({"system:serviceaccounts", f"system:serviceaccounts:{namespace}"})


def split_account_name(user: str) -> tuple[str, str] | None:
    """Namespace and name of the service account whose user name this is; None if it is not one's."""
    if not user.startswith(_ACCOUNT):
        return None
    namespace, _, name = user.removeprefix(_ACCOUNT).partition(":")
    return (namespace, name) if namespace and name and ":" not in name else None


def listed_groups(user: User) -> list[str]:
    """The user's groups in the order in which they are shown."""
    return sorted(user.groups, key=lambda group: (group in {AUTHENTICATED, UNAUTHENTICATED}, group))


def user_info(user: User) -> Json:
    """The user as `authentication.k8s.io/v1` UserInfo."""
    fields: Json = {
        "username": user.name,
        "uid": user.uid,
        "groups": listed_groups(user),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in fields.items() if value}
