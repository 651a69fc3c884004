"""Pure: the disruption budget of a Memcached, and the budgets of others that select its pods.

Where two budgets select one pod, the eviction API refuses to evict it at all, and a drain never ends. So ours gives
way to one that somebody else has made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

import msgspec

from memcached_operator.memcached.labels import labels, metadata, selector_labels
from memcached_operator.memcached.spec import DisruptionBudget, Spec
from memcached_operator.memcached.wanted.common import Manifest
from operator_runtime import Fields

_NO_LIMIT: Final = "100%"


class BudgetSpec(Fields, frozen=True, omit_defaults=True):
    """`spec` of a PodDisruptionBudget."""

    absent: ClassVar[tuple[str, ...]] = ("minAvailable",)
    whole: ClassVar[tuple[str, ...]] = ("selector",)

    maxUnavailable: int | str | None = None
    minAvailable: int | str | None = None
    selector: dict[str, Any] | None = None
    unhealthyPodEvictionPolicy: str | None = None


class BudgetManifest(Manifest, frozen=True, omit_defaults=True):
    """A PodDisruptionBudget, as far as a Memcached has an opinion about it."""

    spec: BudgetSpec = BudgetSpec()


class _Requirement(msgspec.Struct):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None


class _Selector(msgspec.Struct):
    # Go reads a null as nothing.
    matchLabels: dict[str, str] | None = None
    matchExpressions: tuple[_Requirement, ...] | None = None


_decode_selector = msgspec.json.Decoder(_Selector | None).decode


def budget(name: str, namespace: str, uid: str, spec: Spec) -> BudgetManifest | None:
    """The PodDisruptionBudget that a Memcached of that name, namespace and uid wants, if it wants one."""
    wanted = spec.disruptionBudget or (DisruptionBudget() if spec.size > 1 else None)
    if wanted is None or wanted.maxUnavailable == _NO_LIMIT:
        return None
    return BudgetManifest(
        apiVersion="policy/v1",
        kind="PodDisruptionBudget",
        metadata=metadata(name, namespace, uid),
        spec=BudgetSpec(
            maxUnavailable=wanted.maxUnavailable,
            selector={"matchLabels": selector_labels(name)},
            # A server that does not answer anyway must not keep a node from being drained.
            unhealthyPodEvictionPolicy="AlwaysAllow",
        ),
    )


def check_selector(selector: bytes) -> None:
    """Read the selector of somebody's budget, for its object to count as unreadable where it cannot be.

    Raises:
        msgspec.DecodeError: it is none.
    """
    try:
        _decode_selector(selector)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"spec.selector: {error}") from None


def others_budget(selectors: Mapping[str, bytes], name: str, spec: Spec) -> str:
    """The name of a budget of others that selects a Memcached's pods, "" where there is none.

    Args:
        selectors: of the budgets in its namespace that are no Memcached's, as JSON that `check_selector` has passed,
            by name.
    """
    pods = spec.podTemplate.metadata.labels | labels(name)
    return min((budget for budget, selector in selectors.items() if _selects(selector, pods)), default="")


def in_the_way(other: str, name: str) -> str:
    """What is said where somebody else's budget selects the pods."""
    return (
        f"The PodDisruptionBudget {other} also selects the pods of {name}. A pod with two budgets cannot be evicted, "
        "so the operator creates none. Delete that budget, or set spec.disruptionBudget.maxUnavailable to "
        f'"{_NO_LIMIT}".'
    )


def _selects(selector: bytes, labels_: Mapping[str, str]) -> bool:
    wanted = _decode_selector(selector)
    if wanted is None or any(labels_.get(key) != value for key, value in (wanted.matchLabels or {}).items()):
        return False
    return all(_meets(each, labels_) for each in wanted.matchExpressions or ())


def _meets(requirement: _Requirement, labels_: Mapping[str, str]) -> bool:
    match requirement.operator:
        case "In":
            return labels_.get(requirement.key) in (requirement.values or ())
        case "NotIn":
            return labels_.get(requirement.key) not in (requirement.values or ())
        case "Exists":
            return requirement.key in labels_
        case _:
            return requirement.key not in labels_
