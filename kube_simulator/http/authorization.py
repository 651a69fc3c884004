"""The authorization of a request by RBAC. It comes before the check whether the resource exists."""

from __future__ import annotations

from collections.abc import Callable

from kube_simulator.access.authorizer import Authorizer, refusal
from kube_simulator.access.policy_rules import Attributes, of_target
from kube_simulator.http.routes import Route
from kube_simulator.requests.types import Caller, Target, User


def check(authorizer: Authorizer, user: User, route: Route) -> None:
    """Return where the user may do it.

    Raises:
        ApiError: 403.
    """
    _decide(authorizer, user, _attributes(route))


def may_create(authorizer: Authorizer) -> Callable[[Target, Caller], None]:
    """Make the check of a patch or a PUT that turns out to be a creation; it raises 403."""
    return lambda target, caller: _decide(authorizer, caller.user, of_target("create", target))


def _attributes(route: Route) -> Attributes:
    if not route.resource:
        return Attributes(route.verb, path=route.path)
    return Attributes(
        route.verb, route.group, route.resource, route.subresource, route.namespace, route.authorized_name
    )


def _decide(authorizer: Authorizer, user: User, attributes: Attributes) -> None:
    if not authorizer.allows(user, attributes):
        raise refusal(user, attributes)
