"""What stands beside the servers, as users and strangers meet it: Service, budget, network policy, published list."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.integration.conftest import Operators
from tests.integration.named import PEERS, all_caught_up, change, names, wait_list, written
from tests.integration.oracle import complete, condition
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

IMAGE = "registry.example.com/operator:1"
ENDPOINT = "shop-discovery"
ALL: dict[str, object] = {
    "service": {"portName": "memcached-client"},
    "disruptionBudget": {"maxUnavailable": 1},
    "networkPolicy": {"ingress": [{"from": PEERS}]},
    "discovery": {"autoDiscovery": {}},
    "drainPeriodSeconds": 120,
}
OTHER_SERVICE: dict[str, object] = {
    "metadata": {"labels": {"app": "another"}},
    "spec": {
        "selector": {"app": "another"},
        "ports": [{"name": "memcached", "port": 80, "targetPort": 80}],
        "publishNotReadyAddresses": True,
    },
}
OTHER_PODS = {"spec": {"containers": [{"name": "discovery", "image": "other:1"}]}}
# Of each object, by kind and name: changes that somebody makes to it.
EDITS: dict[tuple[str, str], list[dict[str, object]]] = {
    ("service", "shop"): [OTHER_SERVICE],
    ("poddisruptionbudget", "shop"): [
        {"spec": {"maxUnavailable": None, "minAvailable": 1}},
        {"spec": {"selector": {"matchLabels": {"app": "another"}}}, "metadata": {"ownerReferences": None}},
    ],
    ("networkpolicy", "shop"): [
        {"spec": {"ingress": [{}], "podSelector": {"matchLabels": {"more": "yes"}}}},
        {"spec": {"policyTypes": ["Ingress", "Egress"]}},
    ],
    ("configmap", "shop-servers"): [{"data": {"servers": "evil:11211\n", "servers.json": None}}],
    ("service", ENDPOINT): [{"spec": {"selector": {"app": "another"}}}],
    ("poddisruptionbudget", ENDPOINT): [{"spec": {"maxUnavailable": 2}}],
    ("deployment", ENDPOINT): [{"spec": {"replicas": 3, "paused": True, "template": OTHER_PODS}}],
}
WITHOUT: dict[str, object] = {
    "service": {"type": "Disabled"},
    "disruptionBudget": {"maxUnavailable": "100%"},
    "networkPolicy": None,
    "discovery": None,
}


@pytest.fixture(scope="module")
def operator(module_operators: Operators) -> OperatorProcess:
    """It runs in no pod, and is told its image."""
    return module_operators.start("--all-namespaces", "--log-level=debug", f"--operator-image={IMAGE}").ready()


def plural(kind: str) -> str:
    """As the audit log has it."""
    return {"networkpolicy": "networkpolicies"}.get(kind, f"{kind}s")


def kept(live: Mapping[str, Any]) -> tuple[object, ...]:
    """What the operator keeps of an object."""
    metadata, data = live["metadata"], dict(live.get("data", {}))
    if "cluster" in data:  # after a version, which grows with each change
        data["cluster"] = data["cluster"].partition("\n")[2]
    return metadata["labels"], metadata["ownerReferences"], live.get("spec"), data


def test_what_somebody_changes_is_put_right_deletes_comes_back_and_what_is_no_longer_asked_for_goes(
    kubectl: Kubectl,
) -> None:
    complete(kubectl, "shop", 2, **ALL)
    for kind, name in EDITS:
        kubectl.wait(f"{kind}/{name}", "create")
    all_caught_up(kubectl)
    before = {each: kubectl.get(*each) for each in EDITS}
    (container,) = before["deployment", ENDPOINT]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == IMAGE
    mark = kubectl.cluster.audit_mark()
    for each, edits in EDITS.items():
        for edit in edits:
            kubectl("patch", *each, "--type=merge", "-p", json.dumps(edit))
            # What its own controller writes in the same moment is heard first: then it is put right a moment later.
            eventually(lambda: kept(kubectl.get(*each)), lambda now: now == kept(before[each]), what=str(edit))  # noqa: B023
    all_caught_up(kubectl)
    for each in EDITS:
        now = kubectl.get(*each)
        assert (kept(now), now["metadata"]["uid"]) == (kept(before[each]), before[each]["metadata"]["uid"])
    assert taken(written(kubectl, mark)) == {f"patch {plural(kind)} 200" for kind, _ in EDITS}

    mark = kubectl.cluster.audit_mark()
    for each in EDITS:
        kubectl("delete", *each)
        kubectl.wait("/".join(each), "create")
    change(kubectl, **WITHOUT)
    for each in EDITS:
        kubectl.wait("/".join(each), "delete")
    all_caught_up(kubectl)
    verbs = (("create", 201), ("delete", 200))
    assert taken(written(kubectl, mark)) == {
        f"{verb} {plural(kind)} {code}" for kind, _ in EDITS for verb, code in verbs
    }
    assert condition(kubectl, "shop", "Degraded")["status"] == "False"


def test_an_immutable_list_stays_while_it_is_right_and_makes_way_for_the_next(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 2, workload="StatefulSet", discovery={"configMap": {}})
    kubectl.wait("configmap/shop-servers", "create")
    kubectl("patch", "configmap/shop-servers", "--type=merge", "-p", '{"immutable":true}')
    kept = kubectl.get("configmap", "shop-servers")["metadata"]
    all_caught_up(kubectl)
    assert kubectl.get("configmap", "shop-servers")["metadata"]["uid"] == kept["uid"]
    kubectl("scale", "mcd/shop", "--replicas=1")
    wait_list(kubectl, 0)
    kubectl.wait("configmap/shop-servers", "create")
    eventually(
        lambda: kubectl.get("configmap", "shop-servers")["data"]["servers.json"],
        lambda found: json.loads(found) == names(kubectl, 0),
        what="the list without the other",
    )
    assert "immutable" not in kubectl.get("configmap", "shop-servers")
