"""Read your own writes: until the cache has shown what we wrote, a key is not reconciled on the old picture.

The cache lags a write by some milliseconds (14 ms in the median, 127 ms at the 99th percentile of a real API server;
now and then it is ahead of the answer). A reconcile in between would see the object as it was and write again. No event
is ever dropped for this: the key merely waits, and the event that shows the write is what wakes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from memcached_operator.runtime.cache.store import Handler, ObjectKey, Store, version_reached

# After this the watch is thought to lag for a reason of its own, and a live GET says what is (kopf waits as long).
PATIENCE_S = 5.0


class _Expectation(NamedTuple):
    kind: str
    uid: str
    resource_version: str
    deadline_s: float


class OwnWrites:
    """For each key the versions that its writes were answered with and its caches have yet to show.

    Invariant: an expectation is gone as soon as the store has held that version or a later one, a successor's included,
    or has seen that object leave.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stores: dict[str, Store[Any]] = {}
        self._pending: dict[ObjectKey, list[_Expectation]] = {}

    def observe(self, kind: str, store: Store[Any]) -> None:
        """Learn from `store` what has arrived; objects of `kind` bear the name of the key that writes them."""
        self._stores[kind] = store
        store.add_handler(self._handler(kind))

    def expect(self, key: ObjectKey, kind: str, uid: str, resource_version: str) -> None:
        """A write for `key` was answered with this version; an unchanged object's is there already."""
        held = self._stores[kind].get(key)
        if held is not None and version_reached(held.resource_version, resource_version):
            return
        expectation = _Expectation(kind, uid, resource_version, self._clock() + PATIENCE_S)
        self._pending.setdefault(key, []).append(expectation)

    def pending(self, key: ObjectKey) -> bool:
        """Whether something is still awaited for `key`."""
        return key in self._pending

    def wait_s(self, key: ObjectKey) -> float:
        """Seconds for which `key` should wait for its own writes; 0.0 when all have arrived or patience is over."""
        if key not in self._pending:
            return 0.0
        latest = max(expectation.deadline_s for expectation in self._pending[key])
        return max(0.0, latest - self._clock())

    def overdue(self, key: ObjectKey) -> bool:
        """Whether patience is over; if so the expectations are forgotten and the caller looks at the live objects."""
        if key not in self._pending or self.wait_s(key) > 0.0:
            return False
        del self._pending[key]
        return True

    def forget(self, key: ObjectKey) -> None:
        """The object behind `key` is gone."""
        self._pending.pop(key, None)

    def _handler(self, kind: str) -> Handler[Any]:
        def seen(before: Any, after: Any) -> None:
            if not self._pending:
                return
            record = after if after is not None else before
            key = ObjectKey(record.namespace, record.name)
            expectations = self._pending.get(key)
            if expectations is None:
                return
            left = [each for each in expectations if each.kind != kind or not _arrived(each, before, after)]
            if left:
                self._pending[key] = left
            else:
                del self._pending[key]

        return seen


def _arrived(expectation: _Expectation, before: Any, after: Any) -> bool:
    if after is None:
        # A predecessor that leaves says nothing about what we wrote in its place.
        return bool(before.uid == expectation.uid)
    return version_reached(after.resource_version, expectation.resource_version)
