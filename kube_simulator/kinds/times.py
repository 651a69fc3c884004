"""Times of RFC 3339, and as Kubernetes writes them: `metav1.MicroTime` with six digits, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_time(text: str) -> datetime:
    """A time of RFC 3339.

    Raises:
        ValueError: it is none.
    """
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None or "T" not in text:
        raise ValueError(f"no time of RFC 3339: {text}")
    return parsed


def micro_time(text: str) -> str:
    """A time to the microsecond, in UTC; what is none stays, as reading the body has refused it."""
    return _written(text, "%Y-%m-%dT%H:%M:%S.%fZ")


def whole_seconds(text: str) -> str:
    """A time to the second, in UTC; what is none stays."""
    return _written(text, "%Y-%m-%dT%H:%M:%SZ")


def _written(text: str, form: str) -> str:
    try:
        return parse_time(text).astimezone(UTC).strftime(form)
    except ValueError:
        return text
