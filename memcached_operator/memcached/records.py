"""What the caches hold of each kind: flat, slim records, made from an object's JSON as it comes in.

A record has what a reconcile reads and nothing else. Strings and bytes only, so that the garbage collector need not
look into them (`gc=False`), and a few hundred bytes each where a decoded object would take ten times as much.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from memcached_operator.api.names import API_VERSION, KIND
from memcached_operator.memcached.desired import CONTAINER, OWNER_UID_ANNOTATION
from memcached_operator.memcached.objects import (
    Deployment,
    DeploymentSpec,
    ObjectMeta,
    OwnerRef,
    PodSpec,
    PodTemplate,
    controller_of,
    encode_deployment,
)
from operator_runtime import ObjectKey, OwnerReference, shared


class MemcachedRecord(msgspec.Struct, frozen=True, gc=False):
    """A Memcached.

    Attributes:
        deleting: it has a deletionTimestamp; unless it carries our finalizer, nothing is written for it any more.
        spec: JSON of `spec`, b"" when it is absent.
        status: JSON of `status`, b"" when it is absent.
        finalizers: who must agree before it goes: we, the garbage collector, others.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    deleting: bool
    spec: bytes
    status: bytes
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> ObjectKey:
        """Its namespace and name."""
        return ObjectKey(self.namespace, self.name)


class DeploymentRecord(msgspec.Struct, frozen=True, gc=False):
    """A Deployment: ours in full, a stranger's by name only.

    Attributes:
        owner: the controlling owner as "Kind name", "" without one.
        owner_uid: uid of the controlling owner.
        made_for_uid: uid of the Memcached that it was made for, as its annotation says; survives a lost ownerReference.
        deleting: it has a deletionTimestamp.
        generation: 1 until its specification is first changed.
        settled: its controller has seen its latest generation.
        revised: its controller has seen another template than the present one.
        rolled_out: its controller has said that the pods of its present template are all available. It stays so when it
            is scaled and when pods are lost; a new template ends it.
        create_failure: what keeps it from making pods, in the API server's words.
        deadline_exceeded: its controller's message once it gave up waiting for progress, "" before.
        form: `owned` with the name and the uid of the Memcached taken out (`_form`), b"" for a stranger's. Most
            Deployments differ in these alone, so that one form serves thousands of records.
        held_by: finalizers that keep it while it is being deleted, the garbage collector's own excepted, as text.
        image: what its template runs memcached from, "" for a stranger's.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    owner: str
    owner_uid: str
    made_for_uid: str
    deleting: bool
    generation: int
    settled: bool
    revised: bool
    rolled_out: bool
    create_failure: str
    deadline_exceeded: str
    form: bytes
    held_by: str = ""
    image: str = ""

    @property
    def controller(self) -> OwnerReference | None:
        """The controlling owner."""
        kind, _, name = self.owner.partition(" ")
        return OwnerReference(API_VERSION if self.form else "", kind, name, self.owner_uid) if self.owner else None

    @property
    def owned(self) -> bytes:
        """JSON of the fields that this operator compares (`objects.encode_deployment`), b"" for a stranger's."""
        return self.form.replace(_NAME, _quoted(self.name)).replace(_UID, _quoted(self.made_for_uid))


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """A pod that carries the label of a Memcached.

    Attributes:
        memcached: name of the Memcached whose Deployment it belongs to, "" when it belongs to none.
        template_hash: which pod template it was made from.
        active: neither terminating nor finished.
        ready: its Ready condition is True.
        problem: why it is not ready, "" when nothing is known: a reason, or a reason and a message.
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

    @property
    def memcached_key(self) -> ObjectKey | None:
        """The key of the Memcached that it belongs to."""
        return ObjectKey(self.namespace, self.memcached) if self.memcached else None


class _Meta(msgspec.Struct):
    name: str
    uid: str
    resourceVersion: str
    namespace: str = ""
    generation: int = 0
    deletionTimestamp: str | None = None
    finalizers: tuple[str, ...] = ()


class _MemcachedObject(msgspec.Struct):
    metadata: _Meta
    spec: msgspec.Raw = msgspec.Raw()
    status: msgspec.Raw = msgspec.Raw()


_decode_memcached = msgspec.json.Decoder(_MemcachedObject).decode


def memcached_record(raw: msgspec.Raw | bytes) -> MemcachedRecord:
    """A record from a Memcached's JSON. Its spec is judged at each reconcile, not here: it may be wrong."""
    object_ = _decode_memcached(raw)
    meta = object_.metadata
    return MemcachedRecord(
        namespace=shared(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resourceVersion,
        generation=meta.generation,
        deleting=meta.deletionTimestamp is not None,
        spec=bytes(object_.spec),
        status=bytes(object_.status),
        finalizers=_one_tuple(meta.finalizers),
    )


@lru_cache(maxsize=64)  # there are few different ones
def _one_tuple(finalizers: tuple[str, ...]) -> tuple[str, ...]:
    """The tuple that stands for all equal ones."""
    return finalizers


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _DeploymentStatus(msgspec.Struct):
    observedGeneration: int = 0
    conditions: list[_Condition] | None = None


class _DeploymentObject(msgspec.Struct):
    metadata: ObjectMeta
    # A stranger's spec is never looked into.
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: _DeploymentStatus = msgspec.field(default_factory=_DeploymentStatus)


_decode_deployment_object = msgspec.json.Decoder(_DeploymentObject).decode
_decode_deployment_spec = msgspec.json.Decoder(DeploymentSpec).decode
_NO_OWNER = OwnerRef()
# The Deployment's controller counts templates here.
_REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
_FIRST_REVISION = "1"


def deployment_record(raw: msgspec.Raw | bytes) -> DeploymentRecord:
    """A record from a Deployment's JSON."""
    object_ = _decode_deployment_object(raw)
    meta = object_.metadata
    owner = controller_of(meta.ownerReferences) or _NO_OWNER
    made_for_uid = (meta.annotations or {}).get(OWNER_UID_ANNOTATION, "")
    ours = owner.kind == KIND and owner.apiVersion == API_VERSION
    generation = meta.generation or 0
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
    spec = _decode_deployment_spec(object_.spec) if made_for_uid or ours else None
    return DeploymentRecord(
        namespace=shared(meta.namespace or ""),
        name=meta.name or "",
        uid=meta.uid or "",
        resource_version=meta.resourceVersion or "",
        owner=f"{owner.kind} {owner.name}" if owner.uid else "",
        owner_uid=owner.uid,
        # The same text as one object: most records hold it twice.
        made_for_uid=owner.uid if made_for_uid == owner.uid else made_for_uid,
        deleting=meta.deletionTimestamp is not None,
        generation=generation,
        settled=object_.status.observedGeneration >= generation,
        revised=(meta.annotations or {}).get(_REVISION_ANNOTATION, _FIRST_REVISION) != _FIRST_REVISION,
        rolled_out=rolled_out,
        create_failure=create_failure,
        deadline_exceeded=deadline_exceeded,
        form=_form(meta, spec, made_for_uid) if spec else b"",
        held_by=_held_by(meta) if meta.deletionTimestamp is not None else "",
        image=shared(_image(spec)) if spec else "",
    )


def _image(spec: DeploymentSpec) -> str:
    pod = spec.template.spec if spec.template else None
    containers = (pod.containers if pod else None) or ()
    return next((each.image or "" for each in containers if each.name == CONTAINER), "")


# By which the garbage collector knows what an object's deletion is to do with its dependents.
ORPHAN_FINALIZER, FOREGROUND_FINALIZER = "orphan", "foregroundDeletion"


def _held_by(meta: ObjectMeta) -> str:
    return ", ".join(each for each in meta.finalizers or () if each not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER))


