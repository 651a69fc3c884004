"""A second operator on the runtime: what its users see of the program around it is its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.integration.accounts import account_with_role
from tests.integration.requests import requests_of
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

pytestmark = pytest.mark.cluster("simulator")

MODULE = "tests.integration.kettles"
LOCK = "a9b2e162.example.com"
RULES = [
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update", "patch"]},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
]

Start = Callable[..., OperatorProcess]


@pytest.fixture
def kettle(kubectl: Kubectl) -> Iterator[Start]:
    """Starts such operators by service account in the test's namespace; they end with the test."""
    account = account_with_role(kubectl, RULES)
    with ExitStack() as ends:

        def start(*arguments: str, **variables: str) -> OperatorProcess:
            ports = {"KETTLE_OPERATOR_HEALTH_PROBE_BIND_ADDRESS": "0", "KETTLE_OPERATOR_METRICS_BIND_ADDRESS": "0"}
            started = OperatorProcess(
                *("--service-account-dir", str(account), *arguments),
                environment={**kubectl.cluster.in_cluster_environment, **ports, **variables},
                module=MODULE,
            )
            ends.callback(started.kill)
            return started

        yield start


def test_its_name_settings_lock_and_lines_are_its_own_and_its_process_is_lean(kubectl: Kubectl, kettle: Start) -> None:
    kubectl("create", "configmap", "green")
    kubectl("label", "configmap", "green", "example.com/kettle=yes")
    mark = kubectl.cluster.audit_mark()
    operator = kettle("--leader-elect", KETTLE_OPERATOR_CUPS="5", MEMCACHED_OPERATOR_CUPS="6")
    line = operator.wait_for_log("made 5 cups")
    assert f" INFO  kettle {kubectl.namespace}/green: made 5 cups  reconcile=" in line
    assert operator.stop() == 0
    log = operator.log
    assert " operator: kettle-operator 1.2.3: " in log
    # Of a module outside the runtime, at info, by its name within its package.
    assert " INFO  brewing: making 5 cups, lightly\n" in log
    assert f"leading: Lease {kubectl.namespace}/{LOCK} is held by " in log
    assert "emcached" not in log
    agents = {event.user_agent for event in requests_of(kubectl.cluster, "kettle-operator", since=mark)}
    assert agents == {"kettle-operator/1.2.3"}


def test_its_settings_may_be_wrong_and_its_messages_are_its_own(kettle: Start) -> None:
    operator = kettle("--cups", "7")
    assert operator.wait() == 2
    assert operator.lines[0] == "kettle-operator: --cups: '7' is not allowed, it must be a whole number from 1 to 6\n"


def test_for_machines_its_lines_are_json(kubectl: Kubectl, kettle: Start) -> None:
    operator = kettle("--log-format=json").ready()
    assert operator.stop() == 0
    loggers = [json.loads(line)["logger"] for line in operator.lines]
    assert f"{MODULE}.brewing" in loggers
