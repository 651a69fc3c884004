"""Whose servers are replaced for the operator's own sake: those of one Memcached after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from memcached_operator.api.names import InvalidSpec
from memcached_operator.api.status import Reason
from memcached_operator.memcached.observed.memcacheds import MemcachedRecord, reported_conditions
from memcached_operator.memcached.spec import read_spec
from operator_runtime import ObjectKey

logger = logging.getLogger(__name__)


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

    def may_begin(self, key: ObjectKey, *, paused: bool) -> bool:
        """Whether servers may be replaced now for a change that is the operator's own, as of its default image."""
        if paused:
            self.leave(key)
            return False
        was_holder = self.holder == key
        if not self.take(key):
            return False
        if not was_holder:
            logger.info(
                "starts to replace servers, as the operator's own defaults have changed; other Memcacheds wait for it"
            )
        return True

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


def rollout_underway(memcacheds: Iterable[MemcachedRecord]) -> ObjectKey | None:
    """A Memcached whose servers are being replaced, for the operator's own sake as far as one can tell."""
    for each in memcacheds:
        reasons = {condition.type: condition.reason for condition in reported_conditions(each)}
        if each.deleting or reasons.get("Progressing") != Reason.UPDATING:
            continue
        # An image of the user's own that does not start must not hold up the others.
        if reasons.get("Degraded") != Reason.ROLLOUT_STUCK or not _has_own_image(each):
            return each.key
    return None


def _has_own_image(memcached: MemcachedRecord) -> bool:
    try:
        return read_spec(memcached.spec).image is not None
    except InvalidSpec:
        return True
