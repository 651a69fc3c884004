"""The probes of a running operator, as kubelet asks them."""

from __future__ import annotations

import pytest

from operator_runtime.testing.waiting import until
from tests.integration.conftest import Operators
from tests.integration.monitoring import PROBES, fetch, url_of
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

pytestmark = pytest.mark.cluster("simulator")

WATCHES = ("memcacheds.cache.example.com", "deployments.apps", "pods")


def start(operators: Operators, kubectl: Kubectl, *flags: str) -> tuple[OperatorProcess, str]:
    """An operator for the namespace, and where its probes are."""
    operator = operators.start("-n", kubectl.namespace, PROBES, *flags).ready()
    return operator, url_of(operator, "probes")


def test_a_ready_operator_names_its_checks(kubectl: Kubectl, operators: Operators) -> None:
    _, probes = start(operators, kubectl)
    assert fetch(f"{probes}/healthz") == (200, "ok")
    assert fetch(f"{probes}/healthz?verbose") == (200, "[+]ping ok\nhealthz check passed\n")
    assert fetch(f"{probes}/readyz") == (200, "ok")
    checks = ["ping", *(f"watch/{kind}/{kubectl.namespace}" for kind in WATCHES)]
    assert fetch(f"{probes}/readyz?verbose") == (
        200,
        "".join(f"[+]{check} ok\n" for check in checks) + "readyz check passed\n",
    )
    assert fetch(f"{probes}/readyz/watch/pods/{kubectl.namespace}") == (200, "ok")


def test_readiness_is_lost_while_a_stream_is_silent_beyond_its_limit_and_comes_back(
    kubectl: Kubectl, operators: Operators
) -> None:
    operator, probes = start(operators, kubectl, "--watch-silence-limit-s=3")
    pods = f"watch/pods/{kubectl.namespace}"
    with kubectl.cluster.hanging_apiserver():
        until("it is ready although it sees nothing", lambda: fetch(f"{probes}/readyz")[0] == 500)
        until("one watch is silent and not named", lambda: fetch(f"{probes}/readyz/{pods}")[0] == 500)
        assert (
            f"the watch of pods in namespace {kubectl.namespace} has brought nothing for "
            in fetch(f"{probes}/readyz/{pods}")[1]
        )
        assert f"[-]{pods} failed: reason withheld\n" in fetch(f"{probes}/readyz")[1]
        assert fetch(f"{probes}/healthz") == (200, "ok"), "a restart would not help"
        operator.wait_for_log("WARN", "readyz fails: watch/")
    until("it never sees again", lambda: fetch(f"{probes}/readyz") == (200, "ok"))
    operator.wait_for_log("readyz passes again")
