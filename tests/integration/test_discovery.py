"""The endpoint of a Memcached as users and strangers meet it: its objects, and what is done when they are changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.integration.conftest import Operators
from tests.integration.named import all_caught_up, change, written
from tests.integration.oracle import complete, condition
from tests.integration.requests import taken
from tests.integration.test_auxiliary_objects import kept, plural
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

ENDPOINT = "shop-discovery"
IMAGE = "registry.example.com/operator:1"
EDITS: dict[str, dict[str, Any]] = {
    "service": {"spec": {"selector": {"app": "another"}}},
    "poddisruptionbudget": {"spec": {"maxUnavailable": 2}},
    "deployment": {"spec": {"replicas": 3, "paused": True, "template": {"spec": {"containers": None}}}},
}
EDITS["deployment"]["spec"]["template"]["spec"]["containers"] = [{"name": "discovery", "image": "other:1"}]


@pytest.fixture(scope="module")
def operator(module_operators: Operators) -> OperatorProcess:
    """It runs in no pod, and is told its image."""
    return module_operators.start("--all-namespaces", "--log-level=debug", f"--operator-image={IMAGE}").ready()


def test_an_endpoint_is_kept_as_it_is_to_be_and_goes_with_its_field(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 2, discovery={"autoDiscovery": {}}, drainPeriodSeconds=120)
    for kind in EDITS:
        kubectl.wait(f"{kind}/{ENDPOINT}", "create")
    all_caught_up(kubectl)
    before = {kind: kubectl.get(kind, ENDPOINT) for kind in EDITS}
    (container,) = before["deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == IMAGE
    version, nodes = kubectl.get("configmap", "shop-servers")["data"]["cluster"].splitlines()
    listed = kubectl.get("memcached", "shop")["status"]["serverList"]
    assert nodes.split() == [f"{host}|{host}|11211" for host in (each.removesuffix(":11211") for each in listed)]
    assert int(version) > 1_700_000_000

    mark = kubectl.cluster.audit_mark()
    for kind, edit in EDITS.items():
        kubectl("patch", kind, ENDPOINT, "--type=merge", "-p", json.dumps(edit))
        eventually(lambda: kept(kubectl.get(kind, ENDPOINT)), lambda now: now == kept(before[kind]), what=str(edit))  # noqa: B023
    all_caught_up(kubectl)
    assert taken(written(kubectl, mark)) == {f"patch {plural(kind)} 200" for kind in EDITS}

    change(kubectl, discovery=None)
    for kind in (*EDITS, "configmap"):
        kubectl.wait(f"{kind}/{'shop-servers' if kind == 'configmap' else ENDPOINT}", "delete")
    all_caught_up(kubectl)
    assert condition(kubectl, "shop", "Degraded")["status"] == "False"
