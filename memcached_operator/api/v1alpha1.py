"""`cache.example.com/v1alpha1`: the specification of a Memcached, as a user writes it.

The models are the source of the CustomResourceDefinition's schema, and of what the operator accepts: a specification
that the API server let through, say under an older schema, is checked here again before anything is done with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from memcached_operator.api.cel_rules import RULES
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
    RETENTION,
    RETENTION_PATTERN,
    SECRET_NAME,
    SECRET_NAME_MAX_LENGTH,
    SIZE_MAX,
    THREADS,
    THREADS_MAX,
    AccessMode,
    ClientAuth,
    InvalidSpec,
    Publish,
    Reload,
    ServiceType,
    Workload,
)
from memcached_operator.api.schema_errors import explained

Count = Annotated[int, Field(ge=0, le=SIZE_MAX, json_schema_extra={"format": "int32"})]
_Image = Annotated[str, Field(min_length=1, max_length=IMAGE_MAX_LENGTH, pattern=f"^{IMAGE_CHARACTERS}*$")]
# A PodDisruptionBudget's own type. In the schema one field of two types, with the rules of both.
_CountOrShare = Annotated[
    Annotated[int, Field(ge=0, le=SIZE_MAX)] | Annotated[str, Field(pattern=f"^{PERCENTAGE}$")],
    Field(json_schema_extra={"x-kubernetes-int-or-string": True}),
]
_DrainSeconds = Annotated[int, Field(ge=0, le=DRAIN_SECONDS_MAX, json_schema_extra={"format": "int32"})]
_HandoverSeconds = Annotated[
    int, Field(ge=HANDOVER_SECONDS_MIN, le=HANDOVER_SECONDS_MAX, json_schema_extra={"format": "int32"})
]
Memory = Annotated[str, Field(pattern=f"^({MEMORY_PATTERN})$")]
_Retention = Annotated[str, Field(pattern=f"^({RETENTION_PATTERN})$")]
_ItemSize = Annotated[str, Field(pattern=f"^({MAX_ITEM_SIZE_PATTERN})$")]
_Connections = Annotated[int, Field(ge=1, le=MAX_CONNECTIONS_MAX, json_schema_extra={"format": "int32"})]
_Threads = Annotated[int, Field(ge=1, le=THREADS_MAX, json_schema_extra={"format": "int32"})]
_DiskSize = Annotated[str, Field(pattern=f"^({DISK_SIZE_PATTERN})$")]
_DiskItemSize = Annotated[int, Field(ge=1, le=DISK_ITEM_SIZE_MAX, json_schema_extra={"format": "int32"})]
_Argument = Annotated[str, Field(min_length=1, max_length=EXTRA_ARG_MAX_LENGTH)]
_Arguments = Annotated[list[_Argument], Field(max_length=EXTRA_ARGS_MAX)]
_Quantity = Annotated[
    Annotated[int, Field(ge=0, le=QUANTITY_MAX)] | Annotated[str, Field(pattern=f"^({QUANTITY})$")],
    Field(json_schema_extra={"x-kubernetes-int-or-string": True}),
]
_PauseSeconds = Annotated[int, Field(ge=0, le=PAUSE_SECONDS_MAX, json_schema_extra={"format": "int32"})]
# What Kubernetes has a type for, and we pass on: every field of it is kept, and the API server judges it there.
_Passed = dict[str, Any]
_StorageClassName = Annotated[str, Field(max_length=SECRET_NAME_MAX_LENGTH, pattern=f"^({SECRET_NAME})?$")]
_SecretName = Annotated[str, Field(max_length=SECRET_NAME_MAX_LENGTH, pattern=f"^{SECRET_NAME}$")]
# The default, repeated for those who read the schema.
ATOMIC: Final[dict[str, Any]] = {"x-kubernetes-list-type": "atomic"}


class Model(BaseModel):
    # Strict: "3", 3.0 and true are not numbers, as they are not for the API server. Unknown fields are ignored: the
    # API server prunes them, and an older operator may meet an object of a newer schema.
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class MemcachedService(Model):
    """The Service by which clients find the servers. It has the name of the Memcached."""

    type: ServiceType | None = Field(
        default="Headless",
        description="Headless: the name of the Service resolves to the addresses of all servers, and each server of a "
        "StatefulSet has a DNS name below it. ClusterIP: one virtual IP address, which load-balances connections over "
        "the servers; it suits a single server, and cannot be combined with workload StatefulSet. Disabled: no Service "
        "is created.",
    )
    annotations: dict[str, str] | None = Field(default=None, description="Annotations to add to the Service.")
    labels: dict[str, str] | None = Field(
        default=None, description="Labels to add to the Service. Labels that the operator sets cannot be changed."
    )


class MemcachedDisruptionBudget(Model):
    """Limit on servers that are unavailable after an eviction: a PodDisruptionBudget with the name of the Memcached."""

    max_unavailable: _CountOrShare | None = Field(
        default=1,
        description="Number of servers, or percentage of them such as 25%, that can be unavailable after an eviction. "
        "A percentage is rounded up. With 100%, no PodDisruptionBudget is created.",
    )


class MemcachedPodMetadata(Model):
    """Labels and annotations of the pods, besides those of the operator, which cannot be changed."""

    labels: dict[str, str] | None = Field(default=None, description="Labels of the pods.")
    annotations: dict[str, str] | None = Field(default=None, description="Annotations of the pods.")


class MemcachedPodTemplate(Model):
    """Additions to the pods that the operator creates, merged over them as by a strategic merge patch."""

    metadata: MemcachedPodMetadata | None = None
    spec: _Passed | None = Field(
        default=None,
        description="The specification of a pod, as Kubernetes has it. The API server validates it as part of the "
        "workload; if it refuses, the condition Degraded has its message. Objects are merged, and entries of "
        "containers, initContainers, volumes, imagePullSecrets and env by their name, those of volumeMounts by their "
        "mountPath; ports are added. In the container memcached, the image, command, args, resources and the port "
        "11211 cannot be set here: the operator or another field sets them. If there is a securityContext, the "
        "operator sets no user id; with {}, the cluster assigns one, as OpenShift does.",
    )


class MemcachedNetworkPolicy(Model):
    """Peers that can connect to the servers: a NetworkPolicy with the name of the Memcached."""

    allow_from: list[_Passed] = Field(
        description="Peers that can connect to the servers, each a NetworkPolicyPeer: podSelector, namespaceSelector "
        "or ipBlock. The operator can always connect. If the list is empty, only the operator can.",
        json_schema_extra=ATOMIC,
    )


class MemcachedResources(Model):
    """Compute resources of each server.

    Resources that are not named here are derived: the request and the limit of memory from the settings of the server,
    and the request of cpu is 50m.
    """

    requests: dict[str, _Quantity] | None = Field(
        default=None,
        description="Minimum amount of compute resources that each server requires. If memory is requested and not "
        "limited, the limit is the larger of the request and the derived amount.",
    )
    limits: dict[str, _Quantity] | None = Field(
        default=None,
        description="Maximum amount of compute resources that each server can use. The limit of memory cannot be less "
        "than the derived amount.",
    )


class MemcachedRollout(Model):
    """Replacement of servers when a change cannot be applied to a running server."""

    pause_seconds: _PauseSeconds | None = Field(
        default=None,
        description="Seconds for which a new server must be ready before the next one is replaced. "
        f"Defaults to {PAUSE_SECONDS}.",
    )
    paused: bool | None = Field(
        default=None, description="Indicates that no further server is replaced. Defaults to false."
    )
    max_unavailable: _CountOrShare | None = Field(
        default=None,
        description="Number of servers, or percentage of them such as 25%, that can be unavailable during a rolling "
        "update of a Deployment. Defaults to 1. Must be omitted when workload is StatefulSet, whose servers are "
        "replaced one at a time.",
    )
    max_surge: _CountOrShare | None = Field(
        default=None,
        description="Number of servers, or percentage of them such as 25%, that can be created above the size during a "
        "rolling update of a Deployment. Defaults to 0. Must be omitted when workload is StatefulSet.",
    )


class MemcachedMemoryScaling(Model):
    """Growth of the memory of running servers, while items that clients still request are evicted.

    Servers are resized without a restart, all of them alike, and never shrunk. The operator writes the memory to the
    status and never to the specification.
    """

    max: Memory = Field(
        description="Largest memory of each server for items, in whole Mi or Gi. Cannot be less than spec.memory."
    )
    retention: _Retention | None = Field(
        default=None,
        description="How long an item that a client has requested is to stay after the last request for it, such as "
        "90s, 30m or 12h. While such items are evicted earlier, the memory grows by a quarter at a time. "
        f"Defaults to {RETENTION}.",
    )


class MemcachedEphemeralVolume(Model):
    """A generic ephemeral volume: a PersistentVolumeClaim for each pod, which is deleted with the pod."""

    storage_class_name: _StorageClassName | None = Field(
        default=None,
        description="Name of the StorageClass of the claims. If omitted, it is the cluster's default StorageClass.",
    )
    access_modes: Annotated[list[AccessMode], Field(min_length=1, max_length=ACCESS_MODES_MAX)] | None = Field(
        default=None,
        description="Access modes of the claims. ReadWriteOncePod excludes others. Defaults to ReadWriteOnce.",
        json_schema_extra=ATOMIC,
    )


class MemcachedEmptyDir(Model):
    """A folder on the disk of the node that has the pods' files, with the size as its limit."""


