"""Lists: order, versions, pages, selectors, and the forms other than plain JSON."""

from typing import Any

import pytest

from tests.conformance.api import Api, Json, version
from tests.conformance.sample_objects import config_map, lease, path, widget


def names(found: Json) -> list[str]:
    return [item["metadata"]["name"] for item in found["items"]]


def create(api: Api, resource: str, namespace: str, name: str, **metadata: Any) -> Json:
    body = {"leases": lease, "widgets": widget, "configmaps": config_map}[resource](name, None, **metadata)
    return api.post(path(resource, namespace), body).expect(201)


@pytest.fixture(params=["leases", "widgets"])
def resource(request: pytest.FixtureRequest, widgets: None) -> str:
    """A built-in resource and a custom one, of which a new namespace has no objects."""
    return str(request.param)


def test_a_list_is_sorted_by_key_and_has_a_version_of_its_own(api: Api, namespace: str, resource: str) -> None:
    stored = {name: create(api, resource, namespace, name, labels={"in": namespace}) for name in ("b", "c", "a")}
    found = api.get(path(resource, namespace)).expect(200)
    assert names(found) == ["a", "b", "c"]
    assert version(found) >= version(stored["a"])
    for item in found["items"]:
        assert item["metadata"] == stored[item["metadata"]["name"]]["metadata"]
    everywhere = api.get(path(resource), labelSelector=f"in={namespace}").expect(200)
    assert names(everywhere) == ["a", "b", "c"]
    assert {item["metadata"]["namespace"] for item in everywhere["items"]} == {namespace}


def test_an_empty_list_has_an_empty_list_of_items(api: Api, namespace: str, resource: str) -> None:
    found = api.get(path(resource, namespace)).expect(200)
    assert found["items"] == []
    assert version(found) > 1
    assert api.get(path(resource, f"no-{namespace}")).expect(200)["items"] == [], "a missing namespace is empty too"


def test_pages_together_are_one_snapshot(api: Api, namespace: str, resource: str) -> None:
    collection = path(resource, namespace)
    for name in ("a", "b", "c", "d", "e"):
        create(api, resource, namespace, name)
    first = api.get(collection, limit="2").expect(200)
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3

    create(api, resource, namespace, "ee")
    api.delete(path(resource, namespace, "d")).expect(200)
    second = api.get(collection, limit="2", **{"continue": first["metadata"]["continue"]}).expect(200)
    assert (names(second), second["metadata"]["remainingItemCount"]) == (["c", "d"], 1)
    last = api.get(collection, **{"continue": second["metadata"]["continue"]}).expect(200)
    assert names(last) == ["e"]
    assert not last["metadata"].get("continue")
    assert "remainingItemCount" not in last["metadata"]
    assert version(first) == version(second) == version(last)
    assert names(api.get(collection, limit="5").expect(200)) == ["a", "b", "c", "e", "ee"]


def test_a_limit_is_ignored_at_resource_version_0(api: Api, namespace: str, resource: str) -> None:
    """Version 0 is served from the cache, whole; a client that wants pages must leave the version out."""
    newest = [create(api, resource, namespace, name) for name in ("a", "b", "c")][-1]
    # A version that is not older makes sure that the cache has them.
    fresh = {"resourceVersion": str(version(newest)), "resourceVersionMatch": "NotOlderThan"}
    assert len(api.get(path(resource, namespace), **fresh).expect(200)["items"]) == 3
    assert names(api.get(path(resource, namespace), limit="1", resourceVersion="0").expect(200)) == ["a", "b", "c"]


def test_a_list_is_never_older_than_asked_for_and_exact_is_as_of_then(api: Api, namespace: str, resource: str) -> None:
    collection = path(resource, namespace)
    then = version(create(api, resource, namespace, "a"))
    later = version(create(api, resource, namespace, "b"))
    exact = api.get(collection, resourceVersion=str(then), resourceVersionMatch="Exact").expect(200)
    assert (names(exact), version(exact)) == (["a"], then)
    page = api.get(collection, resourceVersion=str(then), limit="2").expect(200)
    assert (names(page), version(page)) == (["a"], then), "a limit asks for that version too"
    newer = api.get(collection, resourceVersion=str(later), resourceVersionMatch="NotOlderThan").expect(200)
    assert names(newer) == ["a", "b"]
    assert names(api.get(collection, resourceVersion=str(later)).expect(200)) == ["a", "b"]
    assert names(api.get(collection, resourceVersion="").expect(200)) == ["a", "b"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("color=red", "ab"),
        ("color==red", "ab"),
        ("color!=red", "cd"),
        ("color", "abc"),
        ("!color", "d"),
        ("color in (red,green)", "abc"),
        ("color notin (red)", "cd"),
        ("color=red,size=1", "a"),
        ("color,size notin (1)", "bc"),
        ("color=", ""),
        ("", "abcd"),
    ],
)
def test_label_selectors(api: Api, namespace: str, resource: str, selector: str, expected: str) -> None:
    for name, labels in (
        ("a", {"color": "red", "size": "1"}),
        ("b", {"color": "red", "size": "2"}),
        ("c", {"color": "green"}),
        ("d", {}),
    ):
        create(api, resource, namespace, name, labels=labels)
    assert names(api.get(path(resource, namespace), labelSelector=selector).expect(200)) == list(expected)


def test_selectors_that_cannot_be_read_or_are_not_offered_are_400(api: Api, namespace: str, resource: str) -> None:
    for selector in ("color in red", "a b"):
        api.get(path(resource, namespace), labelSelector=selector).expect(400, "BadRequest")
    for selector in ("metadata.name", "spec.size=1"):
        refused = api.get(path(resource, namespace), fieldSelector=selector).expect(400, "BadRequest")
        assert selector.split("=")[0] in refused["message"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name==a", "a"),
        ("metadata.name!=a", "b"),
        ("metadata.namespace=default", ""),
        ("metadata.name=a,metadata.namespace!=default", "a"),
        ("metadata.name=absent", ""),
    ],
)
def test_field_selectors(api: Api, namespace: str, resource: str, selector: str, expected: str) -> None:
    for name in "ab":
        create(api, resource, namespace, name)
    assert names(api.get(path(resource, namespace), fieldSelector=selector).expect(200)) == list(expected)
