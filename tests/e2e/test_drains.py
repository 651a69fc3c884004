"""Servers of a real node whose pods others evict or delete: their items move, under clients that judge each value.

There is one node, so that server, holder and successor are on it; what a scheduler does is none of this.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually, until
from tests.e2e.node_cluster import leader
from tests.e2e.test_moves import DEADLINE_S, NAME, SIZE, Prober, Scene, begun, judged
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("system")]
# Of a hook that hears of no operator.
UNHEARD_S = 20.0
DRAINED_S = 40


def _evict(kubectl: Kubectl, pod: str, **options: Any) -> None:
    """As `kubectl drain` does, and autoscalers."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": kubectl.namespace},
        "deleteOptions": options,
    }
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{pod}/eviction"
    kubectl("create", "--raw", path, "-f", "-", input=json.dumps(eviction))


def _delete(kubectl: Kubectl, pod: str) -> None:
    kubectl("delete", "pod", pod, "--wait=false")


def _drain_for_a_while(kubectl: Kubectl, pod: str) -> None:
    """Drain the only node of one pod: no holder finds a node."""
    (node,) = (each["metadata"]["name"] for each in kubectl.get("nodes")["items"])
    selected = f"--pod-selector=statefulset.kubernetes.io/pod-name={pod}"
    try:
        kubectl("drain", node, selected, f"--grace-period={DRAINED_S}", "--timeout=120s")
    finally:
        kubectl("uncordon", node)


def _uid(scene: Scene, pod: str) -> str:
    return str(scene.kubectl.get(f"pod/{pod}")["metadata"]["uid"])


def _replaced(scene: Scene, pod: str, end: Callable[[], None]) -> float:
    """Have a server's pod end, and wait for its successor, and until nothing is under way; how long the pod took."""
    former, began_s = _uid(scene, pod), time.monotonic()
    end()
    until(
        "the pod is gone",
        lambda: former not in scene.uids(),
        deadline_s=DEADLINE_S,
    )
    took_s = time.monotonic() - began_s
    scene.settled()
    return took_s


def test_a_server_that_is_evicted_or_deleted_keeps_its_items(kubectl: Kubectl) -> None:
    with begun(kubectl) as scene:
        probers = [Prober(f"{NAME}-{ordinal}", scene.addresses) for ordinal in range(SIZE)]
        for each in probers:
            each.start()
        evicted_s = _replaced(scene, f"{NAME}-1", lambda: _evict(kubectl, f"{NAME}-1"))
        shorter_s = _replaced(scene, f"{NAME}-2", lambda: _evict(kubectl, f"{NAME}-2", gracePeriodSeconds=60))
        deleted_s = _replaced(scene, f"{NAME}-0", lambda: _delete(kubectl, f"{NAME}-0"))
        print(f"\nended after {evicted_s:.1f}, {shorter_s:.1f} and {deleted_s:.1f} s; {scene.events('Moved')}", end="")
        for each in probers:
            each.ends.set()
            each.join(10)
            print(f"\n{each}", end="")
        judged(scene, "evicted and deleted")
        assert scene.events("NotMoved") == []
        assert len(scene.events("Moved")) == SIZE
        assert sum(each.lost for each in probers) == 0
        assert scene.kubectl.names("statefulsets") == [f"statefulset.apps/{NAME}"]


def test_a_server_that_has_no_time_ends_empty_and_others_without_a_wait(kubectl: Kubectl) -> None:
    with begun(kubectl) as scene:
        _replaced(scene, f"{NAME}-1", lambda: _evict(kubectl, f"{NAME}-1", gracePeriodSeconds=12))
        _replaced(scene, f"{NAME}-2", lambda: _drain_for_a_while(kubectl, f"{NAME}-2"))
        assert scene.events("NotMoved") == [
            f"The items of {NAME}-1 do not move, as its pod had too little time left to end",
            f"The items of {NAME}-2 do not move, as its holder did not get ready in time",
        ]
        scene.clients.read_all()
        assert sum(each.stale for each in scene.clients.seen().values()) == 0
    kubectl("delete", f"mcd/{NAME}")
    pods = f"memcached_cr={NAME}"
    at_once_s = UNHEARD_S * 3 / 4
    until("the servers are gone", lambda: not kubectl.get("pods", "-l", pods)["items"], deadline_s=at_once_s)


@pytest.mark.slow
def test_pods_of_a_namespace_that_is_deleted_end_although_no_holder_can_be_made(kubectl: Kubectl) -> None:
    with begun(kubectl):
        pass
    kubectl("delete", "namespace", kubectl.namespace, "--wait=false")
    at_once_s = UNHEARD_S * 3 / 4
    until("the servers are gone", lambda: not kubectl.get("pods")["items"], deadline_s=at_once_s)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["Preparing", "Connecting", "Copying", "Closing", "Replacing", "Restoring"])
def test_another_leader_goes_on_with_a_pod_that_waits(system: Kubectl, kubectl: Kubectl, step: str) -> None:
    with begun(kubectl) as scene:

        def end() -> None:
            _evict(kubectl, f"{NAME}-1")
            scene.at(step)
            system("delete", "pod", leader(system), "--grace-period=0", "--force", "--wait=false")

        took_s = _replaced(scene, f"{NAME}-1", end)
        print(f"\n{step}: ended after {took_s:.1f} s; {scene.events('Moved')} {scene.events('NotMoved')}", end="")
        judged(scene, f"a leader is killed at {step}")


@pytest.mark.slow
def test_a_pod_that_hears_of_no_operator_ends(system: Kubectl, kubectl: Kubectl) -> None:
    with begun(kubectl) as scene:
        replicas = system.get("deployment/memcached-operator")["spec"]["replicas"]
        system("scale", "deployment/memcached-operator", "--replicas=0")
        eventually(lambda: system.get("pods")["items"], lambda found: not found, deadline_s=DEADLINE_S)
        try:
            former, began_s = _uid(scene, f"{NAME}-1"), time.monotonic()
            _evict(kubectl, f"{NAME}-1")
            until("the pod is gone", lambda: former not in scene.uids(), deadline_s=DEADLINE_S)
            assert time.monotonic() - began_s >= UNHEARD_S
        finally:
            system("scale", "deployment/memcached-operator", f"--replicas={replicas}")
        scene.settled()
        scene.clients.read_all()
        assert sum(each.stale for each in scene.clients.seen().values()) == 0
