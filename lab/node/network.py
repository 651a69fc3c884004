"""The addresses of a node, and the one pair of interfaces that joins its network namespace to the machine's.

Nothing of it reaches another machine: the addresses are of the range for measurements between two devices (RFC 2544),
which no network routes, and the namespace has no default route.
"""

import fcntl
import ipaddress
import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.kubectl import LabError

_RANGE = ipaddress.ip_network("198.18.0.0/15")
# Of each node's block the first /24 is the link, the second its pods, the third its Services.
_BLOCK_PREFIX = 22
_PART_PREFIX = 24
_INSIDE = "eth0"


@dataclass(frozen=True, slots=True)
class Addresses:
    """One node's block, by what is in it; addresses as text, ranges in CIDR notation."""

    host: str
    """The machine's end of the link, where the API server listens."""
    node: str
    """The node's end, its InternalIP."""
    link: str
    pods: str
    services: str
    dns: str
    """The Service of the cluster's DNS, the tenth as everywhere."""


def addresses(block: ipaddress.IPv4Network) -> Addresses:
    """Divide a node's block among its parts."""
    link, pods, services, _ = block.subnets(new_prefix=_PART_PREFIX)
    return Addresses(
        host=str(link[1]),
        node=str(link[2]),
        link=str(link),
        pods=str(pods),
        services=str(services),
        dns=str(services[10]),
    )


def free_block(taken: Sequence[str]) -> ipaddress.IPv4Network:
    """The first block that overlaps none of the ranges that the machine has addresses in.

    Raises:
        LabError: there are more nodes on this machine than blocks.
    """
    used = [ipaddress.ip_network(each, strict=False) for each in taken]
    for block in _RANGE.subnets(new_prefix=_BLOCK_PREFIX):
        assert isinstance(block, ipaddress.IPv4Network)
        if not any(block.overlaps(each) for each in used):
            return block
    raise LabError(f"every block of {_RANGE} is taken: {', '.join(taken)}; stop some nodes")


def connect(name: str, namespace_pid: int) -> Addresses:
    """Join the network namespace of a process to the machine's, and return the addresses.

    Args:
        name: what the machine's end is called; at most 15 characters. The link goes when its namespace goes.
    """
    with (Path(tempfile.gettempdir()) / "memcached-operator-lab-network.lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        mine = addresses(free_block(_addresses_here()))
        _ip("link", "add", name, "type", "veth", "peer", "name", _INSIDE, "netns", str(namespace_pid))
        _ip("address", "add", f"{mine.host}/{_PART_PREFIX}", "dev", name)
    _ip("link", "set", name, "up")
    inside = ("nsenter", f"--net=/proc/{namespace_pid}/ns/net")
    for arguments in (
        ("link", "set", "lo", "up"),
        ("address", "add", f"{mine.node}/{_PART_PREFIX}", "dev", _INSIDE),
        ("link", "set", _INSIDE, "up"),
        # For a process of the node itself: its packets to a Service need a route before kube-proxy changes where they
        # go. Those for no Service end here, as nobody answers for the address.
        ("route", "add", mine.services, "dev", _INSIDE),
    ):
        _run(*inside, "ip", *arguments)
    _run(*inside, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    for there in (mine.pods, mine.services):
        _ip("route", "add", there, "via", mine.node, "dev", name)
    return mine


def cni_configuration(mine: Addresses) -> str:
    """Make the container runtime's configuration of the pods' network.

    Each pod has a link of its own to the node (``ptp``): all its packets are routed and so pass kube-proxy's rules. On
    a bridge the answer of one pod to another would pass them only where the kernel filters bridges too.
    """
    ipam = {
        "type": "host-local",
        "ranges": [[{"subnet": mine.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugins = [{"type": "ptp", "ipMasq": False, "ipam": ipam}]
    return json.dumps({"cniVersion": "1.0.0", "name": "lab", "plugins": plugins}, indent=2)


def _addresses_here() -> list[str]:
    found = json.loads(_run("ip", "-json", "-4", "address", "show"))
    return [f"{each['local']}/{each['prefixlen']}" for link in found for each in link.get("addr_info", ())]


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> str:
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise LabError(f"{' '.join(command)}: {finished.stderr.strip()}")
    return finished.stdout
