"""Pure: what a server's answers say of its disk, over several of them.

memcached counts what goes wrong and goes on, so that a client sees misses alone: what cannot be read, or is not what
was written, is one; and a value that it has no time to move to the disk is evicted.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from memcached_operator.memcached.server_stats.stats_cache import Answer

QUEUE: Final = 50
"""Requests that wait for the disk: with a fast one there are none at most times, and each takes its time for all before
it."""
EVICTIONS_PER_S: Final = 1.0
ROOM: Final = 0.3
"""Share of a disk's pages that is free while it has room: memcached itself keeps up to a quarter free."""
# Answers in a row before it is reported, and without it before the report is taken back; one comes each interval.
_REPORTED_AFTER: Final = 3
_OVER_AFTER: Final = 20


class DiskProblem(Enum):
    """What is wrong with a disk, the worst first; in words for people."""

    DAMAGED = "values that it reads from its disk are damaged"
    SLOW = f"more than {QUEUE} requests wait for its disk"
    BEHIND = "it evicts items while its disk has room, as more is stored than the disk can take"


class Disk(msgspec.Struct, frozen=True, gc=False):
    """What is made of a server's disk.

    Attributes:
        problem: what is reported of it, None for nothing.
        seen: what the last answer showed, None for nothing.
        in_a_row: how many answers showed that.
    """

    problem: DiskProblem | None = None
    seen: DiskProblem | None = None
    in_a_row: int = 0

    @property
    def why(self) -> str:
        """In words, "" for nothing."""
        return self.problem.value if self.problem is not None else ""


GOOD: Final = Disk()


def disk(known: Disk, before: Answer | None, now: Answer) -> Disk:
    """What an answer makes of a server's disk.

    Args:
        before: the answer before it since the server was started, None for none.
    """
    if not now.has_extstore or before is None:
        return GOOD
    seen = _seen(before, now)
    in_a_row = known.in_a_row + 1 if seen is known.seen else 1
    if seen is None:
        problem = known.problem if in_a_row < _OVER_AFTER else None
        return Disk(problem, None, min(in_a_row, _OVER_AFTER))
    # One damaged value is one too many; a burst of requests, or of values, is not.
    is_reported = seen is DiskProblem.DAMAGED or in_a_row >= _REPORTED_AFTER
    return Disk(seen if is_reported else known.problem, seen, min(in_a_row, _REPORTED_AFTER))


def _seen(before: Answer, now: Answer) -> DiskProblem | None:
    def more(name: str) -> float:
        return now.number(name) - before.number(name)

    if more("badcrc_from_extstore") > 0:
        return DiskProblem.DAMAGED
    if now.number("extstore_io_queue") > QUEUE:
        return DiskProblem.SLOW
    free, used = now.number("extstore_pages_free"), now.number("extstore_pages_used")
    evicts = more("evictions") > EVICTIONS_PER_S * max(more("time"), 1.0)
    return DiskProblem.BEHIND if evicts and free > ROOM * (free + used) else None
