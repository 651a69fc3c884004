"""Users: the names and groups that Kubernetes itself gives, and whom a client certificate names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from kube_simulator.requests.types import User
from kube_simulator.values import Json

MASTERS: Final = "system:masters"
"""The group whose members may do everything, whatever RBAC says."""
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ANONYMOUS: Final = User("system:anonymous", frozenset({UNAUTHENTICATED}))
"""Whoever shows no credential."""


def account_name(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def account(namespace: str, name: str, uid: str) -> User:
    """The user that a service account is."""
    groups = {"system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED}
    return User(account_name(namespace, name), frozenset(groups), uid)


def user_info(user: User) -> Json:
    """The user as `authentication.k8s.io/v1` UserInfo."""
    everybody = {AUTHENTICATED, UNAUTHENTICATED}
    fields: Json = {
        "username": user.name,
        "uid": user.uid,
        "groups": sorted(user.groups, key=lambda group: (group in everybody, group)),
    }
    return {key: value for key, value in fields.items() if value}


@lru_cache(1024)  # read once for all requests that come with it
def of_certificate(certificate: bytes) -> User | None:
    """The user that a certificate (DER) names: CN is the name, each O a group. None without a CN."""
    read = x509.load_der_x509_certificate(certificate)

    def named(attribute: x509.ObjectIdentifier) -> Iterable[str]:
        return [str(each.value) for each in read.subject.get_attributes_for_oid(attribute)]

    name, groups = "".join(named(NameOID.COMMON_NAME)), {*named(NameOID.ORGANIZATION_NAME)}
    groups |= set() if UNAUTHENTICATED in groups else {AUTHENTICATED}
    return User(name, frozenset(groups)) if name else None
