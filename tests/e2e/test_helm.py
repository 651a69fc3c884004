"""The chart on a real node, where Helm can wait for what it installs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.node.node import Node
from lab.packaging.chart import CHART
from lab.programs.helm import helm
from operator_runtime.testing.waiting import eventually
from tests.e2e.node_cluster import OPERATOR, SAMPLE, leader, nodes_of, operator_pods, pod_address, stores
from tests.kubectl_in_namespace import Kubectl

_WAIT = ("--wait", "--timeout=90s")


class Release:
    """The chart's release in a namespace of its own, which it watches."""

    def __init__(self, node: Node, namespace: str) -> None:
        self._node = node
        self._namespace = namespace

    def __call__(self, *arguments: str) -> str:
        """Run Helm there; its standard output."""
        return helm("--namespace", self._namespace, *arguments, kubeconfig=self._node.kubeconfig_path).stdout

    def put(self, verb: str, *values: str) -> str:
        """Install or upgrade it, and wait until its pods are ready."""
        own = f"watchNamespaces={{{self._namespace}}}"
        return self(verb, OPERATOR, str(CHART), *_WAIT, *(f"--set={value}" for value in (own, *values)))


@pytest.fixture
def release(node: Node, operator_images: None, kubectl: Kubectl) -> Iterator[Release]:
    """Helm in kubectl's namespace; its release and the kind are gone afterwards."""
    found = Release(node, kubectl.namespace)
    yield found
    kubectl("delete", "memcacheds", "--all", "--cascade=foreground", check=False)
    found("uninstall", OPERATOR, "--ignore-not-found", *_WAIT)
    node.kubectl("delete", "crd", "memcacheds.cache.example.com", "--ignore-not-found")


@pytest.mark.timeout(400)
def test_a_release_runs_and_its_upgrade_restarts_no_memcached(kubectl: Kubectl, release: Release) -> None:
    release.put("install")
    before = operator_pods(kubectl)
    assert len(before) == 2
    kubectl("apply", "-f", str(SAMPLE))
    kubectl.wait_field("mcd/example-memcached", ".status.readyReplicas", 3)
    servers = nodes_of(kubectl, "example-memcached")
    assert all(stores(pod_address(kubectl, pod), "kept by the chart") for pod in servers)
    assert eventually(lambda: leader(kubectl), lambda name: name in before)

    release.put("upgrade", "workers=3")
    pods = eventually(lambda: operator_pods(kubectl), lambda found: len(found) == 2 and not set(found) & set(before))
    assert eventually(lambda: leader(kubectl), lambda name: name in pods)
    assert nodes_of(kubectl, "example-memcached") == servers
    kubectl("scale", "mcd/example-memcached", "--replicas=1")
    kubectl.wait_field("mcd/example-memcached", ".status.replicas", 1)
    assert set(nodes_of(kubectl, "example-memcached")) < set(servers)

    kubectl("delete", "memcacheds", "--all", "--cascade=foreground")
    release("uninstall", OPERATOR, *_WAIT)
    kinds = "deployments,replicasets,pods,roles,rolebindings,poddisruptionbudgets"
    eventually(lambda: kubectl.names(kinds), lambda left: left == [])
