"""What becomes of the work when the operator that does it goes away."""

from __future__ import annotations

import os
import signal

from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.e2e.node_cluster import LOCK, OPERATOR, incarnations, leader, new_leader, nodes_of, operator_pods
from tests.e2e.watching import Object, Watch
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl


def test_another_pod_goes_on_when_the_leader_s_pod_is_deleted(kubectl: Kubectl, system: Kubectl) -> None:
    former = leader(system)
    assert former in operator_pods(system)
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{system.namespace}/leases"
    with Watch(system.cluster.kubeconfig_path, leases) as watch:
        held = watch.first(_is_held)
        system("delete", "pod", former, "--wait=false")
        kubectl.apply(memcached("after-the-leader"))
        # A leader that is told to end lets go of the Lease, and nobody waits until it has run out.
        let_go = watch.first(lambda lease: _is_lock(lease) and not _is_held(lease), after_s=held.at_s)
        watch.first(_is_held, after_s=let_go.at_s)
    successor = new_leader(system, former)
    assert successor in operator_pods(system)
    kubectl.wait("mcd/after-the-leader", "condition=Available")
    system("rollout", "status", f"deployment/{OPERATOR}", "--timeout=55s")


def test_the_work_goes_on_when_the_leader_s_process_is_killed(kubectl: Kubectl, system: Kubectl, node: Node) -> None:
    kubectl.apply(memcached("before-the-crash"))
    kubectl.wait("mcd/before-the-crash", "condition=Available")
    former = leader(system)
    holder = _holder(system)
    os.kill(node.container_pid(system.namespace, former, OPERATOR), signal.SIGKILL)
    kubectl("scale", "mcd/before-the-crash", "--replicas=2")
    kubectl.apply(memcached("after-the-crash"))
    # The killed process is nobody's any more: the other one leads, or one that kubelet started in the same pod.
    eventually(lambda: _holder(system), lambda found: found not in ("", holder))
    kubectl.wait("mcd/after-the-crash", "condition=Available")
    kubectl.wait_field("mcd/before-the-crash", ".status.readyReplicas", 2)
    assert len(nodes_of(kubectl, "before-the-crash")) == 2
    system("rollout", "status", f"deployment/{OPERATOR}", "--timeout=55s")


def test_servers_go_on_when_no_operator_is_there(kubectl: Kubectl, system: Kubectl) -> None:
    kubectl.apply(memcached("left-alone"))
    kubectl.wait("mcd/left-alone", "condition=Available")
    before = incarnations(kubectl)
    system("scale", f"deployment/{OPERATOR}", "--replicas=0")
    eventually(lambda: system.names("pods"), lambda found: found == [])
    assert leader(system) == ""
    system("scale", f"deployment/{OPERATOR}", "--replicas=2")
    system("rollout", "status", f"deployment/{OPERATOR}", "--timeout=55s")
    eventually(lambda: leader(system), bool)
    assert incarnations(kubectl) == before


def _holder(system: Kubectl) -> str:
    return system("get", "lease", LOCK, "-o", "jsonpath={.spec.holderIdentity}")


def _is_lock(lease: Object) -> bool:
    return bool(lease["metadata"]["name"] == LOCK)


def _is_held(lease: Object) -> bool:
    return _is_lock(lease) and bool(lease["spec"].get("holderIdentity"))