class MemcachedExtstoreVolume(Model):
    """Source of the disk. Exactly one of the fields must be set."""

    ephemeral: MemcachedEphemeralVolume | None = None
    empty_dir: MemcachedEmptyDir | None = None


class MemcachedExtstore(Model):
    """A disk for each server, to which memcached moves values that no longer fit into its memory (extstore).

    Keys, and some 70 bytes of each item, stay in memory. The disk is empty after each start of a server.
    """

    size: _DiskSize = Field(
        description="Size of each volume, in whole Mi, Gi or Ti. memcached uses 95 percent of it. The smallest depends "
        "on maxItemSize: 68Mi for 1Mi."
    )
    volume: MemcachedExtstoreVolume
    item_size_min: _DiskItemSize | None = Field(
        default=None,
        description="Smallest size in bytes of an item that is moved to the disk; smaller items stay in memory. "
        f"Defaults to {DISK_ITEM_SIZE}.",
    )
    threads: _Threads | None = Field(
        default=None,
        description="Number of threads of each server that read from the disk and write to it. "
        f"Defaults to {DISK_THREADS}.",
    )


class MemcachedHandover(Model):
    """Servers fill themselves from each other while the list of servers changes, so that clients do not miss.

    Servers then run with memcached's proxy: memcached 1.6.45 or newer, in an image that contains sh.
    """

    for_seconds: _HandoverSeconds | None = Field(
        default=HANDOVER_SECONDS,
        description="Seconds for which servers fill themselves from each other after the list of servers changed. What "
        "nobody reads or writes during that time is not taken over.",
    )


