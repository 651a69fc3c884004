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
from tests.integration.other_client import asked, events_of
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

SELECTOR = {"app": "memcached", "memcached_cr": "shop"}
# Of each kind: how it is asked for, its name, and the changes that somebody makes to it.
KINDS: dict[str, tuple[dict[str, object], str, list[dict[str, object]]]] = {
    "service": (
        {},
        "shop",
        [
            {"metadata": {"labels": {"app": "another"}}},
            {"spec": {"selector": {"app": "another"}}},
            {"spec": {"ports": [{"name": "memcached", "port": 80, "targetPort": 80}]}},
            {"spec": {"publishNotReadyAddresses": True}},
        ],
    ),
    "poddisruptionbudget": (
        {"disruptionBudget": {"maxUnavailable": 1}},
        "shop",
        [
            {"spec": {"maxUnavailable": 0}},
            {"spec": {"maxUnavailable": None, "minAvailable": 1}},
            {"spec": {"selector": {"matchLabels": {"app": "another"}}}},
            {"metadata": {"ownerReferences": None}},
        ],
    ),
    "networkpolicy": (
        {"networkPolicy": {"allowFrom": PEERS}},
        "shop",
        [
            {"spec": {"ingress": [{}]}},
            {"spec": {"policyTypes": ["Ingress", "Egress"]}},
            {"spec": {"podSelector": {"matchLabels": {"more": "yes"}}}},
        ],
    ),
    "configmap": (
        {"publish": "ConfigMap"},
        "shop-servers",
        [{"data": {"servers": "evil:11211\n"}}, {"data": {"servers.json": None}}],
    ),
}
WITHOUT: dict[str, dict[str, object]] = {
    "service": {"service": {"type": "Disabled"}},
    "poddisruptionbudget": {"disruptionBudget": None},
    "networkpolicy": {"networkPolicy": None},
    "configmap": {"publish": None},
}


def notes(kubectl: Kubectl, reason: str) -> list[str]:
    """Of the events about the Memcached named shop that have this reason, oldest first."""
    found = asked(kubectl.cluster, lambda client: events_of(client, kubectl.namespace, "shop"))
    return [each.note for each in found if each.reason == reason]


def plural(kind: str) -> str:
    """As the audit log has it."""
    return {"networkpolicy": "networkpolicies"}.get(kind, f"{kind}s")


def kept(live: Mapping[str, Any]) -> tuple[object, ...]:
    """What the operator keeps of an object."""
    metadata = live["metadata"]
    return metadata["labels"], metadata["ownerReferences"], live.get("spec"), live.get("data")


@pytest.mark.parametrize("kind", KINDS)
def test_what_somebody_changes_of_it_is_put_right_in_its_place(kubectl: Kubectl, kind: str) -> None:
    spec, name, edits = KINDS[kind]
    complete(kubectl, "shop", 0, **spec)
    kubectl.wait(f"{kind}/{name}", "create")
    before = kubectl.get(kind, name)
    for edit in edits:
        mark = kubectl.cluster.audit_mark()
        kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(edit))
        # What its own controller writes in the same moment is heard first: then it is put right a moment later.
        eventually(lambda: kept(kubectl.get(kind, name)), lambda now: now == kept(before), what=str(edit))
        all_caught_up(kubectl)
        assert kept(kubectl.get(kind, name)) == kept(before), edit
        assert taken(written(kubectl, mark)) == {f"patch {plural(kind)} 200"}, edit
    assert kubectl.uid(f"{kind}/{name}") == before["metadata"]["uid"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_made_again_when_it_was_deleted_and_goes_when_it_is_no_longer_asked_for(
    kubectl: Kubectl, kind: str
) -> None:
    spec, name, _ = KINDS[kind]
    complete(kubectl, "shop", 0, **spec)
    kubectl.wait(f"{kind}/{name}", "create")
    before, mark = kubectl.uid(f"{kind}/{name}"), kubectl.cluster.audit_mark()
    kubectl("delete", kind, name)
    kubectl.wait(f"{kind}/{name}", "create")
    assert kubectl.uid(f"{kind}/{name}") != before

    change(kubectl, **WITHOUT[kind])
    kubectl.wait(f"{kind}/{name}", "delete")
    all_caught_up(kubectl)
    assert taken(written(kubectl, mark)) == {f"create {plural(kind)} 201", f"delete {plural(kind)} 200"}
    assert condition(kubectl, "shop", "Degraded")["status"] == "False"


@pytest.mark.parametrize(
    "kind",
    # Of these no cache shows a stranger's, so that its end is looked for after half a minute.
    [pytest.param(kind, marks=pytest.mark.slow) if kind in ("networkpolicy", "configmap") else kind for kind in KINDS],
)
def test_a_strangers_is_left_alone_and_said_while_the_servers_go_on_and_ours_comes_when_it_goes(
    kubectl: Kubectl, kind: str
) -> None:
    spec, name, _ = KINDS[kind]
    theirs = {
        "service": ["create", "service", "clusterip", name, "--tcp=80"],
        "poddisruptionbudget": ["create", "pdb", name, "--selector=app=another", "--min-available=1"],
        "networkpolicy": ["create", "-f", "-"],
        "configmap": ["create", "configmap", name, "--from-literal=servers=theirs"],
    }
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": {"podSelector": {"matchLabels": {"app": "another"}}},
    }
    kubectl(*theirs[kind], input=json.dumps(policy) if kind == "networkpolicy" else None)
    before = kubectl.get(kind, name)
    kubectl.apply(memcached("shop", 1, **spec), create=True)
    degraded = wait_condition(kubectl, "shop", "Degraded", "NotControlled")
    assert f"{before['kind']} named {name} exists and has no owner: it is left alone." in degraded["message"]
    kubectl("scale", "mc/shop", "--replicas=2")
    wait(kubectl, "mc/shop", ".status.replicas", 2)
    assert kubectl.get(kind, name)["metadata"]["uid"] == before["metadata"]["uid"]
    assert kubectl.get(kind, name).get("spec") == before.get("spec")

    kubectl("delete", kind, name)
    # One that bears no label of ours is on no watch: it is looked for again after a while.
    if kind in ("networkpolicy", "configmap"):
        change(kubectl, drainSeconds=1)
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")
    kubectl.wait(f"{kind}/{name}", "create")
    assert kubectl.get(kind, name)["metadata"]["ownerReferences"][0]["uid"] == kubectl.uid("mc/shop")


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


