"""The rules on ended requests, as tables: what ended it, what follows and when. No I/O, no time."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from operator_runtime.client.errors import (
    AuthenticationUnavailable,
    Expired,
    Forbidden,
    KubeError,
    MalformedAnswer,
    NotFound,
    StreamStalled,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    classify,
    classify_response,
)
from operator_runtime.client.watch import (
    BACKOFF_FIRST_S,
    BACKOFF_LONGEST_S,
    BACKOFF_RESET_S,
    MENDABLE_LONGEST_S,
    RESUME_TRIES,
    SHORT_WATCH_S,
    Cause,
    Mode,
    Pause,
    Watch,
)
from tests.unit.operator_runtime.client.watch_support import Sink, bookmark, event, status
from tests.unit.things import Thing, thing

TEXT_404 = classify_response(404, b"404 page not found\n")


# 410 in its four shapes.


def raised(read: Callable[[bytes], object], line: bytes) -> KubeError:
    with pytest.raises(KubeError) as caught:
        read(line)
    return caught.value


EXPIRED = json.dumps(status(410, "Expired")).encode()


@pytest.mark.parametrize(
    "shape",
    [
        lambda watch: classify_response(410, EXPIRED),
        lambda watch: classify_response(410, b"gone"),
        lambda watch: raised(watch.line, event("ERROR", status(410, "Gone"))),
        lambda watch: raised(watch.last_line, EXPIRED),
    ],
    ids=["of a list", "at the start", "in the stream", "as a status"],
)
def test_each_shape_of_410_means_a_new_snapshot_at_once(
    resumed: Watch[Thing], sink: Sink, shape: Callable[[Watch[Thing]], KubeError]
) -> None:
    error = shape(resumed)
    assert isinstance(error, Expired)
    assert resumed.ended(error, 0.1, 200) == Pause(0.0, Cause.EXPIRED, 1)
    assert resumed.resource_version == ""
    assert resumed.next_request().mode is Mode.STREAMING_LIST
    assert sink.take() == [("begin",)]


def test_snapshots_that_expire_at_once_again_and_again_are_asked_for_ever_more_slowly(watch: Watch[Thing]) -> None:
    delays = []
    for _ in range(4):
        watch.next_request()
        watch.line(bookmark(100, end="true"))
        delays.append(watch.ended(Expired(410), 0.1, 300).seconds)
    assert delays == [0.0, 1.6, 3.2, 6.4]


# What each other failure of a resumed watch costs.

TOO_LARGE = {"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1}
KEEPS = "100"
NEW_SNAPSHOT = ""


@pytest.mark.parametrize(
    ("error", "lasted_s", "received_bytes", "cause", "version", "delay_s"),
    [
        (classify(429, "TooManyRequests", "", 5.0), 0.1, 0, Cause.THROTTLED, KEEPS, 5.0 + BACKOFF_FIRST_S),
        (classify(429, "TooManyRequests", "", 0.1), 0.1, 0, Cause.THROTTLED, KEEPS, 0.1 + BACKOFF_FIRST_S),
        (classify(429), 0.1, 0, Cause.THROTTLED, KEEPS, BACKOFF_FIRST_S),
        (classify(500), 0.1, 0, Cause.SERVER_ERROR, KEEPS, BACKOFF_FIRST_S),
        (classify(503, "", "", 5.0), 0.1, 0, Cause.SERVER_ERROR, KEEPS, 5.0 + BACKOFF_FIRST_S),
        (classify(504, "Timeout"), 0.1, 0, Cause.SERVER_ERROR, KEEPS, BACKOFF_FIRST_S),
        (classify(401), 0.1, 0, Cause.UNAUTHORIZED, KEEPS, BACKOFF_FIRST_S),
        (classify(403), 0.1, 0, Cause.FORBIDDEN, KEEPS, BACKOFF_FIRST_S),
        (TEXT_404, 0.1, 0, Cause.NOT_FOUND, KEEPS, BACKOFF_FIRST_S),
        (classify(400), 0.1, 0, Cause.UNSUPPORTED, NEW_SNAPSHOT, 0.0),
        (classify(405), 0.1, 0, Cause.OTHER, KEEPS, BACKOFF_FIRST_S),
        (AuthenticationUnavailable("no token"), 0.0, 0, Cause.OTHER, KEEPS, BACKOFF_FIRST_S),
        (Unreachable("refused"), 0.1, 0, Cause.UNREACHABLE, KEEPS, BACKOFF_FIRST_S),
        (Unreachable("cut in a chunk"), 90.0, 500, Cause.UNREACHABLE, KEEPS, BACKOFF_FIRST_S),
        (MalformedAnswer("a line over the bound"), 20.0, 500, Cause.MALFORMED, KEEPS, BACKOFF_FIRST_S),
        # Silence after a first bookmark: the connection died. Silence from the start: the version may be a future one.
        (StreamStalled("no byte"), 130.0, 500, Cause.SILENT, KEEPS, 0.0),
        (StreamStalled("no byte"), 70.0, 0, Cause.SILENT, NEW_SNAPSHOT, 0.0),
        (None, SHORT_WATCH_S, 0, Cause.SILENT, NEW_SNAPSHOT, 0.0),
        (None, 300.0, 0, Cause.SILENT, NEW_SNAPSHOT, 0.0),
        (None, 300.0, 500, Cause.CLOSED, KEEPS, 0.0),
        (None, SHORT_WATCH_S, 500, Cause.CLOSED, KEEPS, 0.0),
        (None, 0.2, 0, Cause.SHORT, KEEPS, BACKOFF_FIRST_S),
        (None, 0.2, 500, Cause.SHORT, KEEPS, BACKOFF_FIRST_S),
    ],
)
def test_what_ends_a_resumed_watch_decides_what_follows(
    resumed: Watch[Thing],
    error: KubeError | None,
    lasted_s: float,
    received_bytes: int,
    cause: Cause,
    version: str,
    delay_s: float,
) -> None:
    pause = resumed.ended(error, lasted_s, received_bytes)
    assert (pause.cause, resumed.resource_version) == (cause, version)
    assert pause.seconds == pytest.approx(delay_s)
    assert pause.failures == (0 if cause is Cause.CLOSED else 1)


@pytest.mark.parametrize(
    ("object_", "cause", "version", "delay_s"),
    [
        (status(429, "TooManyRequests", details={"retryAfterSeconds": 3}), Cause.THROTTLED, KEEPS, 3 + BACKOFF_FIRST_S),
        (status(500, "InternalError"), Cause.SERVER_ERROR, KEEPS, BACKOFF_FIRST_S),
        (status(403, "Forbidden"), Cause.FORBIDDEN, KEEPS, BACKOFF_FIRST_S),
        (status(401, "Unauthorized"), Cause.UNAUTHORIZED, KEEPS, BACKOFF_FIRST_S),
        (status(504, "Timeout", details=TOO_LARGE), Cause.TOO_LARGE, NEW_SNAPSHOT, 1 + BACKOFF_FIRST_S),
        ({"kind": "Thing"}, Cause.SERVER_ERROR, KEEPS, BACKOFF_FIRST_S),
    ],
)
def test_an_error_event_in_the_middle_is_judged_like_an_answer(
    resumed: Watch[Thing], object_: object, cause: Cause, version: str, delay_s: float
) -> None:
    pause = resumed.ended(raised(resumed.line, event("ERROR", object_)), 20.0, 300)
    assert (pause.cause, resumed.resource_version) == (cause, version)
    assert pause.seconds == pytest.approx(delay_s)


@pytest.mark.parametrize(
    ("line", "cause"), [(event("ADDED", thing("a", 101)), Cause.CLOSED), (bookmark(101), Cause.SHORT)]
)
def test_a_short_watch_is_a_failure_unless_it_had_an_event(resumed: Watch[Thing], line: bytes, cause: Cause) -> None:
    resumed.line(line)
    assert resumed.ended(None, 0.2, 200).cause is cause


@pytest.mark.parametrize(
    "failure",
    [classify(500), MalformedAnswer("garbage"), None],
    ids=["500", "malformed", "ends at once"],
)
def test_a_resume_that_fails_again_and_again_gives_way_to_a_new_snapshot(
    resumed: Watch[Thing], failure: KubeError | None
) -> None:
    for _ in range(RESUME_TRIES):
        assert resumed.next_request().mode is Mode.RESUMED
        resumed.ended(failure, 0.1, 10)
    assert resumed.next_request().mode is Mode.STREAMING_LIST


def test_an_unreachable_server_never_costs_a_new_snapshot(resumed: Watch[Thing]) -> None:
    for _ in range(10 * RESUME_TRIES):
        assert resumed.next_request().mode is Mode.RESUMED
        resumed.ended(Unreachable("refused"), 0.1, 0)


# Backoff.


def test_failures_in_a_row_wait_longer_up_to_the_cap(resumed: Watch[Thing]) -> None:
    pauses = [resumed.ended(Unreachable("refused"), 0.1, 0) for _ in range(8)]
    assert [pause.seconds for pause in pauses] == [0.8, 1.6, 3.2, 6.4, *[BACKOFF_LONGEST_S] * 4]
    assert [pause.failures for pause in pauses] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_the_version_that_an_outage_made_too_old_is_given_up_without_another_pause(resumed: Watch[Thing]) -> None:
    for _ in range(5):
        resumed.ended(Unreachable("refused"), 0.1, 0)
    assert resumed.ended(Expired(410), 0.1, 200) == Pause(0.0, Cause.EXPIRED, 6)
    # A second one in a row says that a new snapshot does not help.
    assert resumed.ended(Expired(410), 0.1, 200).seconds > 0


@pytest.mark.parametrize("error", [Forbidden(403), NotFound(404)])
def test_what_a_person_mends_is_looked_at_every_few_seconds_and_then_what_fails_is_a_first_failure(
    watch: Watch[Thing], error: KubeError
) -> None:
    waits_s = []
    for _ in range(20):
        watch.next_request()
        waits_s.append(watch.ended(error, 0.1, 0).seconds)
    assert waits_s[-1] == MENDABLE_LONGEST_S
    watch.next_request()
    watch.line(bookmark(100, end="true"))
    assert watch.ended(Unreachable("reset"), 5.0, 300).seconds == BACKOFF_FIRST_S


def test_a_version_that_expired_while_a_person_was_awaited_is_given_up_at_once(resumed: Watch[Thing]) -> None:
    for _ in range(20):
        resumed.ended(TEXT_404, 0.1, 0)
    assert resumed.ended(Expired(410), 0.1, 200) == Pause(0.0, Cause.EXPIRED, 21)


def test_waiting_for_a_person_does_not_shorten_the_patience_with_the_server(resumed: Watch[Thing]) -> None:
    errors: list[KubeError] = [Unreachable("refused"), Forbidden(403), Forbidden(403)] * 3
    delays = [resumed.ended(error, 0.1, 0).seconds for error in errors]
    assert delays == [0.8, 0.8, 1.6, 1.6, 0.8, 1.6, 3.2, 0.8, 1.6]


def test_retry_after_is_a_minimum_also_where_a_person_is_awaited(resumed: Watch[Thing]) -> None:
    for _ in range(6):
        resumed.ended(Unreachable("refused"), 0.1, 0)
    assert resumed.ended(TooManyRequests(429, retry_after_s=1.0), 0.1, 0).seconds == BACKOFF_LONGEST_S
    assert resumed.ended(Forbidden(403, retry_after_s=9.0), 0.1, 0).seconds == 9.0 + BACKOFF_FIRST_S


@pytest.mark.parametrize(
    ("lasted_s", "received_bytes", "delay_s"),
    [(BACKOFF_RESET_S, 100, 0.8), (BACKOFF_RESET_S - 1.0, 100, 3.2), (BACKOFF_RESET_S, 0, 3.2)],
    ids=["healthy for long", "not for long enough", "silent"],
)
def test_only_two_healthy_minutes_make_the_backoff_begin_again(
    resumed: Watch[Thing], lasted_s: float, received_bytes: int, delay_s: float
) -> None:
    for _ in range(2):
        resumed.ended(Unreachable("refused"), 0.1, 0)
    assert resumed.ended(Unreachable("reset"), lasted_s, received_bytes).seconds == delay_s


def test_a_clean_end_makes_the_backoff_begin_again(resumed: Watch[Thing]) -> None:
    for _ in range(3):
        resumed.ended(Unreachable("refused"), 0.1, 0)
    resumed.ended(None, 30.0, 100)
    assert resumed.ended(Unreachable("refused"), 0.1, 0) == Pause(0.8, Cause.UNREACHABLE, 1)


@pytest.mark.parametrize(
    "line", [event("ADDED", thing("a", 101)), bookmark(101), event("ADDED", thing("a", 101, size="big"))]
)
def test_a_good_line_ends_the_row_of_failures_but_not_the_patience(resumed: Watch[Thing], line: bytes) -> None:
    for _ in range(3):
        resumed.ended(Unreachable("refused"), 0.1, 0)
    assert resumed.failures == 3
    resumed.line(line)
    assert resumed.failures == 0
    assert resumed.ended(Unauthorized(401), 1.0, 100) == Pause(6.4, Cause.UNAUTHORIZED, 1)


def test_half_a_snapshot_does_not_end_the_row_of_failures(watch: Watch[Thing]) -> None:
    watch.next_request()
    watch.ended(Unreachable("refused"), 0.1, 0)
    watch.next_request()
    watch.line(event("ADDED", thing("a", 1)))
    assert watch.failures == 1
    watch.line(bookmark(100, end="true"))
    assert watch.failures == 0
