"""What the operator relies upon of quotas: what a resize is told, and where a workload says that it has no pods."""

from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Answer, Api, Json
from tests.conformance.sample_objects import deployment, path, stateful_set

pytestmark = pytest.mark.cluster("kubernetes")  # the simulator has no quotas
MEMORY = {"limits": {"memory": "48Mi"}}


def limit(api: Api, namespace: str, name: str = "few", **hard: str) -> None:
    """A quota, once its status counts what there is; `limits_memory` is `limits.memory`."""
    wanted = {key.replace("_", "."): value for key, value in hard.items()}
    collection = f"/api/v1/namespaces/{namespace}/resourcequotas"
    api.post(collection, {"metadata": {"name": name}, "spec": {"hard": wanted}}).expect(201)
    eventually(lambda: api.get(f"{collection}/{name}").expect(200)["status"].get("hard"), lambda hard: hard == wanted)


def create(api: Api, namespace: str, name: str, *resources: Json, **spec: Any) -> Answer:
    """A pod of containers ``c0``, ``c1``, ... that want this."""
    containers = [{"name": f"c{index}", "image": "a:1", "resources": each} for index, each in enumerate(resources)]
    return api.post(path("pods", namespace), {"metadata": {"name": name}, "spec": {"containers": containers, **spec}})


def with_resources(workload: Json, resources: Json) -> Json:
    workload["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    return workload


def refusal(answer: Answer) -> str:
    refused = answer.expect(403, "Forbidden")
    assert refused["details"]["kind"] == "pods"
    return str(refused["message"])


def test_a_resize_is_held_against_it_by_what_it_adds(api: Api, namespace: str) -> None:
    limit(api, namespace, limits_memory="128Mi", requests_cpu="100m")
    create(api, namespace, "a", {"requests": {"cpu": "50m"}, **MEMORY}).expect(201)

    def resize(requests: Json, limits: Json) -> Answer:
        container = {"name": "c0", "resources": {"requests": requests, "limits": limits}}
        return api.strategic(path("pods", namespace, "a", "resize"), {"spec": {"containers": [container]}})

    resize({}, {"memory": "100Mi"}).expect(200)
    refused = refusal(resize({"memory": "48Mi"}, {"memory": "160Mi"}))
    assert refused == (
        'pods "a" is forbidden: exceeded quota: few, requested: limits.memory=60Mi, used: limits.memory=100Mi, '
        "limited: limits.memory=128Mi"
    )
    refused = refusal(resize({"cpu": "120m", "memory": "48Mi"}, {"memory": "100Mi"}))
    assert refused == (
        'pods "a" is forbidden: exceeded quota: few, requested: requests.cpu=70m, used: requests.cpu=50m, '
        "limited: requests.cpu=100m"
    )
    resize({"memory": "48Mi"}, {"memory": "64Mi"}).expect(200)


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ({}, "failed quota: few: must specify limits.memory for: web"),
        (
            MEMORY,
            "exceeded quota: few, requested: limits.memory=48Mi, used: limits.memory=0, limited: limits.memory=32Mi",
        ),
    ],
)
def test_a_deployment_says_why_it_has_no_pods(api: Api, namespace: str, resources: Json, why: str) -> None:
    limit(api, namespace, limits_memory="32Mi")
    api.post(path("deployments", namespace), with_resources(deployment("web"), resources)).expect(201)

    def failures() -> list[Json]:
        found = api.get(path("deployments", namespace, "web")).expect(200)["status"].get("conditions", [])
        return [each for each in found if each["type"] == "ReplicaFailure"]

    [condition] = eventually(failures, bool)
    assert (condition["status"], condition["reason"]) == ("True", "FailedCreate")
    assert condition["message"].startswith('pods "web-')
    assert condition["message"].endswith(f'" is forbidden: {why}')


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ({}, "failed quota: few: must specify limits.memory for: web"),
        (
            MEMORY,
            "exceeded quota: few, requested: limits.memory=48Mi, used: limits.memory=0, limited: limits.memory=32Mi",
        ),
    ],
)
def test_a_stateful_set_says_so_by_events_alone(api: Api, namespace: str, resources: Json, why: str) -> None:
    limit(api, namespace, limits_memory="32Mi")
    api.post(path("statefulsets", namespace), with_resources(stateful_set("web"), resources)).expect(201)

    def events() -> list[Json]:
        found = api.get(path("events", namespace)).expect(200)["items"]
        return [each for each in found if each["reason"] == "FailedCreate"]

    event = eventually(events, bool)[0]
    assert (event["type"], event["regarding"]["kind"]) == ("Warning", "StatefulSet")
    assert event["note"] == f'Create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: {why}'
    assert "conditions" not in api.get(path("statefulsets", namespace, "web")).expect(200)["status"]
