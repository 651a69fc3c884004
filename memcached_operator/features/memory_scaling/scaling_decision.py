"""Pure: decision to grow the memory of a Memcached's servers, from what each of them evicted in the last while.

What is to grow it must hold in each part of the window: a batch that begins or ends pushes out what a server held,
once. And the items that clients had fetched must be a part of what is evicted: a batch that does not end pushes out its
own. Memory never shrinks by itself, so that there is nothing to oscillate between.

A sample is what a server evicted between two of its answers. An item that no client ever fetched is nobody's loss: a
batch that stores everything once pushes out its own items. What counts are evicted items that a client had fetched, and
for how long they had been idle. memcached has the idle time of the last evicted item of each size class
(`evicted_time`); it stands for all that the class evicted since the answer before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final, NamedTuple, TypeAlias

from memcached_operator.core.outcome import Blocked
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


FETCHED_SHARE: Final = 0.1
"""Of the evicted items, so many at least had been fetched, or what evicts them is a batch that reads all once."""
LEAST_SHARE: Final = 0.001
"""Of the items that a server holds, so many at least are lost in a window: what is less is not worth any memory, as
where a size of items that is new to a full server has its first page."""
# A quarter more at a time.
_STEP: Final = (5, 4)


@dataclass(frozen=True, slots=True)
class Observing:
    """Wait for more samples: too little is known yet."""


@dataclass(frozen=True, slots=True)
class ForeignLimit:
    """Limit of a server that another client has set for a window, so that nothing is decided.

    Attributes:
        limit_mib: what it may use for items, by another client's command.
        mib: memory of each server that is in force.
    """

    server: str
    limit_mib: int
    mib: int


@dataclass(frozen=True, slots=True)
class Retained:
    """Retention of the items that clients request.

    Attributes:
        is_unused: less than half of the memory would have done for a day.
    """

    is_unused: bool = False


@dataclass(frozen=True, slots=True)
class Grow:
    """Growth of the memory.

    Attributes:
        idle_s: for how long the items had been idle that a server evicted.
    """

    from_mib: int
    to_mib: int
    idle_s: float


@dataclass(frozen=True, slots=True)
class ScalingWait:
    """Growth of the memory that waits until all servers can take a step."""

    ready: int
    servers: int
    is_rolling: bool


@dataclass(frozen=True, slots=True)
class AtMaximum:
    """Growth that the maximum of the memory does not allow."""


Decision: TypeAlias = Observing | ForeignLimit | Retained | Grow | ScalingWait | AtMaximum | Blocked


def decide_memory(
    histories: Sequence[History], servers: int, mib: int, max_mib: int, retention_s: float, window_s: float
) -> Decision:
    """Decide about the memory.

    Args:
        mib: memory of each that is in force.
        window_s: for how long it must hold.
    """
    if any(each.limit_mib not in (mib, None) for each in histories):
        return Observing()  # they are being resized, and all of them alike
    covering = [each for each in histories if each.covers(window_s)]
    losing = [idle_s for each in covering if (idle_s := lost_after_s(each.samples, retention_s)) is not None]
    if losing and mib >= max_mib:
        return AtMaximum()
    if losing:
        return Grow(mib, min(-(-mib * _STEP[0] // _STEP[1]), max_mib), min(losing))
    kept = [each for each in covering if not _loses(each.samples, retention_s)]
    return Retained() if 0 < servers <= len(kept) else Observing()


def lost_after_s(samples: Sequence[Sample], retention_s: float) -> float | None:
    """Return how long the evicted items that clients still request had been idle; None for no such loss."""
    lost = _loses(samples, retention_s) and all(_is_lost(each, retention_s) for each in _parts(samples))
    return evicted_after_s(samples) if lost else None


def _loses(samples: Sequence[Sample], retention_s: float) -> bool:
    """Report whether more than a trifle of what clients request was evicted too early, be it by a batch."""
    return _is_early(samples, retention_s) and _fetched(samples) >= LEAST_SHARE * samples[-1].items


def _is_lost(samples: Sequence[Sample], retention_s: float) -> bool:
    """Report whether in a part of a window more than its share of a trifle was evicted too early, and by no batch."""
    evicted, fetched = sum(each.evicted for each in samples), _fetched(samples)
    if not _is_early(samples, retention_s) or fetched * PARTS < LEAST_SHARE * samples[-1].items:
        return False
    return fetched >= FETCHED_SHARE * evicted


def _is_early(samples: Sequence[Sample], retention_s: float) -> bool:
    idle_s = evicted_after_s(samples)
    return idle_s is not None and idle_s < retention_s


def evicted_after_s(samples: Sequence[Sample]) -> float | None:
    """Return how long the fetched items had been idle that were evicted, on average; None where none were."""
    fetched = _fetched(samples)
    return sum(each.fetched * each.idle_s for each in samples) / fetched if fetched else None


def _fetched(samples: Sequence[Sample]) -> float:
    return sum(each.fetched for each in samples)


def _parts(samples: Sequence[Sample]) -> Sequence[Sequence[Sample]]:
    """Parts of about the same length, the oldest first, by the middles of the samples' times."""
    parts: tuple[list[Sample], ...] = tuple([] for _ in range(PARTS))
    total_s, passed_s = sum(each.seconds for each in samples), 0.0
    for each in samples:
        # A sum of large numbers may exceed its total, by its last digits.
        parts[min(int(PARTS * (passed_s + each.seconds / 2) / total_s), PARTS - 1)].append(each)
        passed_s += each.seconds
    return parts


def recommended_mib(histories: Sequence[History], mib: int, least_mib: int, retention_s: float) -> int | None:
    """The least memory with which the retention would be kept, as steps down from what is in force; None for no less.

    Known of servers alone that run for at least the retention.

    Args:
        histories: of all servers, which keep what clients request (`Retained`).
        least_mib: what the specification allows at all.
    """
    for each in histories:
        if each.answer is None or not each.answer.number("uptime") >= retention_s:
            return None
    needed_mib = max(each.needed_mib for history in histories for each in history.samples)
    found_mib = mib
    while (lower_mib := -(-found_mib * _STEP[1] // _STEP[0])) >= max(needed_mib, least_mib) and lower_mib < found_mib:
        found_mib = lower_mib
    return found_mib if found_mib < mib else None
