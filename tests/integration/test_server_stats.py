"""What the servers themselves say, in the status and as metrics: real memcacheds behind the addresses of pods."""

from __future__ import annotations

from tests.integration.conftest import Operators
from tests.integration.oracle import catch_up, condition, wait_condition, writes
from tests.integration.real_servers import OFTEN, RealServer, run_at
from tests.kubectl_in_namespace import Kubectl

STATUS = "memcacheds/status 200"


def test_the_status_says_whether_the_servers_answer_and_nothing_else_is_written_for_it(
    kubectl: Kubectl, operators: Operators
) -> None:
    operators.start("-n", kubectl.namespace, OFTEN).ready()
    with RealServer("-c", "64") as first, RealServer() as second:
        _, pod = run_at(kubectl, first.address, second.address, service={"type": "Disabled"})
        assert wait_condition(kubectl, "shop", "Serving", "Answering")["status"] == "True"
        assert kubectl.get("mcd", "shop")["status"]["version"] == first.version
        since = kubectl.cluster.audit_mark()

        second.freeze()
        stuck = wait_condition(kubectl, "shop", "Serving", "NotAnswering")
        assert stuck["status"] == "False"
        assert stuck["message"] == f"1 of 2 ready servers do not answer: {pod} (no answer within 1 s)."
        assert condition(kubectl, "shop", "Ready")["status"] == "True"
        second.thaw()
        wait_condition(kubectl, "shop", "Serving", "Answering")

        first.saturate()
        full = wait_condition(kubectl, "shop", "Serving", "ConnectionsExhausted")
        assert "1 of 2 servers have reached spec.maxConnections" in full["message"]
        first.release()
        wait_condition(kubectl, "shop", "Serving", "Answering")
        catch_up(kubectl)
        assert set(writes(kubectl, "shop", since)) == {STATUS}
