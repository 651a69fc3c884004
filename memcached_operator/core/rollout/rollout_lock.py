"""Lock on replacements of servers for the operator's own sake: one Memcached after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from memcached_operator.api.status import Reason, decode_status
from memcached_operator.core.observed.caches import Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.rollout.server_states import is_stale
from operator_runtime import ObjectKey

logger = logging.getLogger(__name__)


class LeftRollouts(NamedTuple):
    """Rollouts that a former leader left.

    Attributes:
        underway: the one that goes on, and holds the lock; None for none.
        suspended: those that were begun, and stopped in the midst.
    """

    underway: ObjectKey | None = None
    suspended: Sequence[ObjectKey] = ()


class RolloutLock:
    """Lock that one Memcached takes for a rollout that no user requested, for example of another default image.

    A default that does not start stops so at one server of one Memcached, and no more than one cache is cold at a time.

    Invariants:
        At most one holds the lock. When it is free, those that wait are enqueued in the order in which they came; the
        first that is reconciled takes it, which may be another one. One that left it in the midst of its rollout
        continues once it has taken it again.
    """

    def __init__(self, left: Callable[[], LeftRollouts], enqueue: Callable[[ObjectKey], None]) -> None:
        self._left = left
        self._enqueue = enqueue
        self._is_restored = False
        self._waiting: dict[ObjectKey, None] = {}
        self._suspended: set[ObjectKey] = set()
        self.holder: ObjectKey | None = None

    def may_begin(self, key: ObjectKey, *, paused: bool) -> bool:
        """Report whether servers may be replaced now for a change of the operator's own, as of its default image."""
        if paused:
            self.suspend(key)
            return False
        was_holder = self.holder == key
        if not self.take(key):
            return False
        if not was_holder:
            logger.info(
                "starts to update servers, as the operator's own defaults have changed; other Memcacheds wait for it"
            )
        return True

    def take(self, key: ObjectKey) -> bool:
        """Take the lock, and report whether this one holds it now; it waits for it from now on if it does not."""
        self._restore()
        if self.holder in (None, key):
            self.holder = key
            self._waiting.pop(key, None)
            return True
        self._waiting[key] = None
        return False

    def has_begun(self, key: ObjectKey) -> bool:
        """Report whether its rollout was begun under the lock, and is not over."""
        self._restore()
        return key == self.holder or key in self._suspended

    def may_continue(self, key: ObjectKey) -> bool:
        """Report whether a rollout goes on: at once, but where it has left the lock to others in the midst."""
        return key not in self._suspended or self.take(key)

    def suspend(self, key: ObjectKey) -> None:
        """Suspend a rollout that was begun and cannot go on: others may replace servers, and it waits for them then."""
        has_begun = self.has_begun(key)
        if key == self.holder or key in self._waiting:
            self.leave(key)
        if has_begun:
            self._suspended.add(key)

    def resume(self, key: ObjectKey) -> None:
        """Resume a rollout that the user requests: it needs no lock."""
        self._suspended.discard(key)

    def leave(self, key: ObjectKey) -> None:
        """Leave the lock: the rollout is done, or needs it no longer."""
        self._waiting.pop(key, None)
        self._suspended.discard(key)
        if key == self.holder:
            self.holder = None
        if self.holder is None and self._waiting:
            self._enqueue(next(iter(self._waiting)))

    def _restore(self) -> None:
        """Take over what a former leader left, once the caches have it."""
        if self._is_restored:
            return
        self._is_restored, left = True, self._left()
        self.holder, self._suspended = left.underway, set(left.suspended)
        if self.holder is not None:
            self._enqueue(self.holder)  # it may be done by now, and would not report that by itself


def rollouts_left(caches: Caches) -> LeftRollouts:
    """The rollouts that a former leader left for the operator's own sake.

    One that was paused or blocked in the midst counts as such: nothing tells for whose sake it began.
    """
    underway, suspended = None, []
    for each in caches.memcacheds.values():
        reasons = {condition.type: condition.reason for condition in decode_status(each.status).conditions or ()}
        progressing = reasons.get("Progressing", Reason.COMPLETE)
        if each.deleting or progressing == Reason.COMPLETE:
            continue
        if progressing != Reason.UPDATING:
            if _is_mixed(each, caches):
                suspended.append(each.key)
        # An image of the user's own that does not start must not hold up the others.
        elif underway is None and (reasons.get("Degraded") != Reason.ROLLOUT_STUCK or not _has_own_image(each)):
            underway = each.key
    return LeftRollouts(underway, tuple(suspended))


def _is_mixed(memcached: MemcachedRecord, caches: Caches) -> bool:
    workloads = caches.workloads_of(memcached)
    pods = caches.servers_of(memcached)
    return any(pod.workload in workloads and is_stale(pod, workloads[pod.workload]) for pod in pods)


def _has_own_image(memcached: MemcachedRecord) -> bool:
    spec = memcached.readable_spec
    return spec is None or spec.image is not None
