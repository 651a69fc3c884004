"""What becomes of a StatefulSet: defaults, rules, pods with names of their own, updates, status."""

import pytest

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json, causes
from tests.conformance.sample_objects import owner_reference, path, stateful_set
from tests.conformance.workload_pods import (
    REVISION,
    await_new,
    await_pods,
    await_status,
    change_image,
    create,
    mark,
    pods,
    serving,
    uids,
)

HOLD = "example.com/hold"


def test_a_stateful_set_is_stored_with_its_defaults(api: Api, namespace: str) -> None:
    body = stateful_set("web")
    del body["spec"]["replicas"], body["spec"]["podManagementPolicy"]
    stored = api.post(path("statefulsets", namespace), body, dryRun="All").expect(201)
    assert {key: value for key, value in stored["spec"].items() if key not in ("selector", "template")} == {
        "serviceName": "web",
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "revisionHistoryLimit": 10,
    }
    assert stored["status"] == {"replicas": 0, "availableReplicas": 0}
    assert stored["metadata"]["generation"] == 1
    for strategy in ({"type": "RollingUpdate"}, {"type": "OnDelete"}):
        named = stateful_set("web", updateStrategy=strategy)
        stored = api.post(path("statefulsets", namespace), named, dryRun="All").expect(201)
        assert stored["spec"]["updateStrategy"] == strategy


@pytest.mark.parametrize(
    ("spec", "reason", "field"),
    [
        ({"replicas": -1}, "Invalid", "spec.replicas"),
        ({"selector": None}, "Required", "spec.selector"),
        ({"selector": {}}, "Invalid", "spec.selector"),
        ({"selector": {"matchLabels": {"app": "other"}}}, "Invalid", "spec.template.metadata.labels"),
    ],
)
def test_one_that_cannot_be_is_422(api: Api, namespace: str, spec: Json, reason: str, field: str) -> None:
    refused = api.post(path("statefulsets", namespace), stateful_set("web", **spec)).expect(422, "Invalid")
    assert (f"FieldValue{reason}", field) in causes(refused)


