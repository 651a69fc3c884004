"""Another client rewrites a field of ours in a loop: it is told of and held back, and nobody else has to wait."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from lab.audit import AuditEvent
from operator_runtime.owned.contention import REPAIRS
from operator_runtime.testing.waiting import eventually
from tests.integration.conftest import Operators
from tests.integration.load import Busy
from tests.integration.monitoring import METRICS, Scrape, url_of
from tests.integration.oracle import complete, wait
from tests.integration.requests import received_at
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import logged_at

pytestmark = pytest.mark.cluster("kubernetes")

# Writes that a new size costs at most: of the Deployment, and of a status that follows it in steps.
FOR_A_NEW_SIZE = 4
# One more than a bound says, for the write that was under way when the count began.
UNDER_WAY = 1
# Writes from which there is a rate.
ENOUGH = 5
LABEL = "app.kubernetes.io/managed-by"
RIVAL = "other-controller"


class Rival(Busy):
    """A thread that writes a label of the Deployment named shop anew as fast as it is answered; a context manager."""

    def __init__(self, kubectl: Kubectl) -> None:
        super().__init__(kubectl, RIVAL)
        self._path = f"/apis/apps/v1/namespaces/{kubectl.namespace}/deployments/shop"
        self.writes = 0

    def turn(self, number: int) -> None:
        """Write once more."""
        self.writes = number + 1
        labels = {LABEL: f"other-{self.writes}"}
        self._api.merge(self._path, {"metadata": {"labels": labels}}, fieldManager=RIVAL).expect(200)


def writes_after(kubectl: Kubectl, after: datetime) -> list[AuditEvent]:
    """What the operator wrote on objects named shop after that time, in order; its events left out."""
    found = [
        event
        for event in kubectl.cluster.audit_events(user_agent=f"{kubectl.namespace}/")
        if (event.namespace, event.name, event.verb) == (kubectl.namespace, "shop", "patch")
        and event.resource in ("deployments", "memcacheds")
        and received_at(event) > after
    ]
    return sorted(found, key=received_at)


def contested(kubectl: Kubectl) -> dict[str, dict[str, Any]]:
    """The last event of reason Contested about each Memcached that has one."""
    items = kubectl.get("events.v1.events.k8s.io")["items"]
    return {each["regarding"]["name"]: each for each in items if each["reason"] == "Contested"}


def test_a_label_that_is_rewritten_in_a_loop(kubectl: Kubectl, operators: Operators) -> None:
    operator = operators.start("-n", kubectl.namespace, METRICS, OPERATOR_NAME=kubectl.namespace).ready()
    metrics = url_of(operator, "metrics")
    complete(kubectl, "shop", 0)
    complete(kubectl, "other", 0)

    with Rival(kubectl) as rival:
        warning = operator.wait_for_log("WARN", f"{kubectl.namespace}/shop: contested: ")
        assert f'"{RIVAL}" keeps changing metadata.labels[{LABEL}] of the Deployment' in warning
        lines = len(operator.lines)
        # Nobody else waits for it, and neither does the user.
        complete(kubectl, "new", 0)
        kubectl("scale", "mcd/shop", "--replicas=2")
        wait(kubectl, "deployment/shop", ".spec.replicas", 2)
        wait(kubectl, "mcd/shop", ".status.replicas", 2)
        assert Scrape(metrics).value("memcached_operator_contested_memcacheds") == 1
        # It is not given up.
        eventually(
            lambda: writes_after(kubectl, logged_at(warning)),
            lambda writes: len(writes) > ENOUGH,
        )
    wait(kubectl, "deployment/shop", f".metadata.labels.{LABEL.replace('.', chr(92) + '.')}", "memcached-operator")
    found = writes_after(kubectl, logged_at(warning))
    lasted_s = (received_at(found[-1]) - received_at(found[0])).total_seconds()
    shown = [(event.received_at, event.resource, event.subresource, event.code) for event in found]
    assert len(found) <= lasted_s + UNDER_WAY + FOR_A_NEW_SIZE, f"at most one a second: {shown}"
    repaired = {"kind": "Deployment", "field": "metadata.labels"}
    repairs = Scrape(metrics).value("memcached_operator_repairs_total", **repaired)
    assert REPAIRS < repairs <= len(found) + REPAIRS, "it is told of as often as it was done"
    assert rival.writes >= repairs

    logged = [line for line in operator.lines[lines:] if f"{kubectl.namespace}/shop" in line]
    assert not [line for line in logged if "updated Deployment" in line and "spec.replicas" not in line], logged
    assert not [line for line in logged if "shop: contested: " in line], "it was said before"
    events = eventually(lambda: contested(kubectl), lambda found: "shop" in found)
    assert events["shop"]["type"] == "Warning"
    assert events["shop"]["note"] in warning
    assert events.keys() == {"shop"}, "nothing is said of the others"
