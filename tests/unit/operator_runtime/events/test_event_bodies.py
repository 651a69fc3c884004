"""One event on the wire: its name, its texts within the API server's limits, its times."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from operator_runtime.events.event_bodies import Event, ObjectReference, event_name, event_of, series_patch
from tests.unit.operator_runtime.events.recorder_support import NOW_NS, SHOP


def event_with(text: str) -> Event:
    return event_of(SHOP, "Normal", text, text, text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop", "shop.ff"),
        ("a" * 253, "a" * 250 + ".ff"),
        ("a" * 249 + ".b", "a" * 249 + ".ff"),
        ("system:node", "clusterrole.ff"),
        ("", "clusterrole.ff"),
    ],
)
def test_a_name_is_made_of_the_objects_and_is_always_valid(name: str, expected: str) -> None:
    assert event_name(ObjectReference("v1", "ClusterRole", "", name, "uid"), 255) == expected


@settings(max_examples=50)
@given(st.text(max_size=12))
def test_a_note_is_cut_to_the_limit_without_half_a_character(text: str) -> None:
    note = text * (1 + 1500 // max(1, len(text)))
    event = event_with(note)
    assert len(event.note.encode()) <= 1024
    assert len(event.reason.encode()) <= 128
    assert len(event.action.encode()) <= 128
    whole = note.encode("utf-8", "replace").decode()
    if len(whole.encode()) > 1024:
        assert event.note.endswith("...")
        assert whole.startswith(event.note[:-3])
        assert len(event.note.encode()) > 1024 - 4
    else:
        assert event.note == whole


def test_a_lone_surrogate_in_a_note_does_not_make_it_fail() -> None:
    assert event_with("file \udcff is missing").note == "file ? is missing"


def test_a_time_on_the_full_second_keeps_its_six_digits() -> None:
    body = event_with("Scaled").body("shop.1", NOW_NS - 123_456_789, controller="operator", instance="pod")
    assert body["eventTime"] == "2026-11-21T10:00:00.000000Z"


def test_a_series_tells_its_count_and_when_it_was_seen_last() -> None:
    assert series_patch(3, NOW_NS) == {"series": {"count": 3, "lastObservedTime": "2026-11-21T10:00:00.123456Z"}}


@pytest.mark.parametrize(
    ("change", "series"),
    [
        ({"version": "43"}, 1),
        ({"uid": "uid-2"}, 2),
        ({"type": "Warning"}, 2),
        ({"reason": "Created"}, 2),
        ({"action": "Create"}, 2),
        ({"note": "from 4 to 5"}, 2),
    ],
)
def test_events_that_differ_in_more_than_the_objects_version_are_no_series(change: dict[str, str], series: int) -> None:
    def identity(uid: str, version: str, **fields: Any) -> tuple[str, ...]:
        regarding = ObjectReference(SHOP.api_version, SHOP.kind, SHOP.namespace, SHOP.name, uid, version)
        return event_of(regarding, *fields.values()).identity

    first = {
        "uid": "1",
        "version": "42",
        "type": "Normal",
        "reason": "Scaled",
        "action": "Scale",
        "note": "from 3 to 4",
    }
    assert len({identity(**first), identity(**(first | change))}) == series
