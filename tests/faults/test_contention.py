"""Another client rewrites a field of ours in a loop: it is told of and held back, and nobody else has to wait."""

from __future__ import annotations

from typing import Any

import pytest

from operator_runtime.owned.contention import REPAIRS
from operator_runtime.testing.waiting import eventually
from tests.faults.other_managers import OtherManager, assert_at_most_one_a_second, writes_on
from tests.integration.conftest import Operators
from tests.integration.monitoring import METRICS, Scrape, url_of
from tests.integration.oracle import complete, wait
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import logged_at

pytestmark = pytest.mark.cluster("kubernetes")

# Writes that a new size costs at most: of the Deployment, and of a status that follows it in steps.
FOR_A_NEW_SIZE = 4
# Writes from which there is a rate.
ENOUGH = 5
LABEL = "app.kubernetes.io/managed-by"


def contested(kubectl: Kubectl) -> dict[str, dict[str, Any]]:
    """The last event of reason Contested about each Memcached that has one."""
    items = kubectl.get("events.v1.events.k8s.io")["items"]
    return {each["regarding"]["name"]: each for each in items if each["reason"] == "Contested"}


def test_a_label_that_is_rewritten_in_a_loop(kubectl: Kubectl, operators: Operators) -> None:
    operator = operators.start("-n", kubectl.namespace, METRICS, OPERATOR_NAME=kubectl.namespace).ready()
    metrics = url_of(operator, "metrics")
    complete(kubectl, "shop", 0)
    complete(kubectl, "other", 0)

    def rewrite(number: int) -> object:
        return {"metadata": {"labels": {LABEL: f"other-{number}"}}}

    with OtherManager(kubectl, "apps/v1 deployments/shop", "other-controller", rewrite) as other:
        warning = operator.wait_for_log("WARN", f"{kubectl.namespace}/shop: contested: ")
        assert f'"other-controller" keeps changing metadata.labels[{LABEL}] of the Deployment' in warning
        lines = len(operator.lines)
        # Nobody else waits for it, and neither does the user.
        complete(kubectl, "new", 0)
        kubectl("scale", "mcd/shop", "--replicas=2")
        wait(kubectl, "deployment/shop", ".spec.replicas", 2)
        wait(kubectl, "mcd/shop", ".status.replicas", 2)
        assert Scrape(metrics).value("memcached_operator_contested_memcacheds") == 1
        # It is not given up.
        eventually(
            lambda: writes_on(kubectl, "shop", kubectl.namespace, after=logged_at(warning)),
            lambda writes: len(writes) > ENOUGH,
        )
    wait(kubectl, "deployment/shop", f".metadata.labels.{LABEL.replace('.', chr(92) + '.')}", "memcached-operator")
    found = writes_on(kubectl, "shop", kubectl.namespace, after=logged_at(warning))
    assert_at_most_one_a_second(found, besides=FOR_A_NEW_SIZE)
    repaired = {"kind": "Deployment", "field": "metadata.labels"}
    repairs = Scrape(metrics).value("memcached_operator_repairs_total", **repaired)
    assert REPAIRS < repairs <= len(found) + REPAIRS, "it is told of as often as it was done"
    assert other.writes >= repairs

    logged = [line for line in operator.lines[lines:] if f"{kubectl.namespace}/shop" in line]
    assert not [line for line in logged if "updated Deployment" in line and "spec.replicas" not in line], logged
    assert not [line for line in logged if "shop: contested: " in line], "it was said before"
    events = eventually(lambda: contested(kubectl), lambda found: "shop" in found)
    assert events["shop"]["type"] == "Warning"
    assert events["shop"]["note"] in warning
    assert events.keys() == {"shop"}, "nothing is said of the others"
