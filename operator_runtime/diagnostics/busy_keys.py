"""Which key is reconciled again and again without end: what its own reconcile writes wakes it, most often."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

# So often within so long is worth a word: ten times a second for a minute, while a key that wakes itself is reconciled
# some hundred times a second. Nothing that people or controllers do to one object comes near it.
LIMIT, WINDOW_S = 600, 60.0
# Keys that are counted at a time.
_COUNTED = 32
# After a word, so long without one; then twice as long after each further one.
_FIRST_QUIET_S, _LONGEST_QUIET_S = 60.0, 3600.0


class BusyKeys(Generic[K]):
    """Pure: counts the keys that come often, in a table that does not grow with the number of keys.

    It is the algorithm of Misra and Gries ("Finding repeated elements", 1982): where all counters are taken, each loses
    one. A key is counted too low by at most a 33rd of all reconciles, and never too high.
    """

    def __init__(self) -> None:
        self._counts: dict[K, int] = {}
        self._began = self._quiet_until = float("-inf")
        self._quiet_s = _FIRST_QUIET_S

    def reconciled(self, key: K, now: float) -> float | None:
        """A key was reconciled; in how many seconds it was so `LIMIT` times, if that is to be told now.

        Args:
            key: of whatever controller this is for.
            now: monotonic seconds.
        """
        counts = self._counts
        if now - self._began > WINDOW_S:
            counts.clear()
            self._began = now
        count = counts.get(key, 0) + 1
        if count == 1 and len(counts) >= _COUNTED:
            for each in tuple(counts):
                if counts[each] == 1:
                    del counts[each]
                else:
                    counts[each] -= 1
            return None
        counts[key] = count
        if count < LIMIT:
            return None
        took_s, self._began = now - self._began, now
        counts.clear()
        if now < self._quiet_until:
            return None
        if now - self._quiet_until > _LONGEST_QUIET_S:
            self._quiet_s = _FIRST_QUIET_S
        self._quiet_until = now + self._quiet_s
        self._quiet_s = min(2 * self._quiet_s, _LONGEST_QUIET_S)
        return took_s
