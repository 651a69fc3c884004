"""What a client that hashes its keys over the servers loses when these come, go and move, and what it keeps.

A real library in a pod sets and reads all the while, by the list that the operator publishes. The operator that leads
is killed as each change begins.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from lab.kubectl import LabError
from lab.node.node import NODE_NAME, Node
from lab.programs import kubernetes
from operator_runtime.testing.waiting import eventually
from tests.e2e.lasting import API, AT_ONCE, NAME, SIZE, Scene, is_here, is_server, lasting, most_away, names, pod_of
from tests.e2e.node_cluster import OPERATOR, incarnations
from tests.e2e.watching import Seen, Watch
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

KEYS = 10_000
# Longer than the client takes to follow the list.
DRAIN_S = 10
# For six servers one after the other, each when `kubectl drain` tries again to evict what the budget keeps: every 5 s.
DRAINED_WITHIN_S = 120.0

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def scene(node: Node, client_image: None, system: Kubectl) -> Iterator[Scene]:
    """A client has found each key at one of six servers of a StatefulSet."""
    with lasting(node, system, "e2e-lasting", KEYS, drainPeriodSeconds=DRAIN_S, podTemplate=AT_ONCE) as scene:
        yield scene


def test_a_replaced_server_costs_its_own_keys_and_no_others(scene: Scene) -> None:
    servers = scene.servers
    victim = servers[2]
    with scene.watch(f"{API}/memcacheds") as memcacheds:
        scene.kill_the_leader()
        _replace(scene.kubectl, victim)
        scene.settled(servers, lost=[victim])
        assert _lists(memcacheds.so_far()) == [servers]


def test_a_drain_takes_one_server_at_a_time_and_each_keeps_its_place(scene: Scene) -> None:
    servers = scene.servers
    with scene.watch("/api/v1/pods") as pods, scene.watch(f"{API}/memcacheds") as memcacheds:
        pods.first(is_server)
        scene.kill_the_leader()
        printed = _drain(scene.node, pods)
        for server in servers:
            scene.kubectl.wait(f"pod/{pod_of(server)}", "condition=Ready")
        assert most_away(pods.so_far()) == 1
        scene.settled(servers, lost=servers)
        assert _lists(memcacheds.so_far()) == [servers]
    assert "violate the pod's disruption budget" in printed


def test_one_server_more_moves_its_part_of_the_keys(scene: Scene) -> None:
    servers = scene.servers
    scene.change(size=SIZE + 1)
    scene.kill_the_leader()
    more = names(scene.kubectl, SIZE + 1)
    scene.client.follow(more)
    assert more[:-1] == servers
    report = scene.settled(more)
    assert len(report.missed) <= KEYS / len(more) * 1.1
    assert report.failed == set()


def test_servers_that_go_are_not_asked_any_more(scene: Scene) -> None:
    servers = scene.servers
    scene.change(size=SIZE - 1)
    scene.kill_the_leader()
    fewer = servers[: SIZE - 1]
    scene.client.follow(fewer)
    for server in servers[SIZE - 1 :]:
        scene.kubectl.wait(f"pod/{pod_of(server)}", "delete")
    assert scene.settled(fewer).failed == set()
    assert scene.servers == fewer


def test_a_client_follows_a_migration_without_an_error(scene: Scene) -> None:
    servers = scene.servers
    scene.change(workload="Deployment")
    scene.kill_the_leader()
    addresses = eventually(lambda: scene.servers, lambda found: found != servers)
    scene.client.follow(addresses)
    assert len(addresses) == len(servers)
    scene.kubectl.wait(f"statefulset/{NAME}", "delete")
    assert scene.settled(addresses).failed == set()

    scene.change(workload="StatefulSet")
    scene.kill_the_leader()
    scene.client.follow(servers)
    scene.kubectl.wait(f"deployment/{NAME}", "delete")
    scene.caches.lose(servers)
    assert scene.settled(servers).failed == set()


def test_a_stateful_set_of_another_release_is_made_anew_and_no_server_ends(kubectl: Kubectl, system: Kubectl) -> None:
    kubectl.apply(memcached(NAME, 2, workload="StatefulSet"))
    kubectl.wait(f"mcd/{NAME}", "condition=Ready")
    before = incarnations(kubectl)
    system("scale", f"deployment/{OPERATOR}", "--replicas=0")
    eventually(lambda: system.names("pods"), lambda found: found == [])
    other = _as_another_release_made_it(kubectl.get("statefulset", NAME))
    kubectl("delete", "statefulset", NAME, "--cascade=orphan")
    kubectl.apply(other, create=True)
    kubectl.wait_field(f"statefulset/{NAME}", ".status.readyReplicas", 2)
    replaced = kubectl.uid(f"statefulset/{NAME}")
    system("scale", f"deployment/{OPERATOR}", "--replicas=2")
    found = eventually(
        lambda: kubectl.get("statefulset", NAME), lambda found: found["metadata"]["uid"] != replaced, ignoring=LabError
    )
    assert found["spec"]["podManagementPolicy"] == "Parallel"
    kubectl.wait_field(f"statefulset/{NAME}", ".status.readyReplicas", 2)
    kubectl.wait(f"mcd/{NAME}", "condition=Ready")
    assert incarnations(kubectl) == before
    system("rollout", "status", f"deployment/{OPERATOR}", "--timeout=55s")


def _replace(kubectl: Kubectl, server: str) -> None:
    """Delete its pod, and wait until there is another, ready."""
    kubectl("delete", "pod", pod_of(server))
    kubectl.wait(f"pod/{pod_of(server)}", "condition=Ready")


def _drain(node: Node, pods: Watch) -> str:
    """Drain the node of the servers; what `kubectl` says to it.

    As it is the only node, servers come back to it, from when the first has been evicted.
    """
    only_servers = ("--pod-selector", f"memcached_cr={NAME}")
    command = [kubernetes.kubectl_path(), "--kubeconfig", str(node.kubeconfig_path), "drain", NODE_NAME, *only_servers]
    draining = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    with draining:
        try:
            pods.first(lambda pod: is_server(pod) and not is_here(pod))
            node.kubectl("uncordon", NODE_NAME)
            printed, _ = draining.communicate(timeout=DRAINED_WITHIN_S)
        finally:
            draining.kill()
            node.kubectl("uncordon", NODE_NAME)
    assert draining.returncode == 0, printed
    return printed


def _lists(seen: Sequence[Seen]) -> list[list[str]]:
    """`status.serverList`, as it changed."""
    lists: list[list[str]] = []
    for event in seen:
        found = event.object["status"]["serverList"]
        if lists[-1:] != [found]:
            lists.append(found)
    return lists


def _as_another_release_made_it(stateful_set: dict[str, Any]) -> dict[str, Any]:
    kept = {key: stateful_set["metadata"].get(key) for key in ("name", "labels", "annotations", "ownerReferences")}
    return {
        "apiVersion": stateful_set["apiVersion"],
        "kind": stateful_set["kind"],
        "metadata": kept,
        "spec": {**stateful_set["spec"], "podManagementPolicy": "OrderedReady"},
    }
