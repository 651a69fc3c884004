"""Clients of auto discovery on a real node: they follow the list of an endpoint while servers come and go."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from functools import partial
from typing import Any

import emcache
import pytest
from django.conf import settings
from django_elastipymemcache.client import AWSElastiCacheClient

from lab.kubectl import LabError
from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.e2e.node_cluster import MEMCACHED_PORT, OPERATOR, pod_address
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

NAME = "cache"
ENDPOINT = f"{NAME}-discovery"
# How often the clients here read the list, and how long servers run on that left it.
READ_S = 2.0
DRAIN_S = 20
KEYS = 100

pytestmark = pytest.mark.timeout(300)


def test_a_client_that_discovers_names_follows_without_an_error(node: Node, system: Kubectl, kubectl: Kubectl) -> None:
    # A Deployment's hosts are addresses, which this machine reaches.
    endpoint = _begin(kubectl, "Deployment")
    asyncio.run(_follow(kubectl, endpoint))


async def _follow(kubectl: Kubectl, endpoint: str) -> None:
    client = await emcache.create_client(
        [emcache.MemcachedHostAddress(endpoint, MEMCACHED_PORT)],
        autodiscovery=True,
        autodiscovery_poll_interval=READ_S,
        timeout=5.0,
    )
    errors: list[str] = []
    done = asyncio.Event()

    async def load() -> None:
        while not done.is_set():
            for number in range(KEYS):
                key = b"key-%d" % number
                try:
                    await client.set(key, b"value")
                    await client.get(key)
                except Exception as error:
                    errors.append(repr(error))
            await asyncio.sleep(0.05)

    def known() -> set[str]:
        return {f"{each.address}:{each.port}" for each in _addresses(client)}

    async with asyncio.TaskGroup() as running:
        running.create_task(load())
        for size in (2, 3, 2):
            await asyncio.to_thread(_scale, kubectl, size)
            due = set(await asyncio.to_thread(_listed, kubectl, size))
            await asyncio.to_thread(eventually, known, due.__eq__)
        await asyncio.to_thread(_drained, kubectl)
        done.set()
    await client.close()
    assert errors == []


# The client leaves sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_that_discovers_addresses_follows_without_an_error(
    node: Node, system: Kubectl, kubectl: Kubectl
) -> None:
    endpoint = _begin(kubectl, "StatefulSet")
    settings.configure()
    client = AWSElastiCacheClient(
        f"{endpoint}:{MEMCACHED_PORT}", discovery_interval=READ_S, timeout=5.0, connect_timeout=5.0
    )
    errors: list[str] = []
    done = threading.Event()

    def load() -> None:
        while not done.wait(0.05):
            for number in range(KEYS):
                try:
                    client.set(f"key-{number}", b"value")
                    client.get(f"key-{number}")
                except Exception as error:
                    errors.append(repr(error))

    loading = threading.Thread(target=load)
    loading.start()
    try:
        for size in (2, 3, 2):
            _scale(kubectl, size)
            _listed(kubectl, size)
            addresses = {f"{pod_address(kubectl, f'{NAME}-{number}')}:{MEMCACHED_PORT}" for number in range(size)}
            eventually(lambda: set(client.clients), addresses.__eq__)
        _drained(kubectl)
    finally:
        done.set()
        loading.join()
    assert errors == []


def test_the_list_follows_a_replaced_server_in_the_endpoint_and_in_each_server(
    node: Node, system: Kubectl, kubectl: Kubectl
) -> None:
    node.kubectl("label", "namespace", kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted")
    endpoint = _begin(kubectl, "StatefulSet", inServers=True)

    def nodes() -> str:
        hosts = (host.partition(":")[0] for host in _listed(kubectl, 2))
        return " ".join(f"{each}|{pod_address(kubectl, each.partition('.')[0])}|11211" for each in hosts)

    def everywhere(version: int) -> int:
        """The version of the list that is given everywhere, greater than this one."""
        eventually(lambda: _given(endpoint, "config get cluster"), lambda found: found[1:2] == [nodes()])
        due = _given(endpoint, "config get cluster")
        assert int(due[0]) > version
        for number in range(2):
            address = pod_address(kubectl, f"{NAME}-{number}")
            eventually(partial(_given, address, "get AmazonElastiCache:cluster"), due.__eq__)
        return int(due[0])

    version = everywhere(0)
    before = kubectl.uid(f"pod/{NAME}-0")
    kubectl("delete", "pod", f"{NAME}-0")
    eventually(lambda: kubectl.uid(f"pod/{NAME}-0"), lambda found: found != before, ignoring=LabError)
    kubectl.wait(f"pod/{NAME}-0", "condition=Ready")
    later = everywhere(version)
    # Endpoints that start anew have the same, also while nobody leads.
    system("scale", "deployment", OPERATOR, "--replicas=0")
    try:
        kubectl("delete", "pods", "--selector", f"memcached_cr={NAME}.discovery", "--wait=true")
        kubectl("rollout", "status", f"deployment/{ENDPOINT}", "--timeout=60s")
        given = eventually(lambda: _given(endpoint, "config get cluster"), bool)
        assert given == [str(later), nodes()]
    finally:
        system("scale", "deployment", OPERATOR, "--replicas=2")
        system("rollout", "status", f"deployment/{OPERATOR}", "--timeout=60s")


def _given(address: str, request: str) -> list[str]:
    """The lines of the list that is given there, none where it is not."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection((address, MEMCACHED_PORT), 5.0) as connection,
        connection.makefile("rwb") as stream,
    ):
        stream.write(f"{request}\r\n".encode())
        stream.flush()
        if not stream.readline().startswith((b"CONFIG", b"VALUE")):
            return []
        return [stream.readline().decode().rstrip("\n") for _ in range(2)]
    return []


def _addresses(client: emcache.Client) -> list[emcache.MemcachedHostAddress]:
    nodes = client.cluster_managment().nodes()
    return [each for each in nodes if isinstance(each, emcache.MemcachedHostAddress)]


def _begin(kubectl: Kubectl, workload: str, **auto: bool) -> str:
    """The address of the endpoint of two servers, once it is ready."""
    discovery: dict[str, Any] = {"autoDiscovery": auto}
    kubectl.apply(memcached(NAME, 2, workload=workload, discovery=discovery, drainPeriodSeconds=DRAIN_S))
    _listed(kubectl, 2)
    eventually(lambda: kubectl("get", "deployment", ENDPOINT, check=False), bool)
    kubectl("rollout", "status", f"deployment/{ENDPOINT}", "--timeout=60s")
    endpoint = str(kubectl.get("service", ENDPOINT)["spec"]["clusterIP"])
    # The node's rules follow the pods' readiness a moment later.
    eventually(lambda: _given(endpoint, "config get cluster"), bool)
    return endpoint


def _scale(kubectl: Kubectl, size: int) -> None:
    kubectl("patch", "memcached", NAME, "--type=merge", "-p", f'{{"spec":{{"size":{size}}}}}')


def _listed(kubectl: Kubectl, size: int) -> list[str]:
    """The list once it has so many servers."""
    return eventually(
        lambda: kubectl.get("memcached", NAME).get("status", {}).get("serverList", []), lambda found: len(found) == size
    )


def _drained(kubectl: Kubectl) -> None:
    """Wait until no server runs that left the list."""
    eventually(lambda: kubectl.get("memcached", NAME)["status"].get("draining"), lambda found: not found)
