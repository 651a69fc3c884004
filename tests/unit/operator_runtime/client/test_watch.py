"""What a watch asks for, and what it makes of the lines that come. No I/O, no time."""

from __future__ import annotations

from itertools import pairwise

import pytest

from operator_runtime.client.errors import Expired, MalformedAnswer
from operator_runtime.client.watch import Watch
from tests.unit.operator_runtime.client.watch_support import HTML, Mode, Sink, bookmark, event, mode_of, status
from tests.unit.things import Thing, decode, thing

# What is asked for.


def test_the_first_request_is_a_streaming_list_of_the_newest_state(watch: Watch[Thing], sink: Sink) -> None:
    request = watch.next_request()
    assert (mode_of(request), request.streams) == (Mode.STREAMING_LIST, True)
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


@pytest.mark.parametrize("more", [b"", b',"object":[]', b',"object":{"metadata":{"name":7}}'])
def test_an_event_without_a_readable_object_moves_nothing(resumed: Watch[Thing], sink: Sink, more: bytes) -> None:
    resumed.line(b'{"type":"ADDED"' + more + b"}")
    assert (resumed.resource_version, sink.take()) == ("100", [("unreadable", "", "", False)])


def test_a_bookmark_of_a_built_in_kind_moves_the_version_and_is_no_object(resumed: Watch[Thing], sink: Sink) -> None:
    resumed.line(event("BOOKMARK", {"metadata": {"resourceVersion": "150", "annotations": None}, "spec": {"x": None}}))
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


def test_no_line_of_a_stream_makes_a_state_of_its_own_but_the_end_of_a_snapshot(watch: Watch[Thing]) -> None:
    watch.next_request()
    states = [watch._state]
    for line in (
        event("ADDED", thing("a", 20)),
        bookmark(100, end="true"),
        event("MODIFIED", thing("a", 101)),
        event("DELETED", thing("a", 102)),
        bookmark(103),
    ):
        watch.line(line)
        states.append(watch._state)
    assert [after is before for before, after in pairwise(states)] == [True, False, True, True, True]


# The end of the bytes.


@pytest.mark.parametrize("length", [None, 0, 1, 9, 40, -1])
def test_a_whole_last_line_without_its_newline_counts_and_half_of_one_comes_again_with_the_next_watch(
    resumed: Watch[Thing], sink: Sink, length: int | None
) -> None:
    resumed.last_line(event("ADDED", thing("a", 101))[:length])
    counts = length is None
    assert (resumed.resource_version, sink.take()) == (("101", [("put", "a", "101")]) if counts else ("100", []))


@pytest.mark.parametrize(
    ("line", "error"), [(event("ERROR", status(410, "Expired")), Expired), (HTML, MalformedAnswer)]
)
def test_an_error_or_a_proxys_page_without_a_newline_is_not_taken_for_half_an_event(
    resumed: Watch[Thing], line: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        resumed.last_line(line)
