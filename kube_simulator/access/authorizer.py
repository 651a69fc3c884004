"""Authorization by the roles and bindings in the store.

It decides before every request. The rules of each namespace are therefore indexed by user and group, when they are
first needed after a change.

Differs from Kubernetes: neither a refusal nor a review says which binding or which missing role decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kube_simulator.access.identities import MASTERS, account_name
from kube_simulator.access.policy_rules import RBAC_GROUP, Attributes, Rule, parse
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import User
from kube_simulator.resources import full_resource
from kube_simulator.store.store import Change, Store
from kube_simulator.values import Json

CLUSTER_ROLES: Final = f"clusterroles.{RBAC_GROUP}"
CLUSTER_BINDINGS: Final = f"clusterrolebindings.{RBAC_GROUP}"
ROLES: Final = f"roles.{RBAC_GROUP}"
BINDINGS: Final = f"rolebindings.{RBAC_GROUP}"
_CLUSTER_SCOPE: Final = ""

_Index = dict[tuple[str, str], list[Rule]]
"""Rules by kind and name of who has them."""


class Authorizer:
    """Answers for the store as it is now."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # By namespace, the cluster-wide ones under "".
        self._indexes: dict[str, _Index] = {}
        for collection in (CLUSTER_ROLES, CLUSTER_BINDINGS, ROLES, BINDINGS):
            store.subscribe(self._changed, collection)

    def allows(self, user: User, attributes: Attributes) -> bool:
        """Report whether this user may do that."""
        return MASTERS in user.groups or any(
            rule.allows(attributes) for rule in self._rules(user, attributes.namespace)
        )

    def _rules(self, user: User, namespace: str) -> Iterator[Rule]:
        """Yield the rules for all namespaces, and then those for this one."""
        for scope in dict.fromkeys((_CLUSTER_SCOPE, namespace)):
            index = self._index(scope)
            for subject in (("User", user.name), *(("Group", group) for group in user.groups)):
                yield from index.get(subject, ())

    def _changed(self, change: Change) -> None:
        if change.collection == CLUSTER_ROLES:  # which bindings of any namespace may refer to
            self._indexes.clear()
        else:
            self._indexes.pop(change.object["metadata"].get("namespace", _CLUSTER_SCOPE), None)

    def _index(self, namespace: str) -> _Index:
        index = self._indexes.get(namespace)
        if index is None:
            index = self._indexes[namespace] = {}
            for binding in self._store.list(BINDINGS if namespace else CLUSTER_BINDINGS, namespace):
                rules = self._granted(binding, namespace)
                for subject in binding.get("subjects") or ():
                    index.setdefault(_subject(subject, namespace), []).extend(rules)
        return index

    def _granted(self, binding: Json, namespace: str) -> list[Rule]:
        kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
        at = (CLUSTER_ROLES, "", name) if kind == "ClusterRole" else (ROLES, namespace, name)
        role = self._store.get(*at) or {}
        return [parse(rule) for rule in role.get("rules") or ()]


def refusal(user: User, attributes: Attributes) -> ApiError:
    """403 in the words of Kubernetes, for what was decided against.

    The resource need not be one that is served: a user who may not know is not told.
    """
    if attributes.path is not None:
        message = f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
        return ApiError(403, "Forbidden", message, bare=True)
    full_name = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    named = f'{full_name} "{attributes.name}"' if attributes.name else full_name
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    resource = full_resource(attributes.resource, attributes.subresource)
    message = (
        f'{named} is forbidden: User "{user.name}" cannot {attributes.verb} resource '
        f'"{resource}" in API group "{attributes.group}" {where}'
    )
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return ApiError(403, "Forbidden", message, {key: value for key, value in details.items() if value})


def _subject(subject: Json, namespace: str) -> tuple[str, str]:
    if subject["kind"] == "ServiceAccount":
        return "User", account_name(subject.get("namespace") or namespace, subject["name"])
    return subject["kind"], subject["name"]
