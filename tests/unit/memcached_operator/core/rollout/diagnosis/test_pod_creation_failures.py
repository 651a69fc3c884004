"""What events say of pods that are not made, or do not start."""

from __future__ import annotations

import json

import pytest

from memcached_operator.core.rollout.diagnosis.pod_creation_failures import (
    Creation,
    creation_of_event,
    why_not_made,
    why_not_mounted,
)
from tests.unit.memcached_operator.support import NAME, NAMESPACE

TIMES = [
    ({"lastTimestamp": "2026-11-21T12:00:09Z"}, 9),
    ({"eventTime": "2026-11-21T12:00:05.123456Z", "lastTimestamp": None}, 5),
    ({"eventTime": "2026-11-21T12:00:05.123456Z", "series": {"lastObservedTime": "2026-11-21T12:00:08.5Z"}}, 8),
    ({}, 0),
    ({"lastTimestamp": "some day"}, 0),
]


def failed_event(ordinal: int, *, at_s: int = 0, reason: str = "FailedCreate", verb: str = "Create") -> Creation:
    how = "successful" if reason == "SuccessfulCreate" else f"failed error: no ({at_s})"
    message = f"{verb} Pod {NAME}-{ordinal} in StatefulSet {NAME} {how}"
    return Creation(NAMESPACE, "a", "u", "1", reason, message, at_s)


@pytest.mark.parametrize(("times", "seconds"), TIMES)
def test_an_event_happened_when_it_was_seen_last(times: dict[str, object], seconds: int) -> None:
    metadata = {"name": "a", "namespace": NAMESPACE, "uid": "u", "creationTimestamp": "2026-11-21T12:00:00Z"}
    found = creation_of_event(
        json.dumps({"metadata": metadata, "reason": "FailedCreate", "message": "no"} | times).encode()
    )
    assert found.at_s == 1795262400 + seconds
    assert (found.reason, found.message) == ("FailedCreate", "no")


def test_the_newest_event_of_the_first_server_of_which_one_tells_counts() -> None:
    events = [
        failed_event(2, at_s=3),
        failed_event(2, at_s=7),
        failed_event(2, at_s=5),
        failed_event(3, at_s=9),
        failed_event(12, at_s=9),
    ]
    assert why_not_made(events, NAME, [1, 2, 3]) == events[1].message
    assert why_not_made(events, NAME, [3]) == events[3].message
    assert why_not_made(events, NAME, [0, 1]) == why_not_made([], NAME, [2]) == ""


def test_older_releases_write_it_in_lower_case() -> None:
    event = failed_event(2, verb="create")
    assert why_not_made([event], NAME, [2]) == event.message


@pytest.mark.parametrize(
    ("reasons", "why"),
    [
        ([], ""),
        (["FailedMount"], "FailedMount: it is so"),
        (["FailedAttachVolume"], "FailedAttachVolume: it is so"),
        (["FailedMount", "Pulling"], ""),
        (["Pulled", "FailedMount"], "FailedMount: it is so"),
        # The scheduler has another clock.
        (["FailedMount", "Scheduled"], "FailedMount: it is so"),
        (["Scheduled"], ""),
    ],
)
def test_why_volumes_are_not_mounted_is_what_the_node_said_last(reasons: list[str], why: str) -> None:
    events = [
        Creation(NAMESPACE, "a", "u", "1", reason, "it is so\nand more", at_s) for at_s, reason in enumerate(reasons)
    ]
    assert str(why_not_mounted(events)) == why
    assert len(str(why_not_mounted([Creation(NAMESPACE, "a", "u", "1", "FailedMount", "x" * 9999, 1)]))) == 300


def test_of_a_server_that_was_made_since_nothing_is_told() -> None:
    made = failed_event(2, at_s=5, reason="SuccessfulCreate")
    assert why_not_made([failed_event(2, at_s=4), failed_event(2, at_s=5), made], NAME, [2]) == ""
    assert why_not_made([failed_event(2, at_s=6), made], NAME, [2]) == failed_event(2, at_s=6).message
    assert why_not_made([failed_event(2, reason="FailedUpdate")], NAME, [2]) == ""
