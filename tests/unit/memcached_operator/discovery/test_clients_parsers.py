"""Any list, as an endpoint answers it, is the same list to the parsers of clients."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv6Address, ip_address

from django_elastipymemcache.client import _ConfigurationEndpointClient
from emcache.protocol import AutoDiscoveryCommandParser
from hypothesis import given, strategies as st

from memcached_operator.discovery.discovery_protocol import answer
from memcached_operator.features.discovery.server_list_configmap import NO_CLUSTER, ClusterServers, next_cluster

Address = IPv4Address | IPv6Address
Nodes = list[tuple[str, Address, int]]
_VERSIONS = st.integers(1, 2**31 - 2)
_ADDRESSES = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str)
# Servers of a StatefulSet with their addresses, or of a Deployment.
_NAMED = st.lists(_ADDRESSES, min_size=1, max_size=50)
_ADDRESSED = st.lists(_ADDRESSES, min_size=1, max_size=50, unique=True)


def given_to_clients(known: ClusterServers) -> tuple[bytes, int]:
    """The answer to `config get cluster`, and the version in it."""
    listed = next_cluster(NO_CLUSTER, False, known)
    answered = answer(b"config get cluster", str(listed).encode())
    assert answered is not None
    return answered, listed.version


def read_by_emcache(answered: bytes) -> tuple[int, Nodes]:
    loop = asyncio.new_event_loop()
    parser = AutoDiscoveryCommandParser(loop.create_future())
    parser.feed_data(answered)
    loop.close()
    assert parser.autodiscovery()
    return parser.version(), [(host, ip_address(address), port) for host, address, port in parser.nodes()]


def read_by_django(answered: bytes, *, addresses: bool) -> list[tuple[str, int]]:
    client = _ConfigurationEndpointClient("shop-discovery.default.svc:11211", use_vpc_ip_address=addresses)
    found: list[tuple[str, int]] = client._parse_config_get_cluster_response(answered.removesuffix(b"\r\nEND\r\n"))
    return found


def read_as_thanos(answered: bytes) -> Nodes:
    """As Thanos' and Cortex' resolver reads it, which checks the length and cuts three parts (`resolver.go`)."""
    head, _, rest = answered.partition(b"\r\n")
    payload, _, end = rest[: int(head.split()[3])], *rest[int(head.split()[3]) :].partition(b"\r\n")[1:]
    assert end == b"END\r\n"
    _version, nodes = payload.decode().splitlines()
    cut = [each.split("|") for each in nodes.split(" ")]
    return [(host, ip_address(address), int(port)) for host, address, port in cut]


def same_to_all(known: ClusterServers, expected: Nodes) -> None:
    answered, version = given_to_clients(known)
    assert read_by_emcache(answered) == (version, expected)
    by_address = read_by_django(answered, addresses=True)
    assert [(ip_address(address), port) for address, port in by_address] == [found[1:] for found in expected]
    assert read_by_django(answered, addresses=False) == [(host, port) for host, _, port in expected]
    assert read_as_thanos(answered) == expected


@given(_NAMED, _VERSIONS)
def test_a_list_of_names(addresses: list[str], now_s: int) -> None:
    hosts = [f"shop-{number}.shop.default.svc" for number in range(len(addresses))]
    by_pod = {f"shop-{number}": each for number, each in enumerate(addresses)}
    known = ClusterServers([f"{host}:11211" for host in hosts], addresses=by_pod, now_s=now_s)
    same_to_all(known, [(host, ip_address(each), 11211) for host, each in zip(hosts, addresses, strict=True)])


@given(_ADDRESSED, _VERSIONS)
def test_a_list_of_addresses(addresses: list[str], now_s: int) -> None:
    servers = [f"[{each}]:11211" if ":" in each else f"{each}:11211" for each in addresses]
    same_to_all(ClusterServers(servers, now_s=now_s), [(each, ip_address(each), 11211) for each in addresses])
