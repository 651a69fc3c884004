"""`cache.example.com/v1alpha1`: the specification of a Memcached, as a user writes it and a reconcile reads it.

Each field is described here once. Schema and defaults of the CustomResourceDefinition, `docs/api.md`, and what is said
of a wrong value follow from it; `rules` has what holds between fields, and `reading` reads a specification.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core.core_schema import CoreSchema, no_info_plain_validator_function

from memcached_operator.api import quantities
from memcached_operator.api.names import CONTAINER, PORT_NAME, RESTART_CONTAINER
from memcached_operator.api.reserved_pod_fields import find, keyed

SIZE_MAX: Final = 2**31 - 1
SERVERS_MAX: Final = 100_000
"""Of a list in the status; etcd's limit of an object is reached at a fifth of it."""
MEMORY: Final = "64Mi"
HANDOVER_SECONDS: Final = 600
# Below that, clients that read the list each few seconds would not have it.
HANDOVER_SECONDS_MIN: Final = 10
HANDOVER_SECONDS_MAX: Final = 86_400
# A repository of 255 characters, ":" and a tag of 128, "@" and a sha512 digest: the longest that registries take.
IMAGE_MAX_LENGTH: Final = 255 + 1 + 128 + 1 + len("sha512:") + 128
# Those of Kubernetes' quantities that the API server writes back in a form which follows from number and suffix alone:
# it keeps some with signs, needless zeros or three digits after the point as they are, and rounds below thousandths.
QUANTITY: Final = r"((0|[1-9][0-9]{0,15})(\.[0-9]{1,2})?|\.[0-9]{1,2})([kMGT]|[KMGT]i)?|(0|[1-9][0-9]{0,15})(m|e[1-9])"
_QUANTITY_LENGTH: Final = len("1234567890123456.78Ki")
# As a number, too: the API server reads the bound of a field that may also be a string as a float.
QUANTITY_MAX: Final = 2**53 - 1
# A DNS subdomain of RFC 1123, as the API server has it.
_DNS_NAME: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_DNS_NAME_LENGTH: Final = 253
# A share of the servers, as a PodDisruptionBudget takes it.
_PERCENTAGE: Final = "([0-9]|[1-9][0-9]|100)%"

Workload = Literal["Deployment", "StatefulSet"]
AccessMode = Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"]


class Words(NamedTuple):
    """Rule of a value in words: what it must be; without them they follow from the type and its bounds."""

    text: str


SECONDS: Final = "seconds"
"""Mark of a number of seconds."""


# To the API server; where the field has no default, server-side apply leaves null in place of an emptied object.
_INT32: Final[dict[str, Any]] = {"format": "int32"}
_ATOMIC: Final[dict[str, Any]] = {"x-kubernetes-list-type": "atomic"}
_NULLABLE: Final[dict[str, Any]] = {"nullable": True}
_INT_OR_STRING: Final[dict[str, Any]] = {"x-kubernetes-int-or-string": True}

_Count = Annotated[int, Field(ge=0, le=SIZE_MAX, json_schema_extra=_INT32)]
# A PodDisruptionBudget's own type. In the schema one field of two types, with the rules of both.
_CountOrShare = Annotated[
    Annotated[int, Field(ge=0, le=SIZE_MAX)]
    | Annotated[str, Field(pattern=f"^{_PERCENTAGE}$", max_length=len("100%"))],
    Field(json_schema_extra=_INT_OR_STRING),
    Words(f'must be a whole number from 0 to {SIZE_MAX}, or a share from "0%" to "100%" in whole percent'),
]
_Day = Annotated[int, Field(ge=0, le=86_400, json_schema_extra=_INT32), SECONDS]
_Hour = Annotated[int, Field(ge=0, le=3600, json_schema_extra=_INT32), SECONDS]
_HandoverSeconds = Annotated[
    int, Field(ge=HANDOVER_SECONDS_MIN, le=HANDOVER_SECONDS_MAX, json_schema_extra=_INT32), SECONDS
]
# Below the least, no holder is ready in time.
_GracePeriod = Annotated[int, Field(ge=30, le=3600, json_schema_extra=_INT32), SECONDS]
# Every character of a reference's grammar, so that a slip such as a space is refused at once.
_Image = Annotated[
    str,
    Field(min_length=1, max_length=IMAGE_MAX_LENGTH, pattern=r"^[-A-Za-z0-9_.:/@+\[\]]*$"),
    Words(
        f"must be an image reference such as docker.io/library/memcached:1.6.45-alpine: 1 to {IMAGE_MAX_LENGTH} "
        "letters, digits and characters of -_.:/@+[]"
    ),
]
# As Kubernetes' own schemas have it, without signs and with a bound of its length.
_BYTES: Final = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$"


