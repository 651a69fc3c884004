"""What a container may say of its resources, its probes and its end: how it is stored, and what cannot be."""

from typing import Any

import pytest

from tests.conformance.api import Answer, Api, Json, causes
from tests.conformance.sample_objects import deployment, path

COLLECTION = path("deployments", "default")  # dry runs alone
NON_NEGATIVE = "must be greater than or equal to 0"


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
        ("65536Ki", "64Mi"),
        ("67108864", "67108864"),
        (67108864, "67108864"),
        ("1e3", "1e3"),
        ("1000k", "1M"),
        ("0.5", "500m"),
        (0.5, "500m"),
        ("1000m", "1"),
        ("0", "0"),
        # Thousandths are the smallest that is kept, and 64 bits the largest of powers of two.
        ("100u", "1m"),
        ("1.0001", "1001m"),
        ("9Ei", "9223372036854775807"),
    ],
)
def test_amounts_have_one_form(api: Api, given: object, kept: str) -> None:
    resources = {"requests": {"cpu": given, "memory": given}, "limits": {"memory": given}}
    wanted = {"requests": {"cpu": kept, "memory": kept}, "limits": {"memory": kept}}
    assert stored(create(api, {"resources": resources}))["resources"] == wanted


@pytest.mark.parametrize("given", ["64MB", "64 Mi", "", "1..5"])
def test_what_is_no_amount_is_400(api: Api, given: str) -> None:
    create(api, {"resources": {"requests": {"memory": given}}}).expect(400, "BadRequest")


@pytest.mark.parametrize(
    ("resources", "requests", "quality"),
    [
        ({}, None, "BestEffort"),
        ({"requests": {"memory": "64Mi"}}, {"memory": "64Mi"}, "Burstable"),
        ({"limits": {"memory": "64Mi"}}, {"memory": "64Mi"}, "Burstable"),
        ({"requests": {"cpu": "1"}, "limits": {"memory": "64Mi"}}, {"cpu": "1", "memory": "64Mi"}, "Burstable"),
        ({"requests": {"memory": "32Mi"}, "limits": {"memory": "64Mi"}}, {"memory": "32Mi"}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "64Mi"}}, {"cpu": "1", "memory": "64Mi"}, "Guaranteed"),
        ({"requests": {"ephemeral-storage": "1Gi"}}, {"ephemeral-storage": "1Gi"}, "BestEffort"),
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


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
@pytest.mark.parametrize(
    ("resources", "reason", "field", "why"),
    [
        ({"requests": {"memory": "65Mi"}, "limits": {"memory": "64Mi"}}, "Invalid", "requests",
         'Invalid value: "65Mi": must be less than or equal to memory limit of 64Mi'),
        ({"requests": {"memory": "-1Mi"}}, "Invalid", "requests[memory]", f'Invalid value: "-1Mi": {NON_NEGATIVE}'),
        ({"limits": {"cpu": "-1"}}, "Invalid", "limits[cpu]", f'Invalid value: "-1": {NON_NEGATIVE}'),
        ({"requests": {"ram": "1"}}, "Invalid", "requests[ram]", "must be a standard resource type or fully qualified"),
        ({"requests": {"storage": "1"}}, "Invalid", "requests[storage]", "must be a standard resource for containers"),
        ({"requests": {"a.b/c": "1"}}, "Required", "limits", "Limit must be set for non overcommitable resources"),
        ({"requests": {"a.b/c": "1"}, "limits": {"a.b/c": "2"}}, "Invalid", "requests", "must be equal to a.b/c limit"),
        ({"limits": {"a.b/c": "1.5"}}, "Invalid", "limits[a.b/c]", "must be an integer"),
    ],
)  # fmt: skip
def test_resources_that_cannot_be_are_422(api: Api, resources: Json, reason: str, field: str, why: str) -> None:
    refused = create(api, {"resources": resources}).expect(422, "Invalid")
    assert causes(refused) == {(f"FieldValue{reason}", f"spec.template.spec.containers[0].resources.{field}")}
    assert why in refused["message"]


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


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
@pytest.mark.parametrize(
    ("probe", "reason", "field", "why"),
    [
        ({}, "Required", "", "must specify a handler type"),
        ({"tcpSocket": {"port": 0}}, "Invalid", ".tcpSocket.port", "must be between 1 and 65535, inclusive"),
        ({"tcpSocket": {"port": 65536}}, "Invalid", ".tcpSocket.port", "must be between 1 and 65535, inclusive"),
        ({"tcpSocket": {}}, "Invalid", ".tcpSocket.port", "must be between 1 and 65535, inclusive"),
        ({"tcpSocket": {"port": "-a"}}, "Invalid", ".tcpSocket.port", "must not begin or end with a hyphen"),
        ({"tcpSocket": {"port": 1}, "periodSeconds": -1}, "Invalid", ".periodSeconds", NON_NEGATIVE),
        ({"tcpSocket": {"port": 1}, "exec": {"command": ["a"]}}, "Forbidden", ".tcpSocket",
         "may not specify more than 1 handler type"),
        ({"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 3}, "Invalid", ".terminationGracePeriodSeconds",
         "must not be set for readinessProbes"),
    ],
)  # fmt: skip
def test_a_probe_that_cannot_be_is_422(api: Api, probe: Json, reason: str, field: str, why: str) -> None:
    refused = create(api, {"readinessProbe": probe}).expect(422, "Invalid")
    at = f"spec.template.spec.containers[0].readinessProbe{field}"
    assert causes(refused) == {(f"FieldValue{reason}", at)}
    assert why in refused["message"]


@pytest.mark.parametrize(("seconds", "grace_s"), [(5, 30), (0, 30), (5, 5), (0, 0)])
def test_a_pod_may_sleep_before_its_end_as_long_as_it_is_given(api: Api, seconds: int, grace_s: int) -> None:
    hook = {"preStop": {"sleep": {"seconds": seconds}}}
    answer = create(api, {"lifecycle": hook}, terminationGracePeriodSeconds=grace_s)
    assert stored(answer)["lifecycle"] == hook


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
@pytest.mark.parametrize(("seconds", "grace_s"), [(31, None), (6, 5), (1, 0), (-1, 5)])
def test_a_sleep_beyond_the_time_that_is_given_is_422(api: Api, seconds: int, grace_s: int | None) -> None:
    spec = {} if grace_s is None else {"terminationGracePeriodSeconds": grace_s}
    refused = create(api, {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}}, **spec).expect(422, "Invalid")
    at = "spec.template.spec.containers[0].lifecycle.preStop.sleep"
    given_s = 30 if grace_s is None else grace_s
    why = f"must be non-negative and less than terminationGracePeriodSeconds ({given_s})"
    assert refused["message"] == f'Deployment.apps "web" is invalid: {at}: Invalid value: {seconds}: {why}'


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape alone
def test_a_hook_says_what_to_do(api: Api) -> None:
    assert stored(create(api, {"lifecycle": {}}))["lifecycle"] == {}
    at = "spec.template.spec.containers[0].lifecycle.preStop"
    refused = create(api, {"lifecycle": {"preStop": {}}}).expect(422, "Invalid")
    assert causes(refused) == {("FieldValueRequired", at)}
    both = {"preStop": {"sleep": {"seconds": 1}, "exec": {"command": ["a"]}}}
    refused = create(api, {"lifecycle": both}).expect(422, "Invalid")
    assert causes(refused) == {("FieldValueForbidden", f"{at}.sleep")}