def test_a_services_labels_and_annotations_come_change_and_go(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 0)
    ours = kubectl.get("service", "shop")["metadata"]
    for text in ("one", "two"):
        change(kubectl, service={"labels": {"team": text}, "annotations": {"example.com/note": text}})
        kubectl.wait_field("service/shop", ".metadata.labels.team", text)
        kubectl.wait_field("service/shop", ".metadata.annotations.example\\.com/note", text)
    mark = kubectl.cluster.audit_mark()
    change(kubectl, service=None)
    all_caught_up(kubectl)
    now = kubectl.get("service", "shop")["metadata"]
    assert (now["labels"], now["annotations"]) == (ours["labels"], ours["annotations"])
    assert taken(written(kubectl, mark)) == {"patch services 200"}


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


def test_a_budget_follows_the_size_and_what_is_asked_of_it(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 1)
    all_caught_up(kubectl)
    assert kubectl.names("pdb", "shop", "--ignore-not-found") == []
    for wanted in (0, "25%"):
        change(kubectl, disruptionBudget={"maxUnavailable": wanted})
        kubectl.wait("pdb/shop", "create")
        wait(kubectl, "pdb/shop", ".spec.maxUnavailable", wanted)
    change(kubectl, disruptionBudget={"maxUnavailable": "100%"}, size=2)
    kubectl.wait("pdb/shop", "delete")
    change(kubectl, disruptionBudget=None)
    kubectl.wait("pdb/shop", "create")
    assert kubectl.get("pdb", "shop")["spec"]["maxUnavailable"] == 1


def test_a_network_policy_admits_the_peers_to_the_port_and_nobody_where_there_are_none(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 0, networkPolicy={"allowFrom": PEERS})
    kubectl.wait("networkpolicy/shop", "create")
    spec = kubectl.get("networkpolicy", "shop")["spec"]
    assert spec["podSelector"] == {"matchLabels": SELECTOR}
    (rule,) = spec["ingress"]
    assert rule["ports"] == [{"port": 11211, "protocol": "TCP"}]
    assert rule["from"][: len(PEERS)] == PEERS
    others = rule["from"][len(PEERS) :]

    mark = kubectl.cluster.audit_mark()
    change(kubectl, networkPolicy={"allowFrom": []})
    all_caught_up(kubectl)
    left = kubectl.get("networkpolicy", "shop")["spec"].get("ingress", [])
    assert [each["from"] for each in left] == ([others] if others else [])
    assert taken(written(kubectl, mark)) == {"patch networkpolicies 200"}


def test_the_published_list_is_that_of_the_status(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 2, workload="StatefulSet", publish="ConfigMap")
    for size in (2, 1):
        kubectl("scale", "mc/shop", f"--replicas={size}")
        wait_list(kubectl, *range(size))
        all_caught_up(kubectl)
        assert status(kubectl)["serverList"] == names(kubectl, *range(size))
        data = kubectl.get("configmap", "shop-servers")["data"]
        assert json.loads(data["servers.json"]) == names(kubectl, *range(size))
        assert data["servers"] == "".join(f"{each}\n" for each in names(kubectl, *range(size)))
