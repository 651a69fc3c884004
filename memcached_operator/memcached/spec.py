"""The specification of a Memcached as a reconcile reads it.

The models in `api` are what decides. But pydantic costs 13 MiB of resident memory, a quarter of the whole operator, and
the API server has nearly always checked a specification before it comes here. So a strict decoder that accepts nothing
that the models refuse reads the good ones; only for one that it does not accept are the models loaded, to say in words
what is wrong. A property test holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec

from memcached_operator.api.arguments import CHUNK_KIB, judge
from memcached_operator.api.disk_layout import DiskLayout, disk_layout, least_volume_mib
from memcached_operator.api.names import (
    ACCESS_MODES_MAX,
    DISK_ITEM_SIZE,
    DISK_ITEM_SIZE_MAX,
    DISK_SIZE_PATTERN,
    DISK_THREADS,
    DRAIN_SECONDS,
    DRAIN_SECONDS_MAX,
    EXTRA_ARG_MAX_LENGTH,
    EXTRA_ARGS_MAX,
    EXTSTORE_VOLUME,
    EXTSTORE_WARM,
    HANDOVER_AUTH,
    HANDOVER_EXTSTORE,
    HANDOVER_SECONDS,
    HANDOVER_SECONDS_MAX,
    HANDOVER_SECONDS_MIN,
    HANDOVER_TLS,
    HANDOVER_WARM,
    HANDOVER_WORKLOAD,
    IMAGE_CHARACTERS,
    IMAGE_MAX_LENGTH,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_MAX,
    MAX_ITEM_SIZE,
    MAX_ITEM_SIZE_PATTERN,
    MEMORY,
    MEMORY_PATTERN,
    OWN_CONNECTIONS,
    OWN_CONNECTIONS_OF_A_THREAD,
    PAUSE_SECONDS,
    PAUSE_SECONDS_MAX,
    PERCENTAGE,
    QUANTITY,
    QUANTITY_MAX,
    RETENTION,
    RETENTION_PATTERN,
    SCALING_WARM,
    SCALING_WORKLOAD,
    SECRET_NAME,
    SECRET_NAME_MAX_LENGTH,
    SIZE_MAX,
    THREADS,
    THREADS_MAX,
    WARM_WORKLOAD,
    AccessMode,
    ClientAuth,
    InvalidSpec,
    Publish,
    Reload,
    ServiceType,
    Workload,
    joined_complaints,
    shown,
)
from memcached_operator.api.quantities import canonical, kibibytes, mebibytes, value
from memcached_operator.api.reserved_pod_fields import of_pod_template
from memcached_operator.api.sizing import disk_memory_kib, memory_needed_mib
from operator_runtime import UNDECODABLE, shallow

_Count = Annotated[int, msgspec.Meta(ge=0, le=SIZE_MAX)]
_Share = Annotated[str, msgspec.Meta(pattern=rf"^{PERCENTAGE}\Z")]
_Image = Annotated[str, msgspec.Meta(min_length=1, max_length=IMAGE_MAX_LENGTH, pattern=rf"^{IMAGE_CHARACTERS}*\Z")]
_Memory = Annotated[str, msgspec.Meta(pattern=rf"^({MEMORY_PATTERN})\Z")]
_Retention = Annotated[str, msgspec.Meta(pattern=rf"^({RETENTION_PATTERN})\Z")]
_ItemSize = Annotated[str, msgspec.Meta(pattern=rf"^({MAX_ITEM_SIZE_PATTERN})\Z")]
_Argument = Annotated[str, msgspec.Meta(min_length=1, max_length=EXTRA_ARG_MAX_LENGTH)]
_Amount = Annotated[int, msgspec.Meta(ge=0, le=QUANTITY_MAX)]
_Quantity = Annotated[str, msgspec.Meta(pattern=rf"^({QUANTITY})\Z")]
_DiskSize = Annotated[str, msgspec.Meta(pattern=rf"^({DISK_SIZE_PATTERN})\Z")]
_StorageClassName = Annotated[str, msgspec.Meta(max_length=SECRET_NAME_MAX_LENGTH, pattern=rf"^({SECRET_NAME})?\Z")]
_AccessModes = Annotated[tuple[AccessMode, ...], msgspec.Meta(min_length=1, max_length=ACCESS_MODES_MAX)]
_SecretName = Annotated[str, msgspec.Meta(max_length=SECRET_NAME_MAX_LENGTH, pattern=rf"^{SECRET_NAME}\Z")]
# As Kubernetes types it, whatever that is.
_Passed = dict[str, Any]

# More levels than so many have no place in a pod, and at some hundreds what writes them into one has no stack left.
_LEVELS = 100
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
# A team's Memcacheds are mostly written alike. 200 different specifications take some 300 KiB.
_REMEMBERED: Final = 200


class Service(msgspec.Struct, frozen=True):
    """The Service by which clients find the servers."""

    type: ServiceType = "Headless"
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class DisruptionBudget(msgspec.Struct, frozen=True):
    """How many servers may be away at once when nodes are drained."""

    maxUnavailable: _Count | _Share = 1


class NetworkPolicy(msgspec.Struct, frozen=True):
    """Who may connect to the servers."""

    allowFrom: tuple[_Passed, ...]


class PodMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user wants the pods to bear."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user wants of the pods besides what the operator makes."""

    metadata: PodMetadata = PodMetadata()
    spec: _Passed = {}

    def given(self) -> dict[str, Any]:
        """All of it as JSON has it, {} where it says nothing."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        if account := self.spec.get("serviceAccountName") or self.spec.get("serviceAccount"):
            # The API server fills in the field's other name, and would put back an account that is taken out again.
            found["spec"] = self.spec | {"serviceAccountName": account, "serviceAccount": account}
        return found


class Resources(msgspec.Struct, frozen=True):
    """What the user wants of each server's resources, by their names; what is not named follows from the settings."""

    requests: dict[str, _Amount | _Quantity] = {}
    limits: dict[str, _Amount | _Quantity] = {}


