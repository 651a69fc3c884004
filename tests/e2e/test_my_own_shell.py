"""The guide's operator as a container, and shells to open in real pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.e2e.node_cluster import fresh_namespace
from tests.examples.shells import DEPLOYMENT, FINALIZER, MANIFESTS, SAMPLE, SHELL, SYSTEM
from tests.kubectl_in_namespace import Kubectl
from tests.shell import read, terminal

LOCK = "a9b2e162.jgato.io"


@pytest.fixture
def no_operator(node: Node, example_images: None) -> Iterator[Kubectl]:
    """kubectl in the default namespace of a node that has the images; nothing of the example is left at the end."""
    try:
        yield Kubectl(node.plane, "default")
    finally:
        uninstall(node)


@pytest.fixture(scope="module")
def system(node: Node, example_images: None) -> Iterator[Kubectl]:
    """kubectl in the namespace of the operator, whose two pods are ready."""
    kubectl = Kubectl(node.plane, SYSTEM)
    node.kubectl("apply", "--server-side", "-k", str(MANIFESTS))
    try:
        kubectl("rollout", "status", "deployment/my-own-shell", "--timeout=55s")
        yield kubectl
    finally:
        uninstall(node)


@pytest.fixture(scope="module")
def sample(node: Node, system: Kubectl) -> Iterator[Kubectl]:
    """kubectl where the sample is applied and its shells are ready."""
    with fresh_namespace(node, "e2e-shells") as kubectl:
        kubectl("apply", "-f", str(MANIFESTS / "sample.yaml"))
        kubectl.wait(SHELL, "condition=Ready")
        yield kubectl


def uninstall(node: Node) -> None:
    """In the order of the example's README, but that the operator's pods go first: see `conftest.uninstall`."""
    node.kubectl("delete", "myownshells", "--all", "--all-namespaces", "--cascade=foreground", check=False)
    pods_first = ("delete", "deployment", "my-own-shell", "--ignore-not-found", "--cascade=foreground")
    node.kubectl("--namespace", SYSTEM, *pods_first)
    node.kubectl("delete", "--ignore-not-found", "-k", str(MANIFESTS))


def leader(system: Kubectl) -> str:
    holder = system("get", "lease", LOCK, "-o", "jsonpath={.spec.holderIdentity}", check=False)
    return holder.partition("_")[0]


def shells(kubectl: Kubectl) -> list[str]:
    return list(kubectl.get(SHELL)["status"]["nodes"])


@pytest.mark.timeout(600)
def test_all_goes_as_the_example_says(no_operator: Kubectl, tmp_path: Path, node: Node) -> None:
    with terminal(tmp_path, node.kubeconfig_path, {}) as shell:
        read(shell, "examples/my_own_shell/README.md", on_a_node=True)


def test_two_operator_pods_are_ready_and_one_of_them_leads_by_the_guides_lock(system: Kubectl) -> None:
    pods = [name.removeprefix("pod/") for name in system.names("pods")]
    assert len(pods) == 2
    assert leader(system) in pods


def test_each_of_the_nodes_is_a_pod_to_open_a_shell_in(sample: Kubectl) -> None:
    assert len(shells(sample)) == 3
    for pod in shells(sample):
        assert sample("exec", pod, "--", "sh", "-c", "hostname") == f"{pod}\n"
        assert sample("logs", pod) == "The app is running, You can now ssh into for a while!\n"


def test_a_lost_pod_is_made_again_and_can_be_opened(sample: Kubectl) -> None:
    lost = shells(sample)[0]
    sample("delete", "pod", lost, "--grace-period=0", "--force")
    eventually(lambda: shells(sample), lambda found: len(found) == 3 and lost not in found)
    sample.wait(SHELL, "condition=Ready")
    for pod in shells(sample):
        assert sample("exec", pod, "--", "echo", "here") == "here\n"


def test_the_size_follows_the_resource_and_no_hand(sample: Kubectl) -> None:
    sample("patch", SHELL, "--type=merge", "-p", json.dumps({"spec": {"size": 1}}))
    eventually(lambda: shells(sample), lambda found: len(found) == 1)
    sample("scale", DEPLOYMENT, "--replicas=4")
    eventually(lambda: sample.get(DEPLOYMENT)["spec"]["replicas"], lambda found: found == 1)
    sample("patch", SHELL, "--type=merge", "-p", json.dumps({"spec": {"size": 3}}))
    sample.wait_field(SHELL, '.status.conditions[?(@.type=="Ready")].message', "3 of 3 shells are ready.")


def test_another_takes_over_from_a_leader_that_is_lost(sample: Kubectl, system: Kubectl) -> None:
    former = leader(system)
    system("delete", "pod", former, "--grace-period=0", "--force")
    eventually(lambda: leader(system), lambda name: name not in ("", former))
    sample("patch", SHELL, "--type=merge", "-p", json.dumps({"spec": {"size": 2}}))
    eventually(lambda: shells(sample), lambda found: len(found) == 2)
    system("rollout", "status", "deployment/my-own-shell", "--timeout=55s")


def test_a_deleted_resource_takes_its_pods_along_after_both_cleanups(sample: Kubectl, system: Kubectl) -> None:
    assert sample.get(SHELL)["metadata"]["finalizers"] == [FINALIZER]
    sample("delete", SHELL, "--cascade=foreground", "--timeout=55s")
    assert sample.names("deployments") == []
    logged = [f"{sample.namespace}/{SAMPLE}: Successfully finalized {kind}" for kind in ("MyOwnShell", "Deployment")]
    eventually(lambda: system("logs", leader(system)), lambda log: all(words in log for words in logged))