class Bounds(NamedTuple):
    """Bounds of a quantity of bytes, as quantities: in words, in CEL, and for the reader."""

    least: str
    most: str

    @property
    def text(self) -> str:
        return f'must be a quantity of bytes from {self.least} to {self.most}, such as "512Mi", "1.5Gi" or 1000000000'

    def __get_pydantic_json_schema__(self, _schema: object, _handler: object) -> dict[str, Any]:
        bounds = " && ".join(
            f"quantity(string(self)).compareTo(quantity('{bound}')) {compared} 0"
            for compared, bound in ((">=", self.least), ("<=", self.most))
        )
        rule = {"rule": f"!isQuantity(string(self)) || {bounds}", "message": self.text}
        length = {"pattern": _BYTES, "maxLength": quantities.LENGTH_MAX}
        return {"type": "string", **_INT_OR_STRING, **length, "x-kubernetes-validations": [rule]}

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> CoreSchema:
        def read(given: object) -> str:
            if isinstance(given, bool) or not isinstance(given, int | str):
                raise ValueError(self.text)
            if not quantities.value(self.least) <= quantities.value(given) <= quantities.value(self.most):
                raise ValueError(self.text)
            return str(given)

        return no_info_plain_validator_function(read)


# The least is what memcached's cache_memlimit takes, so that the memory of any server can be changed.
MEMORY_MAX: Final = "10Ti"
_Memory = Annotated[str, Bounds("8Mi", MEMORY_MAX)]
# More than eleven years.
_Retention = Annotated[int, Field(ge=1, le=100_000 * 3600, json_schema_extra=_INT32), SECONDS]
# memcached's own limits, 1Ki to 1Gi.
_ItemSize = Annotated[str, Bounds("1Ki", "1Gi")]
_Connections = Annotated[int, Field(ge=1, le=1_000_000, json_schema_extra=_INT32)]
_Threads = Annotated[int, Field(ge=1, le=64, json_schema_extra=_INT32)]
# What is too small for the items of a server depends on their size.
_DiskSize = Annotated[str, Bounds("10Mi", "100Ti")]
# Up to the largest item that memcached can have at all.
_DiskItemSize = Annotated[str, Bounds("1", "1Gi")]
_Argument = Annotated[
    str,
    Field(min_length=1, max_length=1024),
    Words('must be a string of 1 to 1024 characters; put numbers in quotes, as in "2"'),
]
# A tuple is read from a list: strictly, it would have to be one already.
_Arguments = Annotated[
    tuple[_Argument, ...],
    Field(max_length=64, strict=False, json_schema_extra=_ATOMIC),
    Words('must be a list of at most 64 strings such as ["-o", "idle_timeout=60"]'),
]
_AccessModes = Annotated[
    tuple[AccessMode, ...],
    Field(min_length=1, max_length=3, strict=False, json_schema_extra=_ATOMIC),
    Words('must be a list of 1 to 3 access modes such as ["ReadWriteOnce"]'),
]
_Quantity = Annotated[
    Annotated[int, Field(ge=0, le=QUANTITY_MAX)]
    | Annotated[str, Field(pattern=f"^({QUANTITY})$", max_length=_QUANTITY_LENGTH)],
    Field(json_schema_extra=_INT_OR_STRING),
    Words(
        'must be a quantity such as "500m", "1.5Gi" or 2: no sign, at most 2 digits after the point, '
        "and m, k, M, G, T, Ki, Mi, Gi, Ti or nothing"
    ),
]
_Quantities = Annotated[
    dict[str, _Quantity],
    Field(max_length=32, json_schema_extra=_NULLABLE),
    Words('must be an object of at most 32 quantities, such as {"memory": "256Mi"}'),
]
_IN_QUOTES: Final = 'put numbers and words such as true and null in quotes, as in "1"'
_Labels = Annotated[
    dict[str, Annotated[str, Field(max_length=63), Words(f"must be a string of at most 63 characters; {_IN_QUOTES}")]],
    Field(max_length=100, json_schema_extra=_NULLABLE),
    Words('must be an object of at most 100 strings, such as {"team": "shop"}'),
]
_ANNOTATION_LENGTH: Final = 2**18  # what those of an object may take together
_Annotations = Annotated[
    dict[
        str,
        Annotated[
            str,
            Field(max_length=_ANNOTATION_LENGTH),
            Words(f"must be a string of at most {_ANNOTATION_LENGTH} characters; {_IN_QUOTES}"),
        ],
    ],
    Field(max_length=100, json_schema_extra=_NULLABLE),
    Words('must be an object of at most 100 strings, such as {"example.com/team": "shop"}'),
]
_StorageClassName = Annotated[
    str,
    Field(max_length=_DNS_NAME_LENGTH, pattern=f"^({_DNS_NAME})?$"),
    Words(
        "must be the name of a StorageClass: lower case letters, digits, - and ., a letter or digit first and last, "
        "and around each ."
    ),
]
_SecretName = Annotated[
    str,
    Field(max_length=_DNS_NAME_LENGTH, pattern=f"^{_DNS_NAME}$"),
    Words(
        f"must be the name of a Secret: 1 to {_DNS_NAME_LENGTH} lower case letters, digits, - and ., a letter or digit "
        "first and last, and around each ."
    ),
]
_PortName = Annotated[
    str,
    Field(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
    Words("must be 1 to 63 lower case letters, digits and -, a letter or digit first and last"),
]
# What Kubernetes has a type for, and we pass on: every field of it is kept, and the API server judges it there.
_Passed = dict[str, Any]
_PEER: Final = '{"podSelector": {"matchLabels": {"app": "shop"}}}'
_Peers = Annotated[
    tuple[Annotated[_Passed, Words(f"must be an object such as {_PEER}")], ...],
    Field(max_length=100, strict=False, json_schema_extra=_ATOMIC),
    Words(f"must be a list of at most 100 peers such as [{_PEER}], or [] for all"),
]


OF_NO_SERVER: Final = "of no server"
"""Mark of a field by which a server's pod is not made."""


class Model(BaseModel):
    """Part of a specification; never changed.

    Attributes:
        example: one, as JSON, for people.
    """

    # Strict: "3", 3.0 and true are not numbers, as they are not for the API server. Unknown fields are ignored: the
    # API server prunes them, and an older operator may meet an object of a newer schema.
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", serialize_by_alias=True)
    example: ClassVar[str] = "{}"

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        """Take null for no field, as the API server does where there is a default."""
        return {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given


class ClientService(Model):
    """The Service by which clients find the servers. It has the name of the Memcached."""

    example = '{"type": "Headless"}'
    type: Literal["Headless", "ClusterIP", "Disabled"] = Field(
        default="Headless",
        description="Headless: the name of the Service resolves to the addresses of all servers, and each server of a "
        "StatefulSet has a DNS name below it. ClusterIP: one virtual IP address, which load-balances connections over "
        "the servers; it suits a single server, and cannot be combined with workload StatefulSet. Disabled: no Service "
        "is created.",
    )
    portName: _PortName = Field(
        default=PORT_NAME,
        description="Name of the port 11211 in the Service, from which its SRV record has its name: _memcached._tcp.",
    )
    # Kubernetes' own default.
    ipFamilyPolicy: Literal["SingleStack", "PreferDualStack", "RequireDualStack"] = Field(
        default="SingleStack",
        description="IP families of the Service, as in a Service of Kubernetes. SingleStack: the cluster's first one, "
        "unless a policy of the cluster chooses otherwise. PreferDualStack: both, if the cluster has them. "
        "RequireDualStack: both.",
    )
    annotations: _Annotations = Field(default_factory=dict, description="Annotations to add to the Service.")
    labels: _Labels = Field(
        default_factory=dict,
        description="Labels to add to the Service. Labels that the operator sets cannot be changed.",
    )


class DisruptionBudget(Model):
    """Limit on servers that are unavailable after an eviction: a PodDisruptionBudget with the name of the Memcached."""

    example = '{"maxUnavailable": 1}'
    maxUnavailable: _CountOrShare = Field(
        default=1,
        description="Number of servers, or percentage of them such as 25%, that can be unavailable after an eviction. "
        "A percentage is rounded up. With 100%, no PodDisruptionBudget is created.",
    )


class PodMetadata(Model):
    """Labels and annotations of the pods, besides those of the operator, which cannot be changed."""

    example = '{"labels": {"team": "shop"}}'
    labels: _Labels = Field(default_factory=dict, description="Labels of the pods.")
    annotations: _Annotations = Field(default_factory=dict, description="Annotations of the pods.")


class PodTemplate(Model):
    """Additions to the pods that the operator creates, merged over them as by a strategic merge patch."""

    example = '{"spec": {"dnsPolicy": "Default"}}'
    metadata: PodMetadata = Field(default_factory=PodMetadata, json_schema_extra=_NULLABLE)
    spec: Annotated[_Passed, Words('must be an object such as {"dnsPolicy": "Default"}')] = Field(
        default_factory=dict,
        description="The specification of a pod, as Kubernetes has it. The API server validates it as part of the "
        "workload; if it refuses, the condition Degraded has its message. Objects are merged, and entries of "
        "containers, initContainers, volumes, imagePullSecrets and env by their name, those of volumeMounts by their "
        "mountPath; ports are added. In the container memcached, the image, command, args, resources and the port "
        "11211 cannot be set here: the operator or another field sets them. If there is a securityContext, the "
        "operator sets no user id; with {}, the cluster assigns one, as OpenShift does.",
        json_schema_extra=_NULLABLE,
    )

    def given(self) -> dict[str, Any]:
        """Return the whole specification as JSON has it, {} where it is empty."""
        of_pods = {"labels": self.metadata.labels, "annotations": self.metadata.annotations}
        metadata = {name: values for name, values in of_pods.items() if values}
        found: dict[str, Any] = {"metadata": metadata} if metadata else {}
        if self.spec:
            found["spec"] = self.spec
        if account := self.spec.get("serviceAccountName") or self.spec.get("serviceAccount"):
            # The API server fills in the field's other name, and would put back an account that is taken out again.
            found["spec"] = self.spec | {"serviceAccountName": account, "serviceAccount": account}
        return found

    @property
    def restarts_for_memory(self) -> bool:
        """True if a node starts memcached's container again when its pod's memory changes."""
        policies = find(keyed(self.given()), "spec", "containers", CONTAINER, "resizePolicy")
        return isinstance(policies, list) and {"resourceName": "memory", "restartPolicy": RESTART_CONTAINER} in policies


class IngressRule(Model):
    """Peers that can connect to the servers."""

    example = f'{{"from": [{_PEER}]}}'
    from_: _Peers = Field(  # `from` is a word of Python's
        default_factory=tuple,
        alias="from",
        description="Peers that can connect, each a NetworkPolicyPeer: podSelector, namespaceSelector or ipBlock. If "
        "empty or omitted, all can.",
    )


class NetworkPolicy(Model):
    """Peers that can connect to the servers: a NetworkPolicy with the name of the Memcached."""

    example = '{"ingress": []}'
    ingress: Annotated[
        tuple[IngressRule, ...],
        Field(max_length=100, strict=False, json_schema_extra=_ATOMIC),
        Words(f'must be a list of at most 100 rules such as [{{"from": [{_PEER}]}}], or [] for none'),
    ] = Field(
        description="Rules of who can connect to the port of the servers, as in a NetworkPolicy of Kubernetes; a peer "
        "that one of them admits can. The operator can always connect. If the list is empty, only the operator can."
    )


class Resources(Model):
    """Compute resources of each server.

    Resources that are not named here are derived: the request and the limit of memory from the settings of the server,
    and the request of cpu is 50m.
    """

    example = '{"limits": {"memory": "256Mi"}}'
    requests: _Quantities = Field(
        default_factory=dict,
        description="Minimum amount of compute resources that each server requires. If memory is requested and not "
        "limited, the limit is the larger of the request and the derived amount.",
    )
    limits: _Quantities = Field(
        default_factory=dict,
        description="Maximum amount of compute resources that each server can use. The limit of memory cannot be less "
        "than the derived amount.",
    )


class Rollout(Model):
    """Replacement of servers when a change cannot be applied to a running server."""

    example = '{"minReadySeconds": 60}'
    minReadySeconds: _Hour = Field(
        default=60, description="Seconds for which a new server must be ready before the next one is replaced."
    )
    paused: bool = Field(default=False, description="Indicates that no further server is replaced.")
    # Their defaults depend on the workload.
    maxUnavailable: _CountOrShare | None = Field(
        default=None,
        description="Number of servers, or percentage of them such as 25%, that can be unavailable during a rolling "
        "update of a Deployment. Defaults to 1. Must be omitted when workload is StatefulSet, whose servers are "
        "replaced one at a time.",
    )
    maxSurge: _CountOrShare | None = Field(
        default=None,
        description="Number of servers, or percentage of them such as 25%, that can be created above the size during a "
        "rolling update of a Deployment. Defaults to 0. Must be omitted when workload is StatefulSet.",
    )


class MemoryScaling(Model):
    """Growth of the memory of running servers, while items that clients still request are evicted.

    Servers are resized without a restart, all of them alike, and never shrunk. The operator writes the memory to the
    status and never to the specification.
    """

    example = '{"max": "4Gi", "retentionSeconds": 3600}'
    max: _Memory = Field(
        description="Largest memory of each server for items, a quantity of bytes, rounded down to whole Mi. Cannot be "
        "less than spec.memory."
    )
    retentionSeconds: _Retention = Field(
        default=3600,
        description="Seconds for which an item that a client has requested is to stay after the last request for it. "
        "While such items are evicted earlier, the memory grows by a quarter at a time.",
    )


class EphemeralVolume(Model):
    """A generic ephemeral volume: a PersistentVolumeClaim for each pod, which is deleted with the pod."""

    example = '{"storageClassName": "local-nvme"}, or {}'
    storageClassName: _StorageClassName | None = Field(
        default=None,
        description="Name of the StorageClass of the claims. If omitted, it is the cluster's default StorageClass.",
    )
    accessModes: _AccessModes = Field(
        default=("ReadWriteOnce",), description="Access modes of the claims. ReadWriteOncePod excludes others."
    )


class EmptyDirVolume(Model):
    """A folder on the disk of the node that has the pods' files, with the size as its limit."""


class ExtstoreVolume(Model):
    """Source of the disk. Exactly one of the fields must be set."""

    example = '{"ephemeral": {"storageClassName": "local-nvme"}} or {"emptyDir": {}}'
    ephemeral: EphemeralVolume | None = None
    emptyDir: EmptyDirVolume | None = None


class Extstore(Model):
    """A disk for each server, to which memcached moves values that no longer fit into its memory (extstore).

    Keys, and some 70 bytes of each item, stay in memory. The disk is empty after each start of a server.
    """

    example = '{"size": "100Gi", "volume": {"ephemeral": {}}}'
    size: _DiskSize = Field(
        description="Size of each volume, a quantity of bytes, rounded down to whole Mi (status.effectiveSizes). "
        "memcached uses 95 percent of it. The smallest depends on maxItemSize: 68Mi for 1Mi."
    )
    volume: ExtstoreVolume
    # memcached's own default.
    itemSizeMin: _DiskItemSize = Field(
        default="512",
        description="Smallest size of an item that is moved to the disk, a quantity of bytes, such as 512 or 1Ki; "
        "smaller items stay in memory.",
    )
    threads: _Threads = Field(
        default=1, description="Number of threads of each server that read from the disk and write to it."
    )


class Moves(Model):
    """A server that is replaced or evicted has its items moved to its successor, by a further pod that holds them
    meanwhile.

    One server is replaced after the other, and clients find their keys. Each node or quota needs room for one server
    more. Writes of the server in question are refused for about two seconds, and nothing answers for about as long.
    """

    example = "{}"
    gracePeriodSeconds: _GracePeriod = Field(
        default=300,
        description="Seconds that the pod of a server may take to end, as when a node is drained, so that its items "
        "move before (terminationGracePeriodSeconds). It takes no longer than that.",
    )


class Handover(Model):
    """Servers fill themselves from each other while the list of servers changes, so that clients do not miss.

    Servers then run with memcached's proxy: memcached 1.6.45 or newer, in an image that contains sh.
    """

    example = '{"periodSeconds": 600, "moves": {}}, or {}'
    periodSeconds: _HandoverSeconds = Field(
        default=HANDOVER_SECONDS,
        description="Seconds for which servers fill themselves from each other after the list of servers changed. What "
        "nobody reads or writes during that time is not taken over.",
    )
    moves: Moves | None = None


class Tls(Model):
    """Encryption of connections to the servers. Servers accept only TLS, version 1.2 or newer."""

    example = '{"secretName": "cache-tls"}'
    secretName: _SecretName = Field(
        description="Name of the Secret that contains the certificate (tls.crt), its private key (tls.key) and, for "
        "client authentication, the certificate authority of the clients (ca.crt), as cert-manager writes them."
    )
    clientAuth: Literal["None", "Request", "Require"] = Field(
        default="None",
        description="How clients are authenticated by certificates. Require: a client must present a certificate of "
        "the authority. Request: a client can present a certificate, which must be of the authority. None: no "
        "certificate is requested.",
    )
    reload: Literal["Live", "Restart"] = Field(
        default="Live",
        description="How servers load a renewed Secret. Live: running servers reload it, by a sidecar container of the "
        "same image, which must contain sh and memcached 1.6.40 or newer. Restart: a server loads it with a "
        "new pod, whose cache is empty.",
    )


class Auth(Model):
    """Authentication of clients by passwords, for the text protocol. Without TLS, passwords are sent unencrypted."""

    example = '{"secretName": "cache-passwords"}'
    secretName: _SecretName = Field(
        description="Name of the Secret whose key password-file contains 1 to 8 lines, each user:password."
    )


class AutoDiscovery(Model):
    """An endpoint that gives clients the list of servers as managed caches do (`config get cluster`).

    It is NAME-discovery.NAMESPACE.svc:11211: a Service and two pods, which run the image of the operator.
    """

    example = '{"inServers": true}, or {}'
    inServers: bool = Field(
        default=False,
        description="Indicates that the operator also keeps the list in each server, as the item "
        "AmazonElastiCache:cluster, for clients that ask the servers themselves (AWS' clients for Java and PHP).",
    )


class ListConfigMap(Model):
    """The list in a ConfigMap with the name of the Memcached and the suffix -servers.

    It contains the servers as lines (key servers) and as JSON (key servers.json).
    """


class Discovery(Model):
    """Ways in which clients are given the list of servers, in addition to status.serverList."""

    example = '{"autoDiscovery": {}} or {"configMap": {}}'
    autoDiscovery: AutoDiscovery | None = None
    configMap: ListConfigMap | None = None


class Spec(Model):
    """Desired state of the Memcached."""

    example = '{"size": 3}'
    size: Annotated[_Count, OF_NO_SERVER] = Field(
        default=1, description="Number of memcached servers to run. Can be 0."
    )
    image: Annotated[_Image | None, OF_NO_SERVER] = Field(
        default=None,
        description="Container image of the servers, such as docker.io/library/memcached:1.6.45-alpine. If omitted, "
        "the default image of the operator is used, which can change when the operator is upgraded.",
    )
    memory: _Memory = Field(
        default=MEMORY,
        description="Memory of each server for items, a quantity of bytes of at least 8Mi, rounded down to whole Mi "
        "(memcached -m); status.memory is what is in force. With memoryScaling, the memory at the start, and the "
        "least.",
    )
    memoryScaling: Annotated[MemoryScaling | None, OF_NO_SERVER] = None
    maxConnections: _Connections = Field(
        default=1024,
        description="Maximum number of concurrent connections of each server (memcached -c). "
        "Must be more than memcached takes itself, with handover for each other server, too.",
    )
    threads: _Threads = Field(default=4, description="Number of worker threads of each server (memcached -t).")
    maxItemSize: _ItemSize = Field(
        default="1Mi",
        description="Maximum size of an item, a quantity of bytes of at most half of the memory, rounded down to a "
        "multiple of 512Ki, as memcached takes it (memcached -I); status.effectiveSizes has what is in force.",
    )
    extraArgs: _Arguments = Field(
        default_factory=tuple,
        description='Additional arguments of memcached, one word each, such as ["-o", "idle_timeout=60"]. Arguments '
        "that other fields or the operator set are not allowed.",
    )
    extstore: Extstore | None = None
    resources: Resources = Field(default_factory=Resources, json_schema_extra=_NULLABLE)
    rollout: Annotated[Rollout, OF_NO_SERVER] = Rollout()
    warmRestart: bool = Field(
        default=False,
        description="Indicates that a server keeps its items when it restarts within its pod, so that a change of the "
        "image is made in place and empties no cache. Experimental, as memcached's own option is (memcached -e). "
        "Requires workload StatefulSet, and an image that contains sh. A change of the memory then replaces the "
        "servers.",
    )
    handover: Handover | None = None
    workload: Annotated[Workload, OF_NO_SERVER] = Field(
        default="Deployment",
        description="Kind of the workload that runs the pods. In a StatefulSet each server has a stable DNS name, "
        "NAME-0.NAME and so on; this is recommended for more than one server. In a Deployment the address of a server "
        "changes with its pod. When the value changes, new servers are created beside the old ones, which are deleted "
        "once clients have had spec.drainPeriodSeconds to move.",
    )
    service: Annotated[ClientService, OF_NO_SERVER] = ClientService()
    disruptionBudget: Annotated[DisruptionBudget | None, OF_NO_SERVER] = Field(
        default=None,
        description="How many servers can be unavailable at a time when nodes are drained. If omitted, it is 1 server, "
        "and no PodDisruptionBudget is created for size 0 or 1.",
    )
    podTemplate: PodTemplate = Field(default_factory=PodTemplate, json_schema_extra=_NULLABLE)
    networkPolicy: Annotated[NetworkPolicy | None, OF_NO_SERVER] = Field(
        default=None, description="Which peers can connect to the servers. If omitted, no NetworkPolicy is created."
    )
    tls: Tls | None = None
    auth: Auth | None = None
    discovery: Annotated[Discovery | None, OF_NO_SERVER] = None
    drainPeriodSeconds: Annotated[_Day, OF_NO_SERVER] = Field(
        default=30,
        description="Seconds that a server continues to run after it left the list of servers, so that clients have "
        "time to follow the list.",
    )

    @property
    def moves(self) -> bool:
        """Report whether the items of a server that is replaced move to its successor."""
        return self.handover is not None and self.handover.moves is not None

    @property
    def has_endpoint(self) -> bool:
        """Report whether clients are given the list by an endpoint."""
        return self.discovery is not None and self.discovery.autoDiscovery is not None

    @property
    def lists_in_servers(self) -> bool:
        """Report whether each server has the list as an item."""
        auto = self.discovery.autoDiscovery if self.discovery is not None else None
        return auto is not None and auto.inServers
