"""What the integration tests share: the CRD, an account with least permissions, operators to start, kubectl to look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster, another, await_established, make_namespace
from tests.integration.demo_process import Demo
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import PROJECT, OperatorProcess

MANIFESTS = PROJECT / "manifests"
CRD = MANIFESTS / "crd" / "cache.example.com_memcacheds.yaml"
RBAC = MANIFESTS / "rbac"
ACCOUNT = "memcached-operator"
ACCOUNT_NAMESPACE = "default"


def memcached(name: str, size: object = None, **spec: object) -> dict[str, Any]:
    """A Memcached as a user writes it."""
    if size is not None:
        spec["size"] = size
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": name},
        **({"spec": spec} if spec else {}),
    }


def install_crd(cluster: Cluster) -> None:
    """The CRD of this checkout, and no other."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
    await_established(cluster.kubectl, "crd/memcacheds.cache.example.com")


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Cluster:
    """The cluster with our CRD, and with the operator's account as users install it for all namespaces."""
    install_crd(cluster)
    # The garbage collector learns of a new kind when it starts, and every 30 s: too long for each test of a deletion.
    cluster.stop_controller_manager()
    cluster.start_controller_manager()
    for name in ("service_account", "cluster_role", "cluster_role_binding"):
        text = (RBAC / f"{name}.yaml").read_text().replace("REPLACE_NAMESPACE", ACCOUNT_NAMESPACE)
        cluster.kubectl("apply", "-n", ACCOUNT_NAMESPACE, "-f", "-", input=text)
    return cluster


@pytest.fixture(scope="module")
def fresh(cluster: Cluster) -> Iterator[Cluster]:
    """A second cluster, in which nothing of ours is."""
    with another(cluster) as other:
        yield other


@pytest.fixture(scope="module")
def older(cluster: Cluster) -> Iterator[Cluster]:
    """A second cluster with our CRD, of an older release, as it were: without streaming lists."""
    with another(cluster, streaming_lists=False) as other:
        install_crd(other)
        yield other


@pytest.fixture
def kubectl(installed: Cluster, namespace: str) -> Kubectl:
    """kubectl in a fresh namespace of a cluster that has our CRD."""
    return Kubectl(installed, namespace)


@pytest.fixture
def neighbour(kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl in a second namespace."""
    name = f"{kubectl.namespace}-b"
    make_namespace(kubectl.cluster, name)
    yield Kubectl(kubectl.cluster, name)
    kubectl.cluster.kubectl("delete", "namespace", name, "--wait=false")


class Operators:
    """Starts operators as a pod's process would run: with an account of least permissions. Ends what it began."""

    def __init__(self, cluster: Cluster, ends: ExitStack) -> None:
        self._cluster = cluster
        self._ends = ends

    def account_dir(self) -> Path:
        """The folder of the account with the least permissions; takes an API server to make."""
        return self._cluster.service_account_dir(ACCOUNT_NAMESPACE, ACCOUNT)

    def start(self, *arguments: str, account_dir: Path | None = None, **variables: str) -> OperatorProcess:
        """Start one, with flags and variables of the caller's."""
        folder = account_dir or self.account_dir()
        environment = {**self._cluster.in_cluster_environment, **variables}
        operator = OperatorProcess("--service-account-dir", str(folder), *arguments, environment=environment)
        self._ends.callback(operator.kill)
        return operator

    def start_with_kubeconfig(self, kubeconfig: Path, *arguments: str, **variables: str) -> OperatorProcess:
        """Start one as on a laptop."""
        operator = OperatorProcess("--kubeconfig", str(kubeconfig), *arguments, environment=variables)
        self._ends.callback(operator.kill)
        return operator


@pytest.fixture(scope="module")
def module_operators(installed: Cluster) -> Iterator[Operators]:
    """Operators that live as long as the module's tests."""
    with ExitStack() as ends:
        yield Operators(installed, ends)


@pytest.fixture
def operators(installed: Cluster) -> Iterator[Operators]:
    """Operators that end with the test."""
    with ExitStack() as ends:
        yield Operators(installed, ends)


@pytest.fixture(scope="module")
def operator(module_operators: Operators) -> OperatorProcess:
    """One operator for all namespaces, for all tests of a module."""
    return module_operators.start("--all-namespaces", "--log-level=debug").ready()


@pytest.fixture
def demos(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    """Starts demos that end with the test."""
    with ExitStack() as ends:
        yield lambda *arguments, **how: ends.enter_context(Demo(tmp_path, *arguments, **how))
