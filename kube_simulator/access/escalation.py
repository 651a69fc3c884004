"""Nobody gives away more than they have: the check on whoever writes a role or a binding.

Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping.

Differs from Kubernetes: an apply or a PUT that creates a role is held to be without a name, as a POST is; whoever may
escalate one name only may not create the role of that name so.
"""

from __future__ import annotations

from collections.abc import Sequence

from kube_simulator.access.identities import MASTERS, listed_groups
from kube_simulator.access.rbac import Authorizer, missing_roles
from kube_simulator.access.rules import RBAC_GROUP, Attributes, Rule, parse, uncovered
from kube_simulator.errors import ApiError, forbidden, not_found
from kube_simulator.requests.types import Target, User
from kube_simulator.store.go_text import quoted
from kube_simulator.values import Json

_BINDINGS = frozenset({"rolebindings", "clusterrolebindings"})
_ROLES = frozenset({"roles", "clusterroles"})
_EVERYTHING = Rule(("*",), groups=("*",), resources=("*",)), Rule(("*",), paths=("*",))
# What the garbage collector changes, for which nobody needs the permissions that the object gives.
_GARBAGE_COLLECTORS = frozenset({"finalizers", "ownerReferences", "managedFields"})


def escalation_problem(
    authorizer: Authorizer, target: Target, new: Json, old: Json | None, user: User
) -> ApiError | None:
    """Why this user may not write this object, if it is a role or a binding; None for whatever else.

    Args:
        new: the object as it would be.
        old: as it is, None when it is created.

    Returns:
        403; or 404 for a binding to a role that does not exist, by somebody whose permissions must be held against it.
    """
    resource = target.resource
    if resource.group != RBAC_GROUP or MASTERS in user.groups:
        return None
    if old is not None and _essence(new) == _essence(old):
        return None
    if resource.plural in _ROLES:
        return _role_problem(authorizer, target, new, old, user)
    if resource.plural in _BINDINGS:
        return _binding_problem(authorizer, target, new, user)
    return None


def _role_problem(authorizer: Authorizer, target: Target, new: Json, old: Json | None, user: User) -> ApiError | None:
    resource = target.resource
    name = target.name if old is not None else ""
    asked = Attributes("escalate", RBAC_GROUP, resource.plural, namespace=target.namespace, name=name)
    if authorizer.decide(user, asked).allowed:
        return None
    wanted = [parse(rule) for rule in new.get("rules") or ()]
    if problem := _excess(authorizer, target, wanted, user):
        return forbidden(resource, new["metadata"]["name"], problem)
    if (_aggregates(new) or (old is not None and _aggregates(old))) and _excess(authorizer, target, _EVERYTHING, user):
        why = "must have cluster-admin privileges to use the aggregationRule"
        return forbidden(resource, new["metadata"]["name"], why)
    return None


def _binding_problem(authorizer: Authorizer, target: Target, new: Json, user: User) -> ApiError | None:
    kind, name = new["roleRef"]["kind"], new["roleRef"]["name"]
    plural = "clusterroles" if kind == "ClusterRole" else "roles"
    asked = Attributes("bind", RBAC_GROUP, plural, namespace=target.namespace, name=name)
    if authorizer.decide(user, asked).allowed:
        return None
    rules = authorizer.role_rules(kind, target.namespace, name)
    if rules is None:
        return not_found(target.resource, name)
    if problem := _excess(authorizer, target, [parse(rule) for rule in rules], user):
        return forbidden(target.resource, new["metadata"]["name"], problem)
    return None


def _excess(authorizer: Authorizer, target: Target, wanted: Sequence[Rule], user: User) -> str:
    """What is wanted and not held, in the words of Kubernetes; empty if there is nothing."""
    grants = list(authorizer.grants(user, target.namespace))
    lacking = uncovered([rule for grant in grants for rule in grant.parsed], wanted)
    if not lacking:
        return ""
    missing = [grant.missing for grant in grants if grant.missing is not None]
    unresolved = f"; resolution errors: [{missing_roles(missing, target.resource.plural)}]" if missing else ""
    return (
        f"user {quoted(user.name)} (groups={_go_list(listed_groups(user))}) is attempting to grant RBAC "
        f"permissions not currently held:\n{_described(lacking)}{unresolved}"
    )


def _described(parts: Sequence[Attributes]) -> str:
    """A line for each resource, its verbs together, and for each verb with a path, as Kubernetes lists them."""
    verbs: dict[str, list[str]] = {}
    for part in parts:
        if part.path is not None:
            verbs.setdefault(f"NonResourceURLs:{_go_list([part.path])}, Verbs:{_go_list([part.verb])}", [])
            continue
        names = f", ResourceNames:{_go_list([part.name])}" if part.name else ""
        what = f"APIGroups:{_go_list([part.group])}, Resources:{_go_list([part.resource])}{names}"
        verbs.setdefault(what, []).append(part.verb)
    lines = (f"{what}, Verbs:{_go_list(those)}" if those else what for what, those in verbs.items())
    return "\n".join(sorted(f"{{{line}}}" for line in lines))


def _go_list(values: Sequence[str]) -> str:
    return f"[{' '.join(quoted(value) for value in values)}]"


def _aggregates(role: Json) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _essence(object: Json) -> Json:
    metadata = {key: value for key, value in object["metadata"].items() if key not in _GARBAGE_COLLECTORS}
    return {**object, "metadata": metadata}
