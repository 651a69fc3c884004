"""Pure: the pods of a Memcached, as a template for its workload."""

from __future__ import annotations

import hashlib
from functools import lru_cache, partial
from typing import Final, NamedTuple

import msgspec

from memcached_operator.api.quantities import kibibytes, mebibytes
from memcached_operator.api.reserved_pod_fields import keyed
from memcached_operator.api.server_memory import memory_file_mib
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects import labels
from memcached_operator.core.objects.applied_spec import applied_text, spec_of
from memcached_operator.core.objects.memory_annotation import Memory
from memcached_operator.core.objects.owned_object import ObjectMeta, as_json
from memcached_operator.core.objects.pod_template_overlay import Part, parts
from memcached_operator.core.objects.resources import Quantities, resources_of
from memcached_operator.core.objects.workload_types import (
    Capabilities,
    Container,
    ContainerPort,
    ContainerSecurity,
    Hook,
    Lifecycle,
    PodSpec,
    PodTemplate,
    Probe,
    Resources,
    Sleep,
    TcpSocket,
)
from memcached_operator.features.extstore import extstore as disk
from memcached_operator.features.handover.handover_proxy import with_handover
from memcached_operator.features.tls.secrets import options, with_agreeing_sidecar, with_secrets
from memcached_operator.features.warm_restart.warm_restart import with_warm_restart
from memcached_operator.servers.transport import transport

# The user and group that the official image makes for itself, on Debian and on Alpine. By number, as runAsNonRoot
# cannot judge a name.
USER_ID: Final = 11211
# That a server accepts connections is all that Kubernetes need know of it; how it does is queried by its own
# protocol. No liveness: a slow cache that is started again is an empty one.
READINESS: Final = Probe(TcpSocket(labels.PORT_NAME), periodSeconds=5, timeoutSeconds=2, failureThreshold=3)
# For clients and Services to turn away from a server that is about to end, in seconds.
SLEEP_S: Final = 5
_DIGEST_BYTES: Final = 8
_TEMPLATE: Final = ("spec", "template")
DEFAULTS: Final = Spec()


class Pods(NamedTuple):
    """The pods of a Memcached.

    Attributes:
        template: as the operator makes it.
        passed: what is passed through to them.
        applied: the specification that they are made from, as the annotation of their workload has it.
    """

    template: PodTemplate
    passed: tuple[Part, ...]
    applied: str


def template(name: str, image: str, user_id: int | None, spec: Spec = DEFAULTS, restart: str = "") -> Pods:
    """The pods of the Memcached of that name.

    The template's annotations have what of it only a new pod takes on, and what a running server can be given as well.

    Args:
        image: container image.
        user_id: user and group of the pods; None leaves both to the image, or to what admits the pods.
        spec: the user's.
        restart: each server is to start again when this text changes.
    """
    applied = applied_text(spec)
    made = _made(image, user_id, applied, restart)
    metadata = ObjectMeta(labels=labels.labels(name), annotations=made.annotations)
    return Pods(PodTemplate(metadata, made.spec), made.passed, applied)


class Fingerprint(NamedTuple):
    """Hashes in a template's annotations, "" where there are none.

    Attributes:
        template_hash: of all in it that only a new pod takes on.
        memory: that a running server can be given, too.
    """

    template_hash: str
    memory: str


def fingerprint(made: PodTemplate | None) -> Fingerprint:
    """Read the fingerprint of a template."""
    annotations = (made.metadata.annotations if made and made.metadata else None) or {}
    return Fingerprint(annotations.get(labels.TEMPLATE_ANNOTATION, ""), annotations.get(labels.MEMORY_ANNOTATION, ""))


def command(memory_mib: int, connections: int, threads: int, item_size: str) -> tuple[str, ...]:
    """Build the command that starts memcached.

    What the specification leaves out has memcached's own defaults, in words, so that another release of it changes
    nothing; "modern" ones, and errors in its log. Options and values are words of their own: "-m=64" makes memcached
    exit.
    """
    options = (("-m", str(memory_mib)), ("-c", str(connections)), ("-t", str(threads)), ("-I", item_size))
    return ("memcached", *(word for option in options for word in option), "-o", "modern", "-v")


def _sleep_s(spec: Spec) -> int:
    """Return the seconds to sleep, at most those that a server has to end; the API server refuses what is no number."""
    grace_s = spec.podTemplate.spec.get("terminationGracePeriodSeconds")
    return min(SLEEP_S, max(grace_s, 0)) if isinstance(grace_s, int) else SLEEP_S


def _item_size(size: str) -> str:
    """A size of items as memcached takes it."""
    kib = kibibytes(size)
    return f"{kib // 1024}m" if kib % 1024 == 0 else f"{kib}k"


class _Made(NamedTuple):
    """Template without the labels, which have the Memcached's name."""

    spec: PodSpec
    annotations: dict[str, str]
    passed: tuple[Part, ...]


