"""How ages are written."""

from __future__ import annotations

import pytest

from kube_simulator.kinds.durations import age, human, parse_time
from tests.unit.kube_simulator.kinds.kinds_support import NOW

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (3 * MINUTE + 20, "3m20s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 5 * MINUTE, "3h5m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (8 * DAY + 3 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 3 * DAY, "2y3d"),
        (8 * YEAR + 3 * DAY, "8y"),
    ],
)
def test_an_age_has_two_units_at_most(seconds: int, text: str) -> None:
    assert human(seconds) == text


def test_an_age_is_counted_from_a_time_of_any_offset_and_fraction() -> None:
    assert age("2026-11-21T14:59:55Z", NOW) == "5s"
    assert age("2026-11-21T15:59:55.100000+01:00", NOW) == "4s"
    assert age(None, NOW) == age("", NOW) == "<unknown>"


@pytest.mark.parametrize("text", ["text", "2026-11-21", "2026-11-21 15:00:00Z", "2026-11-21T15:00:00", ""])
def test_what_is_no_time_is_not_read(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whichever words
        parse_time(text)
