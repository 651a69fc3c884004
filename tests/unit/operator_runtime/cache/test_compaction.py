"""What is packed comes back as it was, and takes a fraction of its length where it is like the typical text."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from operator_runtime.cache.compaction import Packing

TYPICAL = '{"conditions":[{"message":"2 of 2 servers are ready.","reason":"Available","status":"True"}],"replicas":2}'
PACKING = Packing(TYPICAL)


@given(st.binary(max_size=200))
def test_whatever_is_packed_comes_back(text: bytes) -> None:
    assert PACKING.unpacked(PACKING.packed(text)) == text


@pytest.mark.parametrize("length", [0, 1, 4096, 100_000])
def test_a_text_of_any_length_comes_back(length: int) -> None:
    text = bytes(number * number % 251 for number in range(length))
    assert PACKING.unpacked(PACKING.packed(text)) == text


def test_no_text_takes_nothing() -> None:
    assert PACKING.packed(b"") == b""


def test_what_is_like_the_typical_text_takes_a_fraction() -> None:
    text = TYPICAL.replace("2 of 2", "5 of 5").encode()
    assert len(PACKING.packed(text)) < len(text) / 4 < len(Packing("").packed(text))


def test_of_several_typical_texts_each_counts() -> None:
    both = Packing("a text of the one sort, which is long enough", "and there is another sort of some length")
    for text in (b"and there is another sort of some length", b"a text of the one sort, which is long enough"):
        assert len(both.packed(text)) < len(text) / 3
