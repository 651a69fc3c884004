"""The rules of list and watch, as tables: what was answered, what follows from it. No I/O, no time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from memcached_operator.kube.errors import (
    AuthenticationUnavailable,
    Expired,
    Forbidden,
    KubeError,
    MalformedAnswer,
    NotFound,
    ServerError,
    StreamStalled,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    classify,
    classify_response,
)
from memcached_operator.kube.watch import (
    BACKOFF_FIRST_S,
    BACKOFF_LONGEST_S,
    BACKOFF_RESET_S,
    MENDABLE_CAP_S,
    RESUME_TRIES,
    SHORT_WATCH_S,
    STREAMING_TRIES,
    Cause,
    Mode,
    Pause,
    Watch,
)

HTML = b"<html><body>Please log in</body></html>"
TEXT_404 = classify_response(404, b"404 page not found\n")


@dataclass(frozen=True)
class Thing:
    namespace: str
    name: str
    uid: str
    resource_version: str
    size: int


class _ThingMeta(msgspec.Struct):
    name: str
    uid: str
    resourceVersion: str
    namespace: str = ""


class _ThingObject(msgspec.Struct):
    metadata: _ThingMeta
    size: int = 0


def decode(raw: msgspec.Raw) -> Thing:
    thing = msgspec.json.decode(raw, type=_ThingObject)
    meta = thing.metadata
    return Thing(meta.namespace, meta.name, meta.uid, meta.resourceVersion, thing.size)


@dataclass
class Sink:
    """Writes down what it is told."""

    told: list[tuple[Any, ...]] = field(default_factory=list)

    def begin(self) -> None:
        self.told.append(("begin",))

    def put(self, record: Thing) -> None:
        self.told.append(("put", record.name, record.resource_version))

    def remove(self, record: Thing) -> None:
        self.told.append(("remove", record.name, record.resource_version))

    def complete(self, resource_version: str) -> None:
        self.told.append(("complete", resource_version))

    def unreadable(self, namespace: str, name: str, gone: bool, why: str) -> None:
        self.told.append(("unreadable", namespace, name, gone))

    def take(self) -> list[tuple[Any, ...]]:
        told, self.told = self.told, []
        return told


def thing(name: str, version: object, **fields: object) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ns", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    } | fields


def event(type_: str, object_: object) -> bytes:
    return json.dumps({"type": type_, "object": object_}).encode()


def bookmark(version: object, *, end: object = None) -> bytes:
    annotations = {} if end is None else {"annotations": {"k8s.io/initial-events-end": end}}
    return event("BOOKMARK", {"kind": "Thing", "metadata": {"resourceVersion": str(version), **annotations}})


def status(code: int, reason: str = "", **fields: object) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no", **fields}


def page(version: str, *names: str, more: str = "", items: list[Any] | None = None) -> bytes:
    listed = [thing(name, 1) for name in names] if items is None else items
    meta = {"resourceVersion": version} | ({"continue": more} if more else {})
    return json.dumps({"kind": "ThingList", "metadata": meta, "items": listed}).encode()


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def watch(sink: Sink) -> Watch[Thing]:
    """A watch that has sent nothing yet; its jitter always draws the upper bound."""
    return Watch(decode, sink, label_selector="app=x", page_size=2, uniform=lambda low, high: high)


@pytest.fixture
def resumed(watch: Watch[Thing], sink: Sink) -> Watch[Thing]:
    """A watch whose picture was complete at version 100 and that has sent its first resumed request."""
    watch.next_request()
    watch.line(bookmark(100, end="true"))
    watch.ended(None, 300.0, 1000)
    assert watch.next_request().query["resourceVersion"] == "100"
    sink.take()
    return watch


@pytest.fixture
def paging(watch: Watch[Thing], sink: Sink) -> Watch[Thing]:
    """A watch whose server has no streaming lists and that has asked for the first page."""
    watch.next_request()
    watch.ended(classify(422), 0.1, 0)
    assert watch.next_request().mode is Mode.PAGES
    sink.take()
    return watch


# What is asked for.


def test_the_first_request_is_a_streaming_list_of_the_newest_state(watch: Watch[Thing], sink: Sink) -> None:
    request = watch.next_request()
    assert (request.mode, request.streams) == (Mode.STREAMING_LIST, True)
    assert request.query == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "600",
        "labelSelector": "app=x",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    assert sink.take() == [("begin",)]


def test_a_resumed_watch_asks_for_what_came_after_and_no_match(resumed: Watch[Thing]) -> None:
    assert resumed.next_request().query == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "600",
        "labelSelector": "app=x",
        "resourceVersion": "100",
    }


def test_each_watch_draws_its_own_timeout(sink: Sink) -> None:
    draws = iter([310.9, 599.0])
    watch = Watch(decode, sink, uniform=lambda low, high: next(draws))
    assert [watch.next_request().query["timeoutSeconds"] for _ in range(2)] == ["310", "599"]


def test_without_a_selector_none_is_sent(sink: Sink) -> None:
    assert "labelSelector" not in Watch(decode, sink).next_request().query


# The picture, by a streaming list.


def test_a_streaming_list_is_complete_at_its_end_mark_and_goes_on_as_a_watch(watch: Watch[Thing], sink: Sink) -> None:
    watch.next_request()
    watch.line(event("ADDED", thing("b", 90)))
    watch.line(event("ADDED", thing("a", 20)))
    assert watch.resource_version == ""
    watch.line(bookmark(100, end="true"))
    assert watch.resource_version == "100"
    watch.line(event("MODIFIED", thing("a", 101)))
    assert watch.resource_version == "101"
    assert sink.take() == [("begin",), ("put", "b", "90"), ("put", "a", "20"), ("complete", "100"), ("put", "a", "101")]


@pytest.mark.parametrize("end", [None, "false", "yes"])
def test_only_a_true_end_mark_completes_a_picture(watch: Watch[Thing], end: object) -> None:
    watch.next_request()
    watch.line(bookmark(100, end=end))
    assert watch.resource_version == ""
    assert watch.next_request().mode is Mode.STREAMING_LIST


def test_an_end_mark_without_a_version_is_no_picture(watch: Watch[Thing], sink: Sink) -> None:
    watch.next_request()
    with pytest.raises(MalformedAnswer, match="bookmark without a resourceVersion"):
        watch.line(bookmark("", end="true"))
    assert sink.take() == [("begin",)]


def test_a_streaming_list_that_breaks_before_its_end_mark_begins_anew(watch: Watch[Thing], sink: Sink) -> None:
    watch.next_request()
    watch.line(event("ADDED", thing("a", 20)))
    assert watch.ended(None, 5.0, 300).cause is Cause.SHORT
    assert watch.next_request().mode is Mode.STREAMING_LIST
    assert sink.take() == [("begin",), ("put", "a", "20"), ("begin",)]


@pytest.mark.parametrize("code", [400, 422])
def test_a_server_that_refuses_streaming_lists_is_asked_for_pages_at_once_and_for_good(
    watch: Watch[Thing], code: int
) -> None:
    watch.next_request()
    assert watch.ended(classify(code), 0.1, 0) == Pause(0.0, Cause.UNSUPPORTED, 1)
    assert watch.next_request().mode is Mode.PAGES
    watch.page(page("7"))
    watch.ended(None, 0.1, 100)
    watch.next_request()
    watch.ended(Expired(410), 0.1, 100)
    assert watch.next_request().mode is Mode.PAGES


@pytest.mark.parametrize(
    "failure",
    [classify(500), StreamStalled("no byte"), MalformedAnswer("HTML"), None],
    ids=["500", "silent", "malformed", "clean end"],
)
def test_pages_are_tried_after_streaming_lists_failed_again(watch: Watch[Thing], failure: KubeError | None) -> None:
    for _ in range(STREAMING_TRIES):
        assert watch.next_request().mode is Mode.STREAMING_LIST
        watch.ended(failure, 70.0, 0)
    assert watch.next_request().mode is Mode.PAGES


@pytest.mark.parametrize(
    "failure",
    [Unreachable("refused"), classify(503), classify(502), classify(403), classify(404), classify(429), classify(401)],
    ids=lambda failure: str(failure)[:7],
)
def test_trouble_that_says_nothing_about_streaming_lists_changes_nothing(
    watch: Watch[Thing], failure: KubeError
) -> None:
    for _ in range(STREAMING_TRIES + 1):
        assert watch.next_request().mode is Mode.STREAMING_LIST
        watch.ended(failure, 0.1, 0)


# The picture, by pages.


def test_pages_are_followed_by_their_continue_token_with_the_same_selector(paging: Watch[Thing], sink: Sink) -> None:
    assert paging.page(page("7", "a", "b", more="token/+")) is False
    assert paging.ended(None, 0.1, 100) == Pause(0.0, Cause.CLOSED, 0)
    assert paging.resource_version == ""
    request = paging.next_request()
    assert (request.mode, request.streams) == (Mode.PAGES, False)
    assert request.query == {"labelSelector": "app=x", "limit": "2", "continue": "token/+"}
    assert paging.page(page("7", "c")) is True
    assert paging.ended(None, 0.1, 100) == Pause(0.0, Cause.CLOSED, 0)
    assert paging.next_request().query["resourceVersion"] == "7"
    assert sink.take() == [("put", "a", "1"), ("put", "b", "1"), ("put", "c", "1"), ("complete", "7")]


def test_a_list_at_once_has_no_resource_version_and_no_watch_in_its_query(paging: Watch[Thing]) -> None:
    assert paging.next_request().query == {"labelSelector": "app=x", "limit": "2"}


def test_an_expired_token_on_page_two_means_the_whole_list_without_pages(paging: Watch[Thing], sink: Sink) -> None:
    paging.page(page("7", "a", "b", more="token"))
    paging.ended(None, 0.1, 100)
    paging.next_request()
    sink.take()
    assert paging.ended(classify_response(410, json.dumps(status(410, "Expired")).encode()), 0.1, 0).seconds == 0.0
    assert paging.next_request().query == {"labelSelector": "app=x"}
    assert sink.take() == [("begin",)]
    paging.page(page("9", "a", "b", "c"))
    paging.ended(None, 0.1, 100)
    # The next picture is asked for in pages again.
    paging.next_request()
    paging.ended(Expired(410), 1.0, 100)
    assert paging.next_request().query == {"labelSelector": "app=x", "limit": "2"}


def test_a_page_that_does_not_arrive_is_asked_for_again(paging: Watch[Thing], sink: Sink) -> None:
    paging.page(page("7", "a", "b", more="token"))
    paging.ended(None, 0.1, 100)
    paging.next_request()
    assert paging.ended(Unreachable("reset"), 0.1, 0).cause is Cause.UNREACHABLE
    assert paging.next_request().query["continue"] == "token"
    assert ("begin",) not in sink.take()


def test_a_token_that_the_server_refuses_is_not_sent_again(paging: Watch[Thing], sink: Sink) -> None:
    paging.page(page("7", "a", "b", more="token"))
    paging.ended(None, 0.1, 100)
    paging.next_request()
    sink.take()
    paging.ended(classify(400), 0.1, 0)
    assert "continue" not in paging.next_request().query
    assert sink.take() == [("begin",)]


def test_an_empty_list_is_a_picture_also_when_its_items_are_null(paging: Watch[Thing], sink: Sink) -> None:
    assert paging.page(b'{"kind":"ThingList","metadata":{"resourceVersion":"7"},"items":null}') is True
    assert sink.take() == [("complete", "7")]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"kind":"ThingList","metadata":{},"items":[]}', "without a resourceVersion"),
        (b'{"kind":"ThingList","items":[]}', "without a resourceVersion"),
        (HTML, "not a list of objects: .*Please log in"),
        (b"", "not a list of objects"),
        (b'{"kind":"ThingList","metadata":{"resourceVersion":"7"},"items":[', "not a list of objects"),
        (b'{"items":' + b"[" * 100_000, "not a list of objects"),
    ],
)
def test_what_is_no_list_is_malformed_and_completes_nothing(
    paging: Watch[Thing], sink: Sink, body: bytes, words: str
) -> None:
    with pytest.raises(MalformedAnswer, match=words):
        paging.page(body)
    assert sink.take() == []
    assert paging.ended(MalformedAnswer(words), 0.1, len(body)).cause is Cause.MALFORMED
    assert paging.next_request().mode is Mode.PAGES


@pytest.mark.parametrize(("code", "kind"), [(410, Expired), (403, Forbidden), ("410", ServerError)])
def test_a_status_delivered_as_a_page_is_an_error(paging: Watch[Thing], code: Any, kind: type[KubeError]) -> None:
    with pytest.raises(kind):
        paging.page(json.dumps(status(code)).encode())


def test_an_object_of_a_list_that_does_not_decode_leaves_the_others(paging: Watch[Thing], sink: Sink) -> None:
    items = [thing("a", 1, size="big"), thing("b", 2)]
    assert paging.page(page("7", items=items)) is True
    assert sink.take() == [("unreadable", "ns", "a", False), ("put", "b", "2"), ("complete", "7")]


# The events of a watch.


def test_every_type_of_event_moves_the_version(resumed: Watch[Thing], sink: Sink) -> None:
    seen = []
    for line in (
        event("ADDED", thing("a", 101)),
        event("MODIFIED", thing("a", 102)),
        event("DELETED", thing("a", 103)),
        bookmark(110),
        event("MODIFIED", thing("b", 111, size="big")),
        event("DELETED", thing("b", 112, size="big")),
    ):
        resumed.line(line)
        seen.append(resumed.resource_version)
    assert seen == ["101", "102", "103", "110", "111", "112"]
    assert sink.take() == [
        ("put", "a", "101"),
        ("put", "a", "102"),
        ("remove", "a", "103"),
        ("unreadable", "ns", "b", False),
        ("unreadable", "ns", "b", True),
    ]


@pytest.mark.parametrize(
    "object_",
    [
        b'{"metadata":{"namespace":"ns","name":"a","resourceVersion":"101"}}',
        b'{"metadata":{"namespace":"ns","name":"a","uid":"\xff","resourceVersion":"101"}}',
        b'{"metadata":{"namespace":"ns","name":"a","uid":7,"resourceVersion":"101"}}',
    ],
    ids=["a field is missing", "no UTF-8", "a wrong type"],
)
def test_an_object_that_does_not_decode_is_told_and_passed(resumed: Watch[Thing], sink: Sink, object_: bytes) -> None:
    resumed.line(b'{"type":"ADDED","object":' + object_ + b"}")
    assert sink.take() == [("unreadable", "ns", "a", False)]
    assert resumed.resource_version == "101"


def test_an_event_without_an_object_moves_nothing(resumed: Watch[Thing], sink: Sink) -> None:
    resumed.line(b'{"type":"ADDED"}')
    assert sink.take() == [("unreadable", "", "", False)]
    assert resumed.resource_version == "100"


@pytest.mark.parametrize(
    "object_",
    [
        {
            "kind": "Pod",
            "metadata": {"resourceVersion": "150", "creationTimestamp": None},
            "spec": {"containers": None},
        },
        {
            "kind": "Deployment",
            "metadata": {"resourceVersion": "150"},
            "spec": {"selector": None, "template": {"metadata": {}, "spec": {"containers": None}}, "replicas": 0},
            "status": {},
        },
        {"metadata": {"resourceVersion": "150", "annotations": None}},
    ],
)
def test_a_bookmark_of_a_built_in_kind_moves_the_version_and_is_no_object(
    resumed: Watch[Thing], sink: Sink, object_: object
) -> None:
    resumed.line(event("BOOKMARK", object_))
    assert resumed.resource_version == "150"
    assert sink.take() == []


@pytest.mark.parametrize("object_", [b"{}", b'{"metadata":{"resourceVersion":7}}', b'{"metadata":{}}'])
def test_a_bookmark_without_a_version_is_malformed(resumed: Watch[Thing], object_: bytes) -> None:
    with pytest.raises(MalformedAnswer, match="a bookmark without"):
        resumed.line(b'{"type":"BOOKMARK","object":' + object_ + b"}")
    assert resumed.resource_version == "100"


@pytest.mark.parametrize(
    "line",
    [HTML, b"[]", b'"ADDED"', b"{}", b'{"type":"RENAMED","object":{}}', b'{"type":7}', b'{"kind":"Thing"}', b"\xff"],
)
def test_what_is_no_event_is_malformed_and_quoted(resumed: Watch[Thing], line: bytes) -> None:
    with pytest.raises(MalformedAnswer, match="not a watch event: '"):
        resumed.line(line)
    assert resumed.resource_version == "100"


# The end of the bytes.


def test_a_whole_last_line_without_its_newline_counts(resumed: Watch[Thing], sink: Sink) -> None:
    resumed.last_line(event("ADDED", thing("a", 101)))
    assert (resumed.resource_version, sink.take()) == ("101", [("put", "a", "101")])


@pytest.mark.parametrize("length", [1, 9, 40, -1])
def test_half_a_last_line_is_dropped_and_comes_again_with_the_next_watch(
    resumed: Watch[Thing], sink: Sink, length: int
) -> None:
    resumed.last_line(event("ADDED", thing("a", 101))[:length])
    assert (resumed.resource_version, sink.take()) == ("100", [])


def test_no_last_line_is_no_error(resumed: Watch[Thing]) -> None:
    resumed.last_line(b"")
    resumed.last_line(b" \r\n")


def test_a_proxys_page_without_a_newline_is_not_taken_for_half_an_event(resumed: Watch[Thing]) -> None:
    with pytest.raises(MalformedAnswer, match="Please log in"):
        resumed.last_line(HTML)


def test_an_error_event_without_its_newline_is_still_an_error(resumed: Watch[Thing]) -> None:
    with pytest.raises(Expired):
        resumed.last_line(event("ERROR", status(410, "Expired")))


# 410 in its four shapes.


def on_list_page(watch: Watch[Thing]) -> KubeError:
    return classify_response(410, json.dumps(status(410, "Expired")).encode())


def in_the_stream(watch: Watch[Thing]) -> KubeError:
    with pytest.raises(KubeError) as caught:
        watch.line(event("ERROR", status(410, "Gone")))
    return caught.value


def as_a_status(watch: Watch[Thing]) -> KubeError:
    with pytest.raises(KubeError) as caught:
        watch.last_line(json.dumps(status(410, "Expired")).encode())
    return caught.value


def at_the_start(watch: Watch[Thing]) -> KubeError:
    return classify_response(410, b"gone")


@pytest.mark.parametrize("shape", [on_list_page, at_the_start, in_the_stream, as_a_status])
def test_each_shape_of_410_means_a_new_picture_at_once(
    resumed: Watch[Thing], sink: Sink, shape: Callable[[Watch[Thing]], KubeError]
) -> None:
    error = shape(resumed)
    assert isinstance(error, Expired)
    assert resumed.ended(error, 0.1, 200) == Pause(0.0, Cause.EXPIRED, 1)
    assert resumed.resource_version == ""
    assert resumed.next_request().mode is Mode.STREAMING_LIST
    assert sink.take() == [("begin",)]


def test_pictures_that_expire_at_once_again_and_again_are_asked_for_ever_more_slowly(watch: Watch[Thing]) -> None:
    delays = []
    for _ in range(4):
        watch.next_request()
        watch.line(bookmark(100, end="true"))
        delays.append(watch.ended(Expired(410), 0.1, 300).seconds)
    assert delays == [0.0, 1.6, 3.2, 6.4]


# What each other failure of a resumed watch costs.

KEEPS = "100"
NEW_PICTURE = ""


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
        (classify(400), 0.1, 0, Cause.UNSUPPORTED, NEW_PICTURE, 0.0),
        (classify(405), 0.1, 0, Cause.OTHER, KEEPS, BACKOFF_FIRST_S),
        (AuthenticationUnavailable("no token"), 0.0, 0, Cause.OTHER, KEEPS, BACKOFF_FIRST_S),
        (Unreachable("refused"), 0.1, 0, Cause.UNREACHABLE, KEEPS, BACKOFF_FIRST_S),
        (Unreachable("cut in a chunk"), 90.0, 500, Cause.UNREACHABLE, KEEPS, BACKOFF_FIRST_S),
        (MalformedAnswer("a line over the bound"), 20.0, 500, Cause.MALFORMED, KEEPS, BACKOFF_FIRST_S),
        # Silence after a first bookmark: the connection died. Silence from the start: the version may be a future one.
        (StreamStalled("no byte"), 130.0, 500, Cause.SILENT, KEEPS, 0.0),
        (StreamStalled("no byte"), 70.0, 0, Cause.SILENT, NEW_PICTURE, 0.0),
        (None, SHORT_WATCH_S, 0, Cause.SILENT, NEW_PICTURE, 0.0),
        (None, 300.0, 0, Cause.SILENT, NEW_PICTURE, 0.0),
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
        (
            status(
                504,
                "Timeout",
                details={"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1},
            ),
            Cause.TOO_LARGE,
            NEW_PICTURE,
            1 + BACKOFF_FIRST_S,
        ),
        ({"kind": "Thing"}, Cause.SERVER_ERROR, KEEPS, BACKOFF_FIRST_S),
    ],
)
def test_an_error_event_in_the_middle_is_judged_like_an_answer(
    resumed: Watch[Thing], object_: object, cause: Cause, version: str, delay_s: float
) -> None:
    with pytest.raises(KubeError) as caught:
        resumed.line(event("ERROR", object_))
    pause = resumed.ended(caught.value, 20.0, 300)
    assert (pause.cause, resumed.resource_version) == (cause, version)
    assert pause.seconds == pytest.approx(delay_s)


def test_a_short_watch_with_an_event_is_no_failure(resumed: Watch[Thing]) -> None:
    resumed.line(event("ADDED", thing("a", 101)))
    assert resumed.ended(None, 0.2, 200) == Pause(0.0, Cause.CLOSED, 0)


def test_a_short_watch_with_a_bookmark_alone_is_a_failure(resumed: Watch[Thing]) -> None:
    resumed.line(bookmark(101))
    assert resumed.ended(None, 0.2, 200).cause is Cause.SHORT


@pytest.mark.parametrize(
    "failure",
    [classify(500), MalformedAnswer("garbage"), None],
    ids=["500", "malformed", "ends at once"],
)
def test_a_resume_that_fails_again_and_again_gives_way_to_a_new_picture(
    resumed: Watch[Thing], failure: KubeError | None
) -> None:
    for _ in range(RESUME_TRIES):
        assert resumed.next_request().mode is Mode.RESUMED
        resumed.ended(failure, 0.1, 10)
    assert resumed.next_request().mode is Mode.STREAMING_LIST


def test_an_unreachable_server_never_costs_a_new_picture(resumed: Watch[Thing]) -> None:
    for _ in range(10 * RESUME_TRIES):
        assert resumed.next_request().mode is Mode.RESUMED
        resumed.ended(Unreachable("refused"), 0.1, 0)


# Backoff.


def test_failures_in_a_row_wait_longer_up_to_the_cap(resumed: Watch[Thing]) -> None:
    pauses = [resumed.ended(Unreachable("refused"), 0.1, 0) for _ in range(8)]
    assert [pause.seconds for pause in pauses] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, BACKOFF_LONGEST_S, BACKOFF_LONGEST_S]
    assert [pause.failures for pause in pauses] == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("error", [Forbidden(403), NotFound(404)])
def test_what_a_person_mends_is_looked_at_every_few_seconds(resumed: Watch[Thing], error: KubeError) -> None:
    assert [resumed.ended(error, 0.1, 0).seconds for _ in range(8)][-1] == MENDABLE_CAP_S


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


def test_half_a_picture_does_not_end_the_row_of_failures(watch: Watch[Thing]) -> None:
    watch.next_request()
    watch.ended(Unreachable("refused"), 0.1, 0)
    watch.next_request()
    watch.line(event("ADDED", thing("a", 1)))
    assert watch.failures == 1
    watch.line(bookmark(100, end="true"))
    assert watch.failures == 0
