"""From one workload to the other and back, and an operator that ends in the middle of what takes its time."""

from __future__ import annotations

import pytest

from tests.integration.conftest import Operators, memcached
from tests.integration.named import (
    EVERYTHING,
    LONG_S,
    change,
    drain_soon,
    names,
    ready_when_there,
    replicas,
    status,
    written,
)
from tests.integration.oracle import complete, make_ready, patch_pods, pods_of, wait, wait_condition
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

ADDRESSES = ["10.9.0.1:11211", "10.9.0.2:11211"]


@pytest.fixture
def of_namespace(kubectl: Kubectl, operators: Operators) -> OperatorProcess:
    """An operator for the test's namespace alone, which the test may end."""
    return start(kubectl, operators)


def start(kubectl: Kubectl, operators: Operators) -> OperatorProcess:
    return operators.start("-n", kubectl.namespace).ready()


def on_deployment(kubectl: Kubectl) -> None:
    """A Memcached named shop with two servers by address, whose former servers drain for long."""
    kubectl.apply(memcached("shop", 2, drainPeriodSeconds=LONG_S), create=True)
    wait(kubectl, "mcd/shop", ".status.replicas", 2)
    give_addresses(kubectl)
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")
    assert status(kubectl)["serverList"] == ADDRESSES
    assert status(kubectl)["workload"] == "Deployment"


def give_addresses(kubectl: Kubectl) -> None:
    """Let the Deployment's servers serve, each under its address."""
    for pod, server in zip(pods_of(kubectl, "shop"), ADDRESSES, strict=True):
        patch_pods(kubectl, [pod], podIP=server.partition(":")[0])
        make_ready(kubectl, [pod])


@pytest.mark.usefixtures("of_namespace")
def test_a_move_changes_the_list_once_when_all_servers_are_ready_and_ends_the_former_ones_later(
    kubectl: Kubectl,
) -> None:
    on_deployment(kubectl)
    mark = kubectl.cluster.audit_mark()
    change(kubectl, workload="StatefulSet")
    ready_when_there(kubectl, 0)
    migrating = wait_condition(kubectl, "shop", "Progressing", "Migrating")
    assert "The list does not change until all are ready" in migrating["message"]
    wait(kubectl, "mcd/shop", ".status.readyReplicas", 3)
    assert (status(kubectl)["serverList"], status(kubectl)["workload"]) == (ADDRESSES, "Deployment")
    assert replicas(kubectl, "deployment") == 2

    ready_when_there(kubectl, 1)
    wait(kubectl, "mcd/shop", ".status.workload", "StatefulSet")
    assert status(kubectl)["serverList"] == names(kubectl, 0, 1)
    (drain,) = status(kubectl)["draining"]
    assert (drain["workload"], drain["firstOrdinal"]) == ("Deployment", 0)
    assert replicas(kubectl, "deployment") == 2

    drain_soon(kubectl)
    kubectl.wait("deployment/shop", "delete")
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")
    found = status(kubectl)
    assert (found["serverList"], found.get("draining")) == (names(kubectl, 0, 1), None)
    assert found["nodes"] == ["shop-0", "shop-1"]
    assert taken(written(kubectl, mark)) == {
        "create statefulsets 201",
        "patch services 200",
        "delete deployments 200",
    }


def test_with_every_option_each_object_is_created_once_and_an_operator_that_starts_again_writes_nothing(
    kubectl: Kubectl, operators: Operators, of_namespace: OperatorProcess
) -> None:
    mark = kubectl.cluster.audit_mark()
    complete(kubectl, "shop", 3, **EVERYTHING)
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")
    complete(kubectl, "later", 1)
    resources = ("statefulsets", "services", "poddisruptionbudgets", "networkpolicies", "configmaps")
    # The list is empty at first, and follows the status.
    assert taken(written(kubectl, mark)) - {"patch configmaps 200"} == {f"create {each} 201" for each in resources}

    before = kubectl.get("mcd", "shop")["metadata"]["resourceVersion"]
    assert of_namespace.stop() == 0
    mark = kubectl.cluster.audit_mark()
    start(kubectl, operators)
    complete(kubectl, "latest", 3, **EVERYTHING)
    assert taken(written(kubectl, mark)) == set()
    assert kubectl.get("mcd", "shop")["metadata"]["resourceVersion"] == before
