"""Names and groups that Kubernetes itself gives: of its own users, of service accounts, and of everybody.

Differs from Kubernetes: the groups of a user have no order; where they are listed, they are sorted, and the group that
every user has stands last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kube_simulator.requests.types import User
from kube_simulator.values import Json

MASTERS: Final = "system:masters"
"""The group whose members may do everything, whatever RBAC says."""
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ANONYMOUS: Final = User("system:anonymous", frozenset({UNAUTHENTICATED}))
"""Whoever shows no credential."""
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
"""The key of `User.extra` that tells by which credential a user came."""
_ACCOUNT = "system:serviceaccount:"


def with_authenticated(groups: Iterable[str]) -> frozenset[str]:
    """Return these groups, and the one that every user has who is not anonymous."""
    given = frozenset(groups)
    return given if UNAUTHENTICATED in given else given | {AUTHENTICATED}


def account_name(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{_ACCOUNT}{namespace}:{name}"


def account_groups(namespace: str) -> frozenset[str]:
    """The groups of every service account of a namespace, without that of every user."""
    return frozenset({"system:serviceaccounts", f"system:serviceaccounts:{namespace}"})


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
