"""What the status says when a memcached pod fails, and how soon.

Measured from the pod's own status: what comes before is kubelet's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from lab.kubectl import LabError
from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.e2e.node_cluster import nodes_of, pod_address, stores
from tests.e2e.watching import Object, Watch
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

NAME = "cache"
SIZE = 2
# A status is written at the latest 250 ms after the event that changed it; both watches have a way of their own.
FOLLOWS_WITHIN_S = 1.0
# The machine that runs the tests may be busy at any one moment, and is not all the time.
TRIALS = 3
KILLS = 8


@pytest.fixture
def cache(kubectl: Kubectl, system: Kubectl) -> Kubectl:
    """kubectl where two servers are ready."""
    kubectl.apply(memcached(NAME, SIZE))
    kubectl.wait_field(f"mc/{NAME}", ".status.readyReplicas", SIZE)
    return kubectl


@contextlib.contextmanager
def watches(kubectl: Kubectl) -> Iterator[tuple[Watch, Watch]]:
    """Of the pods and of the Memcacheds."""
    core, ours = f"/api/v1/namespaces/{kubectl.namespace}", "/apis/cache.example.com/v1alpha1"
    with (
        Watch(kubectl.cluster.kubeconfig_path, f"{core}/pods") as pods,
        Watch(kubectl.cluster.kubeconfig_path, f"{ours}/namespaces/{kubectl.namespace}/memcacheds") as memcacheds,
    ):
        pods.first(lambda _: True)
        memcacheds.first(lambda found: found["status"]["readyReplicas"] == SIZE)
        yield pods, memcacheds


def test_the_status_follows_a_server_that_is_killed_and_comes_back(cache: Kubectl, node: Node) -> None:
    victim = nodes_of(cache, NAME)[0]
    outages = []
    with watches(cache) as (pods, memcacheds):
        for _ in range(KILLS):
            killed = time.monotonic()
            os.kill(_server_pid(cache, node, victim), signal.SIGKILL)
            down = pods.first(lambda pod: _is(pod, victim, ready=False), after_s=killed)
            back = pods.first(lambda pod: _is(pod, victim, ready=True), after_s=down.at_s)
            # It is started again at once, the next time after a while. What is over so soon need not be told.
            outages.append(back.at_s - down.at_s)
            if outages[-1] < FOLLOWS_WITHIN_S:
                continue
            told_down = memcacheds.first(lambda found: _ready(found) == SIZE - 1, after_s=killed)
            told_back = memcacheds.first(lambda found: _ready(found) == SIZE, after_s=told_down.at_s)
            assert victim in nodes_of(cache, NAME)
            assert stores(pod_address(cache, victim), "back")
            if max(told_down.at_s - down.at_s, told_back.at_s - back.at_s) < FOLLOWS_WITHIN_S:
                return
    raise AssertionError(f"the status followed none of the outages in time; these lasted {outages} s")


def test_the_status_follows_a_pod_that_is_deleted_and_replaced(cache: Kubectl) -> None:
    delays = []
    with watches(cache) as (pods, memcacheds):
        for _ in range(TRIALS):
            victim = nodes_of(cache, NAME)[0]
            deleted = time.monotonic()
            cache("delete", "pod", victim, "--wait=false")
            going = pods.first(lambda pod, v=victim: _name(pod) == v and _is_going(pod), after_s=deleted)  # type: ignore[misc]
            told = memcacheds.first(lambda found, v=victim: v not in found["status"]["nodes"], after_s=deleted)  # type: ignore[misc]
            cache.wait_field(f"mc/{NAME}", ".status.readyReplicas", SIZE)
            nodes = eventually(lambda: nodes_of(cache, NAME), lambda found: len(found) == SIZE)
            assert victim not in nodes
            delays.append(told.at_s - going.at_s)
            if delays[-1] < FOLLOWS_WITHIN_S:
                return
    raise AssertionError(f"the status came {delays} s after the pod's")


def _server_pid(cache: Kubectl, node: Node, pod: str) -> int:
    """The server's process id, once it runs."""

    def look() -> int:
        with contextlib.suppress(LabError):
            return node.container_pid(cache.namespace, pod, "memcached")
        return 0

    return eventually(look, bool)


def _name(found: Object) -> str:
    return str(found["metadata"]["name"])


def _is_going(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _is(pod: Object, name: str, *, ready: bool) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return _name(pod) == name and (conditions.get("Ready") == "True") is ready


def _ready(memcached: Object) -> int:
    return int(memcached["status"]["readyReplicas"])
