"""The times in the status of a hand-over, and what follows from them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from memcached_operator.api.status import HandoverStatus, HandoverStep
from memcached_operator.api.status_times import parsed_time, status_time

MARKER_TTL_S: Final = 3
"""Time after which no server has a marker any more; `handover.lua` sets it."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def status_at(step: HandoverStep, now: datetime, former_list_end: datetime) -> HandoverStatus:
    """The status of a step that begins now."""
    return HandoverStatus(step, status_time(now), status_time(former_list_end))


def bounded(status: HandoverStatus, for_s: int, now: datetime) -> HandoverStatus:
    """The status with times that can be believed.

    Without those that are yet to come, as of a leader whose clock was ahead: else steps would last for as long as it
    was. Of one that another client removed or made unreadable, the latest counts: clients may have the former list.
    """
    latest = now + timedelta(seconds=1)  # it was rounded up
    start, former_end = parsed_time(status.startTime), parsed_time(status.formerListEndTime)
    if start is None or start > latest:
        status = msgspec.structs.replace(status, startTime=status_time(now))
    latest += timedelta(seconds=for_s)
    if former_end is None or former_end > latest:
        status = msgspec.structs.replace(status, formerListEndTime=status_time(latest))
    return status


def start_of(status: HandoverStatus) -> datetime:
    """Time at which the step began; long ago where another client wrote what is no time."""
    return parsed_time(status.startTime) or EPOCH


def former_list_end_of(status: HandoverStatus) -> datetime:
    """Time from which on no client has the list before the present one; long ago where there was none."""
    return parsed_time(status.formerListEndTime) or EPOCH


def former_clients_s(status: HandoverStatus, now: datetime) -> float:
    """Seconds for which clients may have the list before the present one; 0 or less where none has."""
    return (former_list_end_of(status) - now).total_seconds()


def published_s(status: HandoverStatus, for_s: int, now: datetime) -> float:
    """Seconds until clients have had their time to follow a list that was published."""
    return (start_of(status) - now).total_seconds() + for_s + MARKER_TTL_S
