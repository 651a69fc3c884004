"""What the servers themselves say, in the status and as metrics: real memcacheds behind the addresses of pods."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from operator_runtime.testing.waiting import until
from tests.integration.conftest import Operators
from tests.integration.monitoring import METRICS, Scrape, program, prometheus, url_of
from tests.integration.oracle import catch_up, condition, wait_condition, writes
from tests.integration.real_servers import OFTEN, RealServer, run_at
from tests.integration.test_metrics import job
from tests.kubectl_in_namespace import Kubectl

STATUS = "memcacheds/status 200"


def start(operators: Operators, kubectl: Kubectl) -> str:
    """An operator for the namespace that asks often; where it serves metrics."""
    operator = operators.start("-n", kubectl.namespace, METRICS, OFTEN, OPERATOR_NAME=kubectl.namespace).ready()
    return url_of(operator, "metrics")


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


@pytest.mark.cluster("simulator")
def test_promtool_and_a_real_prometheus_read_what_real_servers_say(
    kubectl: Kubectl, operators: Operators, tmp_path: Path
) -> None:
    metrics = start(operators, kubectl)
    with RealServer("-m", "64", "-c", "100") as first, RealServer() as second:
        pods = run_at(kubectl, first.address, second.address, service={"type": "Disabled"})
        wait_condition(kubectl, "shop", "Serving", "Answering")
        url = f"{metrics}/servers"
        text = Scrape(url).text
        assert text.count("\nmemcached_up{") == 2
        finished = subprocess.run(
            [program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False
        )
        assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
        assert "memcached_up" not in Scrape(metrics).text

        own = {"namespace": kubectl.namespace, "memcached": "shop"}
        with prometheus(tmp_path, job("servers", url, metrics_path="/metrics/servers", honor_labels=True)) as query:
            until("Prometheus does not scrape", lambda: len(query.series("memcached_up == 1")) == 2)
            for expression, value in (
                (f'memcached_max_connections{{pod="{pods[0]}"}}', 100.0),
                (f'memcached_limit_bytes{{pod="{pods[0]}"}}', 64.0 * 2**20),
                (f'memcached_version{{pod="{pods[1]}",version="{second.version}"}}', 1.0),
                (f'memcached_commands_total{{pod="{pods[1]}",command="get",status="hit"}}', 0.0),
            ):
                ((labels, found),) = query.series(expression)
                assert found == value, expression
                assert own.items() <= labels.items(), json.dumps(labels)
            second.freeze()
            until("nobody sees that it is silent", lambda: len(query.series("memcached_up == 0")) == 1)
            until("figures of a silent server are shown", lambda: len(query.series("memcached_current_items")) == 1)
