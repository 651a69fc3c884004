"""What an operator on call reads: one line for each thing that was done, in text and in JSON, and no secret."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.integration.accounts import account_with_role, operator_rules
from tests.integration.conftest import Operators
from tests.integration.oracle import create_memcached, make_ready, pods_of, wait, wait_condition
from tests.integration.requests import writes_of, written
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.cluster("simulator")

TEXT_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO |WARN |ERROR|FATAL) \S.*: \S.*\n")
RECONCILE_ID = re.compile(r"  reconcile=[0-9a-f]{6}-\d+\n$")


def test_each_write_is_one_line_that_names_the_object_what_was_done_and_why(
    kubectl: Kubectl, operators: Operators
) -> None:
    namespace = kubectl.namespace
    operator = operators.start("-n", namespace, OPERATOR_NAME=namespace).ready()
    began, mark = len(operator.lines), kubectl.cluster.audit_mark()
    create_memcached(kubectl, "cache", 2)
    make_ready(kubectl, pods_of(kubectl, "cache"))
    wait_condition(kubectl, "cache", "Progressing", "Complete")
    kubectl("scale", "mcd/cache", "--replicas=1")
    wait(kubectl, "mcd/cache", ".status.replicas", 1)
    kubectl("scale", "deployment/cache", "--replicas=3")
    operator.wait_for_log("scaled Deployment", "from 3 to 1")
    kubectl("set", "image", "deployment/cache", "memcached=memcached:0")
    operator.wait_for_log("updated Deployment")
    kubectl("delete", "deployment/cache")
    operator.wait_for_log("it did not exist")

    lines = operator.lines[began:]
    assert all(TEXT_LINE.fullmatch(line) for line in operator.lines), operator.log
    assert all(f"memcached {namespace}/cache: " in line and RECONCILE_ID.search(line) for line in lines), operator.log
    rest = iter(lines)
    for what in (
        "created Deployment with 2 replicas (new Memcached)",
        "created Service (new Memcached)",
        "created PodDisruptionBudget (new Memcached)",
        "scaled Deployment from 2 to 1 replicas (spec.size changed)",
        "deleted PodDisruptionBudget: no longer desired",
        "scaled Deployment from 3 to 1 replicas (another client had changed them)",
        "updated Deployment: ",
        "created Deployment with 1 replicas (it did not exist)",
    ):
        assert any(what in line for line in rest), f"{what}, in its turn in\n{operator.log}"
    updated = operator.wait_for_log("updated Deployment: ")
    assert "memcached:0" in updated, "what it was"
    assert "memcached:1.6" in updated, "what it is now"
    new = [line for line in lines if "(new Memcached)" in line]
    assert len({match[0] for line in new if (match := RECONCILE_ID.search(line))}) == 1, "one reconcile has one id"
    done = [each for each in writes_of(kubectl.cluster, namespace, since=mark) if each.code in (200, 201)]
    assert {write for write in written(done) if "memcacheds/status" not in write} == {
        "create deployments cache",
        "create services cache",
        "create poddisruptionbudgets cache",
        "patch deployments cache",
        "delete poddisruptionbudgets cache",
    }, "no write without a line, no line without a write"


def test_no_credential_is_logged_at_any_level_also_when_it_is_refused(
    kubectl: Kubectl, operators: Operators, tmp_path: Path
) -> None:
    folder = account_with_role(kubectl, operator_rules())
    good = (folder / "token").read_text()
    users: dict[str, dict[str, object]] = {
        "good": {"token": good},
        "refused": {"token": "not-a-token-of-this-cluster"},
        "password": {"username": "admin", "password": "hunter2-and-more"},
    }
    secrets = [good, "not-a-token-of-this-cluster", "hunter2-and-more", _basic("admin", "hunter2-and-more")]
    started = {
        name: operators.start_with_kubeconfig(
            _kubeconfig(kubectl.cluster, tmp_path / name, kubectl.namespace, user), "--log-level=debug"
        )
        for name, user in users.items()
    }
    started["good"].ready()
    create_memcached(kubectl, "cache", 1)
    started["refused"].wait_for_log("cannot watch pods", "401 Unauthorized", "Give the operator a credential")
    # Kubernetes knows no passwords, and takes their bearer for a stranger.
    started["password"].wait_for_log("cannot watch pods", "403 Forbidden", "The request carried no credential")
    for name, operator in started.items():
        assert operator.stop() == 0
        assert [secret for secret in secrets if secret in operator.log] == [], name


def _basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


def _kubeconfig(cluster: Cluster, path: Path, namespace: str, user: dict[str, object]) -> Path:
    document = json.loads(cluster.kubeconfig_path.read_text())
    document["users"][0]["user"] = user
    document["contexts"][0]["context"]["namespace"] = namespace
    path.write_text(json.dumps(document))
    return path
