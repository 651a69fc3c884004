"""The line splitter: any chunking gives the same lines, and none may grow without end."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from operator_runtime.client.errors import MalformedAnswer
from operator_runtime.client.frames import LineSplitter

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