def test_most_of_what_it_is_lasts(api: Api, namespace: str) -> None:
    create(api, namespace, replicas=0)
    labels = {"app": "web", "more": "1"}
    selector = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
    one = path("statefulsets", namespace, "web")
    for change in ({"serviceName": "other"}, {"podManagementPolicy": "OrderedReady"}, selector):
        refused = api.merge(one, {"spec": change}).expect(422, "Invalid")
        assert causes(refused) == {("FieldValueForbidden", "spec")}
    change = {"minReadySeconds": 1, "updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}
    assert api.merge(one, {"spec": change}).expect(200)["metadata"]["generation"] == 2


def test_its_pods_have_names_of_their_own(api: Api, namespace: str) -> None:
    web = create(api, namespace)
    for index, (name, pod) in enumerate(sorted(await_pods(api, namespace, "web-0", "web-1").items())):
        metadata, spec = pod["metadata"], pod["spec"]
        assert metadata["labels"] == {
            "app": "web",
            "apps.kubernetes.io/pod-index": str(index),
            REVISION: metadata["labels"][REVISION],
            "statefulset.kubernetes.io/pod-name": name,
        }
        assert metadata["generateName"] == "web-"
        assert metadata["ownerReferences"] == [owner_reference(web, controller=True, blockOwnerDeletion=True)]
        assert (spec["hostname"], spec["subdomain"]) == (name, "web")


def test_the_status_counts_its_pods(api: Api, namespace: str) -> None:
    create(api, namespace)
    found = await_pods(api, namespace, "web-0", "web-1")
    revision = found["web-0"]["metadata"]["labels"][REVISION]
    counts = {"replicas": 2, "currentReplicas": 2, "updatedReplicas": 2, "availableReplicas": 0}
    fresh = await_status(api, namespace, observedGeneration=1, **counts)
    assert fresh == {
        **counts,
        "observedGeneration": 1,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }
    mark(api, namespace, "web-1").expect(200)
    await_status(api, namespace, readyReplicas=1, availableReplicas=1)
    mark(api, namespace, "web-0").expect(200)
    await_status(api, namespace, **{**counts, "readyReplicas": 2, "availableReplicas": 2})


def test_it_is_scaled_from_the_top(api: Api, namespace: str) -> None:
    scale = path("statefulsets", namespace, "web", "scale")
    create(api, namespace, replicas=3)
    before = await_pods(api, namespace, "web-0", "web-1", "web-2")
    found = api.get(scale).expect(200)
    assert (found["kind"], found["spec"], found["status"]["selector"]) == ("Scale", {"replicas": 3}, "app=web")
    api.merge(scale, {"spec": {"replicas": 1}}).expect(200)
    after = await_pods(api, namespace, "web-0")
    assert uids(after) == {"web-0": before["web-0"]["metadata"]["uid"]}
    await_status(api, namespace, observedGeneration=2, replicas=1, updatedReplicas=1)
    api.merge(scale, {"spec": {"replicas": 2}}).expect(200)
    await_pods(api, namespace, "web-0", "web-1")


def test_a_lost_pod_comes_back_under_its_name_once_it_is_gone(api: Api, namespace: str) -> None:
    create(api, namespace)
    before = await_pods(api, namespace, "web-0", "web-1")
    one = path("pods", namespace, "web-0")
    api.merge(one, {"metadata": {"finalizers": [HOLD]}}).expect(200)
    mark(api, namespace, "web-0").expect(200)
    api.delete(one).expect(200)
    # It is still counted, and is neither current nor updated any more.
    held = await_status(api, namespace, currentReplicas=1)
    assert (held["replicas"], held["readyReplicas"], held["updatedReplicas"]) == (2, 1, 1)
    assert pods(api, namespace).keys() == {"web-1"}
    api.merge(one, {"metadata": {"finalizers": None}}).expect(200)
    await_new(api, namespace, "web-0", before)
    assert uids(pods(api, namespace))["web-1"] == uids(before)["web-1"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_has_ended_is_made_anew(api: Api, namespace: str, phase: str) -> None:
    create(api, namespace, replicas=1)
    before = await_pods(api, namespace, "web-0")
    mark(api, namespace, "web-0", phase).expect(200)
    await_new(api, namespace, "web-0", before)


def test_a_changed_template_rolls_from_the_top_while_all_above_are_ready(api: Api, namespace: str) -> None:
    before = serving(api, namespace)
    revision = change_image(api, namespace, "2")
    second = await_new(api, namespace, "web-1", before)
    assert second["metadata"]["labels"][REVISION] == revision != before["web-0"]["metadata"]["labels"][REVISION]
    rolling = await_status(api, namespace, updatedReplicas=1, currentReplicas=1, readyReplicas=1, replicas=2)
    assert rolling["currentRevision"] == before["web-0"]["metadata"]["labels"][REVISION]
    assert uids(pods(api, namespace))["web-0"] == uids(before)["web-0"]
    mark(api, namespace, "web-1").expect(200)
    await_new(api, namespace, "web-0", before)
    mark(api, namespace, "web-0").expect(200)
    await_status(api, namespace, updatedReplicas=2, currentReplicas=2, readyReplicas=2, currentRevision=revision)
    # The template as it was has the revision that it had.
    assert change_image(api, namespace, "1") == before["web-0"]["metadata"]["labels"][REVISION]


def test_a_new_one_adopts_the_pods_that_an_older_one_left(api: Api, namespace: str) -> None:
    one = path("statefulsets", namespace, "web")
    before = serving(api, namespace)
    api.delete(one, {"propagationPolicy": "Orphan"}).expect(200)
    eventually(lambda: api.get(one).status, lambda status: status == 404)
    left = pods(api, namespace)
    assert uids(left) == uids(before)
    assert all("ownerReferences" not in each["metadata"] for each in left.values())

    second = create(api, namespace, podManagementPolicy="OrderedReady")
    await_status(api, namespace, readyReplicas=2, updatedReplicas=2, currentReplicas=2)
    adopted = pods(api, namespace)
    assert uids(adopted) == uids(before)
    for each in adopted.values():
        assert each["metadata"]["ownerReferences"] == [
            owner_reference(second, controller=True, blockOwnerDeletion=True)
        ]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_its_pods_go_with_it(api: Api, namespace: str, propagation: str) -> None:
    one = path("statefulsets", namespace, "web")
    create(api, namespace)
    await_pods(api, namespace, "web-0", "web-1")
    api.delete(one, {"propagationPolicy": propagation}).expect(200)
    eventually(lambda: api.get(one).status, lambda status: status == 404)
    if propagation == "Foreground":
        assert pods(api, namespace) == {}
    await_pods(api, namespace)
