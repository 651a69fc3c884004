"""Attributes of a request that RBAC judges, and one rule of a role: whether it allows that.

Source of the rules: https://kubernetes.io/docs/reference/access-authn-authz/rbac/, and what an API server answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from kube_simulator.requests.types import Target
from kube_simulator.resources import full_resource
from kube_simulator.values import Json

RBAC_GROUP = "rbac.authorization.k8s.io"
_ALL = "*"


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


def of_target(verb: str, target: Target) -> Attributes:
    """Return the attributes of a request with this verb for this target."""
    resource = target.resource
    own = resource.full_name == "namespaces"
    namespace = target.name if own else target.namespace
    return Attributes(verb, resource.group, resource.plural, target.subresource, namespace, target.name)


@dataclass(frozen=True, slots=True)
class Rule:
    """One element of a role's `rules`."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    """Of `pods`, `pods/log`, `*/scale`, `*`; `pods/*` means nothing."""
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def allows(self, attributes: Attributes) -> bool:
        """Report whether this rule alone is enough. One with names allows nothing without a name, such as a list."""
        if not _has(self.verbs, attributes.verb):
            return False
        if attributes.path is not None:
            return any(_path_matches(each, attributes.path) for each in self.paths)
        return (
            _has(self.groups, attributes.group)
            and _resource_matches(self.resources, full_resource(attributes.resource, attributes.subresource))
            and (not self.names or attributes.name in self.names)
        )


def parse(rule: Json) -> Rule:
    """A rule as it stands in a role."""
    fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return Rule(*(tuple(rule.get(field) or ()) for field in fields))


def _has(values: tuple[str, ...], value: str) -> bool:
    return _ALL in values or value in values


def _resource_matches(resources: tuple[str, ...], requested: str) -> bool:
    if _has(resources, requested):
        return True
    _, slash, subresource = requested.partition("/")
    return bool(slash) and f"*/{subresource}" in resources


def _path_matches(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith(_ALL) and path.startswith(pattern.rstrip(_ALL)))
