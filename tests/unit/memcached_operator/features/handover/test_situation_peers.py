"""What the pods' annotation says of peers, written and read back."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from memcached_operator.features.handover.situation import Peers, peers_of

ADDRESSES = ("10.0.0.1", "10.0.0.2", "fd00::3")


def test_each_peer_has_a_line_and_one_that_is_not_queried_says_so() -> None:
    peers = Peers(7, ("10.0.0.1", "fd00::3"), frozenset({"fd00::3"}))

    assert str(peers) == "7\n10.0.0.1 11210\nfd00::3 11210 joining"


@given(
    st.integers(1, 10**7 - 1),
    st.lists(st.sampled_from(ADDRESSES), unique=True),
    st.sets(st.sampled_from(ADDRESSES)),
    st.booleans(),
)
def test_what_was_written_is_read(generation: int, addresses: list[str], joining: set[str], is_closed: bool) -> None:
    peers = Peers(generation, tuple(addresses), frozenset(joining & set(addresses)), is_closed)

    assert peers_of(str(peers)) == peers


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "-1", "x", "1\n", "01", "1\n10.0.0.1", "1\n10.0.0.1 x", "1 \n10.0.0.1 11210"),
        *("1\n10.0.0.1 11210 away", "1\nclosed\n10.0.0.1 11210"),
    ],
)
def test_what_the_operator_did_not_write_says_nothing(text: str) -> None:
    assert peers_of(text) is None
