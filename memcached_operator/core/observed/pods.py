"""Record of a pod in the cache."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from memcached_operator.api.names import RELOADER, RESTART_CONTAINER
from memcached_operator.api.quantities import value
from memcached_operator.api.v1alpha1 import Workload
from memcached_operator.core.objects import labels
from memcached_operator.core.objects.owned_object import ObjectIdentity, OwnerRef, controller_of
from memcached_operator.core.objects.scripts import SCRIPTS
from memcached_operator.core.objects.workload_types import ConfigMapSource
from memcached_operator.core.observed import pod_status
from memcached_operator.servers.queried_pod import QueriedPod
from memcached_operator.servers.transport import transport_of

NO_ORDINAL: Final = -1
# Containers that the operator makes, which run the same image.
_OWN_CONTAINERS: Final = (labels.CONTAINER, RELOADER)


class Termination(msgspec.Struct, frozen=True, gc=False):
    """Termination of a pod that is being deleted.

    Attributes:
        since_s: since when, in seconds since 1970.
        node: which node is to end it, "" for none.
        finalizers: that keep it.
    """

    since_s: int
    ends_s: int
    node: str = ""
    finalizers: tuple[str, ...] = ()


class PodRecord(QueriedPod, frozen=True, gc=False, kw_only=True):
    """A pod that carries the label of a Memcached.

    Attributes:
        revision: which of its workload's templates it was made from, as the workload's controller names it.
        problem: why it is not ready, as far as is known.
        waits: what it waits for in the ordinary course of starting, as far as is known; a problem once it takes long,
            see `rollout.server_states`.
        failure: why it has failed for good, in its node's words.
        down: its memcached does not run and has no keys to lose: it has no node, never ran, cannot start, or has ended.
        outdated: what its memcached has of its Secrets' former content although they changed, in its sidecar's words.
        ordinal: its place in a StatefulSet, NO_ORDINAL of a Deployment's.
        since_s: since when it is ready, or not ready on its node, in seconds since 1970; since when it is there where
            that is not known.
        template_hash, memory, restarted, restart_hash, in_place, peers, outdated_items, holder, applied: its
            annotations, see `labels`; "" without.
        image: of its template, or to which it was changed in place since; "" where it does not keep its items.
        rewritten: it runs other images than that: admission gave it these when it was created.
        restarts_for_memory: its node starts memcached's container again when its memory changes.
        memory_limit: of its memcached's container, as specified or as its node has set it, whichever is less; "" for
            none.
        scripts: the name of the ConfigMap that it has scripts of, "" for none.
        termination: how it is being deleted, None where it is not.
    """

    resource_version: str
    revision: str
    problem: pod_status.PodProblem
    ordinal: int = NO_ORDINAL
    since_s: int = 0
    template_hash: str = ""
    memory: str = ""
    restarted: str = ""
    restart_hash: str = ""
    image: str = ""
    rewritten: bool = False
    restarts_for_memory: bool = False
    memory_limit: str = ""
    in_place: str = ""
    peers: str = ""
    outdated_items: bool = False
    holder: str = ""
    waits: pod_status.PodProblem = pod_status.NO_PROBLEM
    failure: pod_status.PodProblem = pod_status.NO_PROBLEM
    down: bool = False
    placed: bool = False
    outdated: pod_status.PodProblem = pod_status.NO_PROBLEM
    scripts: str = ""
    applied: str = ""
    termination: Termination | None = None

    @property
    def workload(self) -> Workload:
        return "Deployment" if self.ordinal == NO_ORDINAL else "StatefulSet"

    @property
    def starts(self) -> bool:
        """Report whether it is starting, as far as is known."""
        return self.active and not self.ready and not self.problem.reason

    @property
    def has_other_limit(self) -> bool:
        """Report whether its memory limit is written otherwise than when it was created, as by another client."""
        return bool(self.memory_limit) and self.memory_limit not in self.memory.split(",")[2:3]  # see `Memory`


class _PodLabels(msgspec.Struct):
    memcached_cr: str = ""
    pod_template_hash: str = msgspec.field(default="", name="pod-template-hash")
    revision_hash: str = msgspec.field(default="", name=labels.REVISION_LABEL)
    pod_name: str = msgspec.field(default="", name="statefulset.kubernetes.io/pod-name")


class _PodAnnotations(msgspec.Struct):  # each a field of the record
    template_hash: str = msgspec.field(default="", name=labels.TEMPLATE_ANNOTATION)
    memory: str = msgspec.field(default="", name=labels.MEMORY_ANNOTATION)
    restarted: str = msgspec.field(default="", name=labels.RESTARTED_ANNOTATION)
    transport: str = msgspec.field(default="", name=labels.TRANSPORT_ANNOTATION)
    restart_hash: str = msgspec.field(default="", name=labels.WARM_ANNOTATION)
    image: str = msgspec.field(default="", name=labels.IMAGE_ANNOTATION)
    in_place: str = msgspec.field(default="", name=labels.IN_PLACE_ANNOTATION)
    peers: str = msgspec.field(default="", name=labels.PEERS_ANNOTATION)
    outdated_items: str = msgspec.field(default="", name=labels.OUTDATED_ITEMS_ANNOTATION)
    holder: str = msgspec.field(default="", name=labels.HOLDER_ANNOTATION)
    applied: str = msgspec.field(default="", name=labels.APPLIED_ANNOTATION)


class _PodMeta(ObjectIdentity):
    generation: int = 0
    creationTimestamp: str | None = None
    deletionTimestamp: str | None = None
    deletionGracePeriodSeconds: int | None = None
    finalizers: tuple[str, ...] | None = None
    labels: _PodLabels = msgspec.field(default_factory=_PodLabels)
    annotations: _PodAnnotations = msgspec.field(default_factory=_PodAnnotations)
    ownerReferences: tuple[OwnerRef, ...] | None = None


class _ResizePolicy(msgspec.Struct):
    resourceName: str = ""
    restartPolicy: str = ""


class _Container(msgspec.Struct):
    name: str = ""
    image: str = ""
    resizePolicy: list[_ResizePolicy] | None = None
    resources: pod_status.SeenResources = msgspec.field(default_factory=pod_status.SeenResources)


class _Volume(msgspec.Struct):
    name: str = ""
    configMap: ConfigMapSource | None = None


class _PodSpec(msgspec.Struct):
    nodeName: str = ""
    containers: list[_Container] | None = None
    initContainers: list[_Container] | None = None
    volumes: list[_Volume] | None = None

    @property
    def memcached(self) -> _Container:
        """memcached's own container, an empty one where there is none."""
        return next((each for each in self.containers or () if each.name == labels.CONTAINER), _Container())


