"""Pure: rules by which a server comes to another image and keeps its items: its container starts again in its pod.

The operator patches the pod's image, and records a request on the pod: the template's digest, and how often the
container had started again by then. Once the container has started again once more and is ready, the pod gets the label
of the present template. So the next step follows from the pod, under any leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from memcached_operator.core.objects import labels
from memcached_operator.core.objects.memory_annotation import count_of
from memcached_operator.core.objects.workload_types import PodTemplateSpec, WorkloadManifest
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord

LATE_AFTER_S: Final = 120.0
"""A node starts a container again within seconds, and within the grace period of its pod. It pulls the image after it
has ended the former one, which the pod's status then shows."""

_COMPLETED: Final = "Completed"
# Reasons in the status of a pod whose container has ended, until its node has started it again. For the last of them
# the node waits before it does, as it started the container within the last minutes, too.
_ENDED: Final = (_COMPLETED, "Error", "OOMKilled", "CrashLoopBackOff")


class RestartRequest(NamedTuple):
    """The annotation of a pod that is being changed in place.

    Attributes:
        template_hash: to what it is to come, as `labels.TEMPLATE_ANNOTATION` has it.
        restarts: how often its memcached had been started again by then.
        since_s: since when, in seconds since 1970.
    """

    template_hash: str
    restarts: int
    since_s: int

    def __str__(self) -> str:
        return " ".join(map(str, self))


def requested(pod: PodRecord) -> RestartRequest | None:
    """The annotation of a pod, None where it is not being changed, or it cannot be read."""
    try:
        template_hash, restarts, since_s = pod.in_place.split(" ")
        return RestartRequest(template_hash, count_of(restarts), count_of(since_s))
    except ValueError:
        return None


def can_restart(pod: PodRecord, workload: WorkloadRecord) -> bool:
    """Report whether a server can come to the present template in its pod.

    One that has never run, or whose first container failed, has nothing to lose: it is replaced. So is one whose image
    admission decides on.
    """
    if not pod.restart_hash or pod.restart_hash != workload.restart_hash or pod.restarted != workload.restarted:
        return False
    if needs_admission(pod, workload.image):
        return False
    ran = not pod.down or pod.problem.reason == _COMPLETED or pod.restarts > 0 or bool(pod.in_place)
    # With the same digest, another client has added something to the template, which only a new pod takes on.
    return ran and (bool(pod.in_place) or pod.template_hash != workload.template_hash)


def needs_admission(pod: PodRecord, image: str) -> bool:
    """Report whether only a new pod would get the image: admission gave this one another, as of a mirror."""
    return pod.rewritten and pod.image != image


def has_ended(pod: PodRecord) -> bool:
    """Report whether a container has ended, and its node starts it again."""
    return pod.down and pod.problem.reason in _ENDED


def restart_left_s(pod: PodRecord, now_s: float) -> float:
    """Seconds until a container that has not started again is late."""
    request = requested(pod)
    return max(request.since_s + LATE_AFTER_S - now_s, 0.0) if request is not None else 0.0


def restart_patch(
    pod: PodRecord, workload: WorkloadRecord, desired: WorkloadManifest, now_s: float
) -> dict[str, object]:
    """Strategic merge patch that has a container start again; an image that is the same stays as the pod has it."""
    made = desired.template.spec
    desired_annotations = (desired.template.metadata and desired.template.metadata.annotations) or {}
    annotations = {labels.IN_PLACE_ANNOTATION: str(RestartRequest(workload.template_hash, pod.restarts, int(now_s)))}
    if restart := desired_annotations.get(labels.RESTART_ANNOTATION):
        annotations[labels.RESTART_ANNOTATION] = restart
    if pod.image == desired.image:
        return _of(pod, {"annotations": annotations})
    annotations[labels.IMAGE_ANNOTATION] = desired.image
    lists = {"containers": made and made.containers, "initContainers": made and made.initContainers}
    images = {
        field: [{"name": each.name, "image": each.image} for each in containers]
        for field, containers in lists.items()
        if containers
    }
    return _of(pod, {"annotations": annotations}) | {"spec": images}


def mark_updated_patch(pod: PodRecord, workload: WorkloadRecord) -> dict[str, object]:
    """Merge patch that makes a server one of the present template, for the operator and for the StatefulSet."""
    annotations = {labels.TEMPLATE_ANNOTATION: workload.template_hash, labels.IN_PLACE_ANNOTATION: None}
    return _of(pod, {"annotations": annotations, "labels": {labels.REVISION_LABEL: workload.revision}})


def _of(pod: PodRecord, metadata: Mapping[str, object]) -> dict[str, object]:
    """A patch of the pod as it was seen: its container may have started again since."""
    return {"metadata": {"resourceVersion": pod.resource_version, **metadata}}


def are_alike(one: PodTemplateSpec, other: PodTemplateSpec) -> bool:
    """Report whether servers of both templates keep their items, and differ only in what a restart in place changes."""
    fixed, others = ((each.metadata and each.metadata.annotations) or {} for each in (one, other))
    return labels.WARM_ANNOTATION in fixed and fixed[labels.WARM_ANNOTATION] == others.get(labels.WARM_ANNOTATION)
