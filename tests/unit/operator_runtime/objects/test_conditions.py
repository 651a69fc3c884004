"""Conditions: set by their type, with the times of their transitions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from operator_runtime.objects.conditions import Condition, condition_of, rfc3339, set_conditions

OLD, NOW = "2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"
READY = Condition("Ready", "True", "Fine", "All is well.", OLD, 1)
FOREIGN = Condition("Foreign", "True", lastTransitionTime=OLD)


@pytest.mark.parametrize(
    ("before", "status", "since"), [(OLD, "True", OLD), (OLD, "False", NOW), (OLD, "Unknown", NOW), ("", "True", NOW)]
)
def test_the_time_of_a_transition_is_kept_while_the_status_stays(before: str, status: str, since: str) -> None:
    live = Condition("Ready", "True", "Fine", "All is well.", before, 1)
    desired = Condition("Ready", status, "Other", "Another message.")
    (ready,) = set_conditions([live], [desired], generation=2, now=NOW)
    assert ready == Condition("Ready", status, "Other", "Another message.", since, 2)


def test_a_condition_keeps_its_place_and_a_new_one_comes_last() -> None:
    desired = [Condition("Available", "True"), Condition("Ready", "True", "Fine", "All is well.")]
    conditions = set_conditions([READY, FOREIGN], desired, generation=1, now=NOW)
    assert [each.type for each in conditions] == ["Ready", "Foreign", "Available"]
    assert conditions[:2] == (READY, FOREIGN)
    assert conditions[2].lastTransitionTime == NOW


def test_a_condition_is_found_by_its_type_and_a_foreign_one_leaves_as_it_came() -> None:
    assert condition_of([READY, FOREIGN], "Foreign") is FOREIGN
    assert condition_of([READY], "Foreign") is None
    assert condition_of(None, "Foreign") is None
    json = b'{"type":"Foreign","status":"True","reason":"","message":"","lastTransitionTime":"x"}'
    assert msgspec.json.encode(msgspec.json.decode(json, type=Condition)) == json


def test_a_time_is_written_in_utc_to_the_second() -> None:
    moment = datetime(2026, 11, 21, 12, 0, 0, 999, timezone(timedelta(hours=1)))
    assert rfc3339(moment) == NOW
    before = datetime.now(UTC).replace(microsecond=0)
    assert before <= datetime.fromisoformat(rfc3339()) <= datetime.now(UTC)
