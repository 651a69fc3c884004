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

MODULE = "tests.integration.sample_operator"
LOCK = "a9b2e162.example.com"
RULES = [
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update", "patch"]},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
]

Start = Callable[..., OperatorProcess]


@pytest.fixture
def sample(kubectl: Kubectl) -> Iterator[Start]:
    """Starts such operators by service account in the test's namespace; they end with the test."""
    account = account_with_role(kubectl, RULES)
    with ExitStack() as ends:

        def start(*arguments: str, **variables: str) -> OperatorProcess:
            ports = {"SAMPLE_OPERATOR_HEALTH_PROBE_BIND_ADDRESS": "0", "SAMPLE_OPERATOR_METRICS_BIND_ADDRESS": "0"}
            started = OperatorProcess(
                *("--service-account-dir", str(account), *arguments),
                environment={**kubectl.cluster.in_cluster_environment, **ports, **variables},
                module=MODULE,
            )
            ends.callback(started.kill)
            return started

        yield start


def test_its_name_settings_lock_and_lines_are_its_own_and_its_process_is_lean(kubectl: Kubectl, sample: Start) -> None:
    kubectl("create", "configmap", "green")
    kubectl("label", "configmap", "green", "example.com/sample=yes")
    mark = kubectl.cluster.audit_mark()
    operator = sample("--leader-elect", SAMPLE_OPERATOR_PARTS="5", MEMCACHED_OPERATOR_PARTS="6")
    line = operator.wait_for_log("made 5 parts")
    assert f" INFO  sample {kubectl.namespace}/green: made 5 parts  reconcile=" in line
    assert operator.stop() == 0
    log = operator.log
    assert " operator: sample-operator 1.2.3: " in log
    # Of a module outside the runtime, at info, by its name within its package.
    assert " INFO  controller: making 5 parts, lightly\n" in log
    assert f"leading: Lease {kubectl.namespace}/{LOCK} is held by " in log
    assert "emcached" not in log
    agents = {event.user_agent for event in requests_of(kubectl.cluster, "sample-operator", since=mark)}
    assert agents == {"sample-operator/1.2.3"}


def test_its_settings_may_be_wrong_and_its_messages_are_its_own(sample: Start) -> None:
    operator = sample("--parts", "7")
    assert operator.wait() == 2
    assert operator.lines[0] == "sample-operator: --parts: '7' is not allowed, it must be a whole number from 1 to 6\n"


def test_for_machines_its_lines_are_json(kubectl: Kubectl, sample: Start) -> None:
    operator = sample("--log-format=json").ready()
    assert operator.stop() == 0
    loggers = [json.loads(line)["logger"] for line in operator.lines]
    assert f"{MODULE}.controller" in loggers
