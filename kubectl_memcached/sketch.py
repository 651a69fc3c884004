"""Pure: the most frequent of many keys, in bounded memory."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Final, Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
CAPACITY: Final = 2_000


class Tally(NamedTuple, Generic[K]):
    """Estimate of one key.

    Attributes:
        weight: at least the true weight.
        error: by how much `weight` may be too great.
        seen: sums of what `add` was given with it, since the key was last taken in.
    """

    key: K
    weight: int
    error: int
    seen: tuple[int, ...]


class SpaceSaving(Generic[K]):
    """Counts the heaviest keys of a stream, by Metwally's Space-Saving (2005).

    No estimate is too small, or too great by more than `total / capacity`; a key of more than that is among them.

    Attributes:
        total: weight of all that was added.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._kept: dict[K, list[int]] = {}  # weight, error, and what was seen
        # A lower bound of each kept key's weight, the number of its arrival, and the key: once for each.
        self._lightest: list[tuple[int, int, K]] = []
        self._arrivals = 0
        self.total = 0

    def add(self, key: K, weight: int, seen: tuple[int, ...] = ()) -> None:
        """Count a key once more.

        Args:
            weight: at least 0.
            seen: is added up as long as the key is kept; of one length for all keys.
        """
        self.total += weight
        if (kept := self._kept.get(key)) is None:
            floor = self._admit(key)
            kept = self._kept[key] = [floor, floor, *[0] * len(seen)]
        kept[0] += weight
        for place, amount in enumerate(seen, 2):
            kept[place] += amount

    def _admit(self, key: K) -> int:
        """Make room for a key; the weight of the one that goes, 0 where none has to."""
        self._arrivals += 1
        if len(self._kept) < self._capacity:
            heapq.heappush(self._lightest, (0, self._arrivals, key))
            return 0
        while True:
            bound, arrival, lightest = self._lightest[0]
            weight = self._kept[lightest][0]
            if weight == bound:
                del self._kept[lightest]
                heapq.heapreplace(self._lightest, (weight, self._arrivals, key))
                return weight
            heapq.heapreplace(self._lightest, (weight, arrival, lightest))

    def heaviest(self, count: int) -> list[Tally[K]]:
        """The heaviest keys, the first one first."""
        found = heapq.nlargest(count, self._kept.items(), key=lambda item: item[1][0])
        return [Tally(key, weight, error, tuple(seen)) for key, (weight, error, *seen) in found]
