"""The work queue: which key is reconciled next, and when.

`WorkQueue` is synchronous and holds all the rules; `async_queue` lets workers wait for it. The rules are those that
operators know from client-go (a key is never worked on twice at once, and never lost) and controller-runtime (the
highest priority and the earliest time win when a key is added twice), with differences whose reasons docs/decisions.md
has: no key starves, as each eighth turn is that of the key that has been ready longest (so one that joins while k keys
are ready is handed out within 8·(k+1) keys); a requeue keeps the priority; a failure counts once per attempt that was
due, and apart where it is not about the key.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from itertools import count
from typing import Generic, TypeVar

from operator_runtime.client.retry import Backoff

K = TypeVar("K", bound=Hashable)

# Initial lists and resyncs: controller-runtime's number, so that priorities mean the same to those who know it.
LOW_PRIORITY = -100

# One hand-out in so many goes to the longest waiting key, whatever its priority: at most 12.5 % of the throughput is
# taken from live changes, and an initial list of n keys is through after 8n hand-outs at the latest.
_TURNS_PER_FAIR_TURN = 8

# Stale entries of the timer heap are tolerated up to the number of live ones plus this, then swept.
_STALE_TIMERS = 64


# client-go begins at 5 ms, too busy for one Python loop, and ends at 1000 s, longer than people wait. A fifth is enough
# to spread keys: they are worked off by one process, which does not hammer itself.
RETRY_BACKOFF = Backoff(first_s=0.05, longest_s=300.0, spread=0.2)

# The longest delay after an error that is not about the object. In an outage the backoff grows to the length of
# the outage, and the key would sleep on for as long again; the watches are back within 10 s too.
OUTAGE_LONGEST_S = 10.0

# Keys with the same Retry-After come back within this part of it more, and not all at once.
_RETRY_AFTER_SPREAD = 0.25


@dataclass(slots=True)
class _Failures:
    """Counted failures of one key: its own, and those that are not about it; and when it is tried again."""

    retry_at: float
    own: int = 0
    bounded: int = 0


class WorkQueue(Generic[K]):
    """A deduplicating priority queue of keys, without threads, tasks or timers of its own.

    Every key is in at most one of three states, and holds nothing once it is in none:

    - `_waiting`: to become due at a time in the future. `_timers` orders these keys; an entry of it whose sequence
      number is not the one in `_waiting` is stale.
    - `_due`: to be handed out. It is in the band of its priority, unless the key is being worked on: then `done` puts
      it there.
    - neither.

    `_processing` holds the keys that were handed out and not yet `done`, whatever their state. A band is never empty,
    its order is the FIFO, and its values are stamps (ready since, sequence number) that grow with time.
    Only `_failures` outlives a key's visit: from a failure to the next `forget`.

    Attributes:
        adds: keys that became due, duplicates not counted.
        retries: retries that `fail` scheduled.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        backoff: Backoff = RETRY_BACKOFF,
        queued: Callable[[float], None] = lambda seconds: None,
        worked: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """
        Args:
            queued: called when a key is handed out, with how many seconds it was ready.
            worked: called when a key is done, with how many seconds it was worked on.
        """
        self.clock = clock
        self.adds = 0
        self.retries = 0
        self._backoff = backoff
        self._queued = queued
        self._worked = worked
        self.stopped = False
        self._sequence = count()
        self._due: dict[K, int] = {}
        self._bands: dict[int, OrderedDict[K, tuple[float, int]]] = {}
        self._turns = 0
        # Due at, sequence number, priority.
        self._waiting: dict[K, tuple[float, int, int]] = {}
        self._timers: list[tuple[float, int, K]] = []
        self._processing: dict[K, tuple[float, int]] = {}
        self._failures: dict[K, _Failures] = {}

    def add(self, key: K, *, priority: int = 0, after_s: float = 0.0) -> None:
        """Hand out `key` once, `after_s` seconds from now at the latest.

        A key that is already due keeps the higher priority and the earlier time. A stopped queue ignores it.
        """
        if self.stopped:
            return
        now = self.clock()
        self._schedule(key, priority, now, now + after_s)

    def get_nowait(self) -> K | None:
        """The next key, which the caller must hand to `done`; None when none is ready or the queue is stopped."""
        if self.stopped:
            return None
        now = self.clock()
        self._promote(now)
        if not self._bands:
            return None
        priority = self._choose()
        band = self._bands[priority]
        key, stamp = band.popitem(last=False)
        if not band:
            del self._bands[priority]
        del self._due[key]
        self._processing[key] = (now, priority)
        self._queued(now - stamp[0])
        return key

    def done(self, key: K) -> None:
        """The work on `key`, which was handed out, ended. If added meanwhile it is ready again."""
        started, _ = self._processing.pop(key)
        if key in self._due:
            self._enter_band(key, self._due[key], self.clock())
        self._worked(self.clock() - started)

    def fail(self, key: K, *, at_least_s: float = 0.0, at_most_s: float = math.inf) -> float:
        """The attempt on `key` failed: schedule the next one and return the seconds until then. `done` follows.

        Args:
            at_least_s: seconds that the server requested to wait (Retry-After). Up to a quarter more is waited, by
                chance; it wins over `at_most_s`.
            at_most_s: bound on the backoff, for a failure that is not about the key (`OUTAGE_LONGEST_S`). Such
                failures have a count of their own, and a retry that was scheduled for later is moved up.
        """
        _, priority = self._processing[key]
        now = self.clock()
        failures = self._failures.get(key)
        if failures is None:
            failures = self._failures[key] = _Failures(retry_at=now)
        if failures.retry_at <= now:
            failures.retry_at = now + self._count(failures, at_most_s)
        least_s = at_least_s + self._backoff.uniform(0.0, at_least_s * _RETRY_AFTER_SPREAD)
        failures.retry_at = max(min(failures.retry_at, now + at_most_s), now + least_s)
        self.retries += 1
        if not self.stopped:
            self._schedule(key, priority, now, failures.retry_at)
        return failures.retry_at - now

    def requeue(self, key: K, *, after_s: float, priority: int | None = None) -> None:
        """Add a key that was handed out, as `add` does, with the priority that it had unless another is given."""
        _, had = self._processing[key]
        self.add(key, priority=had if priority is None else priority, after_s=after_s)

    def forget(self, key: K) -> None:
        """`key` works again: the next failure is a first one. What is scheduled stays scheduled."""
        self._failures.pop(key, None)

    def stop(self) -> None:
        """Hand out and accept nothing from now on; what was handed out may still be finished."""
        self.stopped = True

    @property
    def processing(self) -> int:
        return len(self._processing)

    def next_deadline(self) -> float | None:
        """Return when the next waiting key becomes due, on the queue's clock; None when none waits."""
        timers = self._timers
        while timers:
            if self._is_live(timers[0]):
                return timers[0][0]
            heapq.heappop(timers)
        return None

    def __len__(self) -> int:
        """Keys that could be handed out now."""
        self._promote(self.clock())
        return sum(map(len, self._bands.values()))

    def depth(self) -> dict[int, int]:
        """Keys that could be handed out now, by priority."""
        self._promote(self.clock())
        return {priority: len(band) for priority, band in self._bands.items()}

    def longest_running_s(self) -> float:
        """Seconds since the oldest unfinished key was handed out; 0 when none is."""
        # Hand-outs enter this dict in the order of time, so the first one is the oldest.
        for started, _ in self._processing.values():
            return self.clock() - started
        return 0.0

    def unfinished_s(self) -> float:
        """Seconds of work in progress that `worked` has not got yet."""
        now = self.clock()
        return sum(now - started for started, _ in self._processing.values())

    def _count(self, failures: _Failures, at_most_s: float) -> float:
        """Count one more failure of its sort, and return how many seconds to be patient with it."""
        if at_most_s == math.inf:
            failures.own += 1
            return self._backoff.delay_s(failures.own)
        failures.bounded += 1
        # The bound goes into the backoff rather than on top of it, which would take the jitter away.
        bounded = replace(self._backoff, longest_s=min(self._backoff.longest_s, at_most_s))
        return bounded.delay_s(failures.bounded)

    def _schedule(self, key: K, priority: int, now: float, due_at: float) -> None:
        self._promote(now)  # what became due before this call goes before it into the FIFO
        due = self._due.get(key)
        if due is not None:
            if priority > due:
                self._raise(key, due, priority)
            return
        if self._waiting and (waiting := self._waiting.get(key)) is not None:
            waits_until, sequence, had = waiting
            priority = max(priority, had)
            if due_at >= waits_until:
                self._waiting[key] = (waits_until, sequence, priority)
                return
            del self._waiting[key]
        if due_at <= now:
            self._make_due(key, priority, now)
            return
        sequence = next(self._sequence)
        self._waiting[key] = (due_at, sequence, priority)
        heapq.heappush(self._timers, (due_at, sequence, key))
        if len(self._timers) > 2 * len(self._waiting) + _STALE_TIMERS:
            # Far deadlines that events keep overtaking would pile up otherwise.
            self._timers = [timer for timer in self._timers if self._is_live(timer)]
            heapq.heapify(self._timers)

    def _is_live(self, timer: tuple[float, int, K]) -> bool:
        waiting = self._waiting.get(timer[2])
        return waiting is not None and waiting[1] == timer[1]

    def _promote(self, now: float) -> None:
        """Move the waiting keys whose time has come to their bands, in the order of their times."""
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            key = heapq.heappop(self._timers)[2]
            self._make_due(key, self._waiting.pop(key)[2], deadline)

    def _make_due(self, key: K, priority: int, since: float) -> None:
        self.adds += 1
        self._due[key] = priority
        if key not in self._processing:
            self._enter_band(key, priority, since)

    def _enter_band(self, key: K, priority: int, since: float) -> None:
        band = self._bands.get(priority)
        if band is None:
            band = self._bands[priority] = OrderedDict()
        band[key] = (since, next(self._sequence))

    def _raise(self, key: K, old: int, new: int) -> None:
        self._due[key] = new
        if key in self._processing:
            return
        band = self._bands[old]
        stamp = band.pop(key)
        if not band:
            del self._bands[old]
        # Last in the new band, but with the old stamp: it has been ready since then.
        self._bands.setdefault(new, OrderedDict())[key] = stamp

    def _choose(self) -> int:
        """The band whose turn it is."""
        highest = max(self._bands)
        self._turns += 1
        if self._turns < _TURNS_PER_FAIR_TURN:
            return highest
        self._turns = 0
        heads = ((next(iter(band.values())), priority) for priority, band in self._bands.items())
        return min(heads)[1]
