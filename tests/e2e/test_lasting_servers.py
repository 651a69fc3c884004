"""What a client that hashes its keys over the servers loses when these come, go and move, and what it keeps.

A real library in a pod sets and reads all the while, by the list that the operator publishes. The operator that leads
is killed as each change begins.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from lab.kubectl import LabError
from lab.node.node import NODE_NAME, Node
from lab.programs import kubernetes
from operator_runtime.testing.waiting import eventually
from tests.e2e.hashing_client import owners
from tests.e2e.hashing_pod import HashingPod, Report
from tests.e2e.node_cluster import LOCK, OPERATOR, fresh_namespace, incarnations, leader
from tests.e2e.watching import Seen, Watch
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

NAME = "cache"
SIZE = 6
KEYS = 10_000
# Longer than the client takes to follow the list.
DRAIN_S = 10
# For six servers one after the other, each when `kubectl drain` tries again to evict what the budget keeps: every 5 s.
DRAINED_WITHIN_S = 120.0

pytestmark = pytest.mark.timeout(600)


@dataclass(slots=True)
class Caches:
    """Which keys each server has, where the client sets what it does not find."""

    kept: dict[str, set[int]] = field(default_factory=dict)

    def read(self, servers: Sequence[str]) -> set[int]:
        """The client reads every key by that list; those that it misses."""
        missed = set()
        for number, server in owners(servers, KEYS).items():
            keys = self.kept.setdefault(server, set())
            if number not in keys:
                missed.add(number)
                keys.add(number)
        return missed

    def lose(self, servers: Iterable[str]) -> None:
        """They are replaced by servers that have nothing."""
        for server in servers:
            self.kept[server] = set()


@dataclass(slots=True)
class Scene:
    """A Memcached, its client, and the operators.

    Attributes:
        killed: the last of those that were, by the name that it had in the Lease.
    """

    node: Node
    system: Kubectl
    kubectl: Kubectl
    client: HashingPod
    caches: Caches = field(default_factory=Caches)
    killed: str = ""

    @property
    def servers(self) -> list[str]:
        """`status.serverList`."""
        return list(self.kubectl.get("mc", NAME)["status"]["serverList"])

    def change(self, **spec: object) -> None:
        """Change the specification, and kill the operator as it begins to act."""
        self.kubectl("patch", "mc", NAME, "--type=merge", "-p", json.dumps({"spec": spec}))
        self.kill_the_leader()

    def kill_the_leader(self) -> None:
        """Another goes on when its Lease has run out."""
        self.killed = eventually(self._holder, lambda found: found not in ("", self.killed))
        eventually(self._kill, bool)

    def watch(self, path: str) -> Watch:
        """Of a collection in the Memcached's namespace.

        Args:
            path: of the API, before the namespaces.
        """
        prefix, _, kind = path.rpartition("/")
        return Watch(self.node.kubeconfig_path, f"{prefix}/namespaces/{self.kubectl.namespace}/{kind}")

    def settled(self, servers: Sequence[str], *, lost: Iterable[str] = ()) -> Report:
        """What the client has seen until it finds each key again: it missed those that it had to, and no others.

        Args:
            servers: by which it goes now.
            lost: those of them that have been replaced. There alone may a request fail.
        """
        self.client.settle()
        report = self.client.begin()
        self.caches.lose(lost)
        missed, had_to = set(report.missed), self.caches.read(servers)
        assert missed == had_to, f"{len(missed - had_to)} too many, {len(had_to - missed)} too few; {report}"
        assert report.failed <= set(lost), report
        assert report.wrong == []
        return report

    def _holder(self) -> str:
        return self.system("get", "lease", LOCK, "-o", "jsonpath={.spec.holderIdentity}", check=False)

    def _kill(self) -> bool:
        with contextlib.suppress(LabError):
            os.kill(self.node.container_pid(self.system.namespace, leader(self.system), OPERATOR), signal.SIGKILL)
            return True
        return False


@pytest.fixture(scope="module")
def scene(node: Node, client_image: None, system: Kubectl) -> Iterator[Scene]:
    """A client has found each key at one of six servers of a StatefulSet."""
    with fresh_namespace(node, "e2e-lasting") as kubectl:
        kubectl.apply(memcached(NAME, SIZE, workload="StatefulSet", publish="ConfigMap", drainSeconds=DRAIN_S))
        kubectl.wait(f"mc/{NAME}", "condition=Ready")
        scene = Scene(node, system, kubectl, HashingPod.start(kubectl, f"{NAME}-servers", KEYS))
        servers = scene.servers
        assert servers == _names(kubectl, SIZE)
        scene.client.follow(servers)
        assert len(scene.settled(servers).missed) == KEYS
        yield scene


def test_a_replaced_server_costs_its_own_keys_and_no_others(scene: Scene) -> None:
    servers = scene.servers
    victim = servers[2]
    with scene.watch(f"{_OURS}/memcacheds") as memcacheds:
        scene.kill_the_leader()
        _replace(scene.kubectl, victim)
        scene.settled(servers, lost=[victim])
        assert _lists(memcacheds.so_far()) == [servers]


def test_a_drain_takes_one_server_at_a_time_and_each_keeps_its_place(scene: Scene) -> None:
    servers = scene.servers
    with scene.watch("/api/v1/pods") as pods, scene.watch(f"{_OURS}/memcacheds") as memcacheds:
        pods.first(_is_server)
        scene.kill_the_leader()
        said = _drain(scene.node, pods)
        for server in servers:
            scene.kubectl.wait(f"pod/{_pod(server)}", "condition=Ready")
        assert _most_away(pods.so_far()) == 1
        scene.settled(servers, lost=servers)
        assert _lists(memcacheds.so_far()) == [servers]
    assert "violate the pod's disruption budget" in said


def test_one_server_more_moves_its_part_of_the_keys(scene: Scene) -> None:
    servers = scene.servers
    scene.change(size=SIZE + 1)
    more = _names(scene.kubectl, SIZE + 1)
    scene.client.follow(more)
    assert more[:-1] == servers
    report = scene.settled(more)
    assert len(report.missed) <= KEYS / len(more) * 1.1
    assert report.failed == set()


def test_servers_that_go_are_not_asked_any_more(scene: Scene) -> None:
    servers = scene.servers
    scene.change(size=SIZE - 1)
    fewer = servers[: SIZE - 1]
    scene.client.follow(fewer)
    for server in servers[SIZE - 1 :]:
        scene.kubectl.wait(f"pod/{_pod(server)}", "delete")
    assert scene.settled(fewer).failed == set()
    assert scene.servers == fewer


def test_a_client_follows_a_migration_without_an_error(scene: Scene) -> None:
    servers = scene.servers
    scene.change(workload="Deployment")
    addresses = eventually(lambda: scene.servers, lambda found: found != servers)
    scene.client.follow(addresses)
    assert len(addresses) == len(servers)
    scene.kubectl.wait(f"statefulset/{NAME}", "delete")
    assert scene.settled(addresses).failed == set()

    scene.change(workload="StatefulSet")
    scene.client.follow(servers)
    scene.kubectl.wait(f"deployment/{NAME}", "delete")
    scene.caches.lose(servers)
    assert scene.settled(servers).failed == set()


def test_a_stateful_set_of_another_release_is_made_anew_and_no_server_ends(kubectl: Kubectl, system: Kubectl) -> None:
    kubectl.apply(memcached(NAME, 2, workload="StatefulSet"))
    kubectl.wait(f"mc/{NAME}", "condition=Ready")
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
    kubectl.wait(f"mc/{NAME}", "condition=Ready")
    assert incarnations(kubectl) == before
    system("rollout", "status", f"deployment/{OPERATOR}", "--timeout=55s")


_OURS = "/apis/cache.example.com/v1alpha1"


def _names(kubectl: Kubectl, size: int) -> list[str]:
    """The servers of a StatefulSet."""
    return [f"{NAME}-{ordinal}.{NAME}.{kubectl.namespace}.svc:11211" for ordinal in range(size)]


def _pod(server: str) -> str:
    return server.partition(".")[0]


def _replace(kubectl: Kubectl, server: str) -> None:
    """Delete its pod, and wait until there is another, ready."""
    kubectl("delete", "pod", _pod(server))
    kubectl.wait(f"pod/{_pod(server)}", "condition=Ready")


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
            pods.first(lambda pod: _is_server(pod) and not _is_here(pod))
            node.kubectl("uncordon", NODE_NAME)
            said, _ = draining.communicate(timeout=DRAINED_WITHIN_S)
        finally:
            draining.kill()
            node.kubectl("uncordon", NODE_NAME)
    assert draining.returncode == 0, said
    return said


def _most_away(seen: Sequence[Seen]) -> int:
    """How many servers were away at a time, at most."""
    away: set[str] = set()
    most = 0
    for event in seen:
        if _is_server(event.object):
            name = event.object["metadata"]["name"]
            if event.kind != "DELETED" and _is_here(event.object):
                away.discard(name)
            else:
                away.add(name)
            most = max(most, len(away))
    return most


def _is_server(pod: dict[str, Any]) -> bool:
    return bool(pod["metadata"].get("labels", {}).get("memcached_cr") == NAME)


def _is_here(pod: dict[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


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
