"""Pure: the pods of a Memcached, as a template for its workload."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from memcached_operator.api.quantities import canonical, kibibytes, mebibytes, of_mebibytes, value
from memcached_operator.api.reserved_pod_fields import find, keyed
from memcached_operator.api.sizing import memory_of_server_mib
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects import labels, workload_types as types
from memcached_operator.core.objects.applied_spec import applied_text, spec_of
from memcached_operator.core.objects.memory_annotation import Memory
from memcached_operator.core.objects.owned_object import ObjectMeta, as_json
from memcached_operator.core.objects.pod import Pod
from memcached_operator.core.objects.pod_template_overlay import Part, parts
from memcached_operator.core.objects.scripts import MOUNT, SCRIPTS, Scripts, suffix
from memcached_operator.features import POD_PARTS
from memcached_operator.servers.transport import transport

# That a server accepts connections is all that Kubernetes need know of it; how it does is queried by its own
# protocol. No liveness: a slow cache that is started again is an empty one.
READINESS: Final = types.Probe(types.TcpSocket(labels.PORT_NAME), periodSeconds=5, timeoutSeconds=2, failureThreshold=3)
# For clients and Services to turn away from a server that is about to end, in seconds.
SLEEP_S: Final = 5
_DIGEST_BYTES: Final = 8
_TEMPLATE: Final = ("spec", "template")
_LIKE_SERVER: Final = ("imagePullPolicy", "securityContext")
DEFAULTS: Final = Spec()


class Pods(NamedTuple):
    """The pods of a Memcached.

    Attributes:
        template: as the operator makes it.
        passed: what is passed through to them.
        applied: the specification that they are made from, as the annotation of their workload has it.
    """

    template: types.PodTemplateSpec
    passed: tuple[Part, ...]
    applied: str


def template(name: str, image: str, user_id: int | None, spec: Spec = DEFAULTS, restart: str = "") -> Pods:
    """The pods of a Memcached. Annotations separate what only a new pod takes on from what a running server can get.

    Args:
        user_id: user and group of the pods; None leaves both to the image, or to what admits the pods.
        restart: each server is to start again when this text changes.
    """
    applied = applied_text(spec)
    annotations, pod, made, passed = _made(image, user_id, applied, restart)
    if pod.scripts:
        made = replace(made, volumes=(*pod.volumes, _of_scripts(pod.scripts, name)))
    return Pods(
        types.PodTemplateSpec(ObjectMeta(labels=labels.labels(name), annotations=annotations), made), passed, applied
    )


def scripts_of(spec: Spec) -> Scripts:
    return _made("", None, applied_text(spec), "")[1].scripts


class Fingerprint(NamedTuple):
    """Hashes in a template's annotations, "" where there are none.

    Attributes:
        template_hash: of all in it that only a new pod takes on.
        memory: that a running server can be given, too.
    """

    template_hash: str
    memory: str


def fingerprint(made: types.PodTemplateSpec | None) -> Fingerprint:
    annotations = (made.metadata.annotations if made and made.metadata else None) or {}
    return Fingerprint(annotations.get(labels.TEMPLATE_ANNOTATION, ""), annotations.get(labels.MEMORY_ANNOTATION, ""))


@lru_cache(maxsize=64)  # most Memcacheds share their settings, and frozen structs can be shared
def _made(
    image: str, user_id: int | None, applied: str, restart: str
) -> tuple[dict[str, str], Pod, types.PodSpec, tuple[Part, ...]]:
    spec = spec_of(msgspec.json.decode(applied))
    given = keyed(spec.podTemplate.given())
    if find(given, "spec", "securityContext") is not None:
        user_id = None  # the user's own affair, or the cluster's
    pod = _pod(image, spec, user_id)
    made = _pod_spec(pod, spec)
    requests, limits = resources_of(spec)
    memory = Memory(mebibytes(spec.memory), requests.get("memory", ""), limits.get("memory", ""), pod.disk_from)
    annotations = {
        labels.TEMPLATE_ANNOTATION: _digest(_pod_spec(_pod(image, spec, user_id, only_replaced=True), spec)),
        labels.MEMORY_ANNOTATION: memory.annotation,
    }
    if pod.keeps_items:
        restart_hash = _digest(_pod_spec(_pod("", spec, user_id), spec))
        annotations |= {labels.WARM_ANNOTATION: restart_hash, labels.IMAGE_ANNOTATION: image}
    tell_port = pod.grace_s is not None
    required = transport(spec.tls, spec.auth, peers_port=spec.handover is not None, tell_port=tell_port)
    if transport_text := str(required):
        annotations[labels.TRANSPORT_ANNOTATION] = transport_text
    whole = keyed(as_json(types.PodTemplateSpec(ObjectMeta(labels=labels.labels(""), annotations=annotations), made)))
    for sidecar in pod.like_server:
        given = _with_agreeing(given, sidecar)
    passed = tuple(parts(given, whole, _TEMPLATE))
    if passed or restart:
        more = [passed, *filter(None, [restart])]
        annotations[labels.TEMPLATE_ANNOTATION] = _digest([annotations[labels.TEMPLATE_ANNOTATION], *more])
    if passed and pod.keeps_items:
        annotations[labels.WARM_ANNOTATION] = _digest([annotations[labels.WARM_ANNOTATION], passed])
    if restart:
        annotations[labels.RESTART_ANNOTATION] = restart
    return annotations, pod, made, passed


def _pod(image: str, spec: Spec, user_id: int | None, *, only_replaced: bool = False) -> Pod:
    """A pod that the `restricted` Pod Security profile admits, with the parts of the features that are on."""
    user = {} if user_id is None else {"runAsUser": user_id, "runAsGroup": user_id}
    requests, limits = resources_of(spec)
    sleep_s = _sleep_s(spec)
    server = types.Container(
        name=labels.CONTAINER,
        image=image,
        args=spec.extraArgs,  # owned, also where it is empty: an added argument is drift
        resources=types.ResourceRequirements(limits=limits, requests=requests),
        readinessProbe=READINESS,
        lifecycle=types.Lifecycle(types.Hook(types.Sleep(sleep_s))) if sleep_s else None,
        securityContext=types.ContainerSecurity(
            allowPrivilegeEscalation=False, capabilities=types.Capabilities(drop=("ALL",)), readOnlyRootFilesystem=True
        ),
    )
    pod = Pod(
        server=server,
        security={"runAsNonRoot": True, **user, "seccompProfile": {"type": "RuntimeDefault"}},
        items_mib=mebibytes(spec.memory),
        only_replaced=only_replaced,
        ports=(types.ContainerPort(labels.PORT, labels.PORT_NAME, "TCP"),),
    )
    for fields, part in POD_PARTS:
        if any(getattr(spec, field) for field in fields):
            pod = part(pod, spec)
    if only_replaced and not pod.keeps_items:
        kept = ({name: most for name, most in each.items() if name != "memory"} for each in (limits, requests))
        pod = replace(pod, items_mib=0, server=replace(pod.server, resources=types.ResourceRequirements(*kept)))
    return pod


def _pod_spec(pod: Pod, spec: Spec) -> types.PodSpec:
    """The specification of a pod, without the Memcached's name, so that most of them share it."""
    mounts = (*pod.mounts, MOUNT) if pod.launcher else pod.mounts
    volumes = (*pod.volumes, _of_scripts(pod.scripts)) if pod.scripts else pod.volumes
    server = replace(pod.server, command=_command(pod, spec), ports=pod.ports, volumeMounts=mounts or None)
    return types.PodSpec(
        automountServiceAccountToken=False,
        securityContext=pod.security,
        shareProcessNamespace=True if pod.like_server else None,
        terminationGracePeriodSeconds=pod.grace_s or types.GRACE_S,
        initContainers=pod.sidecars or None,
        containers=(server,),
        volumes=volumes or None,
    )


