"""What a container may say of its resources, its probes and its end: how it is stored, and what cannot be."""

from typing import Any

import pytest

from tests.conformance.api import Answer, Api, Json
from tests.conformance.sample_objects import deployment, path

COLLECTION = path("deployments", "default")  # dry runs alone


def create(api: Api, container: Json, **spec: Any) -> Answer:
    body = deployment("web")
    template = body["spec"]["template"]["spec"]
    template |= spec
    template["containers"][0] |= container
    return api.post(COLLECTION, body, dryRun="All")


def create_pod(api: Api, container: Json) -> Answer:
    spec = {"containers": [{"name": "web", "image": "registry.example.com/web:1", **container}]}
    return api.post(path("pods", "default"), {"metadata": {"name": "a"}, "spec": spec}, dryRun="All")


def stored(answer: Answer) -> Json:
    found = answer.expect(201)["spec"]["template"]["spec"]["containers"][0]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        (67108864, "67108864"),
        ("0.5", "500m"),
        (0.5, "500m"),
        # Thousandths are the smallest that is kept, and 64 bits the largest of powers of two.
        ("1.0001", "1001m"),
        ("9Ei", "9223372036854775807"),
    ],
)
def test_amounts_have_one_form(api: Api, given: object, kept: str) -> None:
    resources = {"requests": {"cpu": given, "memory": given}, "limits": {"memory": given}}
    desired = {"requests": {"cpu": kept, "memory": kept}, "limits": {"memory": kept}}
    assert stored(create(api, {"resources": resources}))["resources"] == desired


@pytest.mark.parametrize("given", ["64MB", "64 Mi", "", "1..5"])
def test_what_is_no_amount_is_400(api: Api, given: str) -> None:
    create(api, {"resources": {"requests": {"memory": given}}}).expect(400, "BadRequest")


@pytest.mark.parametrize(
    ("resources", "requests", "quality"),
    [
        ({}, None, "BestEffort"),
        ({"requests": {"memory": "64Mi"}}, {"memory": "64Mi"}, "Burstable"),
        ({"requests": {"memory": "32Mi"}, "limits": {"memory": "64Mi"}}, {"memory": "32Mi"}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "64Mi"}}, {"cpu": "1", "memory": "64Mi"}, "Guaranteed"),
        ({"requests": {"cpu": "0"}}, {"cpu": "0"}, "BestEffort"),
    ],
)
def test_a_pod_asks_for_its_limits_where_it_does_not_say_and_a_template_does_not(
    api: Api, resources: Json, requests: Json | None, quality: str
) -> None:
    pod = create_pod(api, {"resources": resources}).expect(201)
    assert pod["spec"]["containers"][0]["resources"].get("requests") == requests
    assert pod["status"]["qosClass"] == quality
    assert stored(create(api, {"resources": resources}))["resources"] == resources


def test_a_probe_of_a_port_has_defaults(api: Api) -> None:
    defaults = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    for given in (
        {"tcpSocket": {"port": 11211}},
        {"tcpSocket": {"port": "memcached"}},
        {"tcpSocket": {"port": 11211}, "periodSeconds": 5, "timeoutSeconds": 2},
    ):
        assert stored(create(api, {"readinessProbe": given}))["readinessProbe"] == defaults | given
    nothing = {"tcpSocket": {"port": 1}, "initialDelaySeconds": 0, "periodSeconds": 0, "failureThreshold": 0}
    assert stored(create(api, {"readinessProbe": nothing}))["readinessProbe"] == {"tcpSocket": {"port": 1}, **defaults}


@pytest.mark.parametrize(("seconds", "grace_s"), [(5, 30), (0, 30), (5, 5), (0, 0)])
def test_a_pod_may_sleep_before_its_end_as_long_as_it_is_given(api: Api, seconds: int, grace_s: int) -> None:
    hook = {"preStop": {"sleep": {"seconds": seconds}}}
    answer = create(api, {"lifecycle": hook}, terminationGracePeriodSeconds=grace_s)
    assert stored(answer)["lifecycle"] == hook
