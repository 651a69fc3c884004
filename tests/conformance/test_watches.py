"""Watches: what comes in which order, how a stream begins and ends, and what cannot be watched from."""

from typing import Any

import pytest

from tests.conformance.api import FUTURE_VERSION, Api, Event, Json, version
from tests.conformance.sample_objects import lease, path, widget

INITIAL = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@pytest.fixture(params=["leases", "widgets"])
def collection(request: pytest.FixtureRequest, namespace: str, widgets: None) -> str:
    """The path of a built-in resource and of a custom one; the namespace has no objects of them."""
    return path(request.param, namespace)


def create(api: Api, collection: str, name: str, **metadata: Any) -> Json:
    body = (lease if collection.endswith("leases") else widget)(name, None, **metadata)
    return api.post(collection, body).expect(201)


def annotate(api: Api, one: str, value: str) -> Json:
    return api.merge(one, {"metadata": {"annotations": {"example.com/note": value}}}).expect(200)


def label(api: Api, one: str, value: str | None) -> Json:
    return api.merge(one, {"metadata": {"labels": {"color": value}}}).expect(200)


def listed(api: Api, collection: str) -> str:
    return str(version(api.get(collection).expect(200)))


def is_end_of_initial_events(event: Event) -> bool:
    annotations = event.object["metadata"].get("annotations", {})
    return bool(annotations.get(INITIAL_EVENTS_END) == "true")


def keys(events: list[Event]) -> list[tuple[str, str]]:
    return [event.key for event in events]


def test_from_a_version_come_the_changes_after_it_in_order(api: Api, collection: str) -> None:
    create(api, collection, "before")
    start = listed(api, collection)
    with api.watch(collection, resourceVersion=start) as stream:
        assert stream.headers["Content-Type"] == "application/json"
        written = [
            create(api, collection, "a"),
            annotate(api, f"{collection}/a", "1"),
            annotate(api, f"{collection}/before", "1"),
        ]
        api.delete(f"{collection}/a").expect(200)
        events = stream.take(4)
    assert keys(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "before"), ("DELETED", "a")]
    assert [event.object["metadata"] for event in events[:3]] == [object_["metadata"] for object_ in written]
    assert events[0].object["kind"] in ("Lease", "Widget")
    versions = [version(event.object) for event in events]
    assert versions == sorted(set(versions)), "a deletion has a version of its own"
    assert events[3].object["metadata"]["annotations"] == {"example.com/note": "1"}, "the last state comes along"

    with api.watch(collection, resourceVersion=str(versions[1])) as stream:
        assert stream.take(2) == events[2:], "the past is told again in the same words"


def test_a_write_that_changes_nothing_makes_no_event(api: Api, collection: str) -> None:
    create(api, collection, "a")
    annotate(api, f"{collection}/a", "1")
    with api.watch(collection, resourceVersion=listed(api, collection)) as stream:
        annotate(api, f"{collection}/a", "1")
        create(api, collection, "b")
        assert keys(stream.take(1)) == [("ADDED", "b")]


def test_a_deletion_held_up_by_a_finalizer_is_a_modification_first(api: Api, collection: str) -> None:
    create(api, collection, "a", finalizers=["example.com/keep"])
    with api.watch(collection, resourceVersion=listed(api, collection)) as stream:
        api.delete(f"{collection}/a").expect(200)
        api.merge(f"{collection}/a", {"metadata": {"finalizers": None}}).expect(200)
        events = stream.take(2)
    assert keys(events) == [("MODIFIED", "a"), ("DELETED", "a")]
    assert all("deletionTimestamp" in event.object["metadata"] for event in events)


@pytest.mark.parametrize("query", [{}, {"resourceVersion": ""}, {"resourceVersion": "0"}])
def test_without_a_version_the_present_objects_come_first_as_added(
    api: Api, collection: str, query: dict[str, str]
) -> None:
    stored = [create(api, collection, name) for name in ("b", "a")]
    listed(api, collection)
    with api.watch(collection, **query) as stream:
        present = stream.until(lambda event: event.object["metadata"]["uid"] == stored[0]["metadata"]["uid"])
        assert {event.type for event in present} == {"ADDED"}
        annotate(api, f"{collection}/a", "1")
        assert keys(stream.until(lambda event: event.type != "ADDED"))[-1] == ("MODIFIED", "a")


