"""What becomes of an eviction: the pod's deletion, which a PodDisruptionBudget may forbid."""

from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.cluster import Cluster
from tests.conformance.api import OTHER_UID, Answer, Api, Json
from tests.conformance.sample_objects import path
from tests.conformance.workload_pods import await_new, await_pods, create, mark, pods

HOLD = "example.com/hold"
SELECTOR = {"matchLabels": {"app": "web"}}
EVICTED = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(api: Api, namespace: str, name: str, options: Json | None = None, **query: str) -> Answer:
    body: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    body |= {} if options is None else {"deleteOptions": options}
    return api.post(path("pods", namespace, name, "eviction"), body, **query)


def budget(api: Api, namespace: str, *, name: str = "few", pods: int = 2, **spec: Any) -> None:
    """A budget of the pods of ``web``, once its status says how many it counts."""
    identity = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}}
    body = {**identity, "spec": {"selector": SELECTOR, **spec}}
    api.post(path("poddisruptionbudgets", namespace), body).expect(201)
    await_counted(api, namespace, name, expectedPods=pods)


def await_counted(api: Api, namespace: str, name: str, **wanted: int) -> Json:
    return eventually(
        lambda: api.get(path("poddisruptionbudgets", namespace, name)).expect(200)["status"],
        lambda found: {key: found.get(key) for key in wanted} == wanted,
    )


def web(api: Api, namespace: str) -> dict[str, Json]:
    """Two pods that run and are ready."""
    create(api, namespace, updateStrategy={"type": "OnDelete"})
    found = await_pods(api, namespace, "web-0", "web-1")
    for name in found:
        mark(api, namespace, name).expect(200)
    return pods(api, namespace)


def test_an_evicted_pod_is_deleted_and_made_anew(api: Api, namespace: str) -> None:
    before = web(api, namespace)
    assert evict(api, namespace, "web-1").expect(201) == EVICTED
    await_new(api, namespace, "web-1", before)


