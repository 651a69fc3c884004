"""The operator installed by one command, and what a user has of it, with real servers."""

import json
from collections.abc import Iterator

import pytest

from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.e2e.node_cluster import (
    OPERATOR,
    SAMPLE,
    fresh_namespace,
    leader,
    nodes_of,
    operator_pods,
    pod_address,
    stores,
)
from tests.kubectl_in_namespace import Kubectl

NAME = "example-memcached"


@pytest.fixture(scope="module")
def sample(node: Node, system: Kubectl) -> Iterator[Kubectl]:
    """kubectl where the sample is applied and its three pods are ready."""
    with fresh_namespace(node, "e2e-sample") as kubectl:
        kubectl("apply", "-f", str(SAMPLE))
        kubectl.wait(f"mcd/{NAME}", "condition=Available")
        yield kubectl


def test_two_operator_pods_are_ready_and_one_of_them_leads(system: Kubectl) -> None:
    deployment = system.get("deployment", OPERATOR)
    assert deployment["status"]["readyReplicas"] == 2
    pods = operator_pods(system)
    assert len(pods) == 2
    assert leader(system) in pods


def test_no_operator_pod_has_been_started_again(system: Kubectl) -> None:
    restarts = [
        status["restartCount"] for pod in system.get("pods")["items"] for status in pod["status"]["containerStatuses"]
    ]
    assert restarts == [0, 0]


def test_each_of_the_nodes_is_a_running_pod_that_keeps_a_value(sample: Kubectl) -> None:
    nodes = nodes_of(sample, NAME)
    assert len(nodes) == 3
    for pod in nodes:
        assert stores(pod_address(sample, pod), f"kept by {pod}"), pod


def test_a_memcached_pod_runs_as_the_restricted_profile_wants(sample: Kubectl, node: Node) -> None:
    labels = ("label", "namespace", sample.namespace, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    assert "Warning" not in node.kubectl(*labels).stderr
    pod = nodes_of(sample, NAME)[0]
    assert sample("exec", pod, "--", "id", "-u").strip() == "11211"
    # Anybody may write to /tmp, were it not for readOnlyRootFilesystem.
    assert sample("exec", pod, "--", "stat", "-c", "%a", "/tmp").strip() == "1777"
    assert "Read-only file system" in sample("exec", pod, "--", "sh", "-c", "touch /tmp/x 2>&1", check=False)


def test_the_size_follows_kubectl_scale_and_a_patch(sample: Kubectl) -> None:
    sample("scale", f"mcd/{NAME}", "--replicas=4")
    _await_servers(sample, 4)
    sample("patch", "mcd", NAME, "--type=merge", "-p", json.dumps({"spec": {"size": 2}}))
    _await_servers(sample, 2)
    sample("scale", f"mcd/{NAME}", "--replicas=3")
    _await_servers(sample, 3)


def test_an_autoscaler_finds_its_pods_and_sets_its_size(sample: Kubectl) -> None:
    # There are no metrics on this node, so it is the least number of pods that the autoscaler sees to.
    sample("autoscale", f"memcached.cache.example.com/{NAME}", "--min=4", "--max=5", "--cpu=80%")
    try:
        sample.wait(f"hpa/{NAME}", "condition=AbleToScale")
        _await_servers(sample, 4)
        assert sample.get("hpa", NAME)["status"]["currentReplicas"] >= 3
    finally:
        sample("delete", "hpa", NAME)
        sample("scale", f"mcd/{NAME}", "--replicas=3")
    _await_servers(sample, 3)


def _await_servers(kubectl: Kubectl, size: int) -> None:
    """Wait until there are so many, and each answers."""
    kubectl.wait_field(f"mcd/{NAME}", ".status.readyReplicas", size)
    nodes = eventually(lambda: nodes_of(kubectl, NAME), lambda found: len(found) == size)
    for pod in nodes:
        assert stores(pod_address(kubectl, pod), "again"), pod
    running = kubectl.get("pods", "-l", f"memcached_cr={NAME}", "--field-selector=status.phase=Running")["items"]
    assert nodes == sorted(pod["metadata"]["name"] for pod in running if "deletionTimestamp" not in pod["metadata"])
