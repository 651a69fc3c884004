"""Memory that follows what is evicted, on a real node: where a working set fits, and where the node is full."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from time import monotonic
from typing import Any

import pytest
from pymemcache import Client

from benchmarks.sizing.server import Memcached
from lab.node.node import NODE_NAME, Node
from memcached_operator.api.quantities import mebibytes, value
from operator_runtime.testing.waiting import eventually, until
from tests.e2e.node_cluster import BUSYBOX, MEMCACHED_PORT, OPERATOR, STAYS, incarnations, pod_address
from tests.integration.conftest import memcached
from tests.integration.oracle import condition
from tests.kubectl_in_namespace import Kubectl

NAME, PODS = "chunks", ("chunks-0", "chunks-1")
START_MIB, MAX_MIB = 64, 512
WORKING_SET_MIB = 300
VALUE_BYTES = 49_000
COUNT = WORKING_SET_MIB * 2**20 // (VALUE_BYTES + 100)
AT_ONCE = 25
RETENTION_S, WINDOW_S = 600, 8
# As long as a step takes, and three windows.
SETTLED_S = 4 * WINDOW_S
DEADLINE_S = 240
VALUE = b"v" * VALUE_BYTES

pytestmark = pytest.mark.timeout(420)


@pytest.fixture(scope="module", autouse=True)
def impatient(system: Kubectl) -> None:
    """An operator that looks at servers for seconds and not for minutes."""
    settings = {"MEMORY_SCALING_WINDOW_S": WINDOW_S, "SERVER_STATS_INTERVAL_S": 1}
    variables = [f"MEMCACHED_OPERATOR_{name}={number}" for name, number in settings.items()]
    system("set", "env", f"deployment/{OPERATOR}", *variables)
    system("rollout", "status", f"deployment/{OPERATOR}", "--timeout=110s")


class Load:
    """Clients that ask for random keys of a working set, and store what they miss."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = clients
        self._random = random.Random(1)

    def run(self) -> float:
        """Ask for some keys of each server; the share of hits."""
        found = 0
        for number, client in enumerate(self._clients):
            keys = [f"key{self._random.randrange(COUNT // 2)}-{number}" for _ in range(AT_ONCE)]
            held = client.get_many(keys)
            found += sum(key in held for key in keys)
            for key in {*keys} - held.keys():
                client.set(key, VALUE, noreply=True)
        return found / (AT_ONCE * len(self._clients))

    def run_until(self, holds: Callable[[], bool], deadline_s: float) -> float:
        """Ask until that holds; the share of hits in the last second."""

        def run_and_check() -> tuple[float, bool]:
            ends, shares = monotonic() + 1.0, list[float]()
            while monotonic() < ends:
                shares.append(self.run())
            return sum(shares) / len(shares), holds()

        return eventually(run_and_check, lambda found: found[1], what="what the load is for", deadline_s=deadline_s)[0]


@pytest.fixture
def running(kubectl: Kubectl) -> Iterator[tuple[Load, Sequence[Memcached]]]:
    """Two servers that are small for their working set, and its load."""
    kubectl.apply(desired(START_MIB, MAX_MIB))
    kubectl.wait(f"mcd/{NAME}", "condition=Ready")
    addresses = [pod_address(kubectl, pod) for pod in PODS]
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(Client((each, MEMCACHED_PORT), timeout=20))) for each in addresses]
        yield Load(clients), [Memcached(each, MEMCACHED_PORT) for each in addresses]