# JSON has no control characters, so these stand in its text for nothing else, and no text put back has any in it.
_NAME, _UID = b"\x00", b"\x01"


def _form(meta: ObjectMeta, spec: DeploymentSpec, made_for_uid: str) -> bytes:
    owned = encode_deployment(_owned(meta, spec)).replace(_quoted(meta.name or ""), _NAME)
    return _one_of_many(owned.replace(_quoted(made_for_uid), _UID) if made_for_uid else owned)


def _quoted(text: str) -> bytes:
    return msgspec.json.encode(text)


@lru_cache(maxsize=1024)  # sizes times images times states of repair; a form that falls out is merely held twice
def _one_of_many(form: bytes) -> bytes:
    """The object that stands for all equal ones."""
    return form


def _owned(meta: ObjectMeta, spec: DeploymentSpec) -> Deployment:
    """Keep of a live Deployment what can be ours, in the form in which the wanted one is built."""
    template = spec.template or PodTemplate()
    labels = template.metadata.labels if template.metadata else None
    ours = (meta.annotations or {}).get(OWNER_UID_ANNOTATION)
    pod = template.spec or PodSpec()
    # The API server drops empty lists; the wanted form says that there are no arguments.
    containers = tuple(msgspec.structs.replace(each, args=each.args or ()) for each in pod.containers or ())
    return Deployment(
        metadata=ObjectMeta(
            labels=meta.labels,
            annotations={OWNER_UID_ANNOTATION: ours} if ours else None,
            ownerReferences=meta.ownerReferences,
        ),
        spec=DeploymentSpec(
            spec.replicas,
            spec.selector,
            PodTemplate(ObjectMeta(labels=labels), msgspec.structs.replace(pod, containers=containers)),
        ),
    )


class _PodLabels(msgspec.Struct, rename={"template_hash": "pod-template-hash"}):
    memcached_cr: str = ""
    template_hash: str = ""


class _PodMeta(msgspec.Struct):
    name: str
    uid: str
    resourceVersion: str
    namespace: str = ""
    deletionTimestamp: str | None = None
    labels: _PodLabels = msgspec.field(default_factory=_PodLabels)
    ownerReferences: tuple[OwnerRef, ...] | None = None


class _Waiting(msgspec.Struct):
    reason: str = ""


class _ContainerState(msgspec.Struct):
    waiting: _Waiting | None = None
    terminated: _Waiting | None = None


class _ContainerStatus(msgspec.Struct):
    state: _ContainerState = msgspec.field(default_factory=_ContainerState)


class _PodStatus(msgspec.Struct):
    phase: str = ""
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
    ours = (
        owner is not None
        and owner.kind == "ReplicaSet"
        and owner.name == f"{labels.memcached_cr}-{labels.template_hash}"
    )
    return PodRecord(
        namespace=shared(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resourceVersion,
        memcached=labels.memcached_cr if ours else "",
        template_hash=shared(labels.template_hash),
        active=meta.deletionTimestamp is None and status.phase not in ("Succeeded", "Failed"),
        ready=any(condition.type == "Ready" and condition.status == "True" for condition in status.conditions or ()),
        problem=_problem(status),
    )


def _problem(status: _PodStatus) -> str:
    for container in status.containerStatuses or ():
        state = container.state.waiting or container.state.terminated
        if state is not None and state.reason not in _ORDINARY_WAITS:
            return shared(_ONE_NAME.get(state.reason, state.reason))
    for condition in status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return shared(f"{condition.reason}: {condition.message}"[:_PROBLEM_CHARS].rstrip(": "))
    return ""
