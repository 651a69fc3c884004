"""Services: addresses, ports, and what changes with the type."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import (
    an,
    created,
    problems,
    refused,
    resource,
    updated,
)

SERVICES = resource("services")
HTTP = [{"port": 80}]


def service(**spec: Any) -> Json:
    return created(SERVICES, an(SERVICES, spec={"ports": HTTP, **spec}))


def changed(old: Json, **spec: Any) -> Json:
    return updated(SERVICES, old, {"spec": {**old["spec"], **spec}})


def wrong(**spec: Any) -> set[str]:
    return refused(SERVICES, spec={"ports": HTTP, **spec})


def test_a_service_gets_an_address_and_defaults() -> None:
    stored = service(publishNotReadyAddresses=False, selector={"a": ""})
    address = stored["spec"]["clusterIP"]
    assert ipaddress.ip_address(address) in ipaddress.ip_network("10.96.0.0/16")
    assert stored["spec"] == {
        "type": "ClusterIP",
        "clusterIP": address,
        "clusterIPs": [address],
        "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
        "selector": {"a": ""},
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    assert stored["status"] == {"loadBalancer": {}}
    assert "generation" not in stored["metadata"]


def test_services_of_other_names_have_other_addresses() -> None:
    addresses = {created(SERVICES, an(SERVICES, f"s{number}", spec={"ports": HTTP}))["spec"]["clusterIP"]
                 for number in range(20)}  # fmt: skip
    assert len(addresses) == 20
    assert "10.96.0.1" not in addresses


def test_a_headless_service_has_no_address() -> None:
    alone = service(clusterIP="None")["spec"]
    assert (alone["clusterIPs"], alone["ipFamilies"], alone["ipFamilyPolicy"]) == (
        ["None"],
        ["IPv4", "IPv6"],
        "RequireDualStack",
    )
    selecting = service(clusterIP="None", selector={"a": "b"})["spec"]
    assert (selecting["ipFamilies"], selecting["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    assert wrong(clusterIP="None", ports=[]) == set()


def test_the_type_brings_its_own_fields() -> None:
    node = service(type="NodePort")["spec"]
    assert node["externalTrafficPolicy"] == "Cluster"
    assert 30000 <= node["ports"][0]["nodePort"] <= 32767
    assert service(type="LoadBalancer")["spec"]["allocateLoadBalancerNodePorts"] is True
    named = created(SERVICES, an(SERVICES, spec={"type": "ExternalName", "externalName": "a.b"}))["spec"]
    assert named == {"type": "ExternalName", "externalName": "a.b", "sessionAffinity": "None"}
    sticky = service(sessionAffinity="ClientIP")["spec"]
    assert sticky["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}


def test_the_address_stays() -> None:
    old = service()
    replaced = updated(SERVICES, old, {"spec": {"ports": [{"port": 81}]}})
    assert replaced["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert changed(old, clusterIP="", clusterIPs=None) == old
    refusal = {'spec.clusterIPs[0]: Invalid value: ["10.96.9.9"]: may not change once set'}
    for change in ({"clusterIP": "10.96.9.9"}, {"clusterIP": "10.96.9.9", "clusterIPs": ["10.96.9.9"]}):
        assert problems(SERVICES, changed(old, **change), old) == refusal
    for change in ({"clusterIP": "None"}, {"clusterIP": "None", "clusterIPs": ["None"]}):
        refusal = {'spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set'}
        assert problems(SERVICES, changed(old, **change), old) == refusal


def test_a_service_without_an_address_gets_none_later() -> None:
    old = service(clusterIP="None", selector={"a": "b"})
    assert changed(old, clusterIP="", clusterIPs=None) == old
    assert problems(SERVICES, changed(old, clusterIP="10.96.9.9"), old) == {
        'spec.clusterIPs[0]: Invalid value: ["10.96.9.9"]: may not change once set'
    }
    why = "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for"
    assert problems(SERVICES, changed(old, type="LoadBalancer"), old) == {f"{why} LoadBalancer services"}


def test_a_name_that_leads_elsewhere_has_no_address() -> None:
    old = service(type="NodePort")
    elsewhere = changed(old, type="ExternalName", externalName="a.b")
    assert problems(SERVICES, elsewhere, old) == set()
    assert set(elsewhere["spec"]) == {"type", "externalName", "ports", "sessionAffinity"}
    assert "nodePort" not in elsewhere["spec"]["ports"][0]
    assert problems(SERVICES, changed(elsewhere, type="ClusterIP"), elsewhere) == set()


def test_node_ports_go_with_their_type() -> None:
    old = service(type="NodePort")
    plain = changed(old, type="ClusterIP")
    assert "nodePort" not in plain["spec"]["ports"][0]
    assert "externalTrafficPolicy" not in plain["spec"]
    assert problems(SERVICES, plain, old) == set()
    assert changed(old, selector={"a": "b"})["spec"]["ports"] == old["spec"]["ports"]


def test_the_status_is_written_by_its_subresource_alone() -> None:
    old, status = service(), {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}
    assert updated(SERVICES, old, {"status": status}) == old
    new = updated(SERVICES, old, {"status": status, "spec": {"ports": []}}, "status")
    assert (new["status"], new["spec"]) == (status, old["spec"])


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ({"ports": []}, ["ports: Required value"]),
        ({"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b", "protocol": "UDP"}]}, []),
        ({"ports": [{"port": 1, "targetPort": "http"}]}, []),
        (
            {"type": "Foo"},
            [
                'type: Unsupported value: "Foo": supported values: "ClusterIP", "ExternalName", '
                '"LoadBalancer", "NodePort"'
            ],
        ),
        ({"clusterIP": "10.96.200.1"}, []),
    ],
)
def test_what_is_wrong_with_a_service_is_said_of_its_field(spec: Json, messages: list[str]) -> None:
    assert wrong(**spec) == {f"spec.{message}" for message in messages}
