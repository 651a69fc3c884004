"""Names of the resource, and the contents of its fields.

Apart from the models, so that a process which needs only this loads no pydantic.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, Literal

GROUP: Final = "cache.example.com"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "Memcached"
PLURAL: Final = "memcacheds"
SINGULAR: Final = "memcached"
SHORT_NAMES: Final = ("mc",)
CATEGORIES: Final = ("all",)
CONTAINER: Final = "memcached"
RELOADER: Final = "reloader"
"""Names of the containers that the operator makes."""
RESTART_CONTAINER: Final = "RestartContainer"
"""`restartPolicy` in a container's `resizePolicy`: the node starts it again when that resource changes."""
MOUNTED: Final = "/etc/memcached"
"""The folder in which they have what Secrets hold."""
PORT: Final = 11211
PORT_NAME: Final = "memcached"
"""Of the container's port and the Service's, so that the SRV records are `_memcached._tcp`."""
PEERS_PORT: Final = 11210
PEERS_PORT_NAME: Final = "peers"
"""On which servers that hand over answer each other and the operator, and its name in the container."""
FINALIZER: Final = "finalizer.cache.example.com"
"""Keeps a deleted Memcached until its pods are gone, with --finalizer."""

# The name is also the value of a label and fit to be a Service's: an RFC 1035 label, a letter first, at most 63
# characters. 11 of these ("-" and 10) are left for what a Deployment adds to name its ReplicaSets.
NAME_PATTERN: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
NAME_MAX_LENGTH: Final = 52

SIZE_MAX: Final = 2**31 - 1
# A repository of 255 characters, ":" and a tag of 128, "@" and a sha512 digest: the longest that registries take.
IMAGE_MAX_LENGTH: Final = 255 + 1 + 128 + 1 + len("sha512:") + 128
# Every character of a reference's grammar, so that a slip such as a space is refused at once.
IMAGE_CHARACTERS: Final = r"[-A-Za-z0-9_.:/@+\[\]]"
# A share of the servers, as a PodDisruptionBudget takes it.
PERCENTAGE: Final = "([0-9]|[1-9][0-9]|100)%"
DRAIN_SECONDS: Final = 30
DRAIN_SECONDS_MAX: Final = 86_400

MEMORY: Final = "64Mi"
# Whole Mi from 8 on, the least that memcached's cache_memlimit takes, so that the memory of any server can be changed.
MEMORY_PATTERN: Final = "([89]|[1-9][0-9]{1,6})Mi|[1-9][0-9]{0,3}Gi"
RETENTION: Final = "1h"
# As Kubernetes writes durations, with one unit: 1s to 99999h.
RETENTION_PATTERN: Final = "[1-9][0-9]{0,4}[smh]"
MAX_CONNECTIONS: Final = 1024
MAX_CONNECTIONS_MAX: Final = 1_000_000
THREADS: Final = 4
THREADS_MAX: Final = 64
MAX_ITEM_SIZE: Final = "1Mi"
# memcached's own limits, 1Ki to 1Gi.
MAX_ITEM_SIZE_PATTERN: Final = "[1-9][0-9]{0,5}Ki|([1-9][0-9]{0,2}|10[01][0-9]|102[0-4])Mi"
# Whole Mi from 10 on, to 99Ti; what is too small for the items of a server depends on their size.
DISK_SIZE_PATTERN: Final = "[1-9][0-9]{1,6}Mi|[1-9][0-9]{0,4}Gi|[1-9][0-9]?Ti"
# memcached's own, in bytes: smaller items stay in memory.
DISK_ITEM_SIZE: Final = 512
# That of the largest item that it can have at all.
DISK_ITEM_SIZE_MAX: Final = 2**30
DISK_THREADS: Final = 1
ACCESS_MODES_MAX: Final = 3
HANDOVER_SECONDS: Final = 600
# Below that, clients that read the list each few seconds would not have it.
HANDOVER_SECONDS_MIN: Final = 10
HANDOVER_SECONDS_MAX: Final = 86_400
EXTRA_ARGS_MAX: Final = 64
EXTRA_ARG_MAX_LENGTH: Final = 1024
# Those of Kubernetes' quantities that the API server writes back in a form which follows from number and suffix alone:
# it keeps some with signs, needless zeros or three digits after the point as they are, and rounds below thousandths.
QUANTITY: Final = r"((0|[1-9][0-9]{0,15})(\.[0-9]{1,2})?|\.[0-9]{1,2})([kMGT]|[KMGT]i)?|(0|[1-9][0-9]{0,15})(m|e[1-9])"
# As a number, too: the API server reads the bound of a field that may also be a string as a float.
QUANTITY_MAX: Final = 2**53 - 1
PAUSE_SECONDS: Final = 60
PAUSE_SECONDS_MAX: Final = 3600
SECRET_NAME_MAX_LENGTH: Final = 253
# A DNS subdomain of RFC 1123, as the API server has it.
SECRET_NAME: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

