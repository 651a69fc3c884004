"""NetworkPolicies: defaults and rules; what is enforced is a matter of the network, which there is none of here."""

from typing import Any

from tests.conformance.api import Api, Json
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
