"""One user asks as another: `kubectl --as`, by the headers Impersonate-User, -Group, -Uid and -Extra-*.

Differs from Kubernetes: which of the verbs of constrained impersonation are held is not asked, `impersonate` alone is.
The message about groups without a user says so in other words.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from kube_simulator.access.identities import (
    ANONYMOUS,
    UNAUTHENTICATED,
    account_groups,
    split_account_name,
    with_authenticated,
)
from kube_simulator.access.rbac import Authorizer, refusal
from kube_simulator.access.rules import Attributes
from kube_simulator.errors import bad_request
from kube_simulator.requests.types import User

_PREFIX = "impersonate-"
_EXTRA = "extra-"
_AUTHENTICATION_GROUP = "authentication.k8s.io"


def impersonated(authorizer: Authorizer, user: User, headers: Iterable[tuple[str, str]]) -> User:
    """The user as whom the request is meant; the one who sends it, if no header says otherwise.

    Args:
        authorizer: is asked about each part of the other's identity.
        user: who sends the request.
        headers: all of the request's, those that are repeated too.

    Raises:
        ApiError: 403, the user may not impersonate that; 400, there are groups and the like and no user.
    """
    asked = [(key.lower().removeprefix(_PREFIX), value) for key, value in headers if key.lower().startswith(_PREFIX)]
    if not asked:
        return user
    name = next((value for key, value in asked if key == "user"), "")
    groups = [value for key, value in asked if key == "group"]
    uid = next((value for key, value in asked if key == "uid"), "")
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in asked:
        if key.startswith(_EXTRA):
            field = unquote(key.removeprefix(_EXTRA))
            extra[field] = (*extra.get(field, ()), value)
    if not name:
        if groups or uid or extra:
            raise bad_request("requested groups, a uid or extra fields without impersonating a user name")
        return user

    account = split_account_name(name)
    if account is None:
        parts = [Attributes("impersonate", resource="users", name=name)]
    else:
        parts = [Attributes("impersonate", resource="serviceaccounts", namespace=account[0], name=account[1])]
    parts += [Attributes("impersonate", resource="groups", name=group) for group in groups]
    for field, values in extra.items():
        parts += [Attributes("impersonate", _AUTHENTICATION_GROUP, "userextras", field, name=each) for each in values]
    if uid:
        parts.append(Attributes("impersonate", _AUTHENTICATION_GROUP, "uids", name=uid))
    for part in parts:
        decision = authorizer.decide(user, part)
        if not decision.allowed:
            raise refusal(user, part, decision.reason)

    given = frozenset(groups)
    if account is not None and not groups:
        given = account_groups(account[0])
    if name == ANONYMOUS.name:
        return User(name, given | {UNAUTHENTICATED}, uid, extra)
    return User(name, with_authenticated(given), uid, extra)