Workload = Literal["Deployment", "StatefulSet"]
ServiceType = Literal["Headless", "ClusterIP", "Disabled"]
Publish = Literal["ConfigMap"]
ClientAuth = Literal["None", "Request", "Require"]
Reload = Literal["Live", "Restart"]
AccessMode = Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"]

PENDING: Final = "Pending"
"""Reason of the condition Ready that the API server fills in until the operator has written a status."""


class InvalidSpec(ValueError):
    """A specification that cannot be acted on; the message names each wrong field, what it holds, and the remedy."""


# Longer values of a user, and more complaints, are cut in messages: they end up in a log line, and in a condition, of
# which the API server takes 32768 characters.
_SHOWN_LENGTH: Final = 60
_SHOWN_AT_ONCE: Final = 10
# -c is how many files memcached may have open. Measured of 1.6.45 with 1, 2, 4, 8 and 64 threads: with so many it turns
# the first client away, with two less it ends at once. 1.6.18 keeps 4 for each thread.
OWN_CONNECTIONS: Final = 9
OWN_CONNECTIONS_OF_A_THREAD: Final = 5
PROXY_CONNECTIONS: Final = 16
PROXY_CONNECTIONS_OF_A_THREAD: Final = 7
"""The same with its proxy, which hands over."""
PEER_CONNECTIONS_OF_A_THREAD: Final = 2
"""Connections to and from another server while they fill themselves from each other; measured with one to three."""
FILE_CONNECTIONS: Final = 1
"""The file of a disk, and of a memory that outlives a restart."""
# Message of the API server, and of the operator for objects that came in without its rule.
WARM_WORKLOAD: Final = (
    "must be false or omitted unless spec.workload is StatefulSet, as a Deployment replaces pods to change them"
)
SCALING_WORKLOAD: Final = (
    "must be omitted unless spec.workload is StatefulSet, as a Deployment replaces pods to change their memory"
)
SCALING_WARM: Final = "must be omitted when spec.warmRestart is true, as a memory file keeps its size"
EXTSTORE_VOLUME: Final = "must contain either ephemeral or emptyDir"
ONE_POD_MODE: Final = "ReadWriteOncePod"
EXTSTORE_MODES: Final = f"must be {ONE_POD_MODE} alone, which excludes other modes, or not contain it"
EXTSTORE_WARM: Final = "must be omitted when spec.warmRestart is true, as a memcached with a disk restores no items"
HANDOVER_WORKLOAD: Final = (
    "must be omitted unless spec.workload is StatefulSet, as the list of a Deployment changes with each of its pods"
)
HANDOVER_TLS: Final = (
    "must be omitted when spec.tls is set, as memcached's proxy does not verify the servers that it queries"
)
HANDOVER_AUTH: Final = "must be omitted when spec.auth is set, as memcached has no passwords with its proxy"
HANDOVER_EXTSTORE: Final = (
    "must be omitted when spec.extstore is set, as memcached sets the time of last use when it moves a value to the "
    "disk: outdated values could not be distinguished from used ones"
)
HANDOVER_WARM: Final = (
    "must be omitted when spec.warmRestart is true, as a server that restarts with its items has values that other "
    "servers have replaced meanwhile"
)


def shown(value: object) -> str:
    """A value of a specification as messages show it: as JSON, and cut."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return f"{text[:_SHOWN_LENGTH]}…" if len(text) > _SHOWN_LENGTH else text


def joined_complaints(complaints: Sequence[str]) -> str:
    """Complaints as one message; of many the first, and how many more there are."""
    more = len(complaints) - _SHOWN_AT_ONCE
    return "; ".join([*complaints[:_SHOWN_AT_ONCE], *([f"and {more} more"] if more > 0 else [])])
