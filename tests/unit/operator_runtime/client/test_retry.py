"""Backoff and Retry-After."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from operator_runtime.client.retry import MAX_RETRY_AFTER_S, Backoff, parse_retry_after

NOON = datetime(2030, 5, 1, 12, 0, 0, tzinfo=UTC)


def test_delays_double_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 3.0, uniform=max)
    assert [backoff.delay_s(failures) for failures in (1, 2, 3, 4, 5, 10_000)] == [0.5, 1.0, 2.0, 3.0, 3.0, 3.0]


@given(failures=st.integers(1, 5000), spread=st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_chance_takes_away_the_spread_at_most(failures: int, spread: float) -> None:
    full_s = Backoff(0.8, 30.0, spread, max).delay_s(failures)
    assert 0.8 <= full_s <= 30.0
    assert Backoff(0.8, 30.0, spread, min).delay_s(failures) == pytest.approx(full_s * (1.0 - spread))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("5", 5.0),
        ("-3", 0.0),
        ("1e9", MAX_RETRY_AFTER_S),
        ("nan", None),
        ("soon", None),
        ("Wed, 01 May 2030 12:00:32 GMT", 32.0),
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
