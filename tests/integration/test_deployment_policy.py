"""The component deployment-policy: the operator's account writes Memcacheds' workloads, and nobody else's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from operator_runtime.testing.waiting import until
from tests.cluster import Cluster
from tests.conformance import sample_objects
from tests.integration.conftest import ACCOUNT, ACCOUNT_NAMESPACE, MANIFESTS, Operators, memcached
from tests.integration.oracle import catch_up, complete, wait, wait_condition
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.cluster("kubernetes")]  # the simulator has no policies

POLICY = MANIFESTS / "components" / "deployment-policy" / "policy.yaml"
AS_OPERATOR = f"--as=system:serviceaccount:{ACCOUNT_NAMESPACE}:{ACCOUNT}"
REFUSED = (
    "memcached-operator writes only Deployments and StatefulSets whose spec.selector.matchLabels are app=memcached"
)


@pytest.fixture
def policy(installed: Cluster) -> Iterator[None]:
    installed.kubectl("apply", "--server-side", "-f", str(POLICY))
    yield
    installed.kubectl("delete", "-f", str(POLICY))


def refused(kubectl: Kubectl, *words: str, body: str = "") -> bool:
    """Whether the policy refuses this of the operator's account; nothing else may."""
    done = kubectl.run(*words, AS_OPERATOR, input=body or None, check=False)
    assert done.returncode == 0 or REFUSED in done.stderr, done.stderr
    return done.returncode != 0


def of_another(kind: str, name: str) -> dict[str, Any]:
    """Somebody else's Deployment or StatefulSet."""
    make = sample_objects.deployment if kind == "Deployment" else sample_objects.stateful_set
    return make(name, replicas=0)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.usefixtures("policy")
def test_the_operator_does_all_its_work_and_cannot_touch_a_foreign_workload(
    kubectl: Kubectl, operators: Operators, kind: str
) -> None:
    foreign, shop = f"{kind}/stranger", f"{kind}/shop"
    kubectl.apply(of_another(kind, "stranger"), create=True)
    # A policy is in force some time after it was written.
    scale = ("patch", foreign, "--type=merge", "-p", '{"spec":{"replicas":1}}')
    until("the policy is not in force", lambda: refused(kubectl, *scale, "--dry-run=server"))
    labels = '{"metadata":{"labels":{"app":"memcached","memcached_cr":"stranger"}}}'
    assert refused(kubectl, "patch", foreign, "--type=merge", "-p", labels), "labels are no way in"
    assert refused(kubectl, "delete", foreign)
    other = json.dumps(of_another(kind, "other"))
    assert refused(kubectl, "create", "-f", "-", body=other)
    kubectl("create", "-f", "-", input=other)  # of anybody else nothing is asked

    operators.start("-n", kubectl.namespace, "--finalizer").ready()
    complete(kubectl, "shop", 1, workload=kind, drainPeriodSeconds=0)
    kubectl("scale", "mcd/shop", "--replicas=0")
    wait(kubectl, shop, ".spec.replicas", 0)
    kubectl("label", shop, "app-", "memcached_cr-")
    wait(kubectl, shop, ".metadata.labels.app", "memcached")
    kubectl("delete", "mcd/shop", "--timeout=60s")
    until("it is still there", lambda: not kubectl("get", shop, "--ignore-not-found", "-o", "name"))

    kubectl.apply(memcached("stranger", 1, workload=kind), create=True)
    wait_condition(kubectl, "stranger", "Degraded", "NotControlled")
    catch_up(kubectl)
    assert kubectl.get(kind, "stranger")["metadata"]["generation"] == 1
