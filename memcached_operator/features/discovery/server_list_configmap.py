"""Pure: the list of servers as a ConfigMap, for clients that follow a file, and as an endpoint gives it to clients.

The latter is a version, and below it host, address and port of each server. The version grows with each change of a
name or an address, whoever leads and whatever the clock says. It is kept with the list itself: no status that was
restored, and no endpoint that restarts, can have another one. A ConfigMap that is made anew begins with the time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv6Address
from typing import Final, NamedTuple

import msgspec

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION, MemcachedOwner
from memcached_operator.core.objects.owned_kind import OwnedKind
from memcached_operator.core.objects.owned_object import Codec, metadata
from memcached_operator.core.objects.script_config_maps import CONFIG_MAP_RESOURCE, IMMUTABLE, compare_config_maps
from memcached_operator.core.objects.scripts import ConfigMapManifest
from operator_runtime import Difference

# Clients for .NET hold it in 32 bits with a sign.
_MOST: Final = 2**31 - 1


class ClusterServers(NamedTuple):
    """Servers that clients are to have.

    Attributes:
        servers: `host:port` of each.
        addresses: the IP address of each pod by its name.
    """

    servers: Sequence[str]
    addresses: Mapping[str, str] = {}
    now_s: int = 0


class ClusterList(NamedTuple):
    """List of an endpoint.

    Attributes:
        version: 0 for none.
        nodes: `HOST|IP|PORT` of each server, in the order of the list; IPv6 addresses without brackets, and
            as addresses in full.
    """

    version: int
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        """The value in the ConfigMap."""
        return f"{self.version}\n{' '.join(self.nodes)}\n"


NO_CLUSTER: Final = ClusterList(0, ())


def read_cluster(text: str) -> ClusterList:
    """Parse a value; `NO_CLUSTER` for one that is missing, or not of the operator's making."""
    version, _, nodes = text.partition("\n")
    if not (version.isascii() and version.isdigit() and len(version) <= len(str(_MOST)) and int(version) <= _MOST):
        return NO_CLUSTER
    return ClusterList(int(version), tuple(nodes.split()))


def next_cluster(former: ClusterList, is_ours: bool, listed: ClusterServers) -> ClusterList:
    """The list that clients are to have: the former one as long as names and addresses stay.

    Args:
        is_ours: nobody else has changed the former one since.
    """
    before = {node.partition("|")[0]: node for node in former.nodes}
    nodes = tuple(_node(each, listed.addresses, before) for each in listed.servers)
    if is_ours and former.version and nodes == former.nodes:
        return former
    return ClusterList(min(max(former.version + 1, min(listed.now_s, _MOST - 1)), _MOST), nodes)


def _node(server: str, addresses: Mapping[str, str], before: dict[str, str]) -> str:
    """A server of the list. One that has no address now keeps the last one, and the first time has its name there."""
    host, _, port = server.rpartition(":")
    host = host.strip("[]")
    address = addresses.get(host.partition(".")[0])
    if address is None and host in before:
        return before[host]
    return f"{host}|{_in_full(address or host)}|{port}"


def _in_full(address: str) -> str:
    """An IPv6 address as Java writes it, by which AWS' client for Java finds a server; anything else as it is."""
    if ":" not in address:
        return address
    return ":".join(f"{int(each, 16):x}" for each in IPv6Address(address).packed.hex(":", 2).split(":"))


SUFFIX: Final = "-servers"
"""In the name of the ConfigMap, after the Memcached's."""
_LIST, _JSON = "servers", "servers.json"
CLUSTER: Final = "cluster"
"""Key of the list as an endpoint gives it to its clients."""
_DIGEST_BYTES: Final = 4


def _compare(desired: ConfigMapManifest, live: ConfigMapManifest) -> Iterator[Difference]:
    yield from compare_config_maps(desired, live)
    if CLUSTER in (live.data or {}) and CLUSTER not in (desired.data or {}):
        yield Difference(("data", CLUSTER), None, (live.data or {})[CLUSTER])


def published(
    owner: MemcachedOwner, spec: Spec, listed: ClusterServers, live: ConfigMapManifest | None = None
) -> ConfigMapManifest | None:
    """The ConfigMap that a Memcached desires, None for none."""
    cluster = ""
    if spec.has_endpoint:
        former = read_cluster(cluster_of(live)) if live is not None else NO_CLUSTER
        cluster = str(next_cluster(former, live is not None and is_untouched(live), listed))
    elif spec.discovery is None or spec.discovery.configMap is None:
        return None
    annotations = {APPLIED_ANNOTATION: _digest(listed.servers, cluster)}
    meta = metadata(owner, name=owner.name + SUFFIX, annotations=annotations)
    return ConfigMapManifest(apiVersion="v1", kind="ConfigMap", metadata=meta, data=_data(listed.servers, cluster))


def is_untouched(live: ConfigMapManifest) -> bool:
    """Report whether the list is as it was written, so that a difference is no other client's change."""
    servers, cluster = listed(live), cluster_of(live)
    is_recorded = (live.metadata.annotations or {}).get(APPLIED_ANNOTATION) == _digest(servers, cluster)
    return is_recorded and (live.data or {}).items() >= _data(servers, cluster).items()


def cluster_of(live: ConfigMapManifest) -> str:
    """The list of an endpoint in a ConfigMap, "" where it has none."""
    return (live.data or {}).get(CLUSTER, "")


def listed(live: ConfigMapManifest) -> list[str]:
    """The servers that a ConfigMap names; none where that cannot be read."""
    try:
        return msgspec.json.decode((live.data or {})[_JSON], type=list[str])
    except (KeyError, msgspec.MsgspecError):
        return []


def _digest(servers: Sequence[str], cluster: str) -> str:
    return hashlib.blake2b(("\n".join(servers) + cluster).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _data(servers: Sequence[str], cluster: str) -> dict[str, str]:
    data = {_LIST: "".join(f"{each}\n" for each in servers), _JSON: msgspec.json.encode(list(servers)).decode()}
    return data | ({CLUSTER: cluster} if cluster else {})


CONFIG_MAPS: Final = OwnedKind(
    CONFIG_MAP_RESOURCE,
    Codec(ConfigMapManifest, compare=_compare, fixed=(IMMUTABLE,), replace="Background"),
    lambda owner, spec, known: published(owner, spec, ClusterServers(known.servers)),
    field="discovery",
    suffix=SUFFIX,
    listed=listed,
)
