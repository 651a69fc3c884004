"""Alerts of a real Prometheus that scrapes real operators: they fire when they should, and end."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from operator_runtime.testing.waiting import until
from tests.integration.accounts import LOCK, let_account_elect
from tests.integration.conftest import MANIFESTS, Operators
from tests.integration.monitoring import METRICS, prometheus, url_of
from tests.integration.permissions import another_leads
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

pytestmark = pytest.mark.cluster("simulator")

RULES = MANIFESTS / "components" / "prometheus" / "prometheusrule.yaml"
# Two looks of a Prometheus that looks each second.
SOON = "2s"


def hasty_rules() -> list[dict[str, Any]]:
    """The alerts as users install them, but for how long each waits."""
    groups: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["spec"]["groups"]
    for group in groups:
        for rule in group["rules"]:
            if "for" in rule:
                rule["for"] = SOON
    return groups


def replica(kubectl: Kubectl, operators: Operators, name: str) -> OperatorProcess:
    """One that takes part in the election."""
    election = ("--leader-elect", f"--leader-elect-id={LOCK}", f"--leader-elect-namespace={kubectl.namespace}")
    return operators.start("-n", kubectl.namespace, METRICS, *election, POD_NAME=name).ready()


def test_without_a_leader_an_alert_fires_until_there_is_one_and_another_when_all_are_gone(
    kubectl: Kubectl, operators: Operators, tmp_path: Path
) -> None:
    let_account_elect(kubectl)
    another_leads(kubectl)
    replicas = {name: replica(kubectl, operators, name) for name in ("first", "second")}
    targets = [
        {"targets": [urlsplit(url_of(each, "metrics")).netloc], "labels": {"namespace": kubectl.namespace, "pod": name}}
        for name, each in replicas.items()
    ]
    job = {"job_name": "memcached-operator", "static_configs": targets}
    with prometheus(tmp_path, job, rules=hasty_rules()) as server:
        until(f"no alert fires: {server.firing()}", lambda: "MemcachedOperatorNoLeader" in server.firing())
        firing = server.firing()
        assert firing == {
            "MemcachedOperatorNoLeader": {
                "alertname": "MemcachedOperatorNoLeader",
                "severity": "critical",
                "namespace": kubectl.namespace,
                "name": LOCK,
            }
        }
        # As the runbook has it. A Lease that is deleted is waited for as long as it would have lasted.
        kubectl("patch", "lease", LOCK, "--type=merge", "-p", '{"spec":{"holderIdentity":""}}')
        until("it goes on firing", lambda: not server.firing())
        assert sum(value for _, value in server.series("leader_election_master_status")) == 1
        for each in replicas.values():
            each.kill()
        until("their end is not noticed", lambda: "MemcachedOperatorDown" in server.firing())
