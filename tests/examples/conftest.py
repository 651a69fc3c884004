"""What the tests of the examples share: kinds, accounts with the permissions of the manifests, and operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from operator_runtime.testing.waiting import eventually
from tests.cluster import Cluster, await_established
from tests.examples.shells import MANIFESTS
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import PROJECT, OperatorProcess

Start = Callable[..., OperatorProcess]

# By their modules; a program's name, which is its account's, has hyphens.
EXAMPLES = ("my_own_shell", "publisher")


def manifests_of(example: str) -> Path:
    """The folder of what is applied."""
    return PROJECT / "examples" / example / "manifests"


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Cluster:
    """The cluster with the kinds, and with the operators' accounts as their manifests install them."""
    for example in EXAMPLES:
        manifests = manifests_of(example)
        for name in ("namespace", "crd", "rbac"):
            cluster.kubectl("apply", "--server-side", "-f", str(manifests / f"{name}.yaml"))
        await_established(cluster.kubectl, "-f", str(manifests / "crd.yaml"))
    # The garbage collector learns of a new kind when it starts, and every 30 s: too long for each test of a deletion.
    cluster.stop_controller_manager()
    cluster.start_controller_manager()
    return cluster


@pytest.fixture
def kubectl(installed: Cluster, namespace: str) -> Kubectl:
    """kubectl in a fresh namespace."""
    return Kubectl(installed, namespace)


def starter(cluster: Cluster, ends: ExitStack, example: str = "my_own_shell") -> Start:
    """Starts operators as a pod's process would run: by service account, with the permissions of the manifests."""
    account = example.replace("_", "-")

    def start(*arguments: str, **variables: str) -> OperatorProcess:
        ports = {f"{example.upper()}_{server}_BIND_ADDRESS": "0" for server in ("HEALTH_PROBE", "METRICS")}
        operator = OperatorProcess(
            *("--service-account-dir", str(cluster.service_account_dir(f"{account}-system", account)), *arguments),
            environment={**cluster.in_cluster_environment, **ports, **variables},
            module=f"examples.{example}",
        )
        ends.callback(operator.kill)
        return operator

    return start


@pytest.fixture
def start(installed: Cluster) -> Iterator[Start]:
    """Starts operators that end with the test."""
    with ExitStack() as ends:
        yield starter(installed, ends)


@pytest.fixture(scope="module")
def operator(installed: Cluster) -> Iterator[OperatorProcess]:
    """One operator for all namespaces, for all tests of a module; at the end nothing was refused to it."""
    with ExitStack() as ends:
        operator = starter(installed, ends)("--all-namespaces").ready()
        yield operator
        # The answer where a permission is missing is "forbidden: User ... cannot ..."; in a namespace that ends, nobody
        # may create.
        assert "forbidden: User" not in operator.log, operator.log


@pytest.fixture
def sample(kubectl: Kubectl) -> Kubectl:
    """kubectl where the sample is applied, and its three pods are in its status."""
    kubectl("apply", "-f", str(MANIFESTS / "sample.yaml"))
    eventually(
        lambda: kubectl.get("myownshell", "myownshell-sample").get("status", {}).get("nodes", []),
        lambda nodes: len(nodes) == 3,
    )
    return kubectl
