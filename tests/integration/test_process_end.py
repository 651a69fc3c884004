"""How the operator ends: on request in good order, on a second request at once, and with a message when a part dies."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube_simulator import Stall
from operator_runtime.testing.waiting import eventually
from tests.integration.conftest import Operators, memcached
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import PROJECT, OperatorProcess
from tests.simulated_cluster import SimulatedCluster

SHUTTING_DOWN = "shutting down"
# What Python says of connections, tasks and faults that were left behind.
LEFT_BEHIND = ("Traceback", "Unclosed", "ResourceWarning", "was never awaited", "was never retrieved", "was destroyed")

STOP_SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


def ended_well(operator: OperatorProcess) -> bool:
    """Exit code 0, the last line says so, and no connection or task was left behind."""
    code = operator.wait()
    assert not any(words in operator.log for words in LEFT_BEHIND), operator.log
    return code == 0 and operator.lines[-1].endswith("shutdown complete\n")


@pytest.mark.cluster("simulator")
@STOP_SIGNALS
def test_it_ends_in_good_order_when_asked(kubectl: Kubectl, operators: Operators, number: signal.Signals) -> None:
    operator = operators.start("-n", kubectl.namespace).ready()
    operator.send(number)
    assert ended_well(operator)
    assert f"{number.name} received: {SHUTTING_DOWN}" in operator.log


class Held:
    """Every creation of a Deployment in the namespace waits until the test lets it go."""

    def __init__(self, cluster: SimulatedCluster, namespace: str) -> None:
        self._cluster = cluster
        self._faults = cluster.simulator.faults
        self._rule = cluster.call(
            lambda: self._faults.add(Stall(), verb="create", resource="deployments", namespace=namespace)
        )

    def wait_for_request(self) -> None:
        """Return when one is being held."""
        eventually(lambda: self._rule.used, lambda used: used > 0, what="a creation of a Deployment")

    def release(self) -> None:
        """Let go what is held, and hold nothing more."""
        self._cluster.call(self._faults.clear)


@pytest.fixture
def held(kubectl: Kubectl) -> Iterator[Held]:
    assert isinstance(kubectl.cluster, SimulatedCluster)
    creations = Held(kubectl.cluster, kubectl.namespace)
    yield creations
    creations.release()


@pytest.mark.cluster("simulator")
def test_workers_finish_what_they_do_before_it_ends(kubectl: Kubectl, operators: Operators, held: Held) -> None:
    operator = operators.start("-n", kubectl.namespace).ready()
    kubectl.apply(memcached("late", 1))
    held.wait_for_request()
    operator.send(signal.SIGTERM)
    operator.wait_for_log(SHUTTING_DOWN)
    held.release()
    assert ended_well(operator)
    assert "created Deployment" in operator.log.partition(SHUTTING_DOWN)[2]
    assert kubectl.get("deployment/late")["spec"]["replicas"] == 1
    assert "Created" in kubectl("get", "events", "--field-selector=involvedObject.name=late")


@pytest.mark.cluster("simulator")
@STOP_SIGNALS
def test_a_second_request_ends_it_at_once(
    kubectl: Kubectl, operators: Operators, held: Held, number: signal.Signals
) -> None:
    operator = operators.start("-n", kubectl.namespace).ready()
    kubectl.apply(memcached("stuck", 1))
    held.wait_for_request()
    operator.send(signal.SIGTERM)
    operator.wait_for_log(SHUTTING_DOWN)
    operator.send(number)
    assert operator.wait() == -number
    assert "shutdown complete" not in operator.log


def test_it_ends_while_the_api_server_is_gone(kubectl: Kubectl, operators: Operators) -> None:
    account = operators.account_dir()
    operator = operators.start("-n", kubectl.namespace, account_dir=account).ready()
    kubectl.cluster.kill_apiserver()
    try:
        operator.wait_for_log("cannot watch")
        operator.send(signal.SIGTERM)
        assert ended_well(operator)
        before_sync = operators.start("-n", kubectl.namespace, account_dir=account)
        before_sync.wait_for_log("cannot watch")
        before_sync.send(signal.SIGTERM)
        assert ended_well(before_sync)
    finally:
        kubectl.cluster.start_apiserver()


def test_it_ends_while_the_api_server_hangs(kubectl: Kubectl, operators: Operators) -> None:
    account = operators.account_dir()
    operator = operators.start("-n", kubectl.namespace, account_dir=account).ready()
    with kubectl.cluster.hanging_apiserver():
        before_sync = operators.start("-n", kubectl.namespace, account_dir=account)
        before_sync.wait_for_log("watching")  # the first line; its requests hang from here on
        for each in (operator, before_sync):
            each.send(signal.SIGTERM)
            assert ended_well(each)


# Python imports a module of this name as it starts: the one way into a process that is otherwise as users run it.
FAULT = """
from operator_runtime.cache import reflector

def complete(self, resource_version):
    raise RuntimeError("a fault of the test's")

reflector.Reflector.complete = complete
"""


@pytest.mark.cluster("simulator")
def test_a_part_that_dies_ends_the_process_with_a_message_and_exit_code_1(
    kubectl: Kubectl, operators: Operators, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAULT)
    operator = operators.start("-n", kubectl.namespace, PYTHONPATH=f"{tmp_path}:{PROJECT}")
    assert operator.wait() == 1
    assert "ended by an internal error" in operator.log
    assert "RuntimeError: a fault of the test's" in operator.log
