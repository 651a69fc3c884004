"""Servers of several sizes, each filled with more than it can hold, on a real node: none is killed for its memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.sizing import load
from benchmarks.sizing.group import Group
from benchmarks.sizing.server import Memcached
from lab.node.node import Node
from memcached_operator.api.sizing import memory_of_server_mib
from memcached_operator.api.v1alpha1 import Spec
from tests.e2e.node_cluster import MEMCACHED_PORT, incarnations, pod_address
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

SIZES_MIB = {"64Mi": 64, "256Mi": 256, "1Gi": 1024}
# Of small ones that part of the memory alone: they are so many that they take the most time.
_SMALL = 1 / 8
_LARGEST_BYTES = 1_000_000

pytestmark = pytest.mark.timeout(300)


def test_a_filled_server_of_each_size_stays_below_its_limit(node: Node, system: Kubectl, kubectl: Kubectl) -> None:
    names = {memory: f"of-{memory.lower()}" for memory in SIZES_MIB}
    for memory, name in names.items():
        kubectl.apply(memcached(name, 1, memory=memory, workload="StatefulSet"))
    for name in names.values():
        kubectl.wait(f"mcd/{name}", "condition=Ready")
    before = incarnations(kubectl)

    def fill(memory: str) -> None:
        _fill(Memcached(pod_address(kubectl, f"{names[memory]}-0"), MEMCACHED_PORT), SIZES_MIB[memory])

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, names))
    for memory, name in names.items():
        counted = Group.of(node.container_pid(kubectl.namespace, f"{name}-0", "memcached"))
        assert counted.limit_mib() == memory_of_server_mib(Spec(memory=memory))
        assert SIZES_MIB[memory] < counted.peak_mib() < counted.limit_mib()
    assert incarnations(kubectl) == before
    for pod in kubectl.get("pods")["items"]:
        (container,) = pod["status"]["containerStatuses"]
        assert (container["restartCount"], container["lastState"]) == (0, {})


def _fill(server: Memcached, memory_mib: int) -> None:
    """With values of 64 bytes, 1 KB and 50 KB, then some of every size, and all connections busy."""
    load.put(server, memory_mib * _SMALL, 64)
    load.put(server, memory_mib / 4, 1000)
    load.fill(server, memory_mib, 50_000)
    load.one_of_each_size(server, _LARGEST_BYTES)
    with load.idle(server, 900) as connections:
        load.busy(connections)
    assert int(server.stats()["evictions"]) > 0
