"""Pure: state of a server's disk, by several of its answers.

memcached counts what goes wrong and goes on, so that a client sees misses alone: what cannot be read, or is not what
was written, is one; and a value that it has no time to move to the disk is evicted.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from memcached_operator.servers.stats_answer import StatsAnswer

QUEUE: Final = 50
"""Requests that wait for the disk: with a fast one there are none at most times, and each takes its time for all before
it."""
EVICTIONS_PER_S: Final = 1.0
ROOM: Final = 0.3
"""Share of a disk's pages that is free while it has room: memcached itself keeps up to a quarter free."""
# Answers in a row that show a problem before one is reported, and without it before the report is taken back; one comes
# each interval.
_REPORTED_AFTER: Final = 3
_OVER_AFTER: Final = 20


class DiskProblem(Enum):
    """Problem of a disk, the worst first; in words for people."""

    DAMAGED = "values that it reads from its disk are damaged"
    SLOW = f"more than {QUEUE} requests wait for its disk"
    BEHIND = "it evicts items while its disk has room, as more is stored than the disk can take"


class Disk(msgspec.Struct, frozen=True, gc=False):
    """State of a server's disk.

    Attributes:
        problem: what is reported of it, None for nothing.
        bad: how many answers in a row showed a problem, be it another each time.
        without: how many answers in a row did not show the one that is reported.
    """

    problem: DiskProblem | None = None
    bad: int = 0
    without: int = 0

    @property
    def why(self) -> str:
        return self.problem.value if self.problem is not None else ""


GOOD: Final = Disk()


def disk(known: Disk, before: StatsAnswer | None, now: StatsAnswer) -> Disk:
    """Judge a server's disk by another answer.

    Args:
        before: the answer before it since the server was started, None for none.
    """
    if not now.has_extstore or before is None:
        return GOOD
    seen = _seen(before, now)
    bad = min(known.bad + 1, _REPORTED_AFTER) if seen is not None else 0
    without = min(known.without + 1, _OVER_AFTER) if seen is not known.problem else 0
    # One damaged value is one too many; a burst of requests, or of values, is not.
    lasting = seen if seen is DiskProblem.DAMAGED or bad >= _REPORTED_AFTER else None
    if without >= _OVER_AFTER or _is_worse(lasting, known.problem):
        return Disk(lasting, bad)
    return Disk(known.problem, bad, without)


def _is_worse(one: DiskProblem | None, other: DiskProblem | None) -> bool:
    worst_first = (*DiskProblem, None)
    return worst_first.index(one) < worst_first.index(other)


def _seen(before: StatsAnswer, now: StatsAnswer) -> DiskProblem | None:
    def more(name: str) -> float:
        return now.number(name) - before.number(name)

    if more("badcrc_from_extstore") > 0:
        return DiskProblem.DAMAGED
    if now.number("extstore_io_queue") > QUEUE:
        return DiskProblem.SLOW
    free, used = now.number("extstore_pages_free"), now.number("extstore_pages_used")
    evicts = more("evictions") > EVICTIONS_PER_S * max(more("time"), 1.0)
    return DiskProblem.BEHIND if evicts and free > ROOM * (free + used) else None