def test_a_label_selector_turns_label_edits_into_added_and_deleted(api: Api, collection: str) -> None:
    one = f"{collection}/a"
    query = {"labelSelector": "color=red", "resourceVersion": listed(api, collection)}
    with api.watch(collection, **query) as stream:
        create(api, collection, "a", labels={"color": "green"})
        entered = label(api, one, "red")
        stayed = annotate(api, one, "1")
        left = label(api, one, "green")
        back = label(api, one, "red")
        events = stream.take(4)
    assert keys(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "a")]
    assert [version(event.object) for event in events] == [
        version(object_) for object_ in (entered, stayed, left, back)
    ]
    gone = events[2].object["metadata"]
    assert gone["labels"] == {"color": "red"}, "the state is the one before the edit"
    assert "deletionTimestamp" not in gone
    assert gone["uid"] == back["metadata"]["uid"], "the object lives on"


def test_a_field_selector_picks_one_object(api: Api, collection: str) -> None:
    query = {"fieldSelector": "metadata.name=b", "resourceVersion": listed(api, collection)}
    with api.watch(collection, **query) as stream:
        create(api, collection, "a")
        create(api, collection, "b")
        api.delete(f"{collection}/b").expect(200)
        assert keys(stream.take(2)) == [("ADDED", "b"), ("DELETED", "b")]


def test_a_watch_of_all_namespaces_sees_this_one(api: Api, collection: str, namespace: str) -> None:
    everywhere = path(collection.rsplit("/", 1)[1])
    query = {"labelSelector": f"in={namespace}", "resourceVersion": listed(api, everywhere)}
    with api.watch(everywhere, **query) as stream:
        create(api, collection, "a", labels={"in": namespace})
        [event] = stream.take(1)
    assert (event.type, event.object["metadata"]["namespace"]) == ("ADDED", namespace)


@pytest.mark.parametrize("start", [None, "0", "1", "list"])
def test_a_streaming_list_is_sorted_and_ends_with_a_marked_bookmark(
    api: Api, collection: str, start: str | None
) -> None:
    for name in ("c", "a", "b"):
        create(api, collection, name)
    newest = annotate(api, f"{collection}/a", "1")
    from_list = {"resourceVersion": listed(api, collection) if start == "list" else start} if start else {}
    # Version 0 and an old one may be answered from a cache that is behind: the list above has made it catch up.
    fresh = {"resourceVersion": str(version(newest)), "resourceVersionMatch": "NotOlderThan"}
    api.get(collection, **fresh).expect(200)
    with api.watch(collection, **INITIAL, **from_list, limit="1") as stream:
        *initial, end = stream.until(is_end_of_initial_events)
        assert keys(initial) == [("ADDED", name) for name in ("a", "b", "c")]
        assert end.type == "BOOKMARK"
        assert version(end.object) >= version(newest)
        assert end.object["kind"] == initial[0].object["kind"]
        assert "name" not in end.object["metadata"]
        annotate(api, f"{collection}/b", "1")
        assert keys(stream.take(1)) == [("MODIFIED", "b")]


def test_a_streaming_list_keeps_to_its_selector_and_may_be_empty(api: Api, collection: str) -> None:
    create(api, collection, "a", labels={"color": "red"})
    create(api, collection, "b")
    for selector, expected in (("color=red", [("ADDED", "a")]), ("color=blue", [])):
        with api.watch(collection, **INITIAL, labelSelector=selector) as stream:
            *initial, _ = stream.until(is_end_of_initial_events)
            assert keys(initial) == expected


def test_a_watch_from_a_version_that_is_forgotten_is_one_error_410_and_the_end(
    api: Api, namespace: str, widgets: None
) -> None:
    """No server remembers what was before the CRD; of a built-in resource, a young one remembers everything."""
    create(api, path("widgets", namespace), "a")
    with api.watch(path("widgets", namespace), resourceVersion="1") as stream:
        [event] = list(stream)
    assert event.type == "ERROR"
    assert {key: event.object[key] for key in ("kind", "status", "reason", "code")} == {
        "kind": "Status",
        "status": "Failure",
        "reason": "Expired",
        "code": 410,
    }
    assert event.object["message"].startswith("too old resource version: 1 (")


def test_a_plain_watch_from_a_future_version_says_nothing_and_ends_in_time(api: Api, collection: str) -> None:
    """Nothing tells such a client that it waits for ever: it must suspect its own silence."""
    with api.watch(collection, resourceVersion=FUTURE_VERSION, timeoutSeconds="1") as stream:
        create(api, collection, "a")
        assert list(stream) == []


def test_a_streaming_list_from_a_future_version_is_one_error_504(api: Api, collection: str) -> None:
    with api.watch(collection, **INITIAL, resourceVersion=FUTURE_VERSION) as stream:
        [event] = list(stream)
    assert (event.type, event.object["code"], event.object["reason"]) == ("ERROR", 504, "Timeout")
    assert [cause["reason"] for cause in event.object["details"]["causes"]] == ["ResourceVersionTooLarge"]
