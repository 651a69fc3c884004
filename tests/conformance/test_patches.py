"""PATCH in its older forms: JSON merge patch, JSON patch, strategic merge patch; and what guards one."""

import pytest

from tests.cluster import Cluster
from tests.conformance.api import (
    JSON,
    MERGE_PATCH,
    OTHER_UID,
    STRATEGIC_MERGE_PATCH,
    Answer,
    Api,
    Json,
    causes,
    statuses_at_once,
    version,
)
from tests.conformance.sample_objects import config_map, deployment, path, widget


@pytest.fixture
def one(api: Api, namespace: str) -> str:
    """The path of a ConfigMap that is there."""
    body = config_map("a", {"k": "1", "l": "2"}, labels={"x": "1"}, finalizers=["example.com/one", "example.com/two"])
    api.post(path("configmaps", namespace), body).expect(201)
    return path("configmaps", namespace, "a")


@pytest.fixture
def web(api: Api, namespace: str) -> str:
    """The path of a Deployment of no pods, with the containers ``web`` and ``side``."""
    body = deployment("web", replicas=0)
    side = {"name": "side", "image": "registry.example.com/side:1", "args": ["--a", "--b"]}
    body["spec"]["template"]["spec"]["containers"].append(side)
    api.post(path("deployments", namespace), body).expect(201)
    return path("deployments", namespace, "web")


@pytest.fixture
def wid(api: Api, namespace: str, widgets: None) -> str:
    """The path of a Widget that is there."""
    api.post(path("widgets", namespace), widget("w", {"size": 2, "notes": ["a", "b"]})).expect(201)
    return path("widgets", namespace, "w")


def containers(found: Json) -> dict[str, Json]:
    return {container["name"]: container for container in found["spec"]["template"]["spec"]["containers"]}


def test_a_merge_patch_sets_merges_and_removes_with_null(api: Api, one: str) -> None:
    patched = api.merge(one, {"data": {"k": "9", "l": None, "m": "3"}, "metadata": {"labels": {"y": "2"}}}).expect(200)
    assert patched["data"] == {"k": "9", "m": "3"}
    assert patched["metadata"]["labels"] == {"x": "1", "y": "2"}
    assert "data" not in api.merge(one, {"data": None}).expect(200)


def test_a_merge_patch_replaces_lists_whole(api: Api, one: str, web: str, wid: str) -> None:
    finalizers = api.merge(one, {"metadata": {"finalizers": ["example.com/two"]}}).expect(200)["metadata"]["finalizers"]
    assert finalizers == ["example.com/two"]
    assert api.merge(wid, {"spec": {"notes": ["c"]}}).expect(200)["spec"]["notes"] == ["c"]
    only = [{"name": "side", "image": "registry.example.com/side:2"}]
    patched = api.merge(web, {"spec": {"template": {"spec": {"containers": only}}}}).expect(200)
    assert set(containers(patched)) == {"side"}
    assert "args" not in containers(patched)["side"]
    api.merge(one, {"metadata": {"finalizers": None}}).expect(200)


def test_a_json_patch_adds_replaces_removes_and_tests(api: Api, wid: str) -> None:
    patched = api.json_patch(
        wid,
        {"op": "test", "path": "/spec/size", "value": 2},
        {"op": "replace", "path": "/spec/size", "value": 3},
        {"op": "add", "path": "/spec/notes/-", "value": "c"},
        {"op": "remove", "path": "/spec/notes/0"},
        {"op": "add", "path": "/metadata/annotations", "value": {"example.com/a": "1"}},
        {"op": "add", "path": "/metadata/annotations/example.com~1b", "value": "2"},
    ).expect(200)
    assert patched["spec"] == {"size": 3, "notes": ["b", "c"]}
    assert patched["metadata"]["annotations"] == {"example.com/a": "1", "example.com/b": "2"}


def test_a_strategic_merge_patch_merges_containers_by_name(api: Api, web: str) -> None:
    change = [{"name": "web", "image": "registry.example.com/web:2"}]
    patched = api.strategic(web, {"spec": {"template": {"spec": {"containers": change}}}}).expect(200)
    assert containers(patched)["web"]["image"] == "registry.example.com/web:2"
    assert containers(patched)["side"]["args"] == ["--a", "--b"]


THIRD = {"name": "third", "image": "registry.example.com/third:1"}


@pytest.mark.parametrize(
    ("changes", "order", "names"),
    [
        ([{"name": "side", "$patch": "delete"}], [], ["web"]),
        ([{"name": "absent", "$patch": "delete"}], [], ["web", "side"]),
        ([THIRD], [], ["third", "web", "side"]),
        ([THIRD, {"$patch": "replace"}], [], ["third"]),
        ([THIRD], ["side", "third", "web"], ["side", "third", "web"]),
        ([], ["side", "web"], ["side", "web"]),
    ],
)
def test_elements_go_come_and_are_ordered_by_directives(
    api: Api, web: str, changes: list[Json], order: list[str], names: list[str]
) -> None:
    """`kubectl apply` sends such patches of what it applied before."""
    ordered = {"$setElementOrder/containers": [{"name": name} for name in order]} if order else {}
    pod = {**({"containers": changes} if changes else {}), **ordered}
    assert list(containers(api.strategic(web, {"spec": {"template": {"spec": pod}}}).expect(200))) == names


