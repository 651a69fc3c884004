"""Policies of the cluster: one that denies what the operator writes, and one that changes the pods of its workloads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually, until
from tests.integration.admission import takes_deployments
from tests.integration.conftest import memcached
from tests.integration.oracle import condition, wait, wait_condition
from tests.integration.rolling import FORMER, NEXT, NOW, Rolling, rolling
from tests.kubectl_in_namespace import Kubectl

pytestmark = [
    pytest.mark.cluster("kubernetes"),  # the simulator enforces few policies
    pytest.mark.usefixtures("operator"),
]

WORDS = "nothing without a cost centre"
MIRROR = "mirror.example.com/"
RESTART = "cache.example.com/restart"


@contextmanager
def policy(kubectl: Kubectl, kind: str, resource: str, *, bound: dict[str, Any], **spec: Any) -> Iterator[None]:
    """A policy for objects of a resource, such as apps/deployments, that are created in the namespace.

    Args:
        bound: what its binding has besides.
        spec: what it has besides.
    """
    identity = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": kubectl.namespace}}
    group, _, plural = resource.rpartition("/")
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [plural]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}}
    binding = {"policyName": kubectl.namespace, "matchResources": {"namespaceSelector": selector}, **bound}
    kubectl.apply(
        {**identity, "kind": kind, "spec": {"matchConstraints": {"resourceRules": [rule]}, **spec}},
        {**identity, "kind": f"{kind}Binding", "spec": binding},
    )
    try:
        yield
    finally:
        for each in (f"{kind}Binding", kind):
            kubectl("delete", each, kubectl.namespace)


def test_a_policy_that_denies_a_deployment_is_named_as_one_and_costs_nothing_else(kubectl: Kubectl) -> None:
    # No reason: it is answered with 422 then.
    denies: dict[str, Any] = {
        "validations": [{"expression": "false", "message": WORDS}],
        "bound": {"validationActions": ["Deny"]},
    }
    with policy(kubectl, "ValidatingAdmissionPolicy", "apps/deployments", **denies):
        until("the policy is not in force", lambda: not takes_deployments(kubectl))
        kubectl.apply(memcached("shop", 1), create=True)
        denied = wait_condition(kubectl, "shop", "Degraded", "DeniedByPolicy")
        assert denied["message"].startswith("A policy denied the Deployment: ")
        assert f"denied request: {WORDS}" in denied["message"]
        assert condition(kubectl, "shop", "Ready")["reason"] == "DeniedByPolicy"
        assert kubectl.names("services,deployments") == ["service/shop"]
    until("the policy is in force", lambda: takes_deployments(kubectl))
    # Nothing tells the operator of it, but a change of the Memcached has it look at once.
    kubectl("scale", "mcd/shop", "--replicas=2")
    wait(kubectl, "mcd/shop", ".status.replicas", 2)
    assert condition(kubectl, "shop", "Degraded")["reason"] == "AsExpected"


@pytest.fixture
def mirrored(kubectl: Kubectl) -> Iterator[Rolling]:
    """A Memcached in a namespace where each pod that is created gets its image from a mirror, and none later."""
    image = "object.spec.containers[0].image"
    patch = f'[JSONPatch{{op: "replace", path: "/spec/containers/0/image", value: "{MIRROR}" + {image}}}]'
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}
    spec = {"mutations": [mutation], "reinvocationPolicy": "Never"}
    probe = ("run", "probe", "--image=none", "--dry-run=server", "--output=jsonpath={.spec.containers[0].image}")
    with policy(kubectl, "MutatingAdmissionPolicy", "pods", bound={}, **spec), rolling(kubectl) as shop:
        until("the policy is not in force", lambda: kubectl(*probe).startswith(MIRROR))
        yield shop


def image(shop: Rolling) -> str:
    (container,) = shop.pods()["shop-0"]["spec"]["containers"]
    return str(container["image"])


@pytest.mark.core
@pytest.mark.since("1.36", "mutating admission policies")
def test_a_restart_leaves_the_image_of_the_pod_and_another_image_comes_with_another_pod(mirrored: Rolling) -> None:
    shop = mirrored
    shop.create(1, image=FORMER, warmRestart=True, rollout={"minReadySeconds": 0})
    assert image(shop) == MIRROR + FORMER
    shop.kubectl("annotate", "mcd/shop", f"{RESTART}=monday")
    eventually(
        lambda: shop.pods()["shop-0"]["metadata"]["annotations"].get(RESTART), lambda text: text == "monday", what="it"
    )
    assert image(shop) == MIRROR + FORMER
    running = {"state": {"running": {}}, "ready": True, "image": "", "imageID": "", "restartCount": 1}
    shop.serve("shop-0", since=NOW)
    shop.set_status("shop-0", containerStatuses=[{"name": "memcached", **running}])
    shop.await_condition("Ready", "AllServersReady")
    assert shop.evicted() == []

    shop.change(image=NEXT)
    assert shop.next() == "shop-0"
    assert image(shop) == MIRROR + NEXT
    note = shop.await_event("RollingChange")
    assert "the image of 1 was replaced when its pod was created" in note
    shop.serve("shop-0", since=NOW)
    shop.await_condition("Ready", "AllServersReady")
