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
    classify_event,
    classify_response,
)
from operator_runtime.client.watch import Watch
from operator_runtime.client.watch_ends import (
    BACKOFF_FIRST_S,
    BACKOFF_LONGEST_S,
    BACKOFF_RESET_S,
    MENDABLE_LONGEST_S,
    RESUME_TRIES,
    SHORT_WATCH_S,
    Cause,
    Pause,
)
from tests.unit.operator_runtime.client.watch_support import Mode, Sink, bookmark, event, mode_of, status
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
    assert mode_of(resumed.next_request()) is Mode.STREAMING_LIST
    assert sink.take() == [("begin",)]


def test_snapshots_that_expire_at_once_again_and_again_are_asked_for_ever_more_slowly(watch: Watch[Thing]) -> None:
    delays = []
    for _ in range(4):
        watch.next_request()
        watch.line(bookmark(100, end="true"))
        delays.append(watch.ended(Expired(410), 0.1, 300).seconds)
    assert delays == [0.0, 1.6, 3.2, 6.4]


# What each other failure of a resumed watch costs.

CAUSES = {"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1}
TOO_LARGE = classify_event(json.dumps(status(504, "Timeout", details=CAUSES)).encode())
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
        (TOO_LARGE, 20.0, 300, Cause.TOO_LARGE, NEW_SNAPSHOT, 1.0 + BACKOFF_FIRST_S),
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
    ("line", "cause"), [(event("ADDED", thing("a", 101)), Cause.CLOSED), (bookmark(101), Cause.SHORT)]
)
def test_a_short_watch_is_a_failure_unless_it_had_an_event(resumed: Watch[Thing], line: bytes, cause: Cause) -> None:
    resumed.line(line)
    assert resumed.ended(None, 0.2, 200).cause is cause


@pytest.mark.parametrize(
    ("failure", "then"),
    [
        (classify(500), Mode.STREAMING_LIST),
        (MalformedAnswer("garbage"), Mode.STREAMING_LIST),
        (None, Mode.STREAMING_LIST),
        (Unreachable("refused"), Mode.RESUMED),
    ],
    ids=["500", "malformed", "ends at once", "unreachable"],
)
def test_a_resume_that_fails_again_and_again_gives_way_to_a_new_snapshot_unless_the_server_is_out_of_reach(
    resumed: Watch[Thing], failure: KubeError | None, then: Mode
) -> None:
    for _ in range(RESUME_TRIES):
        assert mode_of(resumed.next_request()) is Mode.RESUMED
        resumed.ended(failure, 0.1, 10)
    assert mode_of(resumed.next_request()) is then


# Backoff.


REFUSED, EXPIRED_410 = Unreachable("refused"), Expired(410)
Ended = KubeError | tuple[KubeError | None, float, int]
# How watches ended one after the other, briefly and without a byte if nothing else is said, and the pauses then.
ROWS: dict[str, tuple[list[Ended], list[float]]] = {
    "longer up to the cap": ([REFUSED] * 8, [0.8, 1.6, 3.2, 6.4, *[BACKOFF_LONGEST_S] * 4]),
    # A second one in a row says that a new snapshot does not help.
    "the version that an outage made too old": ([REFUSED, REFUSED, EXPIRED_410, EXPIRED_410], [0.8, 1.6, 0.0, 6.4]),
    "one that expired while a person was awaited": ([TEXT_404, TEXT_404, EXPIRED_410], [0.8, 1.6, 0.0]),
    "a person is waited for apart from the server": (
        [REFUSED, Forbidden(403), Forbidden(403)] * 3,
        [0.8, 0.8, 1.6, 1.6, 0.8, 1.6, 3.2, 0.8, 1.6],
    ),
    "a wait that is asked for is a minimum": (
        [*[REFUSED] * 6, TooManyRequests(429, retry_after_s=1.0), Forbidden(403, retry_after_s=9.0)],
        [0.8, 1.6, 3.2, 6.4, *[BACKOFF_LONGEST_S] * 3, 9.0 + BACKOFF_FIRST_S],
    ),
    "two healthy minutes": ([REFUSED, REFUSED, (REFUSED, BACKOFF_RESET_S, 100)], [0.8, 1.6, 0.8]),
    "not for long enough": ([REFUSED, REFUSED, (REFUSED, BACKOFF_RESET_S - 1.0, 100)], [0.8, 1.6, 3.2]),
    "silent for long": ([REFUSED, REFUSED, (REFUSED, BACKOFF_RESET_S, 0)], [0.8, 1.6, 3.2]),
    "a clean end": ([REFUSED, REFUSED, (None, 30.0, 100), REFUSED], [0.8, 1.6, 0.0, 0.8]),
}


@pytest.mark.parametrize(("ends", "pauses_s"), ROWS.values(), ids=ROWS)
def test_failures_in_a_row_wait_longer(resumed: Watch[Thing], ends: list[Ended], pauses_s: list[float]) -> None:
    found = [resumed.ended(*(end if isinstance(end, tuple) else (end, 0.1, 0))) for end in ends]
    assert [pause.seconds for pause in found] == pytest.approx(pauses_s)
    failures = [0 if pause.cause is Cause.CLOSED else 1 for pause in found]
    assert found[-1].failures == (1 if 0 in failures else sum(failures))


@pytest.mark.parametrize("error", [Forbidden(403), NotFound(404)])
def test_what_a_person_mends_is_tried_every_few_seconds_and_then_what_fails_is_a_first_failure(
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
