"""Which replica writes when the Lease is what a fault takes away."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kube_simulator.access.pki import Authority
from tests.faults.proxy import FaultProxy, Request
from tests.integration.accounts import account_with_role, operator_rules
from tests.integration.conftest import Operators
from tests.integration.load import Load
from tests.integration.replicas import LEADS, NOT_RENEWED, STANDS_BY, Replicas
from tests.integration.requests import received_at
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import logged_at

pytestmark = pytest.mark.cluster("kubernetes")


def of_the_lease(request: Request) -> bool:
    """Whether a request reads or writes the Lease."""
    return "/leases" in request.target


def test_a_leader_that_reaches_everything_but_its_lease_stops_writing_before_another_may_begin(
    kubectl: Kubectl, operators: Operators, proxy: FaultProxy, authority: Authority, tmp_path: Path
) -> None:
    replicas = Replicas(kubectl, operators)
    folder = tmp_path / "behind the proxy"
    shutil.copytree(account_with_role(kubectl, operator_rules()), folder)
    shutil.copy(authority.certificate, folder / "ca.crt")
    first = replicas.start("first", account_dir=folder, KUBERNETES_SERVICE_PORT=str(proxy.port)).ready()
    first.wait_for_log(LEADS)
    second = replicas.start("second").ready()
    second.wait_for_log(STANDS_BY, "first_")
    with Load(kubectl):
        first.wait_for_log("created Deployment")
        mark = kubectl.cluster.audit_mark()
        with proxy.holding(of_the_lease):
            proxy.await_count("held")
            assert first.wait() == 1
            second.wait_for_log("created Deployment")
    lost = first.wait_for_log(NOT_RENEWED)
    led = logged_at(second.wait_for_log(LEADS))
    assert logged_at(lost) < led
    before, after = (replicas.writes(name, mark) for name in ("first", "second"))
    assert before != [], "nothing but the missing renewal kept it from writing"
    # What passed the gate last is on its way for a moment, proxy and server included: the margin of the lengths of the
    # lease (election/lease_decision.py) is there for it, and it must have arrived before another may begin.
    assert max(map(received_at, before)) < led < min(map(received_at, after))