class _PodObject(msgspec.Struct):
    metadata: _PodMeta
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: pod_status.PodStatus = msgspec.field(default_factory=pod_status.PodStatus)


decode_pod = msgspec.json.Decoder(_PodObject).decode


def pod_record(raw: msgspec.Raw | bytes) -> PodRecord:
    pod = decode_pod(raw)
    meta, own_labels, status = pod.metadata, pod.metadata.labels, pod.status
    owner = controller_of(meta.ownerReferences)
    of = own_labels.memcached_cr.replace(".", "-")  # as a holder's StatefulSet is named
    # A Deployment names its ReplicaSets after itself and the hash of the template: no ReplicaSet need be watched to
    # know a foreign pod that merely carries our labels.
    of_deployment = (
        owner is not None and owner.kind == "ReplicaSet" and owner.name == f"{of}-{own_labels.pod_template_hash}"
    )
    # A StatefulSet takes over what one of its name left behind.
    left_behind = owner is None and own_labels.pod_name == meta.name
    of_stateful_set = owner is not None and owner.kind == "StatefulSet" and owner.name == of
    # One that has waited for a node begins to start when it has one.
    readiness, placed = status.condition("Ready"), status.condition("PodScheduled")
    own = status.memcached
    ordinal = _ordinal(meta.name, of) if of_stateful_set or left_behind else NO_ORDINAL
    annotations: dict[str, Any] = msgspec.structs.asdict(meta.annotations)
    annotations["transport"] = transport_of(meta.annotations.transport)
    annotations["outdated_items"] = bool(meta.annotations.outdated_items)
    return PodRecord(
        **annotations,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resourceVersion,
        memcached=own_labels.memcached_cr if of_deployment or ordinal != NO_ORDINAL else "",
        revision=own_labels.pod_template_hash if of_deployment else own_labels.revision_hash,
        active=meta.deletionTimestamp is None and status.phase not in ("Succeeded", "Failed"),
        ready=readiness.status == "True",
        problem=pod_status.problem_of(status),
        ordinal=ordinal,
        address=status.podIP,
        since_s=max(seconds_of(each.lastTransitionTime) for each in (readiness, placed))
        or seconds_of(meta.creationTimestamp),
        restarts=own.restartCount if own is not None else 0,
        rewritten=_is_rewritten(pod.spec, meta.annotations.image),
        restarts_for_memory=_restarts_for_memory(pod.spec),
        memory_limit=_memory_limit(pod),
        down=pod_status.is_down(status),
        placed=bool(pod.spec.nodeName),
        waits=pod_status.NO_PROBLEM if readiness.status == "True" else pod_status.wait_of(status),
        failure=pod_status.failure_of(status),
        outdated=pod_status.outdated_of(status),
        scripts=next(
            (each.configMap.name for each in pod.spec.volumes or () if each.name == SCRIPTS and each.configMap), ""
        ),
        termination=_termination(pod),
    )


def _is_rewritten(spec: _PodSpec, image: str) -> bool:
    own = (each for each in (*(spec.containers or ()), *(spec.initContainers or ())) if each.name in _OWN_CONTAINERS)
    return bool(image) and any(each.image != image for each in own)


def _restarts_for_memory(spec: _PodSpec) -> bool:
    policies = spec.memcached.resizePolicy or ()
    return any((each.resourceName, each.restartPolicy) == ("memory", RESTART_CONTAINER) for each in policies)


def _memory_limit(pod: _PodObject) -> str:
    specified, status = pod.spec.memcached.resources.memory, pod.status.memcached
    actual = status.resources.memory if status is not None else ""
    is_less = bool(actual and actual != specified) and (not specified or value(actual) < value(specified))
    return actual if is_less else specified


def _termination(pod: _PodObject) -> Termination | None:
    meta = pod.metadata
    if meta.deletionTimestamp is None:
        return None
    ends_s = seconds_of(meta.deletionTimestamp)
    since_s = ends_s - (meta.deletionGracePeriodSeconds or 0)
    return Termination(since_s, ends_s, pod.spec.nodeName, tuple(meta.finalizers or ()))


def seconds_of(time: str | None) -> int:
    """An RFC 3339 time in seconds since 1970; 0 where there is none, or it cannot be read."""
    try:
        return int(datetime.fromisoformat(time).timestamp()) if time else 0
    except (ValueError, OverflowError):
        return 0


def _ordinal(pod: str, stateful_set: str) -> int:
    number = pod.removeprefix(f"{stateful_set}-")
    return int(number) if number.isascii() and number.isdigit() else NO_ORDINAL
