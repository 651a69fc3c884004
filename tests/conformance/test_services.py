"""Services with and without an address, and what of them lasts."""

from typing import Any

import pytest

from tests.conformance.api import Api, Json, causes
from tests.conformance.sample_objects import path, service


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
    api.apply(one, service("web", clusterIP=then), force=True).expect(422, "Invalid")
    # Whoever does not know it keeps it.
    for unsaid in ({"clusterIP": None}, {"clusterIP": "", "clusterIPs": None}):
        assert api.merge(one, {"spec": unsaid}).expect(200)["spec"]["clusterIP"] == given
    assert api.put(one, service("web")).expect(200)["spec"]["clusterIP"] == given
