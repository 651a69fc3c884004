"""How a watch gets its snapshot: by a streaming list, by pages, and what makes it change from one to the other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from operator_runtime.client.errors import (
    AnswerTooLong,
    Expired,
    Forbidden,
    KubeError,
    MalformedAnswer,
    ServerError,
    StreamStalled,
    Unreachable,
    classify,
    classify_response,
)
from operator_runtime.client.watch import STREAMING_TRIES, Watch
from operator_runtime.client.watch_ends import Cause, Pause
from tests.unit.operator_runtime.client.watch_support import HTML, Mode, Sink, bookmark, event, mode_of, page, status
from tests.unit.things import Thing, decode, thing

# The snapshot, by a streaming list.


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
def test_only_a_true_end_mark_completes_a_snapshot(watch: Watch[Thing], end: object) -> None:
    watch.next_request()
    watch.line(bookmark(100, end=end))
    assert watch.resource_version == ""
    assert mode_of(watch.next_request()) is Mode.STREAMING_LIST


def test_an_end_mark_without_a_version_is_no_snapshot(watch: Watch[Thing], sink: Sink) -> None:
    watch.next_request()
    with pytest.raises(MalformedAnswer, match="bookmark without a resourceVersion"):
        watch.line(bookmark("", end="true"))
    assert sink.take() == [("begin",)]


def test_a_streaming_list_that_breaks_before_its_end_mark_begins_anew(watch: Watch[Thing], sink: Sink) -> None:
    watch.next_request()
    watch.line(event("ADDED", thing("a", 20)))
    assert watch.ended(None, 5.0, 300).cause is Cause.SHORT
    assert mode_of(watch.next_request()) is Mode.STREAMING_LIST
    assert sink.take() == [("begin",), ("put", "a", "20"), ("begin",)]


@pytest.mark.parametrize("code", [400, 422])
def test_a_server_that_refuses_streaming_lists_is_asked_for_pages_at_once_and_for_good(
    watch: Watch[Thing], code: int
) -> None:
    watch.next_request()
    assert watch.ended(classify(code), 0.1, 0) == Pause(0.0, Cause.UNSUPPORTED, 1)
    assert mode_of(watch.next_request()) is Mode.PAGES
    watch.page(page("7"))
    watch.ended(None, 0.1, 100)
    watch.next_request()
    watch.ended(Expired(410), 0.1, 100)
    assert mode_of(watch.next_request()) is Mode.PAGES


@pytest.mark.parametrize(
    "failure",
    [classify(500), StreamStalled("no byte"), MalformedAnswer("HTML"), None],
    ids=["500", "silent", "malformed", "clean end"],
)
def test_pages_are_tried_after_streaming_lists_failed_again(watch: Watch[Thing], failure: KubeError | None) -> None:
    for _ in range(STREAMING_TRIES):
        assert mode_of(watch.next_request()) is Mode.STREAMING_LIST
        watch.ended(failure, 70.0, 0)
    assert mode_of(watch.next_request()) is Mode.PAGES


@pytest.mark.parametrize(
    "failure",
    [Unreachable("refused"), classify(503), classify(502), classify(403), classify(404), classify(429), classify(401)],
    ids=lambda failure: str(failure)[:7],
)
def test_trouble_that_says_nothing_about_streaming_lists_changes_nothing(
    watch: Watch[Thing], failure: KubeError
) -> None:
    for _ in range(STREAMING_TRIES + 1):
        assert mode_of(watch.next_request()) is Mode.STREAMING_LIST
        watch.ended(failure, 0.1, 0)


# The snapshot, by pages.


def test_pages_are_followed_by_their_continue_token_with_the_same_selector(paging: Watch[Thing], sink: Sink) -> None:
    assert paging.page(page("7", "a", "b", more="token/+")) is False
    assert paging.ended(None, 0.1, 100) == Pause(0.0, Cause.CLOSED, 0)
    assert paging.resource_version == ""
    request = paging.next_request()
    assert (mode_of(request), request.streams) == (Mode.PAGES, False)
    assert request.query == {"labelSelector": "app=x", "limit": "2", "continue": "token/+"}
    assert paging.page(page("7", "c")) is True
    assert paging.ended(None, 0.1, 100) == Pause(0.0, Cause.CLOSED, 0)
    assert paging.next_request().query["resourceVersion"] == "7"
    assert sink.take() == [("put", "a", "1"), ("put", "b", "1"), ("put", "c", "1"), ("complete", "7")]


def test_an_expired_token_on_page_two_means_the_whole_list_without_pages(paging: Watch[Thing], sink: Sink) -> None:
    to_the_second_page(paging, sink)
    assert paging.ended(classify_response(410, json.dumps(status(410, "Expired")).encode()), 0.1, 0).seconds == 0.0
    assert paging.next_request().query == {"labelSelector": "app=x"}
    assert sink.take() == [("begin",)]
    paging.page(page("9", "a", "b", "c"))
    paging.ended(None, 0.1, 100)
    # The next snapshot is asked for in pages again.
    paging.next_request()
    for _ in range(2):  # nor does a first page that expires change that
        paging.ended(Expired(410), 1.0, 100)
        assert paging.next_request().query == {"labelSelector": "app=x", "limit": "2"}


def test_a_page_that_does_not_arrive_is_asked_for_again_but_not_by_a_token_that_the_server_refuses(
    paging: Watch[Thing], sink: Sink
) -> None:
    to_the_second_page(paging, sink)
    assert paging.ended(Unreachable("reset"), 0.1, 0).cause is Cause.UNREACHABLE
    assert paging.next_request().query["continue"] == "token"
    assert sink.take() == []
    paging.ended(classify(400), 0.1, 0)
    assert "continue" not in paging.next_request().query
    assert sink.take() == [("begin",)]


def test_an_empty_list_is_a_snapshot_also_when_its_items_are_null(paging: Watch[Thing], sink: Sink) -> None:
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
    assert mode_of(paging.next_request()) is Mode.PAGES


@pytest.mark.parametrize(("code", "kind"), [(410, Expired), (403, Forbidden), ("410", ServerError)])
def test_a_status_delivered_as_a_page_is_an_error(paging: Watch[Thing], code: Any, kind: type[KubeError]) -> None:
    with pytest.raises(kind):
        paging.page(json.dumps(status(code)).encode())


def test_an_object_of_a_list_that_does_not_decode_leaves_the_others(paging: Watch[Thing], sink: Sink) -> None:
    items = [thing("a", 1, size="big"), thing("b", 2)]
    assert paging.page(page("7", items=items)) is True
    assert sink.take() == [("unreadable", "ns", "a", False), ("put", "b", "2"), ("complete", "7")]


def to_the_second_page(watch: Watch[Thing], sink: Sink) -> None:
    watch.page(page("7", "a", "b", more="token"))
    watch.ended(None, 0.1, 100)
    watch.next_request()
    sink.take()


def test_pages_that_are_too_long_are_asked_for_in_smaller_ones(sink: Sink) -> None:
    watch = Watch(decode, sink, page_size=500, uniform=lambda low, high: high)
    watch.next_request()
    watch.ended(classify(422), 0.1, 0)
    assert watch.next_request().query["limit"] == "500"
    watch.page(page("5", "a", more="next"))
    watch.ended(None, 0.1, 100)
    sizes = []
    for _ in range(4):
        request = watch.next_request()
        assert request.query["continue"] == "next"
        sizes.append(request.query["limit"])
        assert watch.ended(AnswerTooLong("it is"), 0.1, 0).cause is Cause.MALFORMED
    assert sizes == ["500", "62", "7", "1"]
    assert watch.next_request().query["limit"] == "1"


def test_a_page_has_a_smaller_bound_than_a_list_in_one_piece(paging: Watch[Thing], sink: Sink) -> None:
    to_the_second_page(paging, sink)
    paged = paging.next_request()
    paging.ended(classify(410), 0.1, 0)
    whole = paging.next_request()
    assert ("limit" in paged.query, "limit" in whole.query) == (True, False)
    assert 1 < paged.max_bytes < whole.max_bytes