def test_memory_settles_where_the_working_set_fits_and_no_server_restarts(
    kubectl: Kubectl, running: tuple[Load, Sequence[Memcached]]
) -> None:
    load, servers = running
    before = incarnations(kubectl)
    share = load.run_until(lambda: total(servers, "evictions") > 0, 60)
    changed: list[tuple[float, str]] = []

    def is_settled() -> bool:
        memory = in_force(kubectl)
        if not changed or changed[-1][1] != memory:
            changed.append((monotonic(), memory))
        is_kept = str(condition(kubectl, NAME, "Retaining")["status"]) == "True"
        return is_kept and monotonic() - changed[-1][0] > SETTLED_S

    load.run_until(is_settled, DEADLINE_S)
    evicted = total(servers, "evictions")
    after = load.run_until(lambda: True, 30)
    needed_mib = WORKING_SET_MIB / 2
    settled_mib = mebibytes(in_force(kubectl))
    print(f"hit ratio {share:.2f} with {START_MIB} MiB, {after:.3f} with {[each for _, each in changed]}")
    assert needed_mib <= settled_mib <= 1.6 * needed_mib
    assert [int(each.stats()["limit_maxbytes"]) for each in servers] == [settled_mib * 2**20] * 2
    assert total(servers, "evictions") == evicted, "nothing younger than the retention is lost any more"
    assert after > 0.98 > share
    assert incarnations(kubectl) == before
    notes = [each["note"] for each in kubectl.get("events.events.k8s.io")["items"] if each["reason"] == "MemoryGrows"]
    assert len(notes) == len(changed) - 1
    assert all(f"retention is {RETENTION_S // 60}m: " in each for each in notes)
    assert in_force(kubectl) in kubectl("get", "mcd", NAME, "-o", "wide")

    kubectl("delete", "pod", PODS[1])
    kubectl.wait(f"pod/{PODS[1]}", "condition=Ready")
    server = Memcached(pod_address(kubectl, PODS[1]), MEMCACHED_PORT)
    stats = eventually(server.stats, bool, ignoring=OSError)
    assert stats["limit_maxbytes"] == str(settled_mib * 2**20), "a replaced server starts with what is in force"


def test_a_full_node_is_told_and_leaves_no_server_larger_than_the_others(
    node: Node, kubectl: Kubectl, running: tuple[Load, Sequence[Memcached]]
) -> None:
    load, servers = running
    before = incarnations(kubectl)
    fill(node, kubectl)

    def is_reported() -> bool:
        return str(condition(kubectl, NAME, "Retaining")["reason"]) == "ResizeImpossible"

    load.run_until(is_reported, DEADLINE_S)
    message = condition(kubectl, NAME, "Retaining")["message"]
    assert message.startswith(f"All servers keep {START_MIB} MiB. {NAME}-")
    assert "Node didn't have enough resource: memory" in message
    until("all servers are as before", lambda: limits(servers) == {START_MIB * 2**20})
    assert in_force(kubectl) == f"{START_MIB}Mi"
    assert condition(kubectl, NAME, "Ready")["status"] == "True"
    assert incarnations(kubectl).items() >= before.items()


def desired(memory_mib: int, max_mib: int) -> dict[str, Any]:
    scaling = {"max": f"{max_mib}Mi", "retentionSeconds": RETENTION_S}
    return memcached(NAME, 2, workload="StatefulSet", memory=f"{memory_mib}Mi", memoryScaling=scaling)


def fill(node: Node, kubectl: Kubectl) -> None:
    """Take the node's memory with a pod that requests it."""
    cluster = Kubectl(node.plane, "default")
    # What other tests leave behind ends by itself.
    there = {each["metadata"]["name"] for each in cluster.get("namespaces")["items"] if _is_active(each)}
    requested = sum(
        value(container["resources"].get("requests", {}).get("memory", "0"))
        for pod in cluster.get("pods", "--all-namespaces")["items"]
        if pod["metadata"]["namespace"] in there and pod["status"]["phase"] not in ("Succeeded", "Failed")
        for container in pod["spec"]["containers"]
    )
    free = value(cluster.get("node", NODE_NAME)["status"]["allocatable"]["memory"]) - requested
    requests = {"memory": str(int(free) - 24 * 2**20)}
    container = {"name": "full", "image": BUSYBOX, "command": list(STAYS), "resources": {"requests": requests}}
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "full"},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
        }
    )
    kubectl.wait("pod/full", "condition=Ready")


def _is_active(namespace: dict[str, Any]) -> bool:
    return str(namespace["status"]["phase"]) == "Active"


def in_force(kubectl: Kubectl) -> str:
    return str(kubectl.get("mcd", NAME)["status"]["memory"])


def limits(servers: Sequence[Memcached]) -> set[int]:
    return {int(each.stats()["limit_maxbytes"]) for each in servers}


def total(servers: Sequence[Memcached], name: str) -> int:
    return sum(int(each.stats()[name]) for each in servers)