@pytest.mark.cluster("kubernetes")  # the simulator does not say why
@pytest.mark.parametrize("phase", ["Pending", "Running", "Failed"])
def test_its_status_says_why_while_something_holds_it(api: Api, namespace: str, phase: str) -> None:
    one = path("pods", namespace, "a")
    container = {"name": "web", "image": "web:1"}
    body = {"metadata": {"name": "a", "finalizers": [HOLD]}, "spec": {"nodeName": "absent", "containers": [container]}}
    api.post(path("pods", namespace), body).expect(201)
    mark(api, namespace, "a", phase).expect(200)
    evict(api, namespace, "a", {"gracePeriodSeconds": 7}).expect(201)
    found = api.get(one).expect(200)
    [condition] = [each for each in found["status"]["conditions"] if each["type"] == "DisruptionTarget"]
    assert condition["lastTransitionTime"]
    assert {key: value for key, value in condition.items() if key != "lastTransitionTime"} == {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    assert found["metadata"]["deletionGracePeriodSeconds"] == (0 if phase == "Failed" else 7)
    # Once more is as well, and changes nothing.
    evict(api, namespace, "a").expect(201)
    assert api.get(one).expect(200)["status"] == found["status"]
    api.merge(one, {"metadata": {"finalizers": None}}).expect(200)


def test_what_is_not_there_or_is_another_pod_is_not_evicted(api: Api, namespace: str) -> None:
    found = web(api, namespace)["web-0"]["metadata"]
    missing = evict(api, namespace, "absent").expect(404, "NotFound")
    assert (missing["message"], missing["details"]) == ('pods "absent" not found', {"name": "absent", "kind": "pods"})
    for preconditions, why in (
        (
            {"uid": OTHER_UID},
            f"the UID in the precondition ({OTHER_UID}) does not match the UID in record ({found['uid']}). "
            "The object might have been deleted and then recreated",
        ),
        (
            {"resourceVersion": "1"},
            f"the ResourceVersion in the precondition (1) does not match the ResourceVersion in record "
            f"({found['resourceVersion']}). The object might have been modified",
        ),
    ):
        refused = evict(api, namespace, "web-0", {"preconditions": preconditions}).expect(409, "Conflict")
        assert refused["message"] == f'Operation cannot be fulfilled on Pod "web-0": {why}'
        assert refused["details"] == {"name": "web-0", "kind": "Pod"}
    assert pods(api, namespace)["web-0"]["metadata"]["uid"] == found["uid"]
    evict(api, namespace, "web-0", {"preconditions": {"uid": found["uid"]}}).expect(201)


def test_a_dry_run_deletes_nothing(api: Api, namespace: str) -> None:
    before = web(api, namespace)
    assert evict(api, namespace, "web-0", dryRun="All").expect(201) == EVICTED
    assert evict(api, namespace, "web-0", {"dryRun": ["All"]}).expect(201) == EVICTED
    assert pods(api, namespace)["web-0"] == before["web-0"]


def test_a_body_that_is_no_eviction_of_this_pod_is_400(api: Api, namespace: str) -> None:
    web(api, namespace)
    one = path("pods", namespace, "web-0", "eviction")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction"}
    for body in ({}, eviction, {**eviction, "metadata": {"name": "web-1"}}):
        refused = api.post(one, body).expect(400, "BadRequest")
        assert refused["message"] == "name in URL does not match name in Eviction object"
    api.post(one, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0"}}).expect(400, "BadRequest")
    evict(api, namespace, "web-0", {"gracePeriodSeconds": "x"}).expect(400, "BadRequest")
    evict(api, namespace, "web-0", {"propagationPolicy": "No"}).expect(422, "Invalid")
    for answer in (api.get(one), api.put(one, eviction), api.delete(one)):
        answer.expect(405, "MethodNotAllowed")


@pytest.mark.cluster("kubernetes")  # the simulator asks no budgets
def test_a_budget_lets_one_go_and_holds_the_other_until_the_first_is_back(api: Api, namespace: str) -> None:
    before = web(api, namespace)
    budget(api, namespace, maxUnavailable=1)
    await_counted(api, namespace, "few", disruptionsAllowed=1)
    evict(api, namespace, "web-1").expect(201)
    status = api.get(path("poddisruptionbudgets", namespace, "few")).expect(200)["status"]
    assert status["disruptionsAllowed"] == 0
    refused = evict(api, namespace, "web-0")
    cause = {
        "reason": "DisruptionBudget",
        "message": "The disruption budget few needs 1 healthy pods and has 1 currently",
    }
    eventually(lambda: evict(api, namespace, "web-0").json["details"], lambda found: found == {"causes": [cause]})
    refused = evict(api, namespace, "web-0")
    assert refused.expect(429, "TooManyRequests")["message"] == REFUSED
    assert "Retry-After" not in refused.headers
    await_new(api, namespace, "web-1", before)
    mark(api, namespace, "web-1").expect(200)
    await_counted(api, namespace, "few", disruptionsAllowed=1, currentHealthy=2)
    evict(api, namespace, "web-0").expect(201)


@pytest.mark.cluster("kubernetes")  # the simulator asks no budgets
def test_a_budget_that_was_not_looked_at_yet_lets_nothing_go(api: Api, cluster: Cluster, namespace: str) -> None:
    web(api, namespace)
    budget(api, namespace, maxUnavailable=1)
    await_counted(api, namespace, "few", disruptionsAllowed=1)
    cluster.stop_controller_manager()
    try:
        api.merge(path("poddisruptionbudgets", namespace, "few"), {"spec": {"maxUnavailable": 2}}).expect(200)
        answer = evict(api, namespace, "web-0")
    finally:
        cluster.start_controller_manager()
    refused = answer.expect(429, "TooManyRequests")
    message = "The disruption budget few is still being processed by the server."
    assert refused["details"] == {
        "causes": [{"reason": "DisruptionBudget", "message": message}],
        "retryAfterSeconds": 10,
    }
    assert (refused["message"], answer.headers["Retry-After"]) == (REFUSED, "10")


@pytest.mark.cluster("kubernetes")  # the simulator asks no budgets
@pytest.mark.parametrize("policy", [None, "IfHealthyBudget", "AlwaysAllow"])
def test_a_pod_that_is_not_ready_goes_where_the_budget_is_met_or_does_not_mind(
    api: Api, namespace: str, policy: str | None
) -> None:
    before = web(api, namespace)
    unhealthy: Json = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    budget(api, namespace, minAvailable=1, **unhealthy)
    mark(api, namespace, "web-1", ready=False).expect(200)
    await_counted(api, namespace, "few", currentHealthy=1, disruptionsAllowed=0)
    evict(api, namespace, "web-0").expect(429, "TooManyRequests")
    evict(api, namespace, "web-1").expect(201)
    await_new(api, namespace, "web-1", before)
    mark(api, namespace, "web-0", ready=False).expect(200)
    mark(api, namespace, "web-1", ready=False).expect(200)
    await_counted(api, namespace, "few", currentHealthy=0)
    if policy == "AlwaysAllow":
        evict(api, namespace, "web-0").expect(201)
    else:
        refused = evict(api, namespace, "web-0").expect(429, "TooManyRequests")
        message = "The disruption budget few needs 1 healthy pods and has 0 currently"
        assert refused["details"]["causes"] == [{"reason": "DisruptionBudget", "message": message}]


@pytest.mark.cluster("kubernetes")  # the simulator asks no budgets
@pytest.mark.parametrize("phase", ["Pending", "Failed", "Succeeded"])
def test_a_pod_that_does_not_run_goes_whatever_its_budgets_say(api: Api, namespace: str, phase: str) -> None:
    container = {"name": "web", "image": "web:1"}
    pod = {"metadata": {"name": "a", "labels": {"app": "web"}}, "spec": {"containers": [container]}}
    api.post(path("pods", namespace), pod).expect(201)
    budget(api, namespace, minAvailable=5, pods=1)
    mark(api, namespace, "a", phase, ready=True).expect(200)
    evict(api, namespace, "a").expect(201)
    api.get(path("pods", namespace, "a")).expect(404)


@pytest.mark.cluster("kubernetes")  # the simulator asks no budgets
def test_a_pod_of_two_budgets_is_not_evicted(api: Api, namespace: str) -> None:
    web(api, namespace)
    budget(api, namespace, name="few", maxUnavailable=2)
    budget(api, namespace, name="more", maxUnavailable=2)
    answer = evict(api, namespace, "web-0")
    assert answer.expect(500) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        "code": 500,
    }
