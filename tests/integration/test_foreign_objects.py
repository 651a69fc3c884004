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
    deployment,
    deployment_writes,
    wait_condition,
)
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
