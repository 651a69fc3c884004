"""The operator before an API server whose watches break: what users change meanwhile is done, with few words."""

from __future__ import annotations

import pytest

from kube_simulator.faults import Break, End, Fault, Refuse, Rule, SendError
from operator_runtime.testing.waiting import until
from tests.faults.conftest import troubles
from tests.integration.conftest import Operators, memcached
from tests.integration.oracle import wait
from tests.integration.requests import WATCHED
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess
from tests.simulated_cluster import SimulatedCluster

pytestmark = pytest.mark.cluster("simulator")

KINDS = ("memcacheds", "deployments", "pods")
FAULTS = {
    "refused with 410": Refuse(410),
    "410 in the middle": SendError(410, after_events=1),
    "ended": End(after_events=1),
    "cut in the middle of a line": Break(after_events=1),
}


def start(operators: Operators, kubectl: Kubectl) -> OperatorProcess:
    return operators.start("-n", kubectl.namespace, OPERATOR_NAME=kubectl.namespace)


def break_once(kubectl: Kubectl, simulated: SimulatedCluster, fault: Fault, kind: str) -> Rule:
    """Have the operator's next watch of a kind meet a fault."""
    faults, agent = simulated.simulator.faults, f"{kubectl.namespace}/"
    return simulated.call(lambda: faults.add(fault, verb="watch", resource=kind, agent=agent, times=1))


def create_and_wait(kubectl: Kubectl, *names: str) -> None:
    kubectl.apply(*(memcached(name, 2) for name in names))
    for name in names:
        wait(kubectl, f"mcd/{name}", ".status.replicas", 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_watch_that_breaks_once_is_mended_without_a_word(
    simulated: SimulatedCluster, operators: Operators, kubectl: Kubectl, fault: Fault, kind: str
) -> None:
    operator = start(operators, kubectl).ready()
    mark = simulated.audit_mark()
    rule = break_once(kubectl, simulated, fault, kind)
    simulated.end_watches()
    until("no watch breaks", lambda: simulated.call(lambda: rule.used) > 0)
    create_and_wait(kubectl, "first", "second", "third")
    kubectl("scale", "mcd/second", "--replicas=1")
    kubectl("delete", "deployment/third")
    wait(kubectl, "mcd/second", ".status.replicas", 1)
    kubectl.wait("deployment/third", "create")
    wait(kubectl, "mcd/third", ".status.replicas", 2)
    requests = simulated.audit_events(since=mark, user_agent=f"{kubectl.namespace}/")
    watches = [each for each in requests if (each.verb, each.resource) == ("watch", kind)]
    assert len(watches) >= 2, "the one that broke, and another"
    # Of kinds of which no Memcached here has any, nothing comes before the watch is ended again: that is said.
    words = ("attempt", "Traceback", *(f"cannot watch {WATCHED[each]}" for each in KINDS))
    assert [line for line in operator.lines if any(text in line for text in words)] == []


def test_a_first_snapshot_that_is_cut_is_taken_anew(
    simulated: SimulatedCluster, operators: Operators, kubectl: Kubectl
) -> None:
    before = start(operators, kubectl).ready()
    create_and_wait(kubectl, "first", "second", "third")
    assert before.stop() == 0
    kubectl("delete", "deployment/first")
    kubectl("scale", "mcd/second", "--replicas=3")
    faults: tuple[Fault, ...] = (Break(after_events=1), SendError(410, after_events=1), Break(after_events=2))
    rules = [break_once(kubectl, simulated, *each) for each in zip(faults, KINDS, strict=True)]
    another = start(operators, kubectl).ready()
    assert [rule.used for rule in rules] == [1, 1, 1]
    kubectl.wait("deployment/first", "create")
    wait(kubectl, "mcd/second", ".status.replicas", 3)
    assert troubles(another.lines) == []
    assert another.stop() == 0
