"""Backoff and Retry-After."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_operator.kube.retry import MAX_RETRY_AFTER_S, Backoff, parse_retry_after

NOON = datetime(2030, 5, 1, 12, 0, 0, tzinfo=UTC)


def test_delays_double_up_to_the_cap_and_begin_again_after_a_reset() -> None:
    backoff = Backoff(0.5, 3.0, lambda low, high: high)
    assert [backoff.next_s() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert backoff.attempts == 5
    backoff.reset()
    assert (backoff.attempts, backoff.next_s()) == (0, 0.5)


@given(attempts=st.integers(0, 5000))
def test_a_delay_lies_between_half_of_its_value_and_the_whole(attempts: int) -> None:
    drawn: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        drawn.append((low, high))
        return low

    backoff = Backoff(0.8, 30.0, uniform)
    backoff.attempts = attempts
    assert backoff.next_s() == drawn[0][1] / 2
    assert 0.8 <= drawn[0][1] <= 30.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0.0),
        ("5", 5.0),
        (" 1.5 ", 1.5),
        ("-3", 0.0),
        ("1e9", MAX_RETRY_AFTER_S),
        ("inf", MAX_RETRY_AFTER_S),
        ("nan", None),
        ("soon", None),
        ("Wed, 01 May 2030 12:00:32 GMT", 32.0),
        ("Wed, 01 May 2030 12:00:32 -0000", 32.0),
        ("Wed, 01 May 2030 11:00:00 GMT", 0.0),
        ("Wed, 01 May 2031 11:00:00 GMT", MAX_RETRY_AFTER_S),
        ("Wed, 01 May 99999999999999999999 11:00:00 GMT", None),
        ("Wed, 99 May 2030 11:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_bounded(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, lambda: NOON) == seconds


@given(header=st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} \d+ \d+:\d+:\d+ \S*"))
def test_whatever_the_header_says_there_is_a_bounded_wait_or_none(header: str) -> None:
    wait_s = parse_retry_after(header, lambda: NOON)
    assert wait_s is None or 0.0 <= wait_s <= MAX_RETRY_AFTER_S
