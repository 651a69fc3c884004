"""What the caches hold of a Deployment and of a StatefulSet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from memcached_operator.api.names import Workload
from memcached_operator.memcached.labels import CONTAINER
from memcached_operator.memcached.objects import ObjectMeta
from memcached_operator.memcached.owned import (
    OwnedRecord,
    common_fields,
    form_of,
    may_be_ours,
    ours_of,
    passed_through,
)
from memcached_operator.memcached.workloads.objects import PodSpec, PodTemplate, WorkloadManifest, WorkloadSpec
from operator_runtime import shared


class WorkloadRecord(OwnedRecord, frozen=True, gc=False, kw_only=True):
    """A Deployment or a StatefulSet: ours in full, a stranger's by name only.

    Attributes:
        kind: which of both.
        generation: 1 until its specification is first changed.
        settled: its controller has seen its latest generation.
        revised: its controller has seen another template than the present one.
        rolled_out: its controller has said that the pods of its present template are all available. It stays so when it
            is scaled and when pods are lost; a new template ends it.
        create_failure: what keeps it from making pods, in the API server's words; a StatefulSet does not tell.
        deadline_exceeded: its controller's message once it gave up waiting for progress, "" before; a StatefulSet
            never gives up.
        replicas: pods that it is to have, 0 for a stranger's.
        image: what its template runs memcached from, "" for a stranger's.
    """

    kind: Workload
    generation: int
    settled: bool
    revised: bool
    rolled_out: bool
    create_failure: str = ""
    deadline_exceeded: str = ""
    replicas: int = 0
    image: str = ""


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct):
    observedGeneration: int = 0
    conditions: list[_Condition] | None = None
    currentRevision: str = ""
    updateRevision: str = ""


class _Object(msgspec.Struct):
    metadata: ObjectMeta
    # A stranger's spec is never looked into.
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: _Status = msgspec.field(default_factory=_Status)


_decode_object = msgspec.json.Decoder(_Object).decode
_decode_spec = msgspec.json.Decoder(WorkloadSpec).decode
# The Deployment's controller counts templates here.
_REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
_FIRST_REVISION = "1"
# Of a pod's specification: what is passed through from the Memcached's where the user asks for it, and else not ours.
_OPTIONS = (
    *("affinity", "imagePullSecrets", "nodeSelector", "priorityClassName", "serviceAccount", "serviceAccountName"),
    *("terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints"),
)


def deployment_record(raw: msgspec.Raw | bytes) -> WorkloadRecord:
    """A record from a Deployment's JSON."""
    return _record("Deployment", _decode_object(raw), _rollout_of_deployment)


def stateful_set_record(raw: msgspec.Raw | bytes) -> WorkloadRecord:
    """A record from a StatefulSet's JSON."""
    return _record("StatefulSet", _decode_object(raw), _rollout_of_stateful_set)


def _record(kind: Workload, object_: _Object, rollout_of: Callable[[_Object], dict[str, Any]]) -> WorkloadRecord:
    meta, generation = object_.metadata, object_.metadata.generation or 0
    common = common_fields(meta)
    fields: dict[str, Any] = {}
    if may_be_ours(meta):
        spec = _decode_spec(object_.spec)
        form = form_of(_owned(meta, spec), common["name"], common["made_for_uid"])
        fields = {"form": form, "replicas": spec.replicas or 0, "image": shared(_image(spec))}
    settled = object_.status.observedGeneration >= generation
    return WorkloadRecord(**common, kind=kind, generation=generation, settled=settled, **rollout_of(object_), **fields)


def _rollout_of_deployment(object_: _Object) -> dict[str, Any]:
    rolled_out = False
    create_failure = deadline_exceeded = ""
    for condition in object_.status.conditions or ():
        # Matched as a tuple: a pattern of the struct itself takes seven times as long, at each event.
        match condition.type, condition.status, condition.reason:
            # The former speaks of pods, the latter of their ReplicaSet: a quota may forbid either.
            case ("ReplicaFailure", "True", _) | ("Progressing", "False", "ReplicaSetCreateError"):
                create_failure = condition.message or condition.reason
            case ("Progressing", "False", _):
                deadline_exceeded = condition.message or condition.reason
            case ("Progressing", "True", "NewReplicaSetAvailable"):
                rolled_out = True
            case _:
                pass
    revision = (object_.metadata.annotations or {}).get(_REVISION_ANNOTATION, _FIRST_REVISION)
    return {
        "revised": revision != _FIRST_REVISION,
        "rolled_out": rolled_out,
        "create_failure": create_failure,
        "deadline_exceeded": deadline_exceeded,
    }


def _rollout_of_stateful_set(object_: _Object) -> dict[str, Any]:
    # Its controller says that a revision is the current one when all pods have it and are ready, and of the first
    # one from the beginning.
    status = object_.status
    return {
        "revised": status.currentRevision != status.updateRevision,
        "rolled_out": bool(status.currentRevision) and status.currentRevision == status.updateRevision,
    }


def _image(spec: WorkloadSpec) -> str:
    pod = spec.template.spec if spec.template else None
    containers = (pod.containers if pod else None) or ()
    return next((each.image or "" for each in containers if each.name == CONTAINER), "")


def _owned(meta: ObjectMeta, spec: WorkloadSpec) -> WorkloadManifest:
    """Keep of a live workload what can be ours, in the form in which the wanted one is built."""
    template, passed = spec.template or PodTemplate(), passed_through(meta)
    live = template.metadata or ObjectMeta()
    pod = template.spec or PodSpec()
    # The API server drops empty lists; the wanted form says that there are no arguments.
    containers = tuple(msgspec.structs.replace(each, args=each.args or ()) for each in pod.containers or ())
    if "serviceAccountName" in passed:
        passed |= {"serviceAccount"}
    others = {option: None for option in _OPTIONS if option not in passed}
    return WorkloadManifest(
        metadata=ours_of(meta),
        spec=msgspec.structs.replace(
            spec,
            template=PodTemplate(
                ObjectMeta(labels=live.labels, annotations=live.annotations if "annotations" in passed else None),
                msgspec.structs.replace(pod, containers=containers, **others),
            ),
        ),
    )
