"""Creating and replacing objects: what the server fills in, and how it refuses a write that rests on old knowledge."""

import re

from tests.conformance.api import OTHER_UID, Api, version
from tests.conformance.sample_objects import config_map, deployment, path


def test_create_answers_201_with_the_object_as_stored(api: Api, namespace: str) -> None:
    created = api.post(path("configmaps", namespace), config_map("a", {"k": "v"})).expect(201)
    metadata = created["metadata"]
    assert (created["apiVersion"], created["kind"], created["data"]) == ("v1", "ConfigMap", {"k": "v"})
    assert (metadata["name"], metadata["namespace"]) == ("a", namespace)
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert version(created) > 1  # what apply's guard against an existing object rests on
    assert "generation" not in metadata
    assert api.get(path("configmaps", namespace, "a")).expect(200) == created


def test_create_overrides_what_only_the_server_may_say(api: Api, namespace: str) -> None:
    claimed = config_map("a", uid="mine", creationTimestamp="2001-01-01T00:00:00Z", namespace=namespace)
    claimed["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z"
    metadata = api.post(path("configmaps", namespace), claimed).expect(201)["metadata"]
    assert metadata["uid"] != "mine"
    assert not metadata["creationTimestamp"].startswith("2001")
    assert "deletionTimestamp" not in metadata


def test_create_on_a_taken_name_is_409_already_exists(api: Api, namespace: str) -> None:
    first = api.post(path("configmaps", namespace), config_map("a", {"by": "first"})).expect(201)
    refused = api.post(path("configmaps", namespace), config_map("a", {"by": "second"})).expect(409, "AlreadyExists")
    assert refused["details"] == {"name": "a", "kind": "configmaps"}
    assert refused["message"] == 'configmaps "a" already exists'
    assert api.get(path("configmaps", namespace, "a")).json == first


def test_generate_name_adds_five_characters_that_differ(api: Api, namespace: str) -> None:
    names = [
        api.post(path("configmaps", namespace), config_map(None, generateName="a-")).expect(201)["metadata"]["name"]
        for _ in range(2)
    ]
    assert all(re.fullmatch("a-[a-z0-9]{5}", name) for name in names)
    assert names[0] != names[1]
    named = api.post(path("configmaps", namespace), config_map("own", generateName="a-")).expect(201)
    assert (named["metadata"]["name"], named["metadata"]["generateName"]) == ("own", "a-")
    api.post(path("configmaps", namespace), config_map(None)).expect(422, "Invalid")


def test_create_is_refused_where_path_and_body_disagree(api: Api, namespace: str) -> None:
    api.post(path("configmaps", namespace), config_map("a", namespace="default")).expect(400, "BadRequest")
    api.post(path("deployments", namespace), config_map("a")).expect(400, "BadRequest")
    missing = api.post(path("configmaps", f"no-{namespace}"), config_map("a")).expect(404, "NotFound")
    assert missing["message"] == f'namespaces "no-{namespace}" not found'
    assert missing["details"]["kind"] == "namespaces"
    versioned = api.post(path("configmaps", namespace), config_map("a", resourceVersion="5"))
    assert versioned.status == 500
    assert "resourceVersion should not be set on objects to be created" in versioned.json["message"]
    api.get(path("configmaps", namespace, "a")).expect(404, "NotFound")


def test_a_dry_run_answers_like_the_write_and_stores_nothing(api: Api, namespace: str) -> None:
    collection, one = path("configmaps", namespace), path("configmaps", namespace, "a")
    tried = api.post(collection, config_map("a"), dryRun="All").expect(201)
    assert tried["metadata"]["uid"]
    api.get(one).expect(404, "NotFound")
    stored = api.post(collection, config_map("a")).expect(201)
    api.post(collection, config_map("a"), dryRun="All").expect(409, "AlreadyExists")
    assert api.merge(one, {"data": {"k": "v"}}, dryRun="All").expect(200)["data"] == {"k": "v"}
    api.delete(one, dryRun="All").expect(200)
    assert api.get(one).json == stored


def test_every_write_raises_the_resource_version_across_kinds_and_objects(api: Api, namespace: str) -> None:
    first = api.post(path("configmaps", namespace), config_map("a")).expect(201)
    second = api.post(path("deployments", namespace), deployment("b", replicas=0)).expect(201)
    third = api.merge(path("configmaps", namespace, "a"), {"data": {"k": "v"}}).expect(200)
    assert version(first) < version(second) < version(third)
    assert third["metadata"]["uid"] == first["metadata"]["uid"]
    assert api.get(path("configmaps", namespace, "a")).json == third


def test_the_generation_counts_changes_of_the_spec_alone(api: Api, namespace: str) -> None:
    one = path("deployments", namespace, "web")
    created = api.post(path("deployments", namespace), deployment("web", replicas=0, generation=7)).expect(201)
    assert created["metadata"]["generation"] == 1
    assert api.merge(one, {"metadata": {"labels": {"a": "b"}}}).expect(200)["metadata"]["generation"] == 1
    assert api.merge(one + "/status", {"status": {"replicas": 0}}).expect(200)["metadata"]["generation"] == 1
    assert api.merge(one, {"spec": {"replicas": 1}}).expect(200)["metadata"]["generation"] == 2
    assert api.merge(one, {"metadata": {"generation": 9}}).expect(200)["metadata"]["generation"] == 2


def test_put_with_an_outdated_resource_version_is_409_and_changes_nothing(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "a")
    created = api.post(path("configmaps", namespace), config_map("a", {"k": "1"})).expect(201)
    replaced = api.put(one, created | {"data": {"k": "2"}}).expect(200)
    assert version(replaced) > version(created)
    refused = api.put(one, created | {"data": {"k": "3"}})
    status = refused.expect(409, "Conflict")
    assert "the object has been modified; please apply your changes to the latest version" in status["message"]
    assert status["details"] == {"name": "a", "kind": "configmaps"}
    assert "Retry-After" not in refused.headers
    assert api.get(one).json == replaced


def test_put_without_a_resource_version_replaces_whatever_is_there(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "a")
    created = api.post(path("configmaps", namespace), config_map("a", {"k": "1"}, labels={"l": "1"})).expect(201)
    replaced = api.put(one, config_map("a", {"other": "2"})).expect(200)
    assert replaced["data"] == {"other": "2"}
    assert "labels" not in replaced["metadata"]
    for kept in ("uid", "creationTimestamp"):
        assert replaced["metadata"][kept] == created["metadata"][kept]


def test_put_of_another_uid_name_or_of_nothing_is_refused(api: Api, namespace: str) -> None:
    one = path("configmaps", namespace, "a")
    api.put(one, config_map("a")).expect(404, "NotFound")
    api.post(path("configmaps", namespace), config_map("a")).expect(201)
    api.put(one, config_map("a", uid=OTHER_UID)).expect(409, "Conflict")
    api.put(one, config_map("b")).expect(400, "BadRequest")
