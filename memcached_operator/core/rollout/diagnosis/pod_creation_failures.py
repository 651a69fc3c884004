"""Pure: failures in events that no status has: no pod is created, no volume mounted, the claim of a disk not bound.

`missing_pods` and `mount_failures` read the events, and choose among these and other causes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from memcached_operator.core.objects.labels import EXTSTORE
from memcached_operator.core.objects.owned_object import ObjectIdentity
from memcached_operator.core.observed.pod_status import NO_PROBLEM, PodProblem
from memcached_operator.core.observed.pods import seconds_of
from operator_runtime import Kind, resource_of

# As kubelet and kube-controller-manager write them of a volume.
_UNMOUNTED: Final = ("FailedMount", "FailedAttachVolume")
_MOUNTED: Final = ("Pulling", "Pulled", "Created", "Started")
_NEXT_LINE: Final = "\n"
_CHARS: Final = 300
_FAILED, _MADE = "FailedCreate", "SuccessfulCreate"


class Creation(msgspec.Struct, frozen=True):
    """An Event of the core group, as far as it is read.

    Attributes:
        at_s: when it happened last, in seconds since 1970.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    reason: str
    message: str
    at_s: int


class _Meta(ObjectIdentity):
    creationTimestamp: str | None = None


class _Series(msgspec.Struct):
    lastObservedTime: str | None = None


class _Event(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    reason: str = ""
    message: str = ""
    lastTimestamp: str | None = None
    eventTime: str | None = None
    series: _Series | None = None


_decode_event = msgspec.json.Decoder(_Event).decode


def creation_of_event(raw: msgspec.Raw | bytes) -> Creation:
    event = _decode_event(raw)
    meta = event.metadata
    series = event.series.lastObservedTime if event.series is not None else None
    times = (event.lastTimestamp, series, event.eventTime, meta.creationTimestamp)
    at_s = max(map(seconds_of, times))
    return Creation(meta.namespace, meta.name, meta.uid, meta.resourceVersion, event.reason, event.message, at_s)


# Not of events.k8s.io: before Kubernetes 1.34 that selects by no field of the object that they are about.
CREATIONS: Final = Kind(resource_of("v1", "Event", "events"), creation_of_event)


def about(uid: str) -> str:
    """The field selector of the events about an object."""
    return f"involvedObject.uid={uid}"


def why_not_mounted(events: Iterable[Creation]) -> PodProblem:
    """Explain why a pod's volumes are not mounted, as far as its node's last report is about that.

    Reports of others, such as the scheduler, have the times of other clocks.
    """
    of_node = (each for each in events if each.reason in (*_UNMOUNTED, *_MOUNTED))
    newest = max(of_node, key=lambda each: (each.at_s, each.reason in _MOUNTED), default=None)
    if newest is None or newest.reason not in _UNMOUNTED:
        return NO_PROBLEM
    return PodProblem(newest.reason, newest.message.partition(_NEXT_LINE)[0]).cut(_CHARS)


def why_not_made(events: Iterable[Creation], stateful_set: str, ordinals: Iterable[int]) -> str:
    """Explain why the first of these servers with such an event is not created, "" where none has one.

    An event outlives its cause: one of a server that was created since has no meaning.
    """
    found = list(events)
    for ordinal in ordinals:
        # As stateful_pod_control.go of kube-controller-manager writes them; older releases begin with "create".
        of = f" Pod {stateful_set}-{ordinal} in StatefulSet {stateful_set} "
        matching = [each for each in found if each.reason in (_FAILED, _MADE) and of in each.message]
        newest = max(matching, key=lambda each: (each.at_s, each.reason == _MADE), default=None)
        if newest is not None and newest.reason == _FAILED:
            return newest.message
    return ""


# As the scheduler writes it of any claim of a pod, in words of several forms.
_OF_CLAIMS: Final = ("persistentvolumeclaim", "persistent volume")
_UNSCHEDULABLE: Final = "Unschedulable"
# As the controllers of claims write them while all is in order (events.go of pkg/controller/volume).
_ORDINARY: Final = (
    *("WaitForFirstConsumer", "WaitForPodScheduled", "ExternalProvisioning"),
    *("Provisioning", "ProvisioningSucceeded", "Resizing"),
)


def may_be_unbound(problem: PodProblem) -> bool:
    """Report whether a pod has no node because of a claim."""
    return problem.reason == _UNSCHEDULABLE and any(words in problem.message.lower() for words in _OF_CLAIMS)


def about_claim(pod: str) -> str:
    """The field selector of the events about the claim of a pod's disk."""
    return f"involvedObject.kind=PersistentVolumeClaim,involvedObject.name={claim_of(pod)}"


def claim_of(pod: str) -> str:
    """The claim of a pod's disk, which Kubernetes calls like the pod and the volume."""
    return f"{pod}-{EXTSTORE}"


def why_not_bound(events: Iterable[Creation], pod: str) -> PodProblem:
    """Explain why the claim of a pod's disk is not bound, by its latest event; `NO_PROBLEM` where none explains it."""
    newest = max(events, key=lambda each: each.at_s, default=None)
    if newest is None or newest.reason in _ORDINARY:
        return NO_PROBLEM
    message = newest.message.partition(_NEXT_LINE)[0]
    return PodProblem(_UNSCHEDULABLE, f"{newest.reason} of the claim {claim_of(pod)}: {message}").cut(_CHARS)
