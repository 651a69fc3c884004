"""A Deployment of the same name that somebody else made: never changed, complained of, and replaced when it goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.admission import SlowAdmission
from tests.integration.conftest import memcached
from tests.integration.oracle import (
    catch_up,
    complete,
    condition,
    create_memcached,
    deployment,
    deployment_writes,
    pods_of,
    wait,
    wait_condition,
)
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

# What its own controller writes.
CONTROLLERS = ("resourceVersion", "managedFields")


def stored(kubectl: Kubectl) -> dict[str, Any]:
    """The Deployment named shop without what its own controller writes, and who else wrote."""
    found = kubectl.get("deployment", "shop", "--show-managed-fields")
    meta = found["metadata"]
    managers = {each["manager"] for each in meta["managedFields"]}
    return {
        "metadata": {field: value for field, value in meta.items() if field not in CONTROLLERS},
        "spec": found["spec"],
        "operator wrote": "memcached-operator" in managers,
    }


def at_rest(kubectl: Kubectl) -> dict[str, Any]:
    """`stored`, once its controller is done with it."""
    wait(kubectl, "deployment/shop", '.status.conditions[?(@.type=="Progressing")].reason', "NewReplicaSetAvailable")
    return stored(kubectl)


def test_a_foreign_deployment_is_left_alone_and_complained_of(kubectl: Kubectl) -> None:
    complete(kubectl, "other", 0)
    owners = kubectl.get("deployment", "other")["metadata"]["ownerReferences"]
    kubectl.apply(deployment("shop", ownerReferences=owners), create=True)
    before = at_rest(kubectl)

    kubectl.apply(memcached("shop", 2), create=True)
    degraded = wait_condition(kubectl, "shop", "Degraded", "NotControlled")
    assert degraded["status"] == "True"
    assert "A Deployment named shop exists and belongs to Memcached other: it is not changed." in degraded["message"]
    available = condition(kubectl, "shop", "Available")
    assert (available["status"], available["reason"]) == ("False", "MinimumReplicasUnavailable")
    kubectl("scale", "mcd/shop", "--replicas=3")
    wait(kubectl, "mcd/shop", ".status.observedGeneration", 2)
    catch_up(kubectl)
    assert stored(kubectl) == before
    assert taken(deployment_writes(kubectl, "shop")) == set()


def test_a_foreign_deployment_that_equals_the_desired_one_is_not_seized_and_its_pods_are_not_counted(
    kubectl: Kubectl,
) -> None:
    create_memcached(kubectl, "shop", 1)
    owned = kubectl.get("deployment", "shop")
    kubectl("delete", "mcd/shop")
    kubectl.wait("deployment/shop", "delete")
    kubectl("wait", "pods", "--all", "--for=delete", "--timeout=60s")

    twin = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop", "labels": owned["metadata"]["labels"]},
        "spec": owned["spec"],
    }
    kubectl.apply(twin, create=True)
    wait(kubectl, "deployment/shop", ".status.replicas", 1)
    before, mark = stored(kubectl), kubectl.cluster.audit_mark()
    kubectl.apply(memcached("shop", 1), create=True)
    wait_condition(kubectl, "shop", "Degraded", "NotControlled")
    catch_up(kubectl, pods=True)
    assert stored(kubectl) == before
    assert not before["operator wrote"]
    assert taken(deployment_writes(kubectl, "shop", mark)) == set()
    assert len(pods_of(kubectl, "shop")) == 1
    status = kubectl.get("mcd", "shop")["status"]
    assert (status["nodes"], status["replicas"], status["readyReplicas"]) == ([], 0, 0)


@pytest.mark.cluster("kubernetes")  # the simulator has no webhooks
@pytest.mark.parametrize("equal", [False, True], ids=["another", "an equal one"])
def test_a_foreign_deployment_that_is_created_between_read_and_write_is_left_alone(
    kubectl: Kubectl, tmp_path: Path, equal: bool
) -> None:
    foreign = deployment("shop")
    if equal:
        complete(kubectl, "twin", 0)
        text = kubectl("get", "deployment", "twin", "-o=jsonpath={.spec}").replace("twin", "shop")
        foreign["spec"] = json.loads(text)
    with SlowAdmission(kubectl, "deployments", tmp_path) as slow:
        kubectl.apply(memcached("shop", 0), create=True)
        # The operator has seen that there is none, and its write is on its way.
        slow.wait_for_request("shop")
        kubectl.apply(foreign, create=True)
        before = stored(kubectl)
    wait_condition(kubectl, "shop", "Degraded", "NotControlled")
    catch_up(kubectl)
    after = stored(kubectl)
    assert after["spec"] == before["spec"]
    assert "ownerReferences" not in after["metadata"]
    assert not after["operator wrote"]
    assert set(deployment_writes(kubectl, "shop")) == {"deployments 409"}
