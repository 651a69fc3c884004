"""Times in the status of a Memcached: RFC 3339, in whole seconds, and as other clients may have written them, too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from operator_runtime import rfc3339

_LATEST: Final = datetime.max.replace(tzinfo=UTC)


def status_time(time: datetime) -> str:
    """A time as the status has it: in whole seconds, and not before it."""
    return rfc3339(time + timedelta(microseconds=999_999))


def parsed_time(text: str | None) -> datetime | None:
    """A time of the status in UTC; None where there is none, or another client wrote what is no time with a zone."""
    try:
        time = datetime.fromisoformat(text) if text is not None else None
        return time.astimezone(UTC) if time is not None and time.tzinfo is not None else None
    except ValueError:
        return None
    except OverflowError:  # of the year 1 or 9999, where UTC has another
        return _LATEST if text is not None and text.startswith("9") else None


def bounded_time(text: str | None, latest: datetime) -> str:
    """A time of the status; `latest` where it is later, as written by a leader whose clock was ahead, or no time."""
    time = parsed_time(text)
    return text if text is not None and time is not None and time <= latest else status_time(latest)
