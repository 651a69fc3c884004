"""Pure: steps by which a running pod gets other memory."""

from __future__ import annotations

from enum import Enum, auto

import msgspec

from memcached_operator.api.quantities import value
from memcached_operator.core.objects.labels import CONTAINER
from memcached_operator.core.objects.memory_annotation import Memory
from memcached_operator.core.objects.workload_types import ResourceRequirements
from memcached_operator.core.observed.caches import PODS
from memcached_operator.core.observed.pod_status import PodCondition
from memcached_operator.core.observed.pods import decode_pod
from operator_runtime import Kind


class ResizeStep(Enum):
    RESIZE = auto()  # patch the resources of its pod
    WAIT = auto()  # its node has not done so yet
    REPLACE = auto()  # its container would start again for it, so that only a new pod is as good
    SET_LIMIT = auto()  # send memcached its new limit
    DONE = auto()


class Resizable(msgspec.Struct, frozen=True, gc=False):
    """A pod's resources, as specified and as they are.

    Attributes:
        request, limit: memory of its memcached as specified, "" for none.
        actual: the limit that its node has set, "" where that is not known.
        waits: its node's message while it has not, "" for nothing.
        hopeless: its node can never allocate what is specified now, by the node's report.
        begun: its node has not put it off.
        restarts: how often its memcached was started again.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    request: str
    limit: str
    actual: str
    waits: str
    hopeless: bool
    begun: bool = True
    restarts: int = 0


def next_resize_step(pod: Resizable, memory: Memory, *, limit_set: bool, restarts: bool = False) -> ResizeStep:
    """Choose the next step: room first for what grows, and less to fill it with before it shrinks."""
    if shrinks(pod, memory) and not limit_set:
        return ResizeStep.SET_LIMIT
    if not _is_requested(pod, memory):
        return ResizeStep.REPLACE if restarts else ResizeStep.RESIZE
    if not is_resized(pod, memory):
        return ResizeStep.WAIT
    return ResizeStep.DONE if limit_set else ResizeStep.SET_LIMIT


def is_resized(pod: Resizable, memory: Memory) -> bool:
    """Report whether its node has given a pod that memory: of a request alone only the node's words show it."""
    return _is_requested(pod, memory) and _are_same(pod.actual, memory.limit) and not pod.waits


def _is_requested(pod: Resizable, memory: Memory) -> bool:
    return _are_same(pod.request, memory.request) and _are_same(pod.limit, memory.limit)


def shrinks(pod: Resizable, memory: Memory) -> bool:
    """Report whether a pod is to have less room than it requests."""
    return bool(pod.limit and memory.limit) and value(memory.limit) < value(pod.limit)


def _are_same(one: str, other: str) -> bool:
    """Report whether two quantities are one amount, or none: a node writes them in powers of two, 400M as 390625Ki."""
    return one == other or bool(one and other and value(one) == value(other))


def resize_patch(memory: Memory) -> dict[str, object]:
    """Strategic merge patch of a pod's `resize` subresource."""
    resources = ResourceRequirements(limits={"memory": memory.limit}, requests={"memory": memory.request})
    return {"spec": {"containers": [{"name": CONTAINER, "resources": msgspec.to_builtins(resources)}]}}


def resizable(raw: msgspec.Raw | bytes) -> Resizable:
    pod = decode_pod(raw)
    meta, specified, status = pod.metadata, pod.spec.memcached.resources, pod.status.memcached
    waits = next(
        (
            each
            for each in pod.status.conditions or ()
            if each.type in ("PodResizePending", "PodResizeInProgress")
            and each.status == "True"
            # Kubernetes before 1.34 does not report which one is meant.
            and (each.observedGeneration is None or each.observedGeneration >= meta.generation)
        ),
        PodCondition(),
    )
    return Resizable(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resourceVersion,
        request=specified.requests.memory if specified.requests is not None else "",
        limit=specified.memory,
        actual=status.resources.memory if status is not None else "",
        waits=": ".join(filter(None, (waits.reason, waits.message))),
        hopeless=waits.reason == "Infeasible",
        begun=waits.type != "PodResizePending",
        restarts=status.restartCount if status is not None else 0,
    )


RESIZABLE_PODS = Kind(PODS.resource, resizable)
"""Pods, read one at a time and in no cache."""
