"""Pure: the disruption budget of a Memcached, and the budgets of others that select its pods.

Where two budgets select one pod, the eviction API refuses to evict it at all, and a drain never ends. So it gives
way to one of another owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

import msgspec

from memcached_operator.api.v1alpha1 import DisruptionBudget, Spec
from memcached_operator.core.objects.drift import Codec
from memcached_operator.core.objects.labels import Owner, labels, selector_labels
from memcached_operator.core.objects.object_types import Manifest, metadata
from memcached_operator.core.objects.owned_record import OwnedRecord
from operator_runtime import Fields

_NO_LIMIT: Final = "100%"

_BY_DEFAULT: Final = DisruptionBudget()


class BudgetSpec(Fields, frozen=True, omit_defaults=True):  # `spec` of a PodDisruptionBudget
    absent: ClassVar[tuple[str, ...]] = ("minAvailable",)
    whole: ClassVar[tuple[str, ...]] = ("selector",)

    maxUnavailable: int | str | None = None
    minAvailable: int | str | None = None
    selector: dict[str, Any] | None = None
    unhealthyPodEvictionPolicy: str | None = None


class BudgetManifest(Manifest, frozen=True, omit_defaults=True):
    """A PodDisruptionBudget, as far as a Memcached has an opinion about it."""

    spec: BudgetSpec = BudgetSpec()


class BudgetRecord(OwnedRecord, frozen=True, gc=False, kw_only=True):
    """A PodDisruptionBudget.

    Attributes:
        selector: JSON of the selector of one that is no Memcached's.
    """

    selector: bytes = b""


class _Requirement(msgspec.Struct):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None


class _Selector(msgspec.Struct):
    # Go reads a null as nothing.
    matchLabels: dict[str, str] | None = None
    matchExpressions: tuple[_Requirement, ...] | None = None


class _Spec(msgspec.Struct):
    selector: msgspec.Raw = msgspec.Raw()


class _Object(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode_selector = msgspec.json.Decoder(_Selector | None).decode
_decode_object = msgspec.json.Decoder(_Object).decode
BUDGET: Final = Codec(BudgetManifest)


def budget_record(raw: msgspec.Raw | bytes) -> BudgetRecord:
    """A record from a PodDisruptionBudget's JSON.

    Raises:
        msgspec.DecodeError: another client's selector cannot be read. That is found here, and not where Memcacheds
            are read: it would fail all of the namespace.
    """
    record = BUDGET.record(raw)
    fields = {field: getattr(record, field) for field in record.__struct_fields__}
    # Of an owned one the normalized text has it.
    selector = b"" if record.normalized else bytes(_decode_object(raw).spec.selector)
    if selector:
        try:
            _decode_selector(selector)
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(f"spec.selector: {error}") from None
    return BudgetRecord(**fields, selector=selector)


def budget(owner: Owner, spec: Spec) -> BudgetManifest | None:
    """The PodDisruptionBudget that a Memcached desires, if it desires one."""
    desired = spec.disruptionBudget or (_BY_DEFAULT if spec.size > 1 else None)
    if desired is None or desired.maxUnavailable == _NO_LIMIT:
        return None
    return BudgetManifest(
        apiVersion="policy/v1",
        kind="PodDisruptionBudget",
        metadata=metadata(owner),
        spec=BudgetSpec(
            maxUnavailable=desired.maxUnavailable,
            selector={"matchLabels": selector_labels(owner.name)},
            # A server that does not answer anyway must not keep a node from being drained.
            unhealthyPodEvictionPolicy="AlwaysAllow",
        ),
    )


def others_budget(selectors: Mapping[str, bytes], name: str, spec: Spec) -> str:
    """The name of a budget of others that selects a Memcached's pods, "" where there is none.

    Args:
        selectors: of the budgets in its namespace that are no Memcached's, by name, as `BudgetRecord` has them.
    """
    pods = spec.podTemplate.metadata.labels | labels(name)
    return min((budget for budget, selector in selectors.items() if _selects(selector, pods)), default="")


def conflict_message(other: str, name: str) -> str:
    """The message where another owner's budget selects the pods."""
    return (
        f"The PodDisruptionBudget {other} also selects the pods of {name}. A pod with two budgets cannot be evicted, "
        "so the operator creates none. Delete that budget, or set spec.disruptionBudget.maxUnavailable to "
        f'"{_NO_LIMIT}".'
    )


def _selects(selector: bytes, labels_: Mapping[str, str]) -> bool:
    desired = _decode_selector(selector)
    if desired is None or any(labels_.get(key) != value for key, value in (desired.matchLabels or {}).items()):
        return False
    return all(_meets(each, labels_) for each in desired.matchExpressions or ())


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
