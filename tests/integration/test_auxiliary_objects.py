"""What stands beside the servers, as users and strangers meet it: Service, budget, network policy, published list."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.integration.conftest import memcached
from tests.integration.named import PEERS, all_caught_up, change, names, status, wait_list, written
from tests.integration.oracle import complete, condition, wait, wait_condition
from tests.integration.other_client import called, events_of
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

SELECTOR = {"app": "memcached", "memcached_cr": "shop"}
ALL: dict[str, object] = {
    "service": {"portName": "memcached-client"},
    "disruptionBudget": {"maxUnavailable": 1},
    "networkPolicy": {"ingress": [{"from": PEERS}]},
    "publish": "ConfigMap",
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
    "publish": None,
}


def notes(kubectl: Kubectl, reason: str) -> list[str]:
    """Of the events about the Memcached named shop that have this reason, oldest first."""
    found = called(kubectl.cluster, lambda client: events_of(client, kubectl.namespace, "shop"))
    return [each.note for each in found if each.reason == reason]


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


POLICY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "shop"},
    "spec": {"podSelector": {"matchLabels": {"app": "another"}}},
}
THEIRS = {
    "service": ["create", "service", "clusterip", "shop", "--tcp=80"],
    "poddisruptionbudget": ["create", "pdb", "shop", "--selector=app=another", "--min-available=1"],
    "networkpolicy": ["create", "-f", "-"],
    "configmap": ["create", "configmap", "shop-servers", "--from-literal=servers=theirs"],
}


@pytest.mark.parametrize(
    "kinds",
    # Of the latter no cache shows a stranger's, so that its end is looked for after half a minute.
    [
        ("service", "poddisruptionbudget"),
        pytest.param(("networkpolicy", "configmap"), marks=pytest.mark.slow),
    ],
    ids=" and ".join,
)
def test_a_foreign_object_is_left_alone_and_reported_and_the_own_one_comes_when_it_goes(
    kubectl: Kubectl, kinds: tuple[str, ...]
) -> None:
    for kind in kinds:
        kubectl(*THEIRS[kind], input=json.dumps(POLICY) if kind == "networkpolicy" else None)
    before = {kind: kubectl.get(kind, KINDS[kind][0]) for kind in kinds}
    kubectl.apply(memcached("shop", 1, **ALL), create=True)
    wait_condition(kubectl, "shop", "Degraded", "NotControlled")
    reported = [
        f"{before[kind]['kind']} named {KINDS[kind][0]} exists and has no owner: it is not changed." for kind in kinds
    ]
    eventually(
        lambda: condition(kubectl, "shop", "Degraded")["message"],
        lambda message: all(each in message for each in reported),
        what=f"{reported} in the message",
    )
    kubectl("scale", "mcd/shop", "--replicas=2")
    wait(kubectl, "mcd/shop", ".status.replicas", 2)
    for kind in kinds:
        now = kubectl.get(kind, KINDS[kind][0])
        assert (now["metadata"]["uid"], now.get("spec")) == (before[kind]["metadata"]["uid"], before[kind].get("spec"))

    for kind in kinds:
        kubectl("delete", kind, KINDS[kind][0])
    # One that bears no label of ours is on no watch: it is looked for again after a while.
    change(kubectl, drainPeriodSeconds=1)
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")
    for kind in kinds:
        kubectl.wait(f"{kind}/{KINDS[kind][0]}", "create")
        assert kubectl.get(kind, KINDS[kind][0])["metadata"]["ownerReferences"][0]["uid"] == kubectl.uid("mcd/shop")


def test_a_service_gets_an_address_and_loses_it_by_being_replaced(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 1)
    assert kubectl.get("service", "shop")["spec"]["clusterIP"] == "None"
    for type_, has_address in (("ClusterIP", True), ("Headless", False)):
        before, mark = kubectl.uid("service/shop"), kubectl.cluster.audit_mark()
        change(kubectl, service={"type": type_})
        all_caught_up(kubectl)
        spec = kubectl.get("service", "shop")["spec"]
        assert (spec["clusterIP"] != "None") is has_address
        assert spec["selector"] == SELECTOR
        assert kubectl.uid("service/shop") != before
        assert taken(written(kubectl, mark)) == {"delete services 200", "create services 201"}
    assert [note.partition(":")[0] for note in notes(kubectl, "Replaced")] == ["Replaced Service shop"] * 2
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")


def test_a_budget_makes_way_for_somebody_elses_and_comes_back_when_that_goes(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 2)
    budget = kubectl.get("pdb", "shop")["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    assert budget["selector"] == {"matchLabels": SELECTOR}

    kubectl("create", "pdb", "theirs", "--selector=app=memcached", "--min-available=1")
    kubectl.wait("pdb/shop", "delete")
    degraded = wait_condition(kubectl, "shop", "Degraded", "ConflictingDisruptionBudget")
    assert "The PodDisruptionBudget theirs also selects the pods of shop." in degraded["message"]
    assert condition(kubectl, "shop", "Available")["status"] == "True"
    ready = condition(kubectl, "shop", "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ConflictingDisruptionBudget")

    kubectl("delete", "pdb", "theirs")
    kubectl.wait("pdb/shop", "create")
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")


def test_the_published_list_is_that_of_the_status(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 2, workload="StatefulSet", publish="ConfigMap")
    for size in (2, 1):
        kubectl("scale", "mcd/shop", f"--replicas={size}")
        wait_list(kubectl, *range(size))
        all_caught_up(kubectl)
        assert status(kubectl)["serverList"] == names(kubectl, *range(size))
        data = kubectl.get("configmap", "shop-servers")["data"]
        assert json.loads(data["servers.json"]) == names(kubectl, *range(size))
        assert data["servers"] == "".join(f"{each}\n" for each in names(kubectl, *range(size)))


def test_an_immutable_list_stays_while_it_is_right_and_makes_way_for_the_next(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 2, workload="StatefulSet", publish="ConfigMap")
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
