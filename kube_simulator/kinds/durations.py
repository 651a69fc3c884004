"""Time since something, in the few characters that a table has room for."""

from __future__ import annotations

from datetime import datetime

_MINUTE_S = 60
_HOUR_S = 60 * _MINUTE_S
_DAY_S = 24 * _HOUR_S
_YEAR_S = 365 * _DAY_S


def age(time: str | None, now: datetime) -> str:
    """Return how long ago a time was, as `kubectl get` shows it; `<unknown>` for none."""
    if not time:
        return "<unknown>"
    return human(int((now - parse_time(time)).total_seconds()))


def parse_time(text: str) -> datetime:
    """A time of RFC 3339.

    Raises:
        ValueError: it is none.
    """
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None or "T" not in text:
        raise ValueError(f"no time of RFC 3339: {text}")
    return parsed


def human(seconds: int) -> str:
    """Write a duration like `3m20s` or `5d`: the rule of `duration.HumanDuration` in k8s.io/apimachinery.

    A time in the future by a second is now, as clocks differ; one further off is `<invalid>`.
    """
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE_S:
        return f"{max(seconds, 0)}s"
    for below_s, unit_s, unit, rest_s, rest in (
        (10 * _MINUTE_S, _MINUTE_S, "m", 1, "s"),
        (3 * _HOUR_S, _MINUTE_S, "m", 0, ""),
        (8 * _HOUR_S, _HOUR_S, "h", _MINUTE_S, "m"),
        (2 * _DAY_S, _HOUR_S, "h", 0, ""),
        (8 * _DAY_S, _DAY_S, "d", _HOUR_S, "h"),
        (2 * _YEAR_S, _DAY_S, "d", 0, ""),
        (8 * _YEAR_S, _YEAR_S, "y", _DAY_S, "d"),
    ):
        if seconds < below_s:
            whole, left = divmod(seconds, unit_s)
            left = left // rest_s if rest_s else 0
            return f"{whole}{unit}{left}{rest}" if left else f"{whole}{unit}"
    return f"{seconds // _YEAR_S}y"
