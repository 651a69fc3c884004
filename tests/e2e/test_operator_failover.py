"""What becomes of the work when the operator that does it goes away."""

from __future__ import annotations

from operator_runtime.testing.waiting import eventually
from tests.e2e.node_cluster import LOCK, OPERATOR, incarnations, leader, new_leader, operator_pods
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


def _is_lock(lease: Object) -> bool:
    return bool(lease["metadata"]["name"] == LOCK)


def _is_held(lease: Object) -> bool:
    return _is_lock(lease) and bool(lease["spec"].get("holderIdentity"))