@lru_cache
def _of_scripts(scripts: Scripts, name: str = "") -> types.Volume:
    return types.Volume(SCRIPTS, configMap=types.ConfigMapSource(name + suffix(scripts)))


def _command(pod: Pod, spec: Spec) -> tuple[str, ...]:
    """Build the command that starts memcached.

    What the specification leaves out has memcached's own defaults, in words, so that another release of it changes
    nothing; "modern" ones, and errors in its log. Options and values are words of their own: "-m=64" makes memcached
    exit.
    """
    sizes = ("-m", str(pod.items_mib), "-c", str(spec.maxConnections), "-t", str(spec.threads))
    kib = kibibytes(spec.maxItemSize)
    item_size = f"{kib // 1024}m" if kib % 1024 == 0 else f"{kib}k"
    return (*pod.launcher, "memcached", *sizes, "-I", item_size, "-o", "modern", "-v", *pod.options)


def _sleep_s(spec: Spec) -> int:
    """Return the seconds to sleep, at most those that a server has to end; the API server refuses what is no number."""
    grace_s = spec.podTemplate.spec.get("terminationGracePeriodSeconds")
    return min(SLEEP_S, max(grace_s, 0)) if isinstance(grace_s, int) else SLEEP_S


def _with_agreeing(given: Mapping[str, Any], sidecar: str) -> Mapping[str, Any]:
    """Have the sidecar run as memcached is, or it may not signal it; what a user has for the sidecar goes first."""
    server, own = find(given, "spec", "containers", labels.CONTAINER), find(given, "spec", "initContainers", sidecar)
    common = {field: server[field] for field in _LIKE_SERVER if isinstance(server, Mapping) and field in server}
    if not common:
        return given
    agreeing = {"name": sidecar, **common, **(own or {})}
    contexts = [each["securityContext"] for each in (common, own or {}) if "securityContext" in each]
    if len(contexts) > 1 and all(isinstance(each, Mapping) for each in contexts):
        agreeing["securityContext"] = contexts[0] | contexts[1]
    others = find(given, "spec", "initContainers")
    others = others if isinstance(others, Mapping) else {}
    return {**given, "spec": {**given["spec"], "initContainers": {**others, sidecar: agreeing}}}


def _digest(made: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(made, order="deterministic"), digest_size=_DIGEST_BYTES).hexdigest()


# An idle memcached takes next to none; what a busy one takes is not to be cut.
CPU: Final = "50m"

Quantities = dict[str, str]


def resources_of(spec: Spec) -> tuple[Quantities, Quantities]:
    """Requests and limits of the container, in the form in which the API server writes quantities back.

    What the user names is taken, name by name. What follows from the settings fits it: a limit is no smaller than the
    user's request, and a request no larger than the user's limit.
    """
    memory = of_mebibytes(memory_of_server_mib(spec))
    needed = {"cpu": CPU, "memory": memory}
    if spec.extstore is not None and spec.extstore.volume.emptyDir is not None:
        needed["ephemeral-storage"] = spec.extstore.size  # else the node promises its disk to others, too
    requested, most = _canonical(spec.resources.requests), _canonical(spec.resources.limits)
    requests = {name: min(default, most.get(name, default), key=value) for name, default in needed.items()} | requested
    limits = {"memory": max(memory, requested.get("memory", memory), key=value)} | most
    return requests, limits


def _canonical(quantities: Mapping[str, str | int]) -> Quantities:
    return {name: canonical(quantity) for name, quantity in quantities.items()}
