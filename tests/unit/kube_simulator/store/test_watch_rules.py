"""Where a watch begins, what it tells of a change, and when: tables, most of them answers of a real API server."""

from __future__ import annotations

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.store.selectors import Selection, selection_of
from kube_simulator.store.store import Change
from kube_simulator.store.watch_rules import (
    Start,
    bookmark,
    event_of,
    next_bookmark_s,
    problems_of,
    start_of,
    worth_a_bookmark,
)
from kube_simulator.values import Json
from tests.unit.kube_simulator.store.examples import LEASES, lease

STREAMING = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
FROM_HERE = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}


@pytest.mark.parametrize(
    ("query", "initial", "revision"),
    [
        ({}, True, 0),
        ({"resourceVersion": ""}, True, 0),
        ({"resourceVersion": "0"}, True, 0),
        ({"resourceVersion": "1"}, False, 1),
        ({"resourceVersion": "0123"}, False, 123),
        ({"limit": "1"}, True, 0),
        ({"continue": "x", "resourceVersion": "5"}, False, 5),
        (STREAMING, True, 0),
        ({**STREAMING, "sendInitialEvents": "whatever"}, True, 0),
        ({**STREAMING, "sendInitialEvents": ""}, True, 0),
        ({**STREAMING, "resourceVersion": "5", "limit": "1"}, True, 5),
        (FROM_HERE, False, 0),
        ({**FROM_HERE, "sendInitialEvents": "0"}, False, 0),
        ({**FROM_HERE, "sendInitialEvents": "FALSE", "resourceVersion": "0"}, False, 0),
        ({**FROM_HERE, "resourceVersion": "5"}, False, 5),
    ],
)
def test_where_a_watch_begins(query: dict[str, str], initial: bool, revision: int) -> None:
    assert start_of(query) == Start(initial, revision, bookmarks=False, timeout_s=0)


@pytest.mark.parametrize(
    ("allowed", "bookmarks"), [("true", True), ("1", True), ("", True), ("x", True), ("false", False), ("0", False)]
)
def test_bookmarks_and_the_timeout_are_the_client_s_to_say(allowed: str, bookmarks: bool) -> None:
    start = start_of({"allowWatchBookmarks": allowed, "timeoutSeconds": "-7"})
    assert (start.bookmarks, start.timeout_s) == (bookmarks, -7)


REQUIRES = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
UNLESS = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
WITH_CONTINUE = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
EXACT = 'Unsupported value: "Exact": supported values: "NotOlderThan"'


@pytest.mark.parametrize(
    ("query", "problems"),
    [
        ({"sendInitialEvents": "true"}, [REQUIRES]),
        ({"sendInitialEvents": "false"}, [REQUIRES]),
        ({"sendInitialEvents": ""}, [REQUIRES]),
        ({"sendInitialEvents": "true", "continue": "x"}, [REQUIRES]),
        ({"sendInitialEvents": "true", "resourceVersionMatch": "Exact", "resourceVersion": "5"}, [REQUIRES, EXACT]),
        (
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact", "continue": "x"},
            [REQUIRES, EXACT, WITH_CONTINUE],
        ),
        ({"resourceVersionMatch": "NotOlderThan"}, [UNLESS]),
        ({"resourceVersionMatch": "NotOlderThan", "resourceVersion": "5"}, [UNLESS]),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "5"}, [UNLESS, EXACT]),
        ({"resourceVersionMatch": "Exact", "continue": "x"}, [UNLESS, EXACT, WITH_CONTINUE]),
        ({"continue": "x"}, [WITH_CONTINUE]),
        ({"continue": "x", "resourceVersion": "0"}, [WITH_CONTINUE]),
        ({**STREAMING, "continue": "x"}, [WITH_CONTINUE]),
        ({"continue": ""}, []),
    ],
)
def test_what_does_not_go_together(query: dict[str, str], problems: list[str]) -> None:
    assert [problem.message for problem in problems_of(query)] == problems


NO_NUMBER = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'


