"""What the cache holds of a pod."""

from __future__ import annotations

from typing import Final

import msgspec

from memcached_operator.api.names import Workload
from memcached_operator.memcached.objects import OwnerRef, controller_of
from operator_runtime import ObjectKey, shared

NO_ORDINAL: Final = -1


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """A pod that carries the label of a Memcached.

    Attributes:
        memcached: name of the Memcached whose workload it belongs to, "" when it belongs to none.
        template_hash: which pod template it was made from.
        active: neither terminating nor finished.
        ready: its Ready condition is True.
        problem: why it is not ready, "" when nothing is known: a reason, or a reason and a message.
        ordinal: its place in a StatefulSet, NO_ORDINAL of a Deployment's.
        address: of a Deployment's, once it has one. A StatefulSet's is known by its name.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    memcached: str
    template_hash: str
    active: bool
    ready: bool
    problem: str
    ordinal: int = NO_ORDINAL
    address: str = ""

    @property
    def workload(self) -> Workload:
        """Of which kind of workload it is."""
        return "Deployment" if self.ordinal == NO_ORDINAL else "StatefulSet"

    @property
    def memcached_key(self) -> ObjectKey | None:
        """The key of the Memcached that it belongs to."""
        return ObjectKey(self.namespace, self.memcached) if self.memcached else None


class _PodLabels(
    msgspec.Struct,
    rename={
        "template_hash": "pod-template-hash",
        "revision_hash": "controller-revision-hash",
        "pod_name": "statefulset.kubernetes.io/pod-name",
    },
):
    memcached_cr: str = ""
    template_hash: str = ""
    revision_hash: str = ""
    pod_name: str = ""


class _PodMeta(msgspec.Struct):
    name: str
    uid: str
    resourceVersion: str
    namespace: str = ""
    deletionTimestamp: str | None = None
    labels: _PodLabels = msgspec.field(default_factory=_PodLabels)
    ownerReferences: tuple[OwnerRef, ...] | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Waiting(msgspec.Struct):
    reason: str = ""


class _ContainerState(msgspec.Struct):
    waiting: _Waiting | None = None
    terminated: _Waiting | None = None


class _ContainerStatus(msgspec.Struct):
    state: _ContainerState = msgspec.field(default_factory=_ContainerState)


class _PodStatus(msgspec.Struct):
    phase: str = ""
    podIP: str = ""
    conditions: list[_Condition] | None = None
    containerStatuses: list[_ContainerStatus] | None = None


class _PodObject(msgspec.Struct):
    metadata: _PodMeta
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


_decode_pod = msgspec.json.Decoder(_PodObject).decode
# A scheduler's message lists what was wrong with each kind of node; its beginning is what a person reads.
_PROBLEM_CHARS = 160
# What a container waits for in the ordinary course of starting is no problem.
_ORDINARY_WAITS = ("", "ContainerCreating", "PodInitializing")
# The kubelet goes to and fro between the two, with each try: one name for both, or each turn would be a status write.
_ONE_NAME = {"ErrImagePull": "ImagePullBackOff"}


def pod_record(raw: msgspec.Raw | bytes) -> PodRecord:
    """A record from a Pod's JSON."""
    pod = _decode_pod(raw)
    meta, labels, status = pod.metadata, pod.metadata.labels, pod.status
    owner = controller_of(meta.ownerReferences)
    # A Deployment names its ReplicaSets after itself and the hash of the template: no ReplicaSet need be watched to
    # know a foreign pod that merely carries our labels.
    of_deployment = (
        owner is not None
        and owner.kind == "ReplicaSet"
        and owner.name == f"{labels.memcached_cr}-{labels.template_hash}"
    )
    # A StatefulSet takes over what one of its name left behind.
    left_behind = owner is None and labels.pod_name == meta.name
    of_stateful_set = owner is not None and owner.kind == "StatefulSet" and owner.name == labels.memcached_cr
    ordinal = _ordinal(meta.name, labels.memcached_cr) if of_stateful_set or left_behind else NO_ORDINAL
    return PodRecord(
        namespace=shared(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resourceVersion,
        memcached=labels.memcached_cr if of_deployment or ordinal != NO_ORDINAL else "",
        template_hash=shared(labels.template_hash if of_deployment else labels.revision_hash),
        active=meta.deletionTimestamp is None and status.phase not in ("Succeeded", "Failed"),
        ready=any(condition.type == "Ready" and condition.status == "True" for condition in status.conditions or ()),
        problem=_problem(status),
        ordinal=ordinal,
        address=status.podIP if of_deployment else "",
    )


def _ordinal(pod: str, stateful_set: str) -> int:
    number = pod.removeprefix(f"{stateful_set}-")
    return int(number) if number.isascii() and number.isdigit() else NO_ORDINAL


def _problem(status: _PodStatus) -> str:
    for container in status.containerStatuses or ():
        state = container.state.waiting or container.state.terminated
        if state is not None and state.reason not in _ORDINARY_WAITS:
            return shared(_ONE_NAME.get(state.reason, state.reason))
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return shared(f"{condition.reason}: {condition.message}"[:_PROBLEM_CHARS].rstrip(": "))
    return ""