class Rollout(msgspec.Struct, frozen=True):
    """How servers are replaced when their template changes.

    Attributes:
        maxUnavailable: of a Deployment, how many may be missing, or a share of them; None where it is left out, which
            is 1. A StatefulSet has None.
        maxSurge: likewise, how many there may be above the size; None is 0.
    """

    pauseSeconds: Annotated[int, msgspec.Meta(ge=0, le=PAUSE_SECONDS_MAX)] = PAUSE_SECONDS
    paused: bool = False
    maxUnavailable: _Count | _Share | None = None
    maxSurge: _Count | _Share | None = None


class MemoryScaling(msgspec.Struct, frozen=True):
    """Up to where the memory of servers grows, and for how long what clients ask for is to stay."""

    max: _Memory
    retention: _Retention = RETENTION

    @property
    def retention_s(self) -> int:
        """The retention in seconds."""
        return int(self.retention[:-1]) * _SECONDS[self.retention[-1]]


class EphemeralVolume(msgspec.Struct, frozen=True):
    """A claim for each pod, which goes with it; None is the default StorageClass."""

    storageClassName: _StorageClassName | None = None
    accessModes: _AccessModes = ("ReadWriteOnce",)


class EmptyDirVolume(msgspec.Struct, frozen=True):
    """A folder on the node's own disk."""


class ExtstoreVolume(msgspec.Struct, frozen=True):
    """Where the disk comes from; one of these."""

    ephemeral: EphemeralVolume | None = None
    emptyDir: EmptyDirVolume | None = None


class Extstore(msgspec.Struct, frozen=True):
    """A disk for what does not fit into the memory of a server."""

    size: _DiskSize
    volume: ExtstoreVolume
    itemSizeMin: Annotated[int, msgspec.Meta(ge=1, le=DISK_ITEM_SIZE_MAX)] = DISK_ITEM_SIZE
    threads: Annotated[int, msgspec.Meta(ge=1, le=THREADS_MAX)] = DISK_THREADS


class Handover(msgspec.Struct, frozen=True):
    """That servers fill themselves from each other while the list changes, and for how long after that."""

    forSeconds: Annotated[int, msgspec.Meta(ge=HANDOVER_SECONDS_MIN, le=HANDOVER_SECONDS_MAX)] = HANDOVER_SECONDS


class Tls(msgspec.Struct, frozen=True):
    """How servers speak TLS."""

    secretName: _SecretName
    clientAuth: ClientAuth = "None"
    reload: Reload = "Live"


