"""Reads of causes that no cache has: each is seldom, and all Memcacheds take turns at them, first come, first served.

The API server reads all events of a namespace for those of one object, and where thousands of Memcacheds begin at once,
all of them miss servers for a while.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

from operator_runtime import KeyedStates, ObjectKey

T = TypeVar("T")

READ_AFTER_S: Final = 5.0
"""A StatefulSet's controller makes a pod in less, and a node mounts a volume."""
REREAD_AFTER_S: Final = 30.0
READ_EVERY_S: Final = 1.0
"""Of all Memcacheds together."""
# One that has more before it reconciles once more before its turn.
_COUNTED: Final = int(REREAD_AFTER_S / READ_EVERY_S)


@dataclass(slots=True)
class _Read(Generic[T]):
    """Knowledge of one Memcached.

    Attributes:
        of: what it is about.
    """

    of: Hashable
    due_s: float
    result: T


class BoundedReads(Generic[T]):
    """Holds what each Memcached's last read found; see `expect`, then `read`."""

    def __init__(self, states: KeyedStates, clock: Callable[[], float], unknown: T) -> None:
        """
        Args:
            unknown: the result before the first read.
        """
        self._clock = clock
        self._unknown = unknown
        self._known = states.keyed(lambda: _Read(None, clock(), unknown))
        self._line = states.keyed(lambda: None)  # those that are due, in the order in which they came
        self._free_s = float("-inf")  # from when on the first of them may read

    def drop(self, key: ObjectKey) -> None:
        """Forget a Memcached of which there is nothing to read any more."""
        self._known.pop(key, None)
        self._line.pop(key, None)

    def expect(self, key: ObjectKey, of: Hashable, after_s: float) -> None:
        """Prepare for reads of what is about `of`: of another one nothing is known.

        Args:
            after_s: seconds until the first one is due.
        """
        known = self._known.get(key)
        if known is None or known.of != of:
            self._known[key] = _Read(of, self._clock() + after_s, self._unknown)

    async def read(self, key: ObjectKey, reading: Callable[[T], Awaitable[T]]) -> tuple[T, float]:
        """Read if that is due and this Memcached's turn; the last result, and seconds until there may be another.

        Args:
            reading: reads, given the last result.
        """
        known, now_s = self._known[key], self._clock()
        left_s = known.due_s - now_s
        if left_s <= 0.0:
            self._line[key] = None
            left_s = self._free_s + self._ahead(key) * READ_EVERY_S - now_s
        if left_s <= 0.0:
            self._line.pop(key, None)
            left_s = REREAD_AFTER_S
            known.due_s, self._free_s = now_s + REREAD_AFTER_S, now_s + READ_EVERY_S
            known.result = await reading(known.result)
        return known.result, min(left_s, REREAD_AFTER_S)

    def _ahead(self, key: ObjectKey) -> int:
        """Count those that came before it, as far as that makes a difference."""
        first = islice(self._line, _COUNTED)
        return next((place for place, each in enumerate(first) if each == key), _COUNTED)
