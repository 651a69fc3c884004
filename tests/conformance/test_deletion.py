"""Deleting objects: preconditions, finalizers, and what becomes of those that belong to a deleted object."""

from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import OTHER_UID, Api, Json, version
from tests.conformance.sample_objects import config_map, owner_reference, path, widget

FINALIZER = "conformance.example.com/keep"


def create(api: Api, namespace: str, name: str, **metadata: Any) -> Json:
    return api.post(path("configmaps", namespace), config_map(name, **metadata)).expect(201)


def gone(api: Api, one: str) -> bool:
    return api.get(one).status == 404


def test_delete_answers_a_success_that_names_what_was_deleted(api: Api, namespace: str) -> None:
    created = create(api, namespace, "a")
    answer = api.delete(path("configmaps", namespace, "a")).expect(200)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]}
    missing = api.get(path("configmaps", namespace, "a")).expect(404, "NotFound")
    assert missing["message"] == 'configmaps "a" not found'
    assert missing["details"] == {"name": "a", "kind": "configmaps"}
    api.delete(path("configmaps", namespace, "a")).expect(404, "NotFound")


def test_a_name_is_free_again_after_deletion_and_gets_a_new_uid(api: Api, namespace: str) -> None:
    first = create(api, namespace, "a")
    api.delete(path("configmaps", namespace, "a")).expect(200)
    second = create(api, namespace, "a")
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert version(second) > version(first) + 1  # the deletion had one of its own


def test_delete_preconditions_that_do_not_hold_are_409(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "a")
    created = create(api, namespace, "a")["metadata"]
    api.delete(one, {"preconditions": {"uid": OTHER_UID}}).expect(409, "Conflict")
    api.delete(one, {"preconditions": {"resourceVersion": "1"}}).expect(409, "Conflict")
    api.get(one).expect(200)
    api.delete(one, {"preconditions": {key: created[key] for key in ("uid", "resourceVersion")}}).expect(200)
    api.get(one).expect(404, "NotFound")


def test_a_finalizer_keeps_a_deleted_object_until_it_is_removed(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "a")
    created = create(api, namespace, "a", finalizers=[FINALIZER])
    deleted = api.delete(one).expect(200)
    assert deleted["kind"] == "ConfigMap"
    assert deleted["metadata"]["deletionTimestamp"]
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 0
    assert version(deleted) > version(created)
    assert api.get(one).expect(200) == deleted

    assert api.delete(one).expect(200) == deleted, "a second deletion changes nothing"
    assert api.merge(one, {"metadata": {"deletionTimestamp": None}}).expect(200) == deleted, "there is no way back"
    api.post(path("configmaps", namespace), config_map("a")).expect(409, "AlreadyExists")
    more = {"metadata": {"finalizers": [FINALIZER, "conformance.example.com/more"]}}
    refused = api.merge(one, more).expect(422, "Invalid")
    assert refused["details"]["causes"][0]["field"] == "metadata.finalizers"
    assert api.merge(one, {"data": {"k": "still writable"}}).expect(200)["data"]

    assert "finalizers" not in api.merge(one, {"metadata": {"finalizers": None}}).expect(200)["metadata"]
    api.get(one).expect(404, "NotFound")


@pytest.mark.usefixtures("widgets")
def test_the_deletion_of_an_object_with_a_generation_raises_it(api: Api, namespace: str) -> None:
    one = path("widgets", namespace, "w")
    api.post(path("widgets", namespace), widget("w", finalizers=[FINALIZER])).expect(201)
    assert api.delete(one).expect(200)["metadata"]["generation"] == 2
    assert "finalizers" not in api.merge(one, {"metadata": {"finalizers": []}}).expect(200)["metadata"]
    api.get(one).expect(404, "NotFound")


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan"), ("Background", None)]
)
def test_the_propagation_policy_shows_as_a_finalizer_in_the_answer(
    api: Api, namespace: str, policy: str, finalizer: str | None
) -> None:
    create(api, namespace, "a")
    answer = api.delete(path("configmaps", namespace, "a"), {"propagationPolicy": policy}).expect(200)
    if finalizer is None:
        assert answer["status"] == "Success"
    else:
        assert answer["metadata"]["finalizers"] == [finalizer]
        assert answer["metadata"]["deletionTimestamp"]
    eventually(lambda: gone(api, path("configmaps", namespace, "a")), bool)


def test_the_propagation_policy_may_be_a_query_parameter_and_must_be_a_known_one(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "a")
    create(api, namespace, "a")
    api.delete(one, propagationPolicy="Sideways").expect(422, "Invalid")
    api.get(one).expect(200)
    assert api.delete(one, propagationPolicy="Foreground").expect(200)["metadata"]["finalizers"]


def test_what_names_an_owner_that_is_gone_is_collected(api: Api, namespace: str) -> None:
    owner = create(api, namespace, "owner")
    api.delete(path("configmaps", namespace, "owner")).expect(200)
    create(api, namespace, "late", ownerReferences=[owner_reference(owner)])
    eventually(lambda: gone(api, path("configmaps", namespace, "late")), bool)


def test_what_has_another_owner_left_is_kept_and_loses_the_one_reference(api: Api, namespace: str) -> None:
    owners = [create(api, namespace, name) for name in ("first", "second")]
    owned = path("configmaps", namespace, "owned")
    create(api, namespace, "owned", ownerReferences=[owner_reference(owner) for owner in owners])
    api.delete(path("configmaps", namespace, "first")).expect(200)
    left = eventually(lambda: api.get(owned).expect(200), lambda found: len(found["metadata"]["ownerReferences"]) < 2)
    assert [reference["name"] for reference in left["metadata"]["ownerReferences"]] == ["second"]