class Auth(msgspec.Struct, frozen=True):
    """Passwords for the text protocol."""

    secretName: _SecretName


class Spec(msgspec.Struct, frozen=True):
    """A specification that can be acted on, with the fields that `api.v1alpha1` describes; never changed."""

    size: _Count = 1
    image: _Image | None = None
    memory: _Memory = MEMORY
    memoryScaling: MemoryScaling | None = None
    maxConnections: Annotated[int, msgspec.Meta(ge=1, le=MAX_CONNECTIONS_MAX)] = MAX_CONNECTIONS
    threads: Annotated[int, msgspec.Meta(ge=1, le=THREADS_MAX)] = THREADS
    maxItemSize: _ItemSize = MAX_ITEM_SIZE
    extraArgs: Annotated[tuple[_Argument, ...], msgspec.Meta(max_length=EXTRA_ARGS_MAX)] = ()
    extstore: Extstore | None = None
    resources: Resources = Resources()
    rollout: Rollout = Rollout()
    warmRestart: bool = False
    handover: Handover | None = None
    workload: Workload = "Deployment"
    service: Service = Service()
    disruptionBudget: DisruptionBudget | None = None
    podTemplate: PodTemplate = PodTemplate()
    networkPolicy: NetworkPolicy | None = None
    tls: Tls | None = None
    auth: Auth | None = None
    publish: Publish | None = None
    drainSeconds: Annotated[int, msgspec.Meta(ge=0, le=DRAIN_SECONDS_MAX)] = DRAIN_SECONDS


_decode = msgspec.json.Decoder(Spec).decode


@lru_cache(_REMEMBERED)
def read_spec(raw: bytes) -> Spec:
    """Read the JSON of `spec`, b"" where there is none.

    Raises:
        InvalidSpec: a field has the wrong type or is out of its limits, or two contradict each other; names each, what
            it holds, and the remedy.
    """
    if not raw:
        return Spec()
    if raw.count(b"{") + raw.count(b"[") > _LEVELS:
        raw = shallow(raw, _LEVELS)
    try:
        spec = _decode(raw)
    except UNDECODABLE:
        from memcached_operator.api.v1alpha1 import validate_spec

        # To the models null is as good as no field.
        spec = msgspec.convert(validate_spec(raw).model_dump(by_alias=True, exclude_none=True), Spec)
    refuse_contradictions(spec)
    return spec


def refuse_contradictions(spec: Spec) -> None:
    """Hold fields that are right by themselves to the rules over several of them.

    Raises:
        InvalidSpec: names each field that breaks one, what it must be, and what it is.
    """
    settings = _of_settings(spec.memory, spec.threads, spec.maxItemSize, spec.extraArgs)
    connections = _of_connections(spec.maxConnections, spec.threads)
    pods = of_pod_template(spec.podTemplate.given())
    if complaints := [
        *_of_workload(spec),
        *settings,
        *_of_scaling(spec),
        *_of_extstore(spec),
        *_of_handover(spec),
        *_of_auth(spec),
        *connections,
        *_of_resources(spec),
        *pods,
    ]:
        raise InvalidSpec(joined_complaints(complaints))


@lru_cache(maxsize=64)  # most Memcacheds share their settings
def memory_mib(
    memory: str,
    max_connections: int,
    threads: int,
    extra_args: tuple[str, ...] = (),
    *,
    tls: bool = False,
    disk_kib: int = 0,
    hands_over: bool = False,
) -> int:
    """MiB that a server with these settings takes at most; they are those of a specification that can be acted on.

    Args:
        disk_kib: of its disk, see `disk_memory_kib`.
        hands_over: it fills itself from others.
    """
    judged = _judged(extra_args, threads)
    needed = memory_needed_mib(
        mebibytes(memory),
        max_connections,
        threads,
        tls=tls,
        size_classes=judged.size_classes,
        least_item_bytes=judged.least_item_bytes,
        disk_kib=disk_kib,
        hands_over=hands_over,
    )
    return needed + judged.table_mib


def memory_of_server_mib(spec: Spec) -> int:
    """MiB that a server of that specification takes at most."""
    disk = spec.extstore
    disk_kib = disk_memory_kib(layout_of(disk, spec.maxItemSize), disk.threads) if disk is not None else 0
    return memory_mib(
        spec.memory,
        spec.maxConnections,
        spec.threads,
        spec.extraArgs,
        tls=spec.tls is not None,
        disk_kib=disk_kib,
        hands_over=spec.handover is not None,
    )


