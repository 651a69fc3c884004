"""Permissions that are required, and where: by the settings and the place where the operator runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from memcached_operator.check.findings import Finding, Verdict
from memcached_operator.permissions import (
    LEASE,
    LIFE,
    LIFE_CLUSTER,
    OWN_POD,
    REVIEWS,
    SERVER_CREDENTIALS,
    WATCHED,
    Permission,
)
from operator_runtime.cache.store import ObjectKey


@dataclass(frozen=True, slots=True)
class Scope:
    """Scope of the operator's work, as far as permissions go.

    Attributes:
        watched: namespaces that are watched, () for all of them.
        election: how a leader is elected, None where none is.
        own_pod: the namespace of its own pod, whose image it reads there; None where it need not.
        secure_metrics: it queries the API server who may scrape.
        server_credentials: it reads the Secrets that Memcacheds name.
    """

    watched: tuple[str, ...]
    election: Literal["lease", "life"] | None = None
    lock: ObjectKey | None = None
    own_pod: str | None = None
    secure_metrics: bool = False
    server_credentials: bool = False


@dataclass(frozen=True, slots=True)
class RequiredPermission:
    """A permission that is needed somewhere.

    Attributes:
        namespace: None for all namespaces, and for what belongs to none.
        name: of the one object that it is about; "" for any.
    """

    permission: Permission
    namespace: str | None
    name: str = ""

    def __str__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"{', '.join(self.permission.verbs)} {self.permission.qualified_name}{name}{self.where}"

    def rule(self) -> dict[str, list[str]]:
        permission = self.permission
        names = {"resourceNames": [self.name]} if self.name else {}
        return {
            "apiGroups": [permission.group],
            "resources": [permission.resource],
            **names,
            "verbs": list(permission.verbs),
        }

    def lacking(self, granted: Collection[str]) -> RequiredPermission | None:
        """The same with the verbs that are not granted, None where all are."""
        missing = tuple(verb for verb in self.permission.verbs if verb not in granted)
        return replace(self, permission=replace(self.permission, verbs=missing)) if missing else None

    @property
    def where(self) -> str:
        """Place in words, to follow the permission."""
        if self.permission.resource in _CLUSTER_SCOPED:
            return ""
        return f" in {self.namespace}" if self.namespace else " in all namespaces"


_CLUSTER_SCOPED: Final = frozenset(
    (
        *(permission.resource for permission in (*LIFE_CLUSTER, *REVIEWS)),
        *("namespaces", "customresourcedefinitions", "clusterroles", "clusterrolebindings"),
    )
)


def required_permissions(scope: Scope) -> Iterator[RequiredPermission]:
    for namespace in scope.watched or (None,):
        for permission in (*WATCHED, *(SERVER_CREDENTIALS if scope.server_credentials else ())):
            yield RequiredPermission(permission, namespace)
    if scope.lock is not None:
        for permission in LEASE if scope.election == "lease" else LIFE:
            yield RequiredPermission(permission, scope.lock.namespace, scope.lock.name if permission.named else "")
    if scope.own_pod is not None:
        yield from (RequiredPermission(permission, scope.own_pod) for permission in OWN_POD)
    of_cluster = (*(LIFE_CLUSTER if scope.election == "life" else ()), *(REVIEWS if scope.secure_metrics else ()))
    yield from (RequiredPermission(permission, None) for permission in of_cluster)


def judge_permission(
    required: RequiredPermission, allowed: Collection[str], subject: str, *, rule_remedy: bool = True
) -> Finding:
    """Judge a permission of which these verbs are granted.

    Args:
        subject: whose permissions they are, "" where that is not known.
        rule_remedy: report which rule to add; not where an install brings all of them.
    """
    if (lacking := required.lacking(allowed)) is None:
        return Finding("permission", Verdict.OK, str(required))
    rule = lacking.rule()
    text = f"{lacking}: without it {required.permission.without}"
    return Finding(
        "permission",
        Verdict.MISSING,
        text,
        _remedy(required, rule, subject) if rule_remedy else "",
        missing={"namespace": required.namespace, "rule": rule},
    )


def _remedy(required: RequiredPermission, rule: Mapping[str, Sequence[str]], subject: str) -> str:
    role = f"a Role in {required.namespace}" if required.namespace else "a ClusterRole"
    return f"add the rule {rule_text(rule)} to {role} that is bound to {subject or 'the current account'}"


def rule_text(rule: Mapping[str, Sequence[str]]) -> str:
    """A rule as it can stand in the YAML of a Role."""
    lists = {field: ", ".join(each or '""' for each in values) for field, values in rule.items()}
    return "{" + ", ".join(f"{field}: [{text}]" for field, text in lists.items()) + "}"
