"""Times of the status: rounded up, parsed whatever another client wrote, and bounded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memcached_operator.api.status_times import bounded_time, parsed_time, status_time

NOW = datetime(2026, 11, 28, 11, 0, 0, tzinfo=UTC)
NO_TIMES = [
    *("", "now", "11:00:00Z", "2026-11-28", "2026-11-28T11:00:00", "2026-13-28T11:00:00Z", "2026-11-28T11:00:00X"),
    *("9999-12-31T23:59:59", "0001-01-01T00:00:00+14:00"),
]


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "2026-11-28T11:00:00Z"),
        (1, "2026-11-28T11:00:01Z"),
        (999_999, "2026-11-28T11:00:01Z"),
        (1_000_000, "2026-11-28T11:00:01Z"),
    ],
)
def test_a_time_is_rounded_up_and_read_back(microseconds: int, text: str) -> None:
    time = NOW + timedelta(microseconds=microseconds)
    assert status_time(time) == text
    assert timedelta() <= (parsed_time(text) or NOW) - time < timedelta(seconds=1)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-11-28T11:00:00Z", NOW),
        ("2026-11-28T11:00:00.5Z", NOW + timedelta(seconds=0.5)),
        ("2026-11-28T12:30:00+01:30", NOW),
        ("9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("9999-12-31T23:59:59-14:00", datetime.max.replace(tzinfo=UTC)),
        (None, None),
        *((text, None) for text in NO_TIMES),
    ],
)
def test_what_has_no_zone_or_no_equal_in_utc_is_no_time(text: str | None, time: datetime | None) -> None:
    assert parsed_time(text) == time


@pytest.mark.parametrize(
    ("text", "bounded"),
    [
        ("2026-11-28T10:59:59Z", "2026-11-28T10:59:59Z"),
        ("2026-11-28T11:00:00Z", "2026-11-28T11:00:00Z"),
        ("2026-11-28T12:00:00+01:00", "2026-11-28T12:00:00+01:00"),
        ("2026-11-28T11:00:01Z", "2026-11-28T11:00:00Z"),
        ("2026-11-28T12:00:00.1+01:00", "2026-11-28T11:00:00Z"),
        ("9999-12-31T23:59:59Z", "2026-11-28T11:00:00Z"),
        ("9999-12-31T23:59:59-14:00", "2026-11-28T11:00:00Z"),
        *((text, "2026-11-28T11:00:00Z") for text in NO_TIMES),
    ],
)
def test_a_later_time_and_what_is_no_time_becomes_the_latest(text: str, bounded: str) -> None:
    assert bounded_time(text, NOW) == bounded


def test_what_was_rounded_up_within_the_second_stays() -> None:
    now = NOW + timedelta(seconds=0.3)
    assert bounded_time(status_time(now), now) == status_time(now)
