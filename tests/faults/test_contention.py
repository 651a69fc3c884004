"""Another client rewrites a field of ours in a loop: it is told of and held back, and nobody else has to wait."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lab.audit import AuditEvent
from operator_runtime.owned.contention import REPAIRS
from operator_runtime.testing.waiting import eventually, until
from tests.faults.other_managers import OtherManager, assert_at_most_one_a_second, writes_on
from tests.integration.conftest import Operators, memcached
from tests.integration.monitoring import METRICS, Scrape, url_of
from tests.integration.oracle import complete, wait, wait_condition
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess, logged_at

pytestmark = pytest.mark.cluster("kubernetes")

# Writes that a new size costs at most: of the Deployment, and of a status that follows it in steps.
FOR_A_NEW_SIZE = 4
LABEL = "app.kubernetes.io/managed-by"


def start(operators: Operators, kubectl: Kubectl, *arguments: str, name: str = "") -> OperatorProcess:
    """An operator for the namespace, by default of its name."""
    return operators.start(
        "-n", kubectl.namespace, METRICS, *arguments, OPERATOR_NAME=name or kubectl.namespace
    ).ready()


def contested(kubectl: Kubectl) -> dict[str, dict[str, Any]]:
    """The last event of reason Contested about each Memcached that has one."""
    items = kubectl.get("events.v1.events.k8s.io")["items"]
    return {each["regarding"]["name"]: each for each in items if each["reason"] == "Contested"}


def is_contested(writes: Sequence[AuditEvent]) -> bool:
    """Whether there were enough writes for a rate."""
    return len(writes) > 5


def repaired(metrics: str, field: str) -> float:
    return Scrape(metrics).value("memcached_operator_repairs_total", kind="Deployment", field=field)


def test_a_label_that_is_rewritten_in_a_loop(kubectl: Kubectl, operators: Operators) -> None:
    operator = start(operators, kubectl)
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
        kubectl("scale", "mc/shop", "--replicas=2")
        wait(kubectl, "deployment/shop", ".spec.replicas", 2)
        wait(kubectl, "mc/shop", ".status.replicas", 2)
        assert Scrape(metrics).value("memcached_operator_contested_memcacheds") == 1
        # It is not given up.
        eventually(lambda: writes_on(kubectl, "shop", kubectl.namespace, after=logged_at(warning)), is_contested)
    wait(kubectl, "deployment/shop", f".metadata.labels.{LABEL.replace('.', chr(92) + '.')}", "memcached-operator")
    found = writes_on(kubectl, "shop", kubectl.namespace, after=logged_at(warning))
    assert_at_most_one_a_second(found, besides=FOR_A_NEW_SIZE)
    repairs = repaired(metrics, "metadata.labels")
    assert REPAIRS < repairs <= len(found) + REPAIRS, "it is told of as often as it was done"
    assert other.writes >= repairs

    said = [line for line in operator.lines[lines:] if f"{kubectl.namespace}/shop" in line]
    assert not [line for line in said if "updated Deployment" in line and "spec.replicas" not in line], said
    assert not [line for line in said if "shop: contested: " in line], "it was said before"
    events = eventually(lambda: contested(kubectl), lambda found: "shop" in found)
    assert events["shop"]["type"] == "Warning"
    assert events["shop"]["note"] in warning
    assert events.keys() == {"shop"}, "nothing is said of the others"


def test_a_status_that_is_rewritten_in_a_loop(kubectl: Kubectl, operators: Operators) -> None:
    operator = start(operators, kubectl)
    complete(kubectl, "shop", 0)

    def rewrite(number: int) -> object:
        return {"status": {"selector": f"other={number}"}}

    with OtherManager(kubectl, "cache.example.com/v1alpha1 memcacheds/shop/status", "other-operator", rewrite):
        warning = operator.wait_for_log("WARN", f"{kubectl.namespace}/shop: contested: ")
        assert '"other-operator" keeps changing status.selector of the Memcached' in warning
        eventually(lambda: writes_on(kubectl, "shop", kubectl.namespace, after=logged_at(warning)), is_contested)
        kubectl("scale", "mc/shop", "--replicas=1")
        wait(kubectl, "deployment/shop", ".spec.replicas", 1)
    wait(kubectl, "mc/shop", ".status.replicas", 1)
    # The last repair is held back, too. (kubectl's wait takes no value with a `=` in it.)
    selector = "app=memcached,memcached_cr=shop"
    eventually(lambda: kubectl.get("mc/shop")["status"]["selector"], lambda found: found == selector)
    found = writes_on(kubectl, "shop", kubectl.namespace, after=logged_at(warning))
    assert_at_most_one_a_second(found, besides=FOR_A_NEW_SIZE)


def test_two_operators_that_want_different_things_name_each_other(kubectl: Kubectl, operators: Operators) -> None:
    kubectl.apply(memcached("shop", 0), create=True)
    names = (f"{kubectl.namespace}-a", f"{kubectl.namespace}-b")
    both = [start(operators, kubectl, f"--memcached-image=memcached:{name[-1]}", name=name) for name in names]
    image = "spec.template.spec.containers[memcached].image"
    warnings = [operator.wait_for_log("WARN", "contested: ", " keeps changing ", image) for operator in both]
    for warning in warnings:
        assert 'calls itself "memcached-operator" (does a second operator run?)' in warning
    since = max(map(logged_at, warnings))

    until(
        "one of them gave up",
        lambda: all(is_contested(writes_on(kubectl, "shop", name, after=since)) for name in names),
    )
    for name in names:
        assert_at_most_one_a_second(writes_on(kubectl, "shop", name, after=since))
    # One of them goes, and the other has its way.
    both[0].stop()
    wait(kubectl, "deployment/shop", ".spec.template.spec.containers[0].image", "memcached:b")
    wait_condition(kubectl, "shop", "Progressing", "Complete")
    assert json.loads(kubectl("get", "deployment/shop", "-o=json"))["spec"]["replicas"] == 0