def layout_of(extstore: Extstore, item_size: str) -> DiskLayout:
    """How a server divides its disk."""
    return disk_layout(mebibytes(extstore.size), kibibytes(item_size))


def memory_file_mib(memory: str, threads: int, extra_args: tuple[str, ...] = ()) -> int:
    """MiB of the file in which a server with these settings has its items.

    It is as large as -m, and memcached gives each size class its first page of it before there is any item. Without a
    file that page comes besides, when the class has its first item.
    """
    return mebibytes(memory) + _judged(extra_args, threads).size_classes - 1


_judged = lru_cache(maxsize=64)(judge)


def _of_workload(spec: Spec) -> Iterator[str]:
    pace = {"maxUnavailable": spec.rollout.maxUnavailable, "maxSurge": spec.rollout.maxSurge}
    if spec.workload == "StatefulSet":
        if spec.service.type == "ClusterIP":
            yield (
                "spec.service.type: must be Headless when spec.workload is StatefulSet, as the DNS names of its "
                "servers come from the headless Service, or Disabled if you create that Service yourself, got "
                f"{json.dumps(spec.service.type)}"
            )
        for name, given in pace.items():
            if given is not None:
                yield (
                    f"spec.rollout.{name}: must be omitted when spec.workload is StatefulSet, whose servers are "
                    f"replaced one at a time, got {shown(given)}"
                )
    elif spec.rollout.maxUnavailable in (0, "0%") and spec.rollout.maxSurge in (None, 0, "0%"):
        yield (
            "spec.rollout.maxUnavailable: must be 1 or more when spec.rollout.maxSurge is 0 or omitted, as no server "
            f"could be replaced, got {shown(spec.rollout.maxUnavailable)}"
        )
    if spec.warmRestart and spec.workload != "StatefulSet":
        yield f"spec.warmRestart: {WARM_WORKLOAD}, got true"


@lru_cache(maxsize=64)
def _of_settings(memory: str, threads: int, item_size: str, extra_args: tuple[str, ...]) -> tuple[str, ...]:
    item_kib, half_kib = kibibytes(item_size), kibibytes(memory) // 2
    arguments = _judged(extra_args, threads)
    complaints = []
    if item_kib > half_kib:
        complaints.append(
            f"spec.maxItemSize: must be at most {canonical(f'{half_kib}Ki')}, half of spec.memory {memory}; "
            f"lower it or raise the memory, got {shown(item_size)}"
        )
    if item_kib % (step_kib := arguments.item_step_kib(item_kib)):
        chosen = "or of N KiB with -o slab_chunk_max=N in" if step_kib == CHUNK_KIB else "by"
        complaints.append(
            f"spec.maxItemSize: must be a multiple of {step_kib}Ki, {chosen} spec.extraArgs, got {shown(item_size)}"
        )
    return (*complaints, *arguments.complaints)


def _of_scaling(spec: Spec) -> Iterator[str]:
    scaling = spec.memoryScaling
    if scaling is None:
        return
    got = shown(msgspec.to_builtins(scaling))
    if spec.workload != "StatefulSet":
        yield f"spec.memoryScaling: {SCALING_WORKLOAD}, got {got}"
    if spec.warmRestart:
        yield f"spec.memoryScaling: {SCALING_WARM}, got {got}"
    if not _judged(spec.extraArgs, spec.threads).evicts:
        yield (
            "spec.extraArgs: must not contain -M with spec.memoryScaling, which follows what is evicted; omit one of "
            f"them, got {shown(list(spec.extraArgs))}"
        )
    if mebibytes(scaling.max) < mebibytes(spec.memory):
        yield (
            f"spec.memoryScaling.max: must be at least spec.memory, {spec.memory}, which is the least, got "
            f"{shown(scaling.max)}"
        )