class MemcachedTls(Model):
    """Encryption of connections to the servers. Servers accept only TLS, version 1.2 or newer."""

    secret_name: _SecretName = Field(
        description="Name of the Secret that contains the certificate (tls.crt), its private key (tls.key) and, for "
        "client authentication, the certificate authority of the clients (ca.crt), as cert-manager writes them."
    )
    client_auth: ClientAuth | None = Field(
        default="None",
        description="How clients are authenticated by certificates. Require: a client must present a certificate of "
        "the authority. Request: a client can present a certificate, which must be of the authority. None: no "
        "certificate is requested.",
    )
    reload: Reload | None = Field(
        default="Live",
        description="How servers load a renewed Secret. Live: running servers reload it, by a sidecar container of the "
        "same image, which must contain sh and memcached 1.6.40 or newer. Restart: a server loads it with a "
        "new pod, whose cache is empty.",
    )


class MemcachedAuth(Model):
    """Authentication of clients by passwords, for the text protocol. Without TLS, passwords are sent unencrypted."""

    secret_name: _SecretName = Field(
        description="Name of the Secret whose key password-file contains 1 to 8 lines, each user:password."
    )


class MemcachedSpec(Model):
    """Desired state of the Memcached."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": RULES})

    size: Count = Field(default=1, description="Number of memcached servers to run. Can be 0.")
    image: _Image | None = Field(
        default=None,
        description="Container image of the servers, such as docker.io/library/memcached:1.6.45-alpine. If omitted, "
        "the default image of the operator is used, which can change when the operator is upgraded.",
    )
    memory: Memory | None = Field(
        default=None,
        description="Memory of each server for items, in whole Mi or Gi, at least 8Mi (memcached -m). "
        f"With memoryScaling, the memory at the start, and the least. Defaults to {MEMORY}.",
    )
    memory_scaling: MemcachedMemoryScaling | None = None
    max_connections: _Connections | None = Field(
        default=None,
        description="Maximum number of concurrent connections of each server (memcached -c). "
        "Must be more than memcached takes itself, with handover for each other server, too. "
        f"Defaults to {MAX_CONNECTIONS}.",
    )
    threads: _Threads | None = Field(
        default=None, description=f"Number of worker threads of each server (memcached -t). Defaults to {THREADS}."
    )
    max_item_size: _ItemSize | None = Field(
        default=None,
        description="Maximum size of an item, in whole Ki or Mi (memcached -I). Must be a multiple of 512Ki, and at "
        f"most half of the memory. Defaults to {MAX_ITEM_SIZE}.",
    )
    extra_args: _Arguments | None = Field(
        default=None,
        description='Additional arguments of memcached, one word each, such as ["-o", "idle_timeout=60"]. Arguments '
        "that other fields or the operator set are not allowed.",
        json_schema_extra=ATOMIC,
    )
    extstore: MemcachedExtstore | None = None
    resources: MemcachedResources | None = None
    rollout: MemcachedRollout | None = None
    warm_restart: bool | None = Field(
        default=None,
        description="Indicates that a server keeps its items when it restarts within its pod, so that a change of the "
        "image is made in place and empties no cache. Experimental, as memcached's own option is (memcached -e). "
        "Requires workload StatefulSet, and an image that contains sh. A change of the memory then replaces the "
        "servers. Defaults to false.",
    )
    handover: MemcachedHandover | None = None
    workload: Workload | None = Field(
        default="Deployment",
        description="Kind of the workload that runs the pods. In a StatefulSet each server has a stable DNS name, "
        "NAME-0.NAME and so on; this is recommended for more than one server. In a Deployment the address of a server "
        "changes with its pod. When the value changes, new servers are created beside the old ones, which are deleted "
        "once clients have had spec.drainSeconds to move.",
    )
    service: MemcachedService | None = MemcachedService()
    disruption_budget: MemcachedDisruptionBudget | None = Field(
        default=None,
        description="How many servers can be unavailable at a time when nodes are drained. If omitted, it is 1 server, "
        "and no PodDisruptionBudget is created for size 0 or 1.",
    )
    pod_template: MemcachedPodTemplate | None = None
    network_policy: MemcachedNetworkPolicy | None = Field(
        default=None, description="Which peers can connect to the servers. If omitted, no NetworkPolicy is created."
    )
    tls: MemcachedTls | None = None
    auth: MemcachedAuth | None = None
    publish: Publish | None = Field(
        default=None,
        description="Where the list of servers is published in addition to status.serverList. ConfigMap: in a "
        "ConfigMap with the name of the Memcached and the suffix -servers, as lines (key servers) and as JSON (key "
        "servers.json). If omitted, the list is only in the status.",
    )
    drain_seconds: _DrainSeconds | None = Field(
        default=DRAIN_SECONDS,
        description="Seconds that a server continues to run after it left the list of servers, so that clients have "
        "time to follow the list.",
    )


def validate_spec(raw: object) -> MemcachedSpec:
    """The specification in `raw`, the value of `spec`: decoded, or bytes of JSON; None or b"" where it is absent.

    Raises:
        InvalidSpec: a field has the wrong type or is out of its limits.
    """
    if raw in (None, b"", b"null"):
        return MemcachedSpec()
    try:
        if isinstance(raw, bytes):
            return MemcachedSpec.model_validate_json(raw)
        return MemcachedSpec.model_validate(dict(raw) if isinstance(raw, Mapping) else raw)
    except ValidationError as error:
        raise InvalidSpec(explained(error)) from None
