"""Pure: the disruption budget of a Memcached, and the budgets of others that select its pods.

Where two budgets select one pod, the eviction API refuses to evict it at all, and a drain never ends. So it gives
way to one of another owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, Literal

import msgspec

from memcached_operator.api.status import Problem, Reason
from memcached_operator.api.v1alpha1 import DisruptionBudget, Spec, Workload
from memcached_operator.core.objects import labels
from memcached_operator.core.objects.owned_kind import RIVALS_INDEX, CachedResource, Known, OwnedKind
from memcached_operator.core.objects.owned_object import Codec, Manifest, OwnedRecord, metadata
from operator_runtime import Fields, ObjectKey

_NO_LIMIT: Final = "100%"

_BY_DEFAULT: Final = DisruptionBudget()
# Labels that Kubernetes' controllers add to pods, of values that are not known here.
_ADDED: Final[Mapping[Workload, Mapping[str, str]]] = {
    "Deployment": {"pod-template-hash": ""},
    "StatefulSet": dict.fromkeys(
        ("apps.kubernetes.io/pod-index", "controller-revision-hash", "statefulset.kubernetes.io/pod-name"), ""
    ),
}


class BudgetSpec(Fields, frozen=True, omit_defaults=True):  # `spec` of a PodDisruptionBudget
    absent: ClassVar[tuple[str, ...]] = ("minAvailable",)
    whole: ClassVar[tuple[str, ...]] = ("selector",)

    maxUnavailable: int | str | None = None
    minAvailable: int | str | None = None
    selector: dict[str, Any] | None = None
    unhealthyPodEvictionPolicy: str | None = None


class BudgetManifest(Manifest, frozen=True, omit_defaults=True):
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


class _BudgetCodec(Codec[BudgetManifest]):
    def record(self, raw: msgspec.Raw | bytes) -> BudgetRecord:
        """A record from a PodDisruptionBudget's JSON.

        Raises:
            msgspec.DecodeError: another client's selector cannot be read. That is found here, and not where Memcacheds
                are read: it would fail all of the namespace.
        """
        record = super().record(raw)
        # Of an owned one the normalized text has it.
        selector = b"" if record.normalized else bytes(_decode_object(raw).spec.selector)
        if selector:
            try:
                _decode_selector(selector)
            except msgspec.ValidationError as error:
                raise msgspec.ValidationError(f"spec.selector: {error}") from None
        return BudgetRecord(**msgspec.structs.asdict(record), selector=selector)


def budget(owner: labels.MemcachedOwner, spec: Spec) -> BudgetManifest | None:
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
            selector={"matchLabels": labels.selector_labels(owner.name)},
            # A server that does not answer anyway must not keep a node from being drained.
            unhealthyPodEvictionPolicy="AlwaysAllow",
        ),
    )


def _conflict(others: Iterable[BudgetRecord], name: str, spec: Spec) -> Problem | None:
    pods = {**_ADDED[spec.workload], **spec.podTemplate.metadata.labels, **labels.labels(name)}
    return _conflict_over(pods, others, name)


def _conflict_over_endpoint(others: Iterable[BudgetRecord], name: str, _: Spec) -> Problem | None:
    return _conflict_over({**_ADDED["Deployment"], **labels.labels(labels.endpoint_label(name))}, others, name)


def _conflict_over(pods: Mapping[str, str], others: Iterable[BudgetRecord], name: str) -> Problem | None:
    """The problem where another owner's budget selects pods of a Memcached, by their labels."""
    other = min((each.name for each in others if not each.deleting and _selects(each.selector, pods)), default="")
    message = (
        f"The PodDisruptionBudget {other} also selects the pods of {name}. A pod with two budgets cannot be evicted, "
        "so the operator creates none. Delete that budget, or set spec.disruptionBudget.maxUnavailable to "
        f'"{_NO_LIMIT}".'
    )
    return Problem(Reason.CONFLICTING_DISRUPTION_BUDGET, message, blocking=False) if other else None


_CODEC: Final = _BudgetCodec(BudgetManifest)
_RESOURCE: Final = CachedResource(
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    _CODEC.record,
    indexes={RIVALS_INDEX: lambda record: ObjectKey(record.namespace, "") if record.selector else None},
)
BUDGETS: Final = OwnedKind(_RESOURCE, _CODEC, lambda owner, spec, _: budget(owner, spec), conflict=_conflict)


def _of_endpoint(owner: labels.MemcachedOwner, spec: Spec, _: Known) -> BudgetManifest | None:
    unlimited = spec.disruptionBudget is not None and spec.disruptionBudget.maxUnavailable == _NO_LIMIT
    made = budget(owner, spec.model_copy(update={"disruptionBudget": _BY_DEFAULT}))
    if made is None or unlimited or not spec.has_endpoint:
        return None
    pods = {"matchLabels": labels.selector_labels(labels.endpoint_label(owner.name))}
    meta = metadata(owner, name=owner.name + labels.ENDPOINT_SUFFIX)
    return msgspec.structs.replace(made, metadata=meta, spec=msgspec.structs.replace(made.spec, selector=pods))


ENDPOINT_BUDGETS: Final = OwnedKind(
    _RESOURCE, _CODEC, _of_endpoint, field="discovery", suffix=labels.ENDPOINT_SUFFIX, conflict=_conflict_over_endpoint
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
