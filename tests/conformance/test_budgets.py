"""PodDisruptionBudgets: rules, and a status that counts pods."""

from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import TABLE, Api, Json, causes
from tests.conformance.sample_objects import deployment, path, stateful_set

SELECTOR = {"matchLabels": {"app": "web"}}


def budget(**spec: Any) -> Json:
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "few"}, "spec": spec}


def status_of(api: Api, namespace: str) -> Json:
    found = api.get(path("poddisruptionbudgets", namespace, "few")).expect(200)
    status = found.get("status", {})
    return status if status.get("observedGeneration") == found["metadata"]["generation"] else {}


def counted(status: Json) -> tuple[int | None, ...]:
    names = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    return tuple(status.get(name) for name in names)


def test_a_new_budget_says_nothing_yet(api: Api, namespace: str) -> None:
    created = api.post(path("poddisruptionbudgets", namespace), budget(minAvailable=1), dryRun="All").expect(201)
    assert created["status"] == dict.fromkeys(
        ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0
    )
    assert created["spec"] == {"minAvailable": 1}
    assert created["metadata"]["generation"] == 1


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape of budgets, and counts nothing
@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        ({"minAvailable": 1, "maxUnavailable": 1}, "spec", "minAvailable and maxUnavailable cannot be both set"),
        ({"minAvailable": -1}, "spec.minAvailable", "must be greater than or equal to 0"),
        ({"maxUnavailable": "5"}, "spec.maxUnavailable", "a valid percent string"),
        ({"maxUnavailable": "101%"}, "spec.maxUnavailable", "must not be greater than 100%"),
        ({"selector": {"matchLabels": {"a!": "b"}}}, "spec.selector.matchLabels", "name part must consist of"),
        ({"unhealthyPodEvictionPolicy": "No"}, "spec.unhealthyPodEvictionPolicy", '"AlwaysAllow", "IfHealthyBudget"'),
    ],
)
def test_a_budget_that_cannot_be_is_422(api: Api, namespace: str, spec: Json, field: str, why: str) -> None:
    refused = api.post(path("poddisruptionbudgets", namespace), budget(**spec)).expect(422, "Invalid")
    assert [each for _, each in causes(refused)] == [field]
    assert why in refused["message"]


@pytest.mark.cluster("kubernetes")  # the simulator checks the shape of budgets, and counts nothing
@pytest.mark.parametrize("workload", ["deployments", "statefulsets"])
def test_its_status_counts_the_pods_that_it_selects(api: Api, namespace: str, workload: str) -> None:
    made = (deployment if workload == "deployments" else stateful_set)("web", replicas=3)
    api.post(path(workload, namespace), made).expect(201)
    collection, one = path("poddisruptionbudgets", namespace), path("poddisruptionbudgets", namespace, "few")
    api.post(collection, budget(maxUnavailable="34%", selector=SELECTOR)).expect(201)
    eventually(lambda: counted(status_of(api, namespace))[0], lambda expected: expected == 3)
    # A budget in per cent counts what the workload is to have, before all of it is there.
    pods = eventually(
        lambda: api.get(path("pods", namespace), labelSelector="app=web").expect(200)["items"],
        lambda items: len(items) == 3,
    )
    for each in pods:
        ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        api.merge(path("pods", namespace, each["metadata"]["name"], "status"), ready).expect(200)
    status = eventually(lambda: status_of(api, namespace), lambda status: counted(status) == (3, 3, 1, 2))
    [condition] = status["conditions"]
    assert (condition["type"], condition["status"]) == ("DisruptionAllowed", "True")
    assert condition["reason"] == "SufficientPods"

    api.merge(one, {"spec": {"maxUnavailable": None, "minAvailable": 3}}).expect(200)
    status = eventually(lambda: status_of(api, namespace), lambda status: counted(status) == (3, 3, 3, 0))
    assert status["conditions"][0]["reason"] == "InsufficientPods"
    api.merge(one, {"spec": {"selector": {"matchLabels": {"app": "other"}}, "minAvailable": "50%"}}).expect(200)
    eventually(lambda: counted(status_of(api, namespace)), lambda counts: counts == (0, 0, 0, 0))

    table = api.request("GET", collection, headers={"Accept": TABLE}).expect(200)
    assert [each["name"] for each in table["columnDefinitions"]][:4] == [
        *("Name", "Min Available", "Max Unavailable", "Allowed Disruptions")
    ]
    assert table["rows"][0]["cells"][:4] == ["few", "50%", "N/A", 0]
    api.merge(f"{one}/status", {"status": {"disruptionsAllowed": -1}}).expect(422, "Invalid")
