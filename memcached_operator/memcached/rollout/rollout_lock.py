"""Whose servers are replaced for the operator's own sake: those of one Memcached after the other."""

from __future__ import annotations

from collections.abc import Callable

from operator_runtime import ObjectKey


class RolloutLock:
    """Who may begin a rollout that no user asked for, as of another default image.

    A default that does not start stops so at one server of one Memcached, and no more than one cache is cold at a time.

    Invariants:
        At most one holds the turn. Those that wait are woken when it is free, in the order in which they came.
    """

    def __init__(self, underway: Callable[[], ObjectKey | None], wake: Callable[[ObjectKey], None]) -> None:
        """
        Args:
            underway: whose rollout a former leader began, None for none; asked once.
            wake: has one that waits looked at again.
        """
        self._underway = underway
        self._wake = wake
        self._begun = False
        self._waiting: dict[ObjectKey, None] = {}
        self.holder: ObjectKey | None = None

    def take(self, key: ObjectKey) -> bool:
        """Whether it is the turn of this one, which waits for it from now on if it is not."""
        if not self._begun:
            self._begun, self.holder = True, self._underway()
            if self.holder is not None:
                self._wake(self.holder)  # it may be done by now, and would not say so by itself
        if self.holder in (None, key):
            self.holder = key
            self._waiting.pop(key, None)
            return True
        self._waiting[key] = None
        return False

    def leave(self, key: ObjectKey) -> None:
        """This one is done, or asks for no turn any more."""
        self._waiting.pop(key, None)
        if key == self.holder:
            self.holder = None
        if self.holder is None and self._waiting:
            self._wake(next(iter(self._waiting)))
