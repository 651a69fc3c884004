"""Authorization by the roles and bindings in the store.

It decides before every request. The bindings of each namespace are therefore indexed by user and group, when they are
first needed after a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kube_simulator.access.identities import MASTERS, account_name
from kube_simulator.access.policy_rules import RBAC_GROUP, Attributes, Rule, parse
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import User
from kube_simulator.resources import full_resource
from kube_simulator.store.store import Change, Store
from kube_simulator.values import Json

CLUSTER_ROLES = f"clusterroles.{RBAC_GROUP}"
CLUSTER_BINDINGS = f"clusterrolebindings.{RBAC_GROUP}"
ROLES = f"roles.{RBAC_GROUP}"
BINDINGS = f"rolebindings.{RBAC_GROUP}"
_CLUSTER_SCOPE = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision whether something is allowed, and by which binding; or what is wrong with those that might allow it."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """Grant of one binding to one of its subjects."""

    binding: str
    """Of `ClusterRoleBinding "admins"`, `RoleBinding "admins/default"`."""
    role: str
    """Of `ClusterRole "admin"`, `Role "admin"`."""
    subject: str
    """Of `User "jane"`, `Group "system:authenticated"`, `ServiceAccount "robot/default"`."""
    rules: tuple[Rule, ...]
    missing: tuple[str, str] | None = None
    """Kind in lower case, and name, of a role that does not exist."""


_Index = dict[tuple[str, str], list[Grant]]


class Authorizer:
    """Answers for the store as it is now."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # By namespace, the cluster-wide ones under "".
        self._indexes: dict[str, _Index] = {}
        for collection in (CLUSTER_ROLES, CLUSTER_BINDINGS, ROLES, BINDINGS):
            store.subscribe(self._changed, collection)

    def decide(self, user: User, attributes: Attributes) -> Decision:
        """Decide whether this user may do that."""
        if MASTERS in user.groups:
            return Decision(True)
        missing: list[tuple[str, str]] = []
        for grant in self._grants(user, attributes.namespace):
            if grant.missing is not None:
                missing.append(grant.missing)
            for rule in grant.rules:
                if rule.allows(attributes):
                    reason = f"RBAC: allowed by {grant.binding} of {grant.role} to {grant.subject}"
                    return Decision(True, reason)
        return Decision(False, f"RBAC: {_missing_roles(missing)}" if missing else "")

    def _grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Yield the grants for all namespaces, and then those for this one; each binding once."""
        subjects = [("User", user.name), *(("Group", group) for group in sorted(user.groups))]
        for scope in dict.fromkeys((_CLUSTER_SCOPE, namespace)):
            index, seen = self._index(scope), set[str]()
            for subject in subjects:
                for grant in index.get(subject, ()):
                    if grant.binding not in seen:
                        seen.add(grant.binding)
                        yield grant

    def _changed(self, change: Change) -> None:
        if change.collection == CLUSTER_ROLES:  # which bindings of any namespace may refer to
            self._indexes.clear()
        else:
            self._indexes.pop(change.object["metadata"].get("namespace", _CLUSTER_SCOPE), None)

    def _index(self, namespace: str) -> _Index:
        index = self._indexes.get(namespace)
        if index is None:
            collection = CLUSTER_BINDINGS if namespace == _CLUSTER_SCOPE else BINDINGS
            index = {}
            for binding in self._store.list(collection, namespace):
                for key, grant in self._granted(binding):
                    index.setdefault(key, []).append(grant)
            self._indexes[namespace] = index
        return index

    def _granted(self, binding: Json) -> Iterator[tuple[tuple[str, str], Grant]]:
        name, namespace = binding["metadata"]["name"], binding["metadata"].get("namespace", "")
        kind, role = binding["roleRef"]["kind"], binding["roleRef"]["name"]
        clusterwide = kind == "ClusterRole"
        found = self._store.get(CLUSTER_ROLES, "", role) if clusterwide else self._store.get(ROLES, namespace, role)
        rules = () if found is None else tuple(map(parse, found.get("rules") or ()))
        for subject in binding.get("subjects") or ():
            key, text = _subject(subject, namespace)
            yield (
                key,
                Grant(
                    binding=f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"',
                    role=f'{kind} "{role}"',
                    subject=text,
                    rules=rules,
                    missing=(kind.lower(), role) if found is None else None,
                ),
            )


def refusal(user: User, attributes: Attributes, reason: str = "") -> ApiError:
    """403 in the words of Kubernetes, for what was decided against.

    The resource need not be one that is served: a user who may not know is not told.
    """
    because = f": {reason}" if reason else ""
    if attributes.path is not None:
        message = f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}"{because}'
        return ApiError(403, "Forbidden", message, bare=True)
    full_name = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    named = f'{full_name} "{attributes.name}"' if attributes.name else full_name
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    resource = full_resource(attributes.resource, attributes.subresource)
    message = (
        f'{named} is forbidden: User "{user.name}" cannot {attributes.verb} resource '
        f'"{resource}" in API group "{attributes.group}" {where}{because}'
    )
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return ApiError(403, "Forbidden", message, {key: value for key, value in details.items() if value})


def _missing_roles(missing: Iterable[tuple[str, str]]) -> str:
    """Describe that these do not exist, each once, by kind and name."""
    reasons = dict.fromkeys(f'{kind}.{RBAC_GROUP} "{name}" not found' for kind, name in missing)
    return next(iter(reasons)) if len(reasons) == 1 else f"[{', '.join(reasons)}]"


def _subject(subject: Json, namespace: str) -> tuple[tuple[str, str], str]:
    kind, name = subject["kind"], subject["name"]
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return ("User", account_name(home, name)), f'ServiceAccount "{name}/{home}"'
    return (kind, name), f'{kind} "{name}"'
