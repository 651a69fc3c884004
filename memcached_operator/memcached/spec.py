"""Pure: the specification of a Memcached, as a reconcile has it; `spec_validation` reads it."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from memcached_operator.api.disk_layout import DiskLayout, disk_layout
from memcached_operator.api.names import (
    ACCESS_MODES_MAX,
    CONTAINER,
    DISK_ITEM_SIZE,
    DISK_ITEM_SIZE_MAX,
    DISK_SIZE_PATTERN,
    DISK_THREADS,
    DRAIN_SECONDS,
    DRAIN_SECONDS_MAX,
    EXTRA_ARG_MAX_LENGTH,
    EXTRA_ARGS_MAX,
    HANDOVER_SECONDS,
    HANDOVER_SECONDS_MAX,
    HANDOVER_SECONDS_MIN,
    IMAGE_CHARACTERS,
    IMAGE_MAX_LENGTH,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_MAX,
    MAX_ITEM_SIZE,
    MAX_ITEM_SIZE_PATTERN,
    MEMORY,
    MEMORY_PATTERN,
    PAUSE_SECONDS,
    PAUSE_SECONDS_MAX,
    PERCENTAGE,
    QUANTITY,
    QUANTITY_MAX,
    RESTART_CONTAINER,
    RETENTION,
    RETENTION_PATTERN,
    SECRET_NAME,
    SECRET_NAME_MAX_LENGTH,
    SIZE_MAX,
    THREADS,
    THREADS_MAX,
    AccessMode,
    ClientAuth,
    Publish,
    Reload,
    ServiceType,
    Workload,
)
from memcached_operator.api.quantities import kibibytes, mebibytes
from memcached_operator.api.reserved_pod_fields import find, keyed
from memcached_operator.api.server_memory import memory_mib
from memcached_operator.api.sizing import disk_memory_kib

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

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


class Service(msgspec.Struct, frozen=True):
    """The Service by which clients find the servers."""

    type: ServiceType = "Headless"
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class DisruptionBudget(msgspec.Struct, frozen=True):
    """Limit on servers that are away at once when nodes are drained."""

    maxUnavailable: _Count | _Share = 1


class NetworkPolicy(msgspec.Struct, frozen=True):
    """Peers that may connect to the servers."""

    allowFrom: tuple[_Passed, ...]


class PodMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """Labels and annotations that the user desires of the pods."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplate(msgspec.Struct, frozen=True, omit_defaults=True):
    """Additions of the user's to the pods that the operator makes."""

    metadata: PodMetadata = PodMetadata()
    spec: _Passed = {}

    def given(self) -> dict[str, Any]:
        """Return the whole specification as JSON has it, {} where it is empty."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        if account := self.spec.get("serviceAccountName") or self.spec.get("serviceAccount"):
            # The API server fills in the field's other name, and would put back an account that is taken out again.
            found["spec"] = self.spec | {"serviceAccountName": account, "serviceAccount": account}
        return found


class Resources(msgspec.Struct, frozen=True):
    """Resources of each server by their names; those that are not named follow from the settings."""

    requests: dict[str, _Amount | _Quantity] = {}
    limits: dict[str, _Amount | _Quantity] = {}


class Rollout(msgspec.Struct, frozen=True):
    """Replacement of servers when their template changes.

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
    """Up to where the memory of servers grows, and for how long what clients request is to stay."""

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
    """Source of the disk; one of these."""

    ephemeral: EphemeralVolume | None = None
    emptyDir: EmptyDirVolume | None = None


class Extstore(msgspec.Struct, frozen=True):
    """A disk for what does not fit into the memory of a server."""

    size: _DiskSize
    volume: ExtstoreVolume
    itemSizeMin: Annotated[int, msgspec.Meta(ge=1, le=DISK_ITEM_SIZE_MAX)] = DISK_ITEM_SIZE
    threads: Annotated[int, msgspec.Meta(ge=1, le=THREADS_MAX)] = DISK_THREADS


class Handover(msgspec.Struct, frozen=True):
    """Time for which servers fill themselves from each other after the list has changed."""

    forSeconds: Annotated[int, msgspec.Meta(ge=HANDOVER_SECONDS_MIN, le=HANDOVER_SECONDS_MAX)] = HANDOVER_SECONDS


class Tls(msgspec.Struct, frozen=True):
    """TLS of the servers."""

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


def restarts_for_memory(spec: Spec) -> bool:
    """Report whether a node starts memcached's container again when its pod's memory changes, by `spec.podTemplate`."""
    policies = find(keyed(spec.podTemplate.given()), f"spec.containers[{CONTAINER}].resizePolicy")
    return isinstance(policies, list) and {"resourceName": "memory", "restartPolicy": RESTART_CONTAINER} in policies


def layout_of(extstore: Extstore, item_size: str) -> DiskLayout:
    """Division of a server's disk."""
    return disk_layout(mebibytes(extstore.size), kibibytes(item_size))
