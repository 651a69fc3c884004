"""The times in the status of a hand-over: RFC 3339, in whole seconds, and as others may have written them, too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from memcached_operator.api.status import Handover, HandoverStep
from operator_runtime import rfc3339

MARKS_LIVE_S: Final = 3
"""After so long no server has a mark any more; `handover.lua` sets it."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def status_at(step: HandoverStep, now: datetime, former_list_end: datetime) -> Handover:
    """The status of a step that begins now."""
    return Handover(step, _whole(now), _whole(former_list_end) if former_list_end > EPOCH else None)


def bounded(status: Handover, for_s: int, now: datetime) -> Handover:
    """The status without times that are yet to come, as of a leader whose clock was ahead: else steps would last for as
    long as it was."""
    latest = now + timedelta(seconds=1)
    if start_of(status) > latest:
        status = msgspec.structs.replace(status, startTime=_whole(now))
    latest += timedelta(seconds=for_s)
    if former_list_end_of(status) > latest:
        status = msgspec.structs.replace(status, formerListEndTime=_whole(latest))
    return status


def start_of(status: Handover) -> datetime:
    return _time(status.startTime)


def former_list_end_of(status: Handover) -> datetime:
    """Time from which on no client has the list before the present one; long ago where there was none."""
    return _time(status.formerListEndTime)


def former_clients_s(status: Handover, now: datetime) -> float:
    """Seconds for which clients may have the list before the present one; 0 or less where none has."""
    return (former_list_end_of(status) - now).total_seconds()


def published_s(status: Handover, for_s: int, now: datetime) -> float:
    """Seconds until clients have had their time to follow a list that was published."""
    return (start_of(status) - now).total_seconds() + for_s + MARKS_LIVE_S


def _whole(time: datetime) -> str:
    """A time in whole seconds, which is not before it."""
    return rfc3339(time + timedelta(microseconds=999_999))


def _time(text: str | None) -> datetime:
    """A time of the status; long ago where there is none, or another client wrote what is no time."""
    try:
        time = datetime.fromisoformat(text) if text is not None else EPOCH
        return time.astimezone(UTC) if time.tzinfo is not None else EPOCH
    except (ValueError, OverflowError):
        return EPOCH
