"""Records of a Deployment and of a StatefulSet in the caches."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from memcached_operator.api.names import RELOADER, USER_ID
from memcached_operator.api.reserved_pod_fields import find, keyed
from memcached_operator.api.v1alpha1 import Workload
from memcached_operator.core.objects import labels
from memcached_operator.core.objects.applied_spec import applied_spec
from memcached_operator.core.objects.owned_kind import CachedResource
from memcached_operator.core.objects.owned_object import (
    Manifest,
    ObjectMeta,
    OwnedRecord,
    SeenCondition,
    as_json,
    common_fields,
    may_be_owned,
    nameless,
    normalized_of,
    owned_metadata,
    uids_in,
)
from memcached_operator.core.objects.passed_options import unkeyed
from memcached_operator.core.objects.pod_template import template as pods_of
from memcached_operator.core.objects.pod_template_overlay import merged
from memcached_operator.core.objects.scripts import SCRIPTS
from memcached_operator.core.objects.workload_types import PodSpec, PodTemplateSpec, WorkloadManifest, WorkloadSpec


class WorkloadRecord(OwnedRecord, frozen=True, gc=False, kw_only=True):
    """A Deployment or a StatefulSet: an owned one in full, a foreign one by name only.

    Attributes:
        generation: 1 until its specification is first changed.
        is_observed: its controller has seen its latest generation.
        revised: a Deployment's controller has seen another template than the present one.
        rolled_out: a Deployment's controller has reported all pods of its present template as available. It stays
            so when it is scaled and when pods are lost; a new template ends it. Of a StatefulSet the pods show it.
        create_failure: what keeps it from making pods, in the API server's words; a StatefulSet does not report it.
        deadline_exceeded: its controller's message once it gave up waiting for progress, "" before; a StatefulSet
            never gives up.
        replicas: pods that it is to have, 0 for a foreign one.
        image: what its template runs memcached from, "" for a foreign one.
        template_hash, memory, restarted, restart, restart_hash, holder: annotations of its template, see `labels`; ""
            where they are not there.
        has_revision: its controller has made a first revision of it.
        scripts: the name of the ConfigMap that its pods have scripts of, without the Memcached's, "" for none.
        sidecar: its pods have the operator's own next to memcached.
        revision: which pods of a StatefulSet are of its present template, "" until its controller has reported it.
    """

    kind: Workload
    generation: int
    is_observed: bool
    revised: bool
    rolled_out: bool
    create_failure: str = ""
    deadline_exceeded: str = ""
    replicas: int = 0
    image: str = ""
    template_hash: str = ""
    memory: str = ""
    restarted: str = ""
    restart: str = ""
    restart_hash: str = ""
    holder: str = ""
    has_revision: bool = True
    revision: str = ""
    scripts: str = ""
    sidecar: bool = False


class _Status(msgspec.Struct):
    observedGeneration: int = 0
    conditions: list[SeenCondition] | None = None
    updateRevision: str = ""


class _Object(msgspec.Struct):
    metadata: ObjectMeta
    # A foreign spec is never read.
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: _Status = msgspec.field(default_factory=_Status)


# By what is compared of the metadata and by the specification, both without names. They are some 3 KiB each; where
# there are more, they are merely worked out again.
_known: dict[tuple[bytes, bytes], dict[str, Any]] = {}
_MOST_KNOWN = 128
_decode_object = msgspec.json.Decoder(_Object).decode
_decode_spec = msgspec.json.Decoder(WorkloadSpec).decode
# The Deployment's controller counts templates here.
_REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
_FIRST_REVISION = "1"
_OWNED_ANNOTATIONS = (
    *(labels.TEMPLATE_ANNOTATION, labels.MEMORY_ANNOTATION, labels.TRANSPORT_ANNOTATION, labels.WARM_ANNOTATION),
    *(labels.IMAGE_ANNOTATION, labels.RESTART_ANNOTATION, *labels.POD_ANNOTATIONS),
)


def _record(kind: Workload, raw: msgspec.Raw | bytes) -> WorkloadRecord:
    object_ = _decode_object(raw)
    meta, status, generation = object_.metadata, object_.status, object_.metadata.generation or 0
    common = common_fields(meta)
    fields = _owned_part(meta, object_.spec, common["name"], common["made_for_uid"]) if may_be_owned(meta) else {}
    rollout: dict[str, Any] = {"revised": False, "rolled_out": True, "revision": status.updateRevision}
    if kind == "Deployment":
        rollout = _rollout_of_deployment(object_)
    is_observed = status.observedGeneration >= generation
    return WorkloadRecord(**common, kind=kind, generation=generation, is_observed=is_observed, **rollout, **fields)


deployment_record = partial(_record, "Deployment")
stateful_set_record = partial(_record, "StatefulSet")


def _owned_part(meta: ObjectMeta, raw: msgspec.Raw, name: str, made_for_uid: str) -> dict[str, Any]:
    """Return the owned part of a workload. It is worked out once for all that differ in their Memcached's name and uid
    alone: each event of a Deployment brings its whole specification, and hardly any another one.
    """
    owned = owned_metadata(meta)
    alike = normalized_of(Manifest(metadata=owned), name, made_for_uid), nameless(bytes(raw), name)
    if (found := _known.get(alike)) is not None:
        return found
    spec = _decode_spec(raw)
    template = spec.template or PodTemplateSpec()
    pod, annotations = template.spec or PodSpec(), (template.metadata or ObjectMeta()).annotations or {}
    scripts = (each.configMap.name for each in pod.volumes or () if each.name == SCRIPTS and each.configMap)
    found = {
        "normalized": normalized_of(_owned(owned, spec, raw), name, made_for_uid),
        "replicas": spec.replicas or 0,
        "image": WorkloadManifest(spec=spec).image,
        "template_hash": annotations.get(labels.TEMPLATE_ANNOTATION, ""),
        "memory": annotations.get(labels.MEMORY_ANNOTATION, ""),
        "restarted": annotations.get(labels.RESTARTED_ANNOTATION, ""),
        "restart": annotations.get(labels.RESTART_ANNOTATION, ""),
        "restart_hash": annotations.get(labels.WARM_ANNOTATION, ""),
        "holder": annotations.get(labels.HOLDER_ANNOTATION, ""),
        "scripts": next(scripts, "").removeprefix(name),
        "sidecar": any(each.name == RELOADER for each in pod.initContainers or ()),
    }
    # Else what is no name, or no uid, would be taken for one: any client may write either there.
    if name not in (labels.CONTAINER, *found.values()) and uids_in(found["normalized"]) == uids_in(alike[0]):
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[alike] = found
    return found


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
    revision = (object_.metadata.annotations or {}).get(_REVISION_ANNOTATION, "")
    return {
        "has_revision": bool(revision),
        "revised": revision not in ("", _FIRST_REVISION),
        "rolled_out": rolled_out,
        "create_failure": create_failure,
        "deadline_exceeded": deadline_exceeded,
    }


def _owned(owned: ObjectMeta, spec: WorkloadSpec, raw: msgspec.Raw) -> WorkloadManifest:
    """Keep of a live workload what can be owned, in the form in which the desired one is built."""
    template = spec.template or PodTemplateSpec()
    live, pod = template.metadata or ObjectMeta(), template.spec or PodSpec()
    # The API server drops empty lists; the desired form has them, for no arguments.
    containers = tuple(msgspec.structs.replace(each, args=each.args or ()) for each in pod.containers or ())
    annotations = {name: text for name, text in (live.annotations or {}).items() if name in _OWNED_ANNOTATIONS}
    # It leaves these out of a Deployment where they are as good as nothing.
    left_out = {"paused": bool(spec.paused), "minReadySeconds": spec.minReadySeconds or 0}
    manifest = WorkloadManifest(
        metadata=owned,
        spec=msgspec.structs.replace(
            spec,
            **(left_out if spec.strategy is not None else {}),
            template=PodTemplateSpec(
                ObjectMeta(labels=live.labels, annotations=annotations or None),
                msgspec.structs.replace(pod, containers=containers),
            ),
        ),
    )
    former = applied_spec(owned.annotations)
    places = [at for at, _ in pods_of("", "", USER_ID, former).passed] if former is not None else ()
    if not places:
        return manifest
    whole = keyed({"spec": msgspec.json.decode(raw)})
    made = merged(as_json(manifest), [(at, None) for at in places])
    passed = tuple((at, unkeyed(find(whole, *at))) for at in places)
    return msgspec.structs.replace(msgspec.convert(made, WorkloadManifest), metadata=owned, passed=passed)


DEPLOYMENT_RESOURCE: Final = CachedResource(("apps/v1", "Deployment", "deployments"), deployment_record)