@pytest.mark.parametrize(
    ("query", "code", "reason", "said"),
    [
        ({"resourceVersion": "abc"}, 500, "", NO_NUMBER),
        ({**STREAMING, "resourceVersion": "abc"}, 500, "", NO_NUMBER),
        ({"timeoutSeconds": "0.5"}, 400, "BadRequest", 'strconv.ParseInt: parsing "0.5": invalid syntax'),
        ({"limit": "x"}, 400, "BadRequest", 'strconv.ParseInt: parsing "x": invalid syntax'),
        (
            {"resourceVersion": "abc", "resourceVersionMatch": "NotOlderThan"},
            422,
            "Invalid",
            f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: {UNLESS}',
        ),
    ],
)
def test_what_is_refused_before_a_stream_begins(query: dict[str, str], code: int, reason: str, said: str) -> None:
    with pytest.raises(ApiError) as refused:
        start_of(query)
    assert (refused.value.code, refused.value.reason, refused.value.message) == (code, reason, said)


# What a change is to whom.


def colored(color: str, revision: int) -> Json:
    made = lease("a", labels={"color": color})
    made["metadata"]["resourceVersion"] = str(revision)
    return made


RED, GREEN = colored("red", 5), colored("green", 5)
RED_NOW, GREEN_NOW = colored("red", 9), colored("green", 9)
EVERYTHING = Selection()
ONLY_RED = selection_of(LEASES, {"labelSelector": "color=red"})


@pytest.mark.parametrize(
    ("change", "selection", "expected"),
    [
        (Change("ADDED", "c", 9, RED_NOW, None), EVERYTHING, ("ADDED", RED_NOW)),
        (Change("MODIFIED", "c", 9, RED_NOW, GREEN), EVERYTHING, ("MODIFIED", RED_NOW)),
        (Change("DELETED", "c", 9, RED_NOW, RED), EVERYTHING, ("DELETED", RED_NOW)),
        (Change("ADDED", "c", 9, RED_NOW, None), ONLY_RED, ("ADDED", RED_NOW)),
        (Change("ADDED", "c", 9, GREEN_NOW, None), ONLY_RED, None),
        (Change("MODIFIED", "c", 9, RED_NOW, RED), ONLY_RED, ("MODIFIED", RED_NOW)),
        (Change("MODIFIED", "c", 9, RED_NOW, GREEN), ONLY_RED, ("ADDED", RED_NOW)),
        (Change("MODIFIED", "c", 9, GREEN_NOW, RED), ONLY_RED, ("DELETED", RED_NOW)),
        (Change("MODIFIED", "c", 9, GREEN_NOW, GREEN), ONLY_RED, None),
        (Change("DELETED", "c", 9, RED_NOW, RED), ONLY_RED, ("DELETED", RED_NOW)),
        (Change("DELETED", "c", 9, GREEN_NOW, GREEN), ONLY_RED, None),
    ],
)
def test_what_a_change_is_to_a_selection(
    change: Change, selection: Selection, expected: tuple[str, Json] | None
) -> None:
    assert event_of(change, selection) == expected
    assert RED["metadata"]["resourceVersion"] == "5", "what is stored stays as it is"


def test_a_bookmark_is_an_object_with_nothing_but_a_version() -> None:
    identity = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1"}
    assert bookmark(LEASES, 7) == ("BOOKMARK", {**identity, "metadata": {"resourceVersion": "7"}})
    metadata = {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}
    assert bookmark(LEASES, 7, initial_events_end=True) == ("BOOKMARK", {**identity, "metadata": metadata})


# When.


@pytest.mark.parametrize(
    ("now_s", "ends_at_s", "due_s"),
    [
        (0.0, 1000.0, 60.0),
        (100.0, 161.0, 159.0),
        (100.0, 163.0, 160.0),
        (100.0, 104.0, 102.0),
        (102.0, 104.0, 162.0),
        (100.0, 101.0, 160.0),
    ],
)
def test_a_bookmark_is_due_after_a_minute_or_two_seconds_before_the_end(
    now_s: float, ends_at_s: float, due_s: float
) -> None:
    assert next_bookmark_s(now_s, ends_at_s) == due_s


@pytest.mark.parametrize(
    ("revision", "told", "remaining_s", "worth"),
    [
        (8, 7, 500.0, True),
        (8, 7, 2.0, True),
        (7, 7, 500.0, True),
        (7, 7, 2.0, False),
        (7, 8, 500.0, False),
        (7, 8, 2.0, False),
    ],
)
def test_a_bookmark_before_the_end_must_say_something_new(
    revision: int, told: int, remaining_s: float, worth: bool
) -> None:
    assert worth_a_bookmark(revision, told, remaining_s) is worth
