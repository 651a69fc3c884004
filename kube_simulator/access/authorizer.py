"""Authorization by the roles and bindings in the store.

It decides before every request. Source of the rules:
https://kubernetes.io/docs/reference/access-authn-authz/rbac/, and what an API server answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final

from kube_simulator.access.users import MASTERS, account_name
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Target, User
from kube_simulator.resources import full_resource
from kube_simulator.store.store import Store
from kube_simulator.values import Json

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
CLUSTER_ROLES: Final = f"clusterroles.{RBAC_GROUP}"
CLUSTER_BINDINGS: Final = f"clusterrolebindings.{RBAC_GROUP}"
ROLES: Final = f"roles.{RBAC_GROUP}"
BINDINGS: Final = f"rolebindings.{RBAC_GROUP}"
_ALL: Final = "*"
_CLUSTER_SCOPE: Final = ""


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes of a request: a verb with a resource, or with a path that is not a resource's.

    A request for the namespace `x` itself is one in the namespace `x`, so that its administrator may see it.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str | None = None
    """Of a request that is not for a resource; all the others but the verb are empty then."""


class Authorizer:
    """Answers for the store as it is now."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def allows(self, user: User, attributes: Attributes) -> bool:
        """Report whether this user may do that, by the rules for all namespaces or by those for this one."""
        if MASTERS in user.groups:
            return True
        subjects = {("User", user.name), *(("Group", group) for group in user.groups)}
        scopes = {_CLUSTER_SCOPE, attributes.namespace}
        return any(_allows(rule, attributes) for scope in scopes for rule in self._rules(scope, subjects))

    def check(self, user: User, attributes: Attributes) -> None:
        """Raises ApiError 403 unless this user may do that."""
        if not self.allows(user, attributes):
            raise _refusal(user, attributes)

    def check_creation(self, target: Target, user: User) -> None:
        """Raises ApiError 403 unless this user may make what a patch or a PUT turns out to create."""
        resource, namespace = target.resource, target.namespace
        namespace = target.name if resource.full_name == "namespaces" else namespace
        group, plural = resource.group, resource.plural
        self.check(user, Attributes("create", group, plural, target.subresource, namespace, target.name))

    def _rules(self, namespace: str, subjects: Set[tuple[str, str]]) -> Iterator[Json]:
        """The rules that the bindings of a scope give to any of these."""
        for binding in self._store.list(BINDINGS if namespace else CLUSTER_BINDINGS, namespace):
            if any(_subject(each, namespace) in subjects for each in binding.get("subjects") or ()):
                kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
                at = (CLUSTER_ROLES, "", name) if kind == "ClusterRole" else (ROLES, namespace, name)
                yield from (self._store.get(*at) or {}).get("rules") or ()


def _subject(subject: Json, namespace: str) -> tuple[str, str]:
    if subject["kind"] == "ServiceAccount":
        return "User", account_name(subject.get("namespace") or namespace, subject["name"])
    return subject["kind"], subject["name"]


def _allows(rule: Json, asked: Attributes) -> bool:
    """Report whether this rule alone is enough. One with names allows nothing without a name, such as a list."""

    def has(field: str, value: str) -> bool:
        values = rule.get(field) or ()
        return _ALL in values or value in values

    if not has("verbs", asked.verb):
        return False
    if asked.path is not None:
        urls = rule.get("nonResourceURLs") or ()
        return any(asked.path == url or (url.endswith(_ALL) and asked.path.startswith(url[:-1])) for url in urls)
    names, resource = rule.get("resourceNames"), full_resource(asked.resource, asked.subresource)
    return (
        has("apiGroups", asked.group)
        and (has("resources", resource) or bool(asked.subresource and has("resources", f"*/{asked.subresource}")))
        and (not names or asked.name in names)
    )


def _refusal(user: User, asked: Attributes) -> ApiError:
    """403 in the words of Kubernetes. The resource need not be one that is served: who may not know is not told."""
    if asked.path is not None:
        message = f'forbidden: User "{user.name}" cannot {asked.verb} path "{asked.path}"'
        return ApiError(403, "Forbidden", message)
    full_name = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    named = f'{full_name} "{asked.name}"' if asked.name else full_name
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    message = (
        f'{named} is forbidden: User "{user.name}" cannot {asked.verb} resource '
        f'"{full_resource(asked.resource, asked.subresource)}" in API group "{asked.group}" {where}'
    )
    details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return ApiError(403, "Forbidden", message, {key: value for key, value in details.items() if value})
