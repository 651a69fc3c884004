"""Events by events.k8s.io/v1: how a series grows, and what the core view shows."""

from typing import Any

from tests.conformance.api import Api, Json, version
from tests.conformance.sample_objects import config_map, path

TIME = "2026-01-01T00:00:00.000000Z"
LATER = "2026-01-01T00:01:00.000000Z"


def event(namespace: str, **fields: Any) -> Json:
    """The smallest event that is taken, with these fields."""
    return {
        "metadata": {"namespace": namespace, "name": "e"},
        "regarding": {"namespace": namespace},
        "eventTime": TIME,
        "reportingController": "example.com/tester",
        "reportingInstance": "tester-1",
        "action": "Try",
        "reason": "Tried",
        "type": "Normal",
        **fields,
    }


def regarding(found: Json) -> Json:
    metadata = found["metadata"]
    return {
        **{key: found[key] for key in ("apiVersion", "kind")},
        **{key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion")},
    }


def test_the_smallest_event_is_taken_and_comes_back_as_sent(api: Api, namespace: str) -> None:
    created = api.post(path("events", namespace), event(namespace)).expect(201)
    assert (created["apiVersion"], created["kind"]) == ("events.k8s.io/v1", "Event")
    assert created["eventTime"] == TIME
    assert {key: created[key] for key in ("action", "reason", "type")} == {
        "action": "Try",
        "reason": "Tried",
        "type": "Normal",
    }
    assert api.get(path("events", namespace, "e")).expect(200) == created


def test_a_series_grows_by_merge_patch(api: Api, namespace: str) -> None:
    one = path("events", namespace, "e")
    created = api.post(path("events", namespace), event(namespace, note="first")).expect(201)
    grown = api.merge(one, {"series": {"count": 2, "lastObservedTime": LATER}}).expect(200)
    assert grown["series"] == {"count": 2, "lastObservedTime": LATER}
    assert version(grown) > version(created)
    assert api.merge(one, {"series": {"count": 7, "lastObservedTime": LATER}}).expect(200)["series"]["count"] == 7
    api.merge(path("events", namespace, "expired"), {"series": {"count": 2}}).expect(404, "NotFound")


def test_the_core_view_shows_the_same_event_without_its_old_fields(api: Api, namespace: str) -> None:
    subject = regarding(api.post(path("configmaps", namespace), config_map("a")).expect(201))
    created = api.post(path("events", namespace), event(namespace, note="said", regarding=subject)).expect(201)
    core = api.get(f"/api/v1/namespaces/{namespace}/events/e").expect(200)
    assert core["apiVersion"] == "v1"
    assert core["metadata"]["uid"] == created["metadata"]["uid"]
    assert (core["message"], core["involvedObject"], core["reportingComponent"]) == (
        "said",
        subject,
        "example.com/tester",
    )
    assert (core["source"], core["firstTimestamp"], core["lastTimestamp"]) == ({}, None, None)
    query = f"involvedObject.name=a,involvedObject.uid={subject['uid']},type=Normal"
    for selected, count in ((query, 1), ("involvedObject.name=b", 0)):
        found = api.get(f"/api/v1/namespaces/{namespace}/events", fieldSelector=selected).expect(200)
        assert len(found["items"]) == count
