"""Authentication: from a client certificate or a bearer token to a user with groups.

Differs from Kubernetes: a certificate of another authority is refused in the handshake and not with 401.
"""

from __future__ import annotations

from functools import lru_cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from kube_simulator.access.identities import ANONYMOUS, CREDENTIAL_ID, with_authenticated
from kube_simulator.access.tokens import Tokens
from kube_simulator.errors import unauthorized
from kube_simulator.requests.types import User

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
