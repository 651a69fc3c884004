"""Which rights are asked for, and where: of the settings and of the place where the operator runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from memcached_operator.check.findings import Finding, Verdict
from memcached_operator.rights import LEASE, LIFE, LIFE_CLUSTER, REVIEWS, WATCHED, Right
from operator_runtime.cache.store import ObjectKey


@dataclass(frozen=True, slots=True)
class Scope:
    """What the operator would do, as far as rights go.

    Attributes:
        watched: namespaces that are watched, () for all of them.
        election: how a leader is elected, None where none is.
        lock: the Lease or the ConfigMap of the election.
        secure_metrics: it asks the API server who may scrape.
    """

    watched: tuple[str, ...]
    election: Literal["lease", "life"] | None = None
    lock: ObjectKey | None = None
    secure_metrics: bool = False


@dataclass(frozen=True, slots=True)
class Demand:
    """A right that is needed somewhere.

    Attributes:
        namespace: None for all namespaces, and for what belongs to none.
        name: of the one object that it is about; "" for any.
    """

    right: Right
    namespace: str | None
    name: str = ""

    def __str__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"{', '.join(self.right.verbs)} {self.right.qualified_name}{name}{self.where}"

    def rule(self) -> dict[str, list[str]]:
        """The rule that grants it, as it stands in a Role."""
        right = self.right
        names = {"resourceNames": [self.name]} if self.name else {}
        return {"apiGroups": [right.group], "resources": [right.resource], **names, "verbs": list(right.verbs)}

    @property
    def where(self) -> str:
        """In words, to follow the right."""
        if self.right.resource in _CLUSTER_SCOPED:
            return ""
        return f" in {self.namespace}" if self.namespace else " in all namespaces"


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose rights they are.

    Attributes:
        name: as RBAC knows it, "" where it is not known.
    """

    name: str

    def __str__(self) -> str:
        return self.name or "the account that asks"


_CLUSTER_SCOPED: Final = frozenset(
    right.resource
    for right in (
        *LIFE_CLUSTER,
        *REVIEWS,
        Right("", "namespaces", ()),
        Right("apiextensions.k8s.io", "customresourcedefinitions", ()),
        Right("rbac.authorization.k8s.io", "clusterroles", ()),
        Right("rbac.authorization.k8s.io", "clusterrolebindings", ()),
    )
)


def demands(scope: Scope) -> Iterator[Demand]:
    """The rights that the operator needs."""
    for namespace in scope.watched or (None,):
        for right in WATCHED:
            yield Demand(right, namespace)
    if scope.lock is not None:
        for right in LEASE if scope.election == "lease" else LIFE:
            yield Demand(right, scope.lock.namespace, scope.lock.name if right.named else "")
    if scope.election == "life":
        for right in LIFE_CLUSTER:
            yield Demand(right, None)
    if scope.secure_metrics:
        for right in REVIEWS:
            yield Demand(right, None)


def judge_right(demand: Demand, allowed: Collection[str], subject: Subject, *, rule_remedy: bool = True) -> Finding:
    """What is found of a right of which these verbs are granted.

    Args:
        rule_remedy: say which rule to add; not where an install brings all of them.
    """
    right = demand.right
    missing = tuple(verb for verb in right.verbs if verb not in allowed)
    if not missing:
        return Finding("right", Verdict.OK, str(demand))
    lacking = replace(demand, right=replace(right, verbs=missing))
    rule = lacking.rule()
    text = f"{lacking}: without it {right.without}"
    return Finding(
        "right",
        Verdict.MISSING,
        text,
        _remedy(demand, rule, subject) if rule_remedy else "",
        missing={"namespace": demand.namespace, "rule": rule},
    )


def _remedy(demand: Demand, rule: Mapping[str, Sequence[str]], subject: Subject) -> str:
    role = f"a Role in {demand.namespace}" if demand.namespace else "a ClusterRole"
    return f"add the rule {rule_text(rule)} to {role} that is bound to {subject}"


def rule_text(rule: Mapping[str, Sequence[str]]) -> str:
    """A rule as it can stand in the YAML of a Role."""
    lists = {field: ", ".join(each or '""' for each in values) for field, values in rule.items()}
    return "{" + ", ".join(f"{field}: [{text}]" for field, text in lists.items()) + "}"
