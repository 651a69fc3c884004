"""Pods to which admission gives another image as they are created, and not when they are changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually, until
from tests.integration.rolling import FORMER, NEXT, NOW, Rolling, rolling
from tests.kubectl_in_namespace import Kubectl

pytestmark = [
    pytest.mark.core,
    pytest.mark.cluster("kubernetes"),  # the simulator enforces few policies
    pytest.mark.since("1.36", "mutating admission policies"),
    pytest.mark.usefixtures("operator"),
]

MIRROR = "mirror.example.com/"
RESTART = "cache.example.com/restart"


def _configuration(namespace: str) -> list[dict[str, Any]]:
    api = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": namespace}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    image = "object.spec.containers[0].image"
    patch = f'[JSONPatch{{op: "replace", path: "/spec/containers/0/image", value: "{MIRROR}" + {image}}}]'
    policy = {
        "matchConstraints": {"resourceRules": [rule]},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        "reinvocationPolicy": "Never",
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    binding = {"policyName": namespace, "matchResources": {"namespaceSelector": selector}}
    return [
        {**api, "kind": "MutatingAdmissionPolicy", "spec": policy},
        {**api, "kind": "MutatingAdmissionPolicyBinding", "spec": binding},
    ]


@pytest.fixture
def shop(kubectl: Kubectl) -> Iterator[Rolling]:
    """A Memcached in a namespace where each pod that is created gets its image from a mirror."""
    for each in _configuration(kubectl.namespace):
        kubectl.apply(each)
    probe = ("run", "probe", "--image=none", "--dry-run=server", "--output=jsonpath={.spec.containers[0].image}")
    until("the policy is not in force", lambda: kubectl(*probe).startswith(MIRROR))
    with rolling(kubectl, "shop") as (shop,):
        yield shop
    for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
        kubectl("delete", kind, kubectl.namespace)


def image(shop: Rolling) -> str:
    (container,) = shop.pods()["shop-0"]["spec"]["containers"]
    return str(container["image"])


def test_a_restart_leaves_the_image_of_the_pod_and_another_image_comes_with_another_pod(shop: Rolling) -> None:
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
