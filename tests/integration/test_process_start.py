"""How the operator finds its API server and proves who it is, and what it says when the settings are wrong."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.integration.accounts import account_with_role, operator_rules
from tests.integration.conftest import Operators, memcached
from tests.integration.requests import requests_of
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess, logged_in_a_loop
from tests.relays import ConnectProxy

User = dict[str, Any]


def config(
    cluster: Cluster,
    *,
    user: User | None = None,
    context: str = "main",
    namespace: str = "default",
    trust: dict[str, Any] | None = None,
    more: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A kubeconfig with one context; `trust` replaces the certificate authority, `more` is put beside it."""
    authority = {"certificate-authority-data": base64.b64encode(cluster.ca_path.read_bytes()).decode()}
    target = {"server": cluster.server, **(authority if trust is None else trust), **(more or {})}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": context, "cluster": target}],
        "users": [{"name": context, "user": administrator(cluster) if user is None else user}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context, "namespace": namespace}}],
    }


def administrator(cluster: Cluster) -> User:
    """The lab's administrator, by client certificate."""
    user: User = json.loads(cluster.kubeconfig_path.read_text())["users"][0]["user"]
    return user


def write(path: Path, document: object) -> Path:
    """JSON, which is YAML."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


@pytest.mark.cluster("simulator")
def test_a_kubeconfig_of_the_flag_goes_before_the_pods_account_and_that_before_the_one_at_home(
    installed: Cluster, operators: Operators, tmp_path: Path
) -> None:
    write(tmp_path / "home" / ".kube" / "config", config(installed, context="of-home"))
    variables = {**installed.in_cluster_environment, "HOME": str(tmp_path / "home")}
    in_pod = ["-A", f"--service-account-dir={operators.account_dir()}"]
    flagged = [*in_pod, "--kubeconfig", str(write(tmp_path / "flagged", config(installed, context="of-flag")))]
    for flags, chosen in ((flagged, "context of-flag of "), (in_pod, "the pod's service account; ")):
        assert chosen in operators.start_bare(*flags, **variables).ready().lines[0]


def _exec(account: Path, folder: Path) -> User:
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": (account / "token").read_text()}}
    script = folder / "plugin"
    script.write_text(f"#!/bin/sh\ncat {write(folder / 'credential', answer)}\n")
    script.chmod(0o755)
    return {"exec": {"apiVersion": version, "command": str(script), "interactiveMode": "Never"}}


def test_a_token_comes_from_a_plugin(kubectl: Kubectl, operators: Operators, tmp_path: Path) -> None:
    account = account_with_role(kubectl, operator_rules())
    document = config(kubectl.cluster, user=_exec(account, tmp_path), namespace=kubectl.namespace)
    mark = kubectl.cluster.audit_mark()
    path = write(tmp_path / "kubeconfig", document)
    operators.start_with_kubeconfig(path, OPERATOR_NAME=kubectl.namespace).ready()
    users = {each.user for each in requests_of(kubectl.cluster, kubectl.namespace, since=mark)}
    assert users == {f"system:serviceaccount:{kubectl.namespace}:operator"}


@pytest.mark.cluster("simulator")
def test_an_http_proxy_carries_everything(kubectl: Kubectl, operators: Operators, tmp_path: Path) -> None:
    with ConnectProxy() as proxy:
        document = config(
            kubectl.cluster, namespace=kubectl.namespace, more={"proxy-url": f"http://127.0.0.1:{proxy.port}"}
        )
        operator = operators.start_with_kubeconfig(write(tmp_path / "kubeconfig", document)).ready()
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
