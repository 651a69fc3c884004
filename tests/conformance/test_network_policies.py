"""NetworkPolicies: defaults and rules; what is enforced is a matter of the network, which there is none of here."""

from typing import Any

import pytest

from tests.conformance.api import TABLE, Api, Json, causes
from tests.conformance.sample_objects import path

PODS = {"podSelector": {"matchLabels": {"app": "web"}}}
BLOCK = {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}


def policy(**spec: Any) -> Json:
    identity = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    return {**identity, "metadata": {"name": "web"}, "spec": {**PODS, **spec}}


def test_a_policy_is_stored_with_its_defaults(api: Api, namespace: str) -> None:
    collection, one = path("networkpolicies", namespace), path("networkpolicies", namespace, "web")
    peers = [{"podSelector": {}}, {"namespaceSelector": {}, "podSelector": {"matchLabels": {"a": "b"}}}, BLOCK]
    rules = [{"from": peers, "ports": [{"port": 11211}, {"port": "web", "protocol": "UDP"}]}]
    stored = api.post(collection, policy(ingress=rules)).expect(201)
    ports = [{"port": 11211, "protocol": "TCP"}, {"port": "web", "protocol": "UDP"}]
    assert stored["spec"] == {**PODS, "ingress": [{"from": peers, "ports": ports}], "policyTypes": ["Ingress"]}
    assert stored["metadata"]["generation"] == 1
    assert "status" not in stored

    changed = api.merge(one, {"spec": {"ingress": [{"from": [], "ports": []}]}}).expect(200)
    assert (changed["spec"]["ingress"], changed["metadata"]["generation"]) == ([{}], 2)
    closed = api.merge(one, {"spec": {"ingress": []}}).expect(200)
    assert closed["spec"] == {**PODS, "policyTypes": ["Ingress"]}

    table = api.request("GET", collection, headers={"Accept": TABLE}).expect(200)
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Pod-Selector", "Age"]
    assert table["rows"][0]["cells"][:2] == ["web", "app=web"]


def test_its_types_follow_from_its_rules(api: Api, namespace: str) -> None:
    collection = path("networkpolicies", namespace)
    for given, types in (
        ({"egress": [{"ports": [{"endPort": 90, "port": 80}]}]}, ["Ingress", "Egress"]),
        ({"egress": []}, ["Ingress"]),
        ({"policyTypes": ["Egress"]}, ["Egress"]),
    ):
        assert api.post(collection, policy(**given), dryRun="All").expect(201)["spec"]["policyTypes"] == types
    everything = policy()
    everything["spec"]["podSelector"] = {}
    assert api.post(collection, everything, dryRun="All").expect(201)["spec"]["podSelector"] == {}


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
@pytest.mark.parametrize(
    ("rule", "reason", "field", "why"),
    [
        ({"ports": [{"port": 0}]}, "Invalid", "ports[0].port", "must be between 1 and 65535, inclusive"),
        ({"ports": [{"port": "A_"}]}, "Invalid", "ports[0].port", "must contain only alpha-numeric characters"),
        ({"ports": [{"protocol": "X"}]}, "NotSupported", "ports[0].protocol", '"TCP", "UDP", "SCTP"'),
        ({"ports": [{"endPort": 5}]}, "Invalid", "ports[0].endPort", "may not be specified when `port` is not"),
        ({"ports": [{"port": "a", "endPort": 5}]}, "Invalid", "ports[0].endPort", "when `port` is non-numeric"),
        ({"ports": [{"port": 9, "endPort": 5}]}, "Invalid", "ports[0].endPort", "Invalid value: 9: must be greater"),
        ({"from": [{}]}, "Required", "from[0]", "must specify a peer"),
        ({"from": [{"podSelector": {}, **BLOCK}]}, "Forbidden", "from[0]", "may not specify both ipBlock and another"),
        (
            {"from": [{"podSelector": {"matchLabels": {"a!": ""}}}]},
            "Invalid",
            "from[0].podSelector.matchLabels",
            "name",
        ),
        ({"from": [{"ipBlock": {"cidr": ""}}]}, "Required", "from[0].ipBlock.cidr", "Required value"),
        (
            {"from": [{"ipBlock": {"cidr": "10.0.0.0"}}]},
            "Invalid",
            "from[0].ipBlock.cidr",
            "must be a valid CIDR value",
        ),
        (
            {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}}]},
            *("Invalid", "from[0].ipBlock.except[0]", "must be a strict subset of `cidr`"),
        ),
    ],
)
def test_one_that_cannot_be_is_422(api: Api, namespace: str, rule: Json, reason: str, field: str, why: str) -> None:
    refused = api.post(path("networkpolicies", namespace), policy(ingress=[rule])).expect(422, "Invalid")
    assert causes(refused) == {(f"FieldValue{reason}", f"spec.ingress[0].{field}")}
    assert why in refused["message"]


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
def test_types_that_cannot_be_are_422(api: Api, namespace: str) -> None:
    collection = path("networkpolicies", namespace)
    refused = api.post(collection, policy(policyTypes=["No"])).expect(422, "Invalid")
    assert causes(refused) == {("FieldValueNotSupported", "spec.policyTypes[0]")}
    refused = api.post(collection, policy(policyTypes=["Ingress", "Egress", "Ingress"])).expect(422, "Invalid")
    assert causes(refused) == {("FieldValueInvalid", "spec.policyTypes")}
