"""Leader for life on a cluster's own garbage collector: when the leader's Pod is gone, the other begins."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.accounts import ACCOUNT, LOCK, account_with_role, operator_rules, rules_of
from tests.integration.conftest import MANIFESTS, Operators
from tests.integration.oracle import create_memcached
from tests.integration.requests import READS, requests_of
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

LEADS = "leading for life"
STANDS_BY = "waiting: ConfigMap"
LIFE = MANIFESTS / "components" / "leader-for-life"
PERMISSIONS = rules_of(LIFE / "role.yaml")


class Pods:
    """Operators, each of which is told that it is the process of a pod that kubectl has made."""

    def __init__(self, kubectl: Kubectl, operators: Operators, account_dir: Path) -> None:
        self.kubectl = kubectl
        self._operators = operators
        self._account_dir = account_dir

    def start(self, name: str, node: str = "") -> OperatorProcess:
        container = {"name": "operator", "image": "none"}
        spec = {
            "containers": [container],
            "terminationGracePeriodSeconds": 3600,
            **({"nodeName": node} if node else {}),
        }
        self.kubectl.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        return self._operators.start(
            "--leader-elect",
            "--leader-elect-mode=life",
            f"--leader-elect-id={LOCK}",
            account_dir=self._account_dir,
            POD_NAME=name,
            OPERATOR_NAME=name,
        ).ready()

    def pair(self, node: str = "") -> tuple[OperatorProcess, OperatorProcess]:
        first = self.start("first", node)
        first.wait_for_log(LEADS)
        second = self.start("second")
        second.wait_for_log(STANDS_BY, "first")
        return first, second

    def owner(self) -> str:
        """Who owns the lock."""
        return str(self.kubectl.get("configmap", LOCK)["metadata"]["ownerReferences"][0]["name"])


@pytest.fixture
def pods(kubectl: Kubectl, operators: Operators) -> Pods:
    return Pods(
        kubectl, operators, account_with_role(kubectl, [*operator_rules(without=[("*", "leases")]), *PERMISSIONS])
    )


def test_the_other_begins_when_the_leaders_pod_is_gone_and_not_before(kubectl: Kubectl, pods: Pods) -> None:
    mark = kubectl.cluster.audit_mark()
    first, second = pods.pair()
    assert first.stop() == 0
    assert pods.owner() == "first", "the pod lives on, and its container may start anew"
    first_again = pods.start("first")
    first_again.wait_for_log(LEADS)
    create_memcached(kubectl, "one", 1)
    tries = [each for each in requests_of(kubectl.cluster, "second", since=mark) if each.verb not in READS]
    assert {(each.verb, each.resource, each.code) for each in tries} == {("create", "configmaps", 409)}
    first_again.kill()
    kubectl("delete", "pod", "first", "--wait=false")
    second.wait_for_log(LEADS)
    assert pods.owner() == "second"
    create_memcached(kubectl, "two", 1)


def test_the_pod_of_a_leader_that_was_evicted_is_deleted(kubectl: Kubectl, pods: Pods) -> None:
    first, second = pods.pair()
    first.kill()
    evicted = {"status": {"phase": "Failed", "reason": "Evicted"}}
    kubectl("patch", "pod", "first", "--subresource=status", "--type=merge", "-p", json.dumps(evicted))
    second.wait_for_log("deleted pod first", "it has ended for good (Evicted)")
    second.wait_for_log(LEADS)
    assert pods.owner() == "second"


@pytest.fixture
def lost_node(kubectl: Kubectl) -> Iterator[str]:
    """A node that the operator's account may look at, and that says nothing any more."""
    name = f"lost-{uuid.uuid4().hex[:8]}"
    cluster = kubectl.cluster
    cluster.kubectl(
        "create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    )
    silent = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    cluster.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps(silent))
    cluster.kubectl("create", "clusterrole", name, "--verb=get", "--resource=nodes")
    account = f"--serviceaccount={kubectl.namespace}:{ACCOUNT}"
    cluster.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", account)
    yield name
    for kind in ("clusterrolebinding", "clusterrole", "node"):
        cluster.kubectl("delete", kind, name, "--wait=false", check=False)


@pytest.mark.cluster("kubernetes")  # the simulator has no nodes
def test_the_pod_of_a_leader_on_a_lost_node_is_deleted_once_kubernetes_has_given_it_up(
    kubectl: Kubectl, pods: Pods, lost_node: str
) -> None:
    first, second = pods.pair(lost_node)
    first.kill()
    kubectl("delete", "pod", "first", "--wait=false")  # as the eviction of a node's pods does
    second.wait_for_log("deleted pod first", f"its node {lost_node} is lost")
    second.wait_for_log(LEADS)
    assert pods.owner() == "second"


def test_no_permission_is_granted_that_nothing_is_known_to_need() -> None:
    rules = [*PERMISSIONS, *rules_of(LIFE / "nodes_cluster_role.yaml")]
    granted = {(verb, resource) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    assert granted == {
        ("create", "configmaps"),  # a pod leads
        ("get", "configmaps"),  # it is seen who leads
        ("get", "pods"),  # the lock belongs to the leader's pod
        ("delete", "pods"),  # a leader that was evicted is replaced
        ("get", "nodes"),  # a leader whose node is lost is replaced
    }
