"""The published list where somebody has made it such that nobody can change it."""

from __future__ import annotations

import json

import pytest

from operator_runtime.testing.waiting import eventually
from tests.integration.named import all_caught_up, names, wait_list
from tests.integration.oracle import complete
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.cluster("kubernetes"), pytest.mark.usefixtures("operator")]

LIST = "configmap/shop-servers"


def listed(kubectl: Kubectl) -> list[str]:
    found: list[str] = json.loads(kubectl.get("configmap", "shop-servers")["data"]["servers.json"])
    return found


def test_an_immutable_list_stays_while_it_is_right_and_makes_way_for_the_next(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 2, workload="StatefulSet", publish="ConfigMap")
    kubectl.wait(LIST, "create")
    kubectl("patch", LIST, "--type=merge", "-p", '{"immutable":true}')
    kept = kubectl.get("configmap", "shop-servers")["metadata"]
    all_caught_up(kubectl)
    assert kubectl.get("configmap", "shop-servers")["metadata"]["uid"] == kept["uid"]
    kubectl("scale", "mc/shop", "--replicas=1")
    wait_list(kubectl, 0)
    kubectl.wait(LIST, "create")
    eventually(lambda: listed(kubectl), lambda found: found == names(kubectl, 0), what="the list without the other")
    assert "immutable" not in kubectl.get("configmap", "shop-servers")
