"""Pure: the list as an endpoint gives it to clients: a version, and below it host, address and port of each server.

The version grows with each change of a name or an address, whoever leads and whatever the clock says. It is kept with
the list itself, in the ConfigMap: no status that was restored, and no endpoint that restarts, can have another one. A
ConfigMap that is made anew begins with the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv6Address
from typing import Final, NamedTuple

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
