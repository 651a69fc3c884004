"""Pure: evictions of a server between two of its answers, and how much memory it would need.

An item that no client ever fetched is nobody's loss: a batch that stores everything once pushes out its own items. What
counts are evicted items that a client had fetched, and for how long they had been idle. memcached has the idle time of
the last evicted item of each size class (`evicted_time`); it stands for all that the class evicted since the answer
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final, NamedTuple

from memcached_operator.servers.stats_answer import SizeClass, StatsAnswer

_MIB: Final = 2**20
# A chunk is up to a quarter larger than its item (the growth factor of size classes, -f).
_CHUNKS: Final = 1.25
PARTS: Final = 5
"""Of a window, in each of which there is a sample at least, where servers are queried often enough."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Evictions of a server between two answers.

    Attributes:
        seconds: between them, by the server's own clock.
        limit_mib: of its memory for items, the same in both.
        idle_s: for how long those had been idle, on average; 0 where there are none.
        needed_mib: with how much it would still hold what was idle for less than the retention, by an estimate.
    """

    seconds: float
    limit_mib: int
    evicted: float
    fetched: float
    idle_s: float
    items: float
    needed_mib: int


def sample(before: StatsAnswer, now: StatsAnswer, retention_s: float) -> Sample | None:
    """Compare two answers of a server in a row; None where it was started or given another limit between them."""
    seconds, limit = now.number("uptime") - before.number("uptime"), now.number("limit_maxbytes")
    if not (seconds > 0 and limit == before.number("limit_maxbytes")):
        return None
    known = {each.number: each for each in before.size_classes()}
    evicted = fetched = idle_s = needed = 0.0
    for each in now.size_classes():
        of_all, of_fetched = _evicted(known.get(each.number), each)
        evicted += of_all
        fetched += of_fetched
        idle_s += of_fetched * each.evicted_time
        needed += _needed(each, retention_s)
    mean_s = idle_s / fetched if fetched else 0.0
    needed_mib = min(int(needed * _CHUNKS // _MIB) + 1, int(limit // _MIB))
    return Sample(seconds, int(limit // _MIB), evicted, fetched, mean_s, now.number("curr_items"), needed_mib)


def _evicted(before: SizeClass | None, now: SizeClass) -> tuple[float, float]:
    """Count a class's evicted items, and those of them that had been fetched; none where its counts were reset."""
    if before is None:
        return 0.0, 0.0  # memcached leaves out a class while it is empty, and has the counts of its lifetime after that
    evicted, unfetched = now.evicted - before.evicted, now.evicted_unfetched - before.evicted_unfetched
    # What is no number is in no relation.
    return (evicted, evicted - unfetched) if 0.0 <= unfetched <= evicted else (0.0, 0.0)


def _needed(of: SizeClass, retention_s: float) -> float:
    """Bytes of a class's items that were idle for less than the retention.

    Of idle times the longest is known alone (`age`). Where each item is as likely to be requested as another, they are
    distributed exponentially, and the longest of n is about ln(n) times the mean. Any other load has fewer young items,
    so that this errs on the safe side.
    """
    if not of.mem_requested > 0.0:
        return 0.0
    if not of.age > 0.0 or not of.items > 1.0:
        return of.mem_requested
    return of.mem_requested * (1.0 - exp(-log(of.items) * retention_s / of.age))


class History(NamedTuple):
    """A server's samples of the last while, all of the same limit, the oldest first.

    Attributes:
        answer: its last one, None before the first.
        restarts: how often its container had been started again by then.
    """

    samples: Sequence[Sample] = ()
    answer: StatsAnswer | None = None
    restarts: int = 0

    @property
    def limit_mib(self) -> int | None:
        """Limit of its memory for items, None before the second answer."""
        return self.samples[-1].limit_mib if self.samples else None

    def covers(self, window_s: float) -> bool:
        """Report whether it goes back so far."""
        return len(self.samples) >= PARTS and sum(each.seconds for each in self.samples) >= window_s


def extended(history: History, answer: StatsAnswer, restarts: int, window_s: float, retention_s: float) -> History:
    """A history with another answer, and no longer than the window takes."""
    found, before = None, history.answer if history.restarts == restarts else None
    if before is not None and before.number("uptime") == answer.number("uptime"):
        return history  # it counts whole seconds
    if before is not None:
        found = sample(before, answer, retention_s)
    if found is None:
        return History((), answer, restarts)
    samples = [*history.samples, found]
    while History(samples[1:]).covers(window_s):
        del samples[0]
    return History(tuple(samples), answer, restarts)