@pytest.mark.parametrize("directive", [{"$patch": "replace"}, {"$retainKeys": ["type"]}])
def test_an_object_keeps_no_more_than_a_directive_lets_it(api: Api, web: str, directive: Json) -> None:
    recreated = {**directive, "type": "Recreate"}
    assert api.strategic(web, {"spec": {"strategy": recreated}}).expect(200)["spec"]["strategy"] == {"type": "Recreate"}


def test_lists_of_texts_are_united_ordered_and_diminished(api: Api, one: str) -> None:
    def finalizers(**patch: list[str]) -> list[str]:
        patched = {key.replace("_of_", "/"): [f"example.com/{each}" for each in names] for key, names in patch.items()}
        found = api.strategic(one, {"metadata": patched}).expect(200)["metadata"]["finalizers"]
        return [each.removeprefix("example.com/") for each in found]

    gone, order = "$deleteFromPrimitiveList_of_finalizers", "$setElementOrder_of_finalizers"
    assert finalizers(finalizers=["three"]) == ["three", "one", "two"]
    assert finalizers(**{gone: ["one"], "finalizers": ["four"]}) == ["four", "three", "two"]
    assert finalizers(**{order: ["two", "five", "three", "four"], "finalizers": ["five"]}) == [
        *("two", "five", "three", "four")
    ]


def test_custom_resources_take_no_strategic_merge_patch(api: Api, wid: str) -> None:
    refused = api.strategic(wid, {"spec": {"size": 3}}).expect(415, "UnsupportedMediaType")
    for taken in ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"):
        assert taken in refused["message"]


def test_a_patch_that_cannot_be_taken_is_refused(api: Api, one: str, web: str, wid: str) -> None:
    for content_type in (JSON, "text/plain"):
        api.request("PATCH", one, {}, content_type=content_type).expect(415, "UnsupportedMediaType")
    for content_type in (MERGE_PATCH, STRATEGIC_MERGE_PATCH):
        api.request("PATCH", one, b"{no json", content_type=content_type).expect(400, "BadRequest")
    api.json_patch(one, {"op": "twist", "path": "/data"}).expect(422, "Invalid")
    api.merge(f"{one}-absent", {"data": {}}).expect(404, "NotFound")
    api.merge(f"{wid}-absent/status", {"status": {}}).expect(404, "NotFound")
    api.strategic(f"{web}-absent", {}).expect(404, "NotFound")


def test_a_patch_that_changes_nothing_keeps_the_resource_version(api: Api, one: str, wid: str) -> None:
    before = api.get(one).json
    assert api.merge(one, {"data": {"k": "1"}}).expect(200) == before
    assert api.merge(one, {}, fieldManager="another").expect(200) == before
    assert api.strategic(one, {"data": {"k": "1", "absent": None}}).expect(200) == before
    assert api.json_patch(one, {"op": "replace", "path": "/data/k", "value": "1"}).expect(200) == before

    api.merge(f"{wid}/status", {"status": {"replicas": 2}}).expect(200)
    before = api.get(wid).json
    assert api.merge(f"{wid}/status", {"status": {"replicas": 2}}).expect(200) == before
    assert api.merge(wid, {"spec": {"unknown": 1}}).expect(200) == before, "what is pruned is no change"


def test_a_resource_version_in_a_patch_must_be_the_present_one(api: Api, one: str, wid: str) -> None:
    for target, change in ((one, {"data": {"k": "2"}}), (wid, {"spec": {"size": 5}})):
        before = api.get(target).json
        first = api.merge(target, {"metadata": {"resourceVersion": str(version(before))}, **change}).expect(200)
        assert version(first) > version(before)
        for subresource in ("", "/status") if target == wid else ("",):
            outdated = {"metadata": {"resourceVersion": str(version(before))}}
            api.merge(target + subresource, {**outdated, **change}).expect(409, "Conflict")
        assert api.get(target).json == first


def test_a_wrong_uid_in_a_patch_is_422_but_status_ignores_it(api: Api, one: str, wid: str) -> None:
    wrong = {"metadata": {"uid": OTHER_UID}}
    for target, change in ((one, {"data": {"k": "2"}}), (wid, {"spec": {"size": 5}})):
        refused = api.merge(target, {**wrong, **change}).expect(422, "Invalid")
        assert {field for _, field in causes(refused)} == {"metadata.uid"}
    written = api.merge(f"{wid}/status", {**wrong, "status": {"replicas": 7}}).expect(200)
    assert written["status"]["replicas"] == 7
    assert written["metadata"]["uid"] != OTHER_UID


def test_patches_of_different_fields_at_once_all_succeed(cluster: Cluster, api: Api, one: str) -> None:
    def patch(client: Api, number: int) -> Answer:
        return client.merge(one, {"data": {f"by-{number}": "x"}})

    assert statuses_at_once(cluster, 8, patch) == [200] * 8
    assert {f"by-{number}" for number in range(8)} < api.get(one).json["data"].keys()
