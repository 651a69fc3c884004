"""Lines and pages as they are read from the wire; what a watch makes of them is tried with its rules."""

from __future__ import annotations

import itertools
import json

import msgspec
import pytest
from hypothesis import given, strategies as st

from operator_runtime.client.errors import MalformedAnswer
from operator_runtime.client.frames import FrameMetadata, LineSplitter, frame_of, metadata_of, object_of, page_of
from tests.unit.things import thing

TEXT = st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\r", b"{}"]), max_size=40).map(b"".join)


def cut(text: bytes, places: list[int]) -> list[bytes]:
    """`text` in chunks that end at `places`."""
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


@given(text=TEXT, places=st.lists(st.integers(min_value=0), max_size=10))
def test_any_chunking_gives_the_same_lines(text: bytes, places: list[int]) -> None:
    splitter = LineSplitter()
    lines = [line for chunk in cut(text, places) for line in splitter.feed(chunk)]
    *whole, tail = text.split(b"\n")
    assert lines == [line for line in whole if line]
    assert splitter.rest() == tail


@given(text=TEXT, places=st.lists(st.integers(min_value=0), max_size=10), bound=st.integers(1, 6))
def test_a_line_over_the_bound_is_refused_however_it_is_cut(text: bytes, places: list[int], bound: int) -> None:
    splitter = LineSplitter(bound)
    too_long = any(len(line) > bound for line in text.split(b"\n"))
    try:
        for chunk in cut(text, places):
            splitter.feed(chunk)
    except MalformedAnswer:
        assert too_long
    else:
        assert not too_long


def test_the_message_names_the_bound_and_the_likely_cause() -> None:
    with pytest.raises(MalformedAnswer, match=r"longer than 3 bytes.*proxy"):
        LineSplitter(3).feed(b"four")


def test_what_was_sent_is_quoted_in_part_also_when_it_is_no_text() -> None:
    with pytest.raises(MalformedAnswer) as caught:
        frame_of(b"\xff" * 1_000_000)
    assert str(caught.value) == "not a watch event: '" + "\N{REPLACEMENT CHARACTER}" * 80 + "'"


def test_an_object_that_is_nested_deeper_than_a_stack_goes_leaves_all_others_readable() -> None:
    deep = '{"a":' * 10_000 + "1" + "}" * 10_000
    object_ = json.dumps(thing("deep", "7")).replace('"metadata"', f'"deep": {deep}, "metadata"')
    frame = frame_of(f'{{"type": "ADDED", "object": {object_}}}'.encode())
    assert (frame.type, metadata_of(frame.object).name) == ("ADDED", "deep")
    body = f'{{"metadata": {{"resourceVersion": "9"}}, "items": [{object_}, {json.dumps(thing("other", "8"))}]}}'
    items = page_of(body.encode()).items
    assert items is not None
    assert [metadata_of(item).name for item in items] == ["deep", "other"]
    assert metadata_of(msgspec.Raw(object_.encode())).name == "deep"


class Sized(msgspec.Struct):
    metadata: FrameMetadata
    size: int


_sized = msgspec.json.Decoder(Sized).decode


@pytest.mark.parametrize(
    "answer", [b'{"metadata":{"name":"a"},"si', b'{"error":"log in first"}', b"{}", b'{"a":"\xff"}']
)
def test_what_is_no_object_is_malformed_and_what_its_kind_cannot_read_is_the_objects_affair(answer: bytes) -> None:
    with pytest.raises(MalformedAnswer, match="not an object of the API: "):
        object_of(_sized, answer)
    with pytest.raises(msgspec.ValidationError, match="Expected `int`"):
        object_of(_sized, b'{"metadata":{"name":"a"},"size":"large"}')