@lru_cache(maxsize=64)  # most Memcacheds share their settings, and frozen structs can be shared
def _made(image: str, user_id: int | None, applied: str, restart: str) -> _Made:
    spec = spec_of(msgspec.json.decode(applied))
    given = spec.podTemplate.given()
    if given.get("spec", {}).get("securityContext") is not None:
        user_id = None  # the user's own affair, or the cluster's
    file_mib = memory_file_mib(spec) if spec.warmRestart else 0
    requests, limits = resources_of(spec)
    make = partial(_pod_spec, user_id=user_id, file_mib=file_mib)
    made = make(image, spec, file_mib or mebibytes(spec.memory), requests, limits)
    annotations = {
        labels.TEMPLATE_ANNOTATION: _digest(make(image, *_replacing(spec, file_mib, requests, limits))),
        labels.MEMORY_ANNOTATION: _memory(spec, requests, limits).annotation,
    }
    if file_mib:
        restart_hash = _digest(make("", spec, file_mib, requests, limits))
        annotations |= {labels.WARM_ANNOTATION: restart_hash, labels.IMAGE_ANNOTATION: image}
    if transport_text := str(transport(spec.tls, spec.auth, peers_port=spec.handover is not None)):
        annotations[labels.TRANSPORT_ANNOTATION] = transport_text
    whole = keyed(as_json(PodTemplate(ObjectMeta(labels=labels.labels(""), annotations=annotations), made)))
    added = with_agreeing_sidecar(keyed(given)) if made.initContainers else keyed(given)
    passed = tuple(parts(added, whole, _TEMPLATE)) if given else ()
    if passed or restart:
        more = [passed, *filter(None, [restart])]
        annotations[labels.TEMPLATE_ANNOTATION] = _digest([annotations[labels.TEMPLATE_ANNOTATION], *more])
    if passed and labels.WARM_ANNOTATION in annotations:
        annotations[labels.WARM_ANNOTATION] = _digest([annotations[labels.WARM_ANNOTATION], passed])
    if restart:
        annotations[labels.RESTART_ANNOTATION] = restart
    return _Made(made, annotations, passed)


def _replacing(
    spec: Spec, file_mib: int, requests: Quantities, limits: Quantities
) -> tuple[Spec, int, Quantities, Quantities]:
    """Settings that only a new pod takes on: all but the memory, and which items are moved to a disk."""
    if spec.extstore is not None:
        spec = spec.model_copy(update={"extstore": spec.extstore.model_copy(update={"itemSizeMin": 0})})
    if file_mib:
        return spec, file_mib, requests, limits  # the memory file keeps its size: another one needs a new pod
    requests, limits = ({name: most for name, most in each.items() if name != "memory"} for each in (requests, limits))
    return spec, 0, requests, limits


def _memory(spec: Spec, requests: Quantities, limits: Quantities) -> Memory:
    disk_from = spec.extstore.itemSizeMin if spec.extstore is not None else None
    return Memory(mebibytes(spec.memory), requests.get("memory", ""), limits.get("memory", ""), disk_from)


def _digest(made: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(made, order="deterministic"), digest_size=_DIGEST_BYTES).hexdigest()


def _pod_spec(
    image: str,
    spec: Spec,
    items_mib: int,
    requests: Quantities,
    limits: Quantities,
    *,
    user_id: int | None,
    file_mib: int,
) -> PodSpec:
    """A pod that the `restricted` Pod Security profile admits.

    Args:
        items_mib: memory for items.
        file_mib: of the file that has them, 0 for none.
    """
    sleep_s = _sleep_s(spec)
    user = {} if user_id is None else {"runAsUser": user_id, "runAsGroup": user_id}
    sleep = Lifecycle(Hook(Sleep(sleep_s))) if sleep_s else None
    made = PodSpec(
        automountServiceAccountToken=False,
        securityContext={"runAsNonRoot": True, **user, "seccompProfile": {"type": "RuntimeDefault"}},
        containers=(
            Container(
                name=labels.CONTAINER,
                image=image,
                command=(
                    *command(items_mib, spec.maxConnections, spec.threads, _item_size(spec.maxItemSize)),
                    *(disk.options(spec.extstore, spec.maxItemSize) if spec.extstore is not None else ()),
                    *options(spec.tls, spec.auth),
                ),
                args=spec.extraArgs,  # owned, also where it is empty: an added argument is drift
                ports=(ContainerPort(labels.PORT, labels.PORT_NAME, "TCP"),),
                resources=Resources(limits=limits, requests=requests),
                readinessProbe=READINESS,
                lifecycle=sleep,
                securityContext=ContainerSecurity(
                    allowPrivilegeEscalation=False,
                    capabilities=Capabilities(drop=("ALL",)),
                    readOnlyRootFilesystem=True,
                ),
            ),
        ),
    )
    made = with_secrets(made, spec.tls, spec.auth)
    if spec.extstore is not None:
        made = disk.with_extstore(made, spec.extstore, user_id)
    if spec.handover is not None:
        made = with_handover(made)
    return with_warm_restart(made, file_mib) if file_mib else made
