"""Events: one object in two forms, and the rules of both."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.kinds.events import from_core, to_core
from kube_simulator.resources import Resource
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import NAME_PART, SUBDOMAIN, an, created, problems, resource, updated

EVENTS, CORE = resource("events.events.k8s.io"), resource("events")
TIME, LATER = "2026-01-01T00:00:00.000000Z", "2026-01-01T00:01:00.000000Z"


def event(kind: Resource = EVENTS, **fields: Any) -> Json:
    """The smallest good event of events.k8s.io/v1, stored, with these fields."""
    smallest = {
        "regarding": {"namespace": "ns"},
        "eventTime": TIME,
        "reportingController": "example.com/tester",
        "reportingInstance": "tester-1",
        "action": "Try",
        "reason": "Tried",
        "type": "Normal",
    }
    return created(kind, an(EVENTS, **{**smallest, **fields}))


def wrong(**fields: Any) -> set[str]:
    return problems(EVENTS, event(**fields))


def core(**fields: Any) -> Json:
    body = from_core(an(CORE, **fields))
    return created(CORE, body)


def test_the_smallest_event_is_stored_with_what_is_always_shown() -> None:
    stored = event(note=None, related=None)
    assert stored["deprecatedSource"] == {}
    assert (stored["deprecatedFirstTimestamp"], stored["deprecatedLastTimestamp"]) == (None, None)
    assert not {"note", "related", "series", "deprecatedCount"} & stored.keys()
    assert problems(EVENTS, stored) == set()
    assert event(eventTime="2026-01-01T01:00:00.000000+01:00")["eventTime"] == TIME


def test_core_v1_names_the_fields_otherwise() -> None:
    reference = {"kind": "Pod", "namespace": "ns", "name": "p"}
    source = {"component": "kubelet", "host": "n"}
    seen = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:01:00Z", "count": 2}
    body = an(CORE, involvedObject=reference, message="said", source=source, reason="R", type="Normal", **seen)
    stored = from_core(body)
    assert stored["apiVersion"] == "events.k8s.io/v1"
    assert {key: stored[key] for key in ("regarding", "note", "deprecatedSource", "deprecatedCount", "eventTime")} == {
        "regarding": reference,
        "note": "said",
        "deprecatedSource": source,
        "deprecatedCount": 2,
        "eventTime": None,
    }
    absent = {"eventTime": None, "reportingComponent": "", "reportingInstance": ""}
    assert to_core(stored) == {**absent, **body}
    assert from_core(to_core(stored)) == stored


def test_an_event_of_the_new_form_shows_empty_old_fields_in_core() -> None:
    shown = to_core(event(note="said"))
    assert shown["message"] == "said"
    assert shown["reportingComponent"] == "example.com/tester"
    assert (shown["source"], shown["firstTimestamp"], shown["lastTimestamp"]) == ({}, None, None)
    assert "count" not in shown


@pytest.mark.parametrize(
    ("field", "messages"),
    [
        ("eventTime", {"eventTime: Required value"}),
        ("reportingInstance", {"reportingInstance: Required value"}),
        ("action", {"action: Required value"}),
        ("reason", {"reason: Required value"}),
        ("type", {'type: Invalid value: "": has invalid value: '}),
        (
            "reportingController",
            {
                "reportingController: Required value",
                'reportingController: Invalid value: "": name part must be non-empty',
                f'reportingController: Invalid value: "": {NAME_PART}',
            },
        ),
    ],
)
def test_what_an_event_must_have(field: str, messages: set[str]) -> None:
    assert wrong(**{field: None}) == messages


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"note": "n" * 1025}, 'message: Invalid value: "": can have at most 1024 characters'),
        ({"reason": "r" * 129}, 'reason: Invalid value: "": can have at most 128 characters'),
        ({"action": "a" * 129}, 'action: Invalid value: "": can have at most 128 characters'),
        ({"reportingInstance": "i" * 129}, 'reportingInstance: Invalid value: "": can have at most 128 characters'),
        ({"reportingController": "a b"}, f'reportingController: Invalid value: "a b": {NAME_PART}'),
        ({"reportingController": "A/b"}, f'reportingController: Invalid value: "A/b": prefix part {SUBDOMAIN}'),
        ({"type": "Fatal"}, 'type: Invalid value: "": has invalid value: Fatal'),
        ({"deprecatedCount": 1}, 'count: Invalid value: "": needs to be unset'),
        ({"deprecatedSource": {"host": "x"}}, 'source: Invalid value: "": needs to be unset'),
        ({"deprecatedFirstTimestamp": TIME}, 'firstTimestamp: Invalid value: "": needs to be unset'),
        (
            {"series": {"count": 1, "lastObservedTime": TIME}},
            'series.count: Invalid value: "": should be at least 2',
        ),
        ({"series": {"count": 2}}, "series.lastObservedTime: Required value"),
    ],
)
def test_what_an_event_may_not_be(fields: Json, message: str) -> None:
    assert wrong(**fields) == {message}


def test_an_event_at_its_limits_is_good() -> None:
    series = {"count": 2, "lastObservedTime": TIME}
    assert (
        wrong(note="n" * 1024, reason="r" * 128, action="a" * 128, reportingInstance="i" * 128, series=series) == set()
    )


@pytest.mark.parametrize(
    ("namespace", "subject", "good", "good_in_core"),
    [
        ("ns", "ns", True, True),
        ("ns", "other", True, False),
        ("ns", "", False, False),
        ("default", "", True, True),
        ("default", "ns", True, False),
        ("kube-system", "", True, False),
    ],
)
def test_an_event_stands_in_the_namespace_of_its_subject(
    namespace: str, subject: str, good: bool, good_in_core: bool
) -> None:
    refusal = {f'involvedObject.namespace: Invalid value: "{subject}": does not match event.namespace'}
    for kind, stored, expected in ((EVENTS, event(regarding={"namespace": subject}), good),
                                   (CORE, core(involvedObject={"namespace": subject}), good_in_core)):  # fmt: skip
        stored["metadata"]["namespace"] = namespace
        assert problems(kind, stored) == (set() if expected else refusal)


def test_an_old_event_may_say_almost_anything() -> None:
    subject = {"namespace": "ns"}
    loose = core(involvedObject=subject, count=-1, type="Foo", reason="r" * 300, message="m" * 2000)
    assert problems(CORE, loose) == set()
    timed = problems(CORE, core(involvedObject=subject, eventTime=TIME))
    assert {message.partition(":")[0] for message in timed} == {
        "reportingComponent",
        "reportingInstance",
        "action",
        "reason",
    }


def test_a_series_grows_and_ends() -> None:
    old = event()
    grown = updated(EVENTS, old, {"series": {"count": 2, "lastObservedTime": LATER}})
    assert (grown["series"], problems(EVENTS, grown, old)) == ({"count": 2, "lastObservedTime": LATER}, set())
    ended = updated(EVENTS, grown, {"series": None})
    assert problems(EVENTS, ended, grown) == set()
    assert ended == old


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"note": "x"}, "message", '"x"'),
        ({"eventTime": LATER}, "eventTime", f'"{LATER}"'),
        ({"reason": "Other"}, "reason", '"Other"'),
        ({"type": "Warning"}, "type", '"Warning"'),
        ({"reportingController": "q"}, "reportingController", '"q"'),
        ({"related": None}, "related", "null"),
        ({"deprecatedCount": 3}, "count", "3"),
        (
            {"regarding": {"namespace": "ns", "name": "x"}},
            "involvedObject",
            '{"Kind":"","Namespace":"ns","Name":"x","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}',
        ),
    ],
)
def test_the_rest_of_an_event_stays_unless_it_is_changed_by_core(change: Json, field: str, value: str) -> None:
    old = event(related={"name": "r"})
    new = updated(EVENTS, old, change)
    assert problems(EVENTS, new, old) == {f"{field}: Invalid value: {value}: field is immutable"}
    assert problems(CORE, new, old) == set()