def _of_extstore(spec: Spec) -> Iterator[str]:
    extstore, item_kib = spec.extstore, kibibytes(spec.maxItemSize)
    if extstore is None:
        return
    if (extstore.volume.ephemeral is None) == (extstore.volume.emptyDir is None):
        got = shown(msgspec.to_builtins(extstore.volume))
        yield f"spec.extstore.volume: {EXTSTORE_VOLUME}, got {got}"
    if spec.warmRestart:
        yield f"spec.extstore: {EXTSTORE_WARM}, got {shown(msgspec.to_builtins(extstore))}"
    if mebibytes(extstore.size) < (least := least_volume_mib(item_kib)):
        yield (
            f"spec.extstore.size: must be at least {least}Mi with spec.maxItemSize {spec.maxItemSize}; raise it or "
            f"lower that field, got {shown(extstore.size)}"
        )
    if extstore.itemSizeMin >= item_kib * 1024:
        yield (
            f"spec.extstore.itemSizeMin: must be less than the {item_kib * 1024} bytes of spec.maxItemSize "
            f"{spec.maxItemSize}, as no item would be moved to the disk, got {extstore.itemSizeMin}"
        )
    limit = spec.resources.limits.get("ephemeral-storage")
    if extstore.volume.emptyDir is not None and limit is not None and value(limit) < value(extstore.size):
        yield (
            f"spec.resources.limits.ephemeral-storage: must be at least spec.extstore.size {extstore.size}, as a pod "
            f"that uses more is evicted, got {shown(limit)}"
        )


def _of_handover(spec: Spec) -> Iterator[str]:
    if spec.handover is None:
        return
    broken = (
        (spec.workload != "StatefulSet", HANDOVER_WORKLOAD),
        (spec.tls is not None, HANDOVER_TLS),
        (spec.auth is not None, HANDOVER_AUTH),
        (spec.warmRestart, HANDOVER_WARM),
        (spec.extstore is not None, HANDOVER_EXTSTORE),
    )
    for breaks, rule in broken:
        if breaks:
            yield f"spec.handover: {rule}, got {shown(msgspec.to_builtins(spec.handover))}"
    if against := _judged(spec.extraArgs, spec.threads).against_handover:
        yield (
            f"spec.extraArgs: must not contain {' and '.join(sorted(against))} with spec.handover, which needs CAS "
            f"numbers, the list of keys, flush_all and evictions; omit it, got {shown(list(spec.extraArgs))}"
        )


def _of_auth(spec: Spec) -> Iterator[str]:
    if spec.auth is not None and _judged(spec.extraArgs, spec.threads).protocol == "auto":
        yield (
            "spec.extraArgs: must not set -B to auto with spec.auth, whose passwords work with the text protocol "
            'only; omit it, got "auto"'
        )


def _of_connections(connections: int, threads: int) -> Iterator[str]:
    if connections <= (own := OWN_CONNECTIONS + OWN_CONNECTIONS_OF_A_THREAD * threads):
        yield (
            f"spec.maxConnections: must be more than {own}, which memcached keeps for itself with spec.threads "
            f"{threads}, got {connections}"
        )


def _of_resources(spec: Spec) -> Iterator[str]:
    for kind, quantities in (("requests", spec.resources.requests), ("limits", spec.resources.limits)):
        for name, quantity in quantities.items():
            if value(quantity) > QUANTITY_MAX:
                yield f"spec.resources.{kind}[{name}]: must be at most {QUANTITY_MAX}, got {shown(quantity)}"
    if (limit := spec.resources.limits.get("memory")) is not None:
        # Of servers whose memory grows the limit does not.
        field, memory = ("memory", spec.memory)
        if spec.memoryScaling is not None:
            field, memory = ("memoryScaling.max", spec.memoryScaling.max)
        needed = memory_of_server_mib(msgspec.structs.replace(spec, memory=memory))
        if value(limit) < needed * 2**20:
            yield (
                f"spec.resources.limits.memory: must be at least {needed}Mi, which a server needs with spec.{field} "
                f"{memory}, spec.maxConnections {spec.maxConnections}{' by TLS' if spec.tls else ''} and "
                f"spec.threads {spec.threads}{' and a disk' if spec.extstore else ''}"
                f"{' and to hand over' if spec.handover else ''}; raise the limit or lower these "
                f"fields, got {shown(limit)}"
            )
    for name, most in spec.resources.limits.items():
        requested = spec.resources.requests.get(name)
        if requested is not None and value(requested) > value(most):
            yield (
                f"spec.resources.requests[{name}]: must be at most spec.resources.limits[{name}], {most}, "
                f"got {shown(requested)}"
            )
