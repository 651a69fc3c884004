"""Services with and without an address, what of them lasts, and the pods that stand behind them."""

from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json, causes
from tests.conformance.sample_objects import path, service

OF_AN_ADDRESS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")


def create(api: Api, namespace: str, **spec: Any) -> Json:
    return api.post(path("services", namespace), service("web", **spec)).expect(201)


def test_a_headless_service_is_stored_with_its_defaults(api: Api, namespace: str) -> None:
    stored = create(api, namespace, clusterIP="None")
    assert stored["spec"] == {
        "type": "ClusterIP",
        "clusterIP": "None",
        "clusterIPs": ["None"],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
        "sessionAffinity": "None",
        "selector": {"app": "web"},
        "ports": [{"name": "web", "port": 80, "targetPort": 8080, "protocol": "TCP"}],
    }
    assert stored["status"] == {"loadBalancer": {}}
    tolerant = service("web", clusterIP="None", publishNotReadyAddresses=True)
    assert api.put(path("services", namespace, "web"), tolerant).expect(200)["spec"]["publishNotReadyAddresses"] is True


@pytest.mark.parametrize(("first", "then"), [("None", "10.96.7.7"), (None, "10.96.7.7"), (None, "None")])
def test_an_address_or_the_lack_of_one_lasts(api: Api, namespace: str, first: str | None, then: str) -> None:
    one = path("services", namespace, "web")
    given = create(api, namespace, **({"clusterIP": first} if first else {}))["spec"]["clusterIP"]
    assert given != then
    for change in ({"clusterIP": then}, {"clusterIP": then, "clusterIPs": [then]}):
        refused = api.merge(one, {"spec": change}).expect(422, "Invalid")
        assert causes(refused) == {("FieldValueInvalid", "spec.clusterIPs[0]")}
        assert f'spec.clusterIPs[0]: Invalid value: ["{then}"]: may not change once set' in refused["message"]
    api.apply(one, service("web", clusterIP=then), force=True).expect(422, "Invalid")
    # Whoever does not know it keeps it.
    for unsaid in ({"clusterIP": None}, {"clusterIP": "", "clusterIPs": None}):
        assert api.merge(one, {"spec": unsaid}).expect(200)["spec"]["clusterIP"] == given
    assert api.put(one, service("web")).expect(200)["spec"]["clusterIP"] == given


def test_a_change_of_type_keeps_what_both_types_have(api: Api, namespace: str) -> None:
    one = path("services", namespace, "web")
    before = create(api, namespace)["spec"]
    on_nodes = api.merge(one, {"spec": {"type": "NodePort"}}).expect(200)["spec"]
    assert on_nodes["clusterIP"] == before["clusterIP"]
    assert on_nodes["ports"][0]["nodePort"] > 0
    assert api.merge(one, {"spec": {"type": "ClusterIP"}}).expect(200)["spec"] == before
    api.merge(one, {"spec": {"type": "NodePort"}}).expect(200)
    elsewhere = {"type": "ExternalName", "externalName": "web.example.com"}
    kept = {key: value for key, value in before.items() if key not in OF_AN_ADDRESS}
    assert api.merge(one, {"spec": elsewhere}).expect(200)["spec"] == {**kept, **elsewhere}


def test_a_headless_service_has_no_ports_on_nodes(api: Api, namespace: str) -> None:
    body = service("web", clusterIP="None", type="NodePort")
    refused = api.post(path("services", namespace), body).expect(422, "Invalid")
    assert causes(refused) == {("FieldValueInvalid", "spec.clusterIPs[0]")}
    assert "may not be set to 'None' for NodePort services" in refused["message"]


def run(api: Api, namespace: str, name: str, *, ready: bool) -> None:
    """Do what a StatefulSet, a scheduler and a kubelet do until a pod has come up."""
    containers = [{"name": "web", "image": "registry.example.com/web:1"}]
    # On no node that there is, so nobody would see to its end.
    bound = {"nodeName": "elsewhere", "terminationGracePeriodSeconds": 0}
    spec = {"containers": containers, "hostname": name, "subdomain": "web", **bound}
    body = {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}
    eventually(lambda: api.post(path("pods", namespace), body).status, lambda status: status == 201)
    address = f"10.1.0.{name[-1]}"
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
    api.strategic(path("pods", namespace, name, "status"), {"status": status}).expect(200)


def names(api: Api, namespace: str) -> dict[str, dict[str, str]]:
    """The addresses of the pods behind the Service by their names in DNS, those that are ready and the others."""
    found = api.get(path("endpoints", namespace, "web"))
    subsets = found.json.get("subsets", []) if found.status == 200 else []
    keys = ("addresses", "notReadyAddresses")
    return {key: {each["hostname"]: each["ip"] for subset in subsets for each in subset.get(key, [])} for key in keys}


def test_pods_have_names_behind_their_service_and_those_that_are_not_ready_too_where_that_is_wanted(
    api: Api, namespace: str
) -> None:
    create(api, namespace, clusterIP="None")
    first, second = {"web-1": "10.1.0.1"}, {"web-2": "10.1.0.2"}
    run(api, namespace, "web-1", ready=True)
    run(api, namespace, "web-2", ready=False)
    apart = {"addresses": first, "notReadyAddresses": second}
    eventually(lambda: names(api, namespace), lambda found: found == apart)
    found = api.get(path("endpoints", namespace, "web")).expect(200)
    assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    api.merge(path("services", namespace, "web"), {"spec": {"publishNotReadyAddresses": True}}).expect(200)
    together = {"addresses": {**first, **second}, "notReadyAddresses": {}}
    eventually(lambda: names(api, namespace), lambda found: found == together)
