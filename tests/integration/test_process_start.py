"""How the operator finds its API server: by an HTTP proxy, and before there is one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.conftest import Operators, memcached
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess, logged_in_a_loop
from tests.relays import ConnectProxy


@pytest.mark.cluster("simulator")
def test_an_http_proxy_carries_everything(kubectl: Kubectl, operators: Operators, tmp_path: Path) -> None:
    document = json.loads(kubectl.cluster.kubeconfig_path.read_text())
    document["contexts"][0]["context"]["namespace"] = kubectl.namespace
    path = tmp_path / "kubeconfig"
    with ConnectProxy() as proxy:
        document["clusters"][0]["cluster"]["proxy-url"] = f"http://127.0.0.1:{proxy.port}"
        path.write_text(json.dumps(document))
        operator = operators.start_with_kubeconfig(path).ready()
        kubectl.apply(memcached("far", 1))
        kubectl.wait_field("mcd/far", ".status.replicas", 1)
        assert operator.stop() == 0
    assert set(proxy.tunnels) == {kubectl.cluster.server.removeprefix("https://")}
    assert len(proxy.tunnels) >= len(["memcacheds", "deployments", "pods", "writes"])


def test_started_before_its_api_server_it_says_so_once_for_each_watch_and_works_when_the_server_comes(
    kubectl: Kubectl, operators: Operators
) -> None:
    account = operators.account_dir()
    kubectl.cluster.kill_apiserver()
    try:
        operator = operators.start("-n", kubectl.namespace, account_dir=account)
        for kind in ("memcacheds", "deployments", "pods"):
            operator.wait_for_log(f"cannot watch {kind}", "Check that the API server runs and is reachable")
    finally:
        kubectl.cluster.start_apiserver()
    operator.ready()
    kubectl.apply(memcached("patient", 1))
    kubectl.wait_field("mcd/patient", ".status.replicas", 1)
    for kind, lines in _complaints(operator, "connection refused").items():
        assert lines != [], kind
        assert logged_in_a_loop(lines) == [], kind


def _complaints(operator: OperatorProcess, text: str) -> dict[str, list[str]]:
    """What each watch said of that reason for which it cannot work."""
    lines = [line for line in operator.lines if text in line]
    return {
        kind: [line for line in lines if f"cannot watch {kind}" in line]
        for kind in ("memcacheds", "deployments", "pods")
    }
