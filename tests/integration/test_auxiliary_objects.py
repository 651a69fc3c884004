"""What stands beside the servers, as users and strangers meet it: Service, budget, network policy, published list."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.integration.named import PEERS, all_caught_up, change, names, wait_list, written
from tests.integration.oracle import complete, condition
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

ALL: dict[str, object] = {
    "service": {"portName": "memcached-client"},
    "disruptionBudget": {"maxUnavailable": 1},
    "networkPolicy": {"ingress": [{"from": PEERS}]},
    "discovery": {"configMap": {}},
}
# Of each kind: its name, and changes that somebody makes to it.
KINDS: dict[str, tuple[str, list[dict[str, object]]]] = {
    "service": (
        "shop",
        [
            {
                "metadata": {"labels": {"app": "another"}},
                "spec": {
                    "selector": {"app": "another"},
                    "ports": [{"name": "memcached", "port": 80, "targetPort": 80}],
                    "publishNotReadyAddresses": True,
                },
            },
        ],
    ),
    "poddisruptionbudget": (
        "shop",
        [
            {"spec": {"maxUnavailable": None, "minAvailable": 1}},
            {"spec": {"selector": {"matchLabels": {"app": "another"}}}, "metadata": {"ownerReferences": None}},
        ],
    ),
    "networkpolicy": (
        "shop",
        [
            {"spec": {"ingress": [{}], "podSelector": {"matchLabels": {"more": "yes"}}}},
            {"spec": {"policyTypes": ["Ingress", "Egress"]}},
        ],
    ),
    "configmap": ("shop-servers", [{"data": {"servers": "evil:11211\n", "servers.json": None}}]),
}
WITHOUT: dict[str, object] = {
    "service": {"type": "Disabled"},
    "disruptionBudget": {"maxUnavailable": "100%"},
    "networkPolicy": None,
    "discovery": None,
}


def plural(kind: str) -> str:
    """As the audit log has it."""
    return {"networkpolicy": "networkpolicies"}.get(kind, f"{kind}s")


def kept(live: Mapping[str, Any]) -> tuple[object, ...]:
    """What the operator keeps of an object."""
    metadata = live["metadata"]
    return metadata["labels"], metadata["ownerReferences"], live.get("spec"), live.get("data")


def test_what_somebody_changes_is_put_right_deletes_comes_back_and_what_is_no_longer_asked_for_goes(
    kubectl: Kubectl,
) -> None:
    complete(kubectl, "shop", 0, **ALL)
    all_caught_up(kubectl)
    before = {kind: kubectl.get(kind, name) for kind, (name, _) in KINDS.items()}
    mark = kubectl.cluster.audit_mark()
    for kind, (name, edits) in KINDS.items():
        for edit in edits:
            kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(edit))
            # What its own controller writes in the same moment is heard first: then it is put right a moment later.
            eventually(lambda: kept(kubectl.get(kind, name)), lambda now: now == kept(before[kind]), what=str(edit))  # noqa: B023
    all_caught_up(kubectl)
    for kind, (name, _) in KINDS.items():
        now = kubectl.get(kind, name)
        assert (kept(now), now["metadata"]["uid"]) == (kept(before[kind]), before[kind]["metadata"]["uid"])
    assert taken(written(kubectl, mark)) == {f"patch {plural(kind)} 200" for kind in KINDS}

    mark = kubectl.cluster.audit_mark()
    for kind, (name, _) in KINDS.items():
        kubectl("delete", kind, name)
        kubectl.wait(f"{kind}/{name}", "create")
    change(kubectl, **WITHOUT)
    for kind, (name, _) in KINDS.items():
        kubectl.wait(f"{kind}/{name}", "delete")
    all_caught_up(kubectl)
    desired = {f"{verb} {plural(kind)} {code}" for kind in KINDS for verb, code in (("create", 201), ("delete", 200))}
    assert taken(written(kubectl, mark)) == desired
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
