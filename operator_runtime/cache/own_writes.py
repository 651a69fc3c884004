"""Read your own writes: until the cache has shown what we wrote, a key is not reconciled on a stale cache.

The cache lags a write by some milliseconds (14 ms in the median, 127 ms at the 99th percentile of a real API server;
now and then it is ahead of the answer). A reconcile in between would write again. No event is ever dropped for this:
the key merely waits, and the event that shows the write enqueues it where its turn was put off.

Each controller has an `OwnWrites`, which `controller.client.Client` has expect what it writes. Its stores are observed
after the handlers that enqueue its keys were added, so that these still find a key pending whose write an event is
about to show.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from operator_runtime.cache.store import Handler, ObjectKey, Store, version_reached
from operator_runtime.client.watch import Record

logger = logging.getLogger(__name__)

# After this the watch is thought to lag for a reason of its own (kopf waits as long).
PATIENCE_S = 5.0


class _Expectation(NamedTuple):
    """Change that a cache has yet to show, of the object at `place` (its kind and key), as a record shows to
    `shown_by`.

    `version`: that our write was answered with, "" of what another client did, or what ends an object.
    """

    place: tuple[str, ObjectKey]
    uid: str
    shown_by: Callable[[Any], bool]
    deadline_s: float
    version: str = ""


class OwnWrites:
    """Answers to the writes for each key of a controller that its caches have yet to show.

    Invariants:
        An expectation is gone as soon as a store of its kind has held that version of the object or a later one, a
            successor's included, or has seen that object leave.
        `_waiting` files the keys with an expectation under its kind and object.
        `_put_off` has of the keys with an expectation those whose turn came and was put off for it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stores: dict[str, list[Store[Any]]] = {}
        self._pending: dict[ObjectKey, list[_Expectation]] = {}
        self._waiting: dict[tuple[str, ObjectKey], set[ObjectKey]] = {}
        self._put_off: set[ObjectKey] = set()

    def observe(self, kind: str, store: Store[Any]) -> None:
        """Learn from `store` what has arrived of a kind, by its `Resource.qualified_name`.

        Of several stores of one kind, the first that shows a write counts. What none of them will ever show, as it is
        outside of their scope and selectors, is not awaited; where that cannot be known, for `PATIENCE_S` in vain.
        """
        self._stores.setdefault(kind, []).append(store)
        store.add_handler(self._handler(kind))

    def expect(
        self,
        key: ObjectKey,
        kind: str,
        at: ObjectKey,
        uid: str,
        resource_version: str,
        *,
        labels: Mapping[str, str] | None = None,
        known: bool = False,
    ) -> None:
        """A write for `key` was answered with this version; await it, unless it is shown already or never will be.

        Args:
            at: of the object.
            labels: of the object, None where they are not known.
            known: it was there before, so that one that is in no store has left already, but for one that is yet to
                arrive: it was created just now, or a snapshot is being read.
        """
        stores = self._stores.get(kind, ())
        held = [record for store in stores if (record := store.get(at)) is not None]
        # One that is held will be seen to leave.
        if not held and not any(each.selection.may_hold(at.namespace, labels) for each in stores):
            return
        if (known and not held and not self._may_arrive(key, kind, at, uid)) or any(
            version_reached(each.resource_version, resource_version) for each in held
        ):
            return

        def shown_by(record: Any) -> bool:
            return version_reached(record.resource_version, resource_version)

        self._await(key, kind, at, uid, shown_by, resource_version)

    def expect_gone(self, key: ObjectKey, kind: str, at: ObjectKey, uid: str | None) -> None:
        """Await that an object, deleted for `key`, leaves or bears a deletionTimestamp."""
        self._expect_end(key, kind, at, uid, lambda record: getattr(record, "deleting", False))

    def expect_released(self, key: ObjectKey, kind: str, at: ObjectKey, uid: str) -> None:
        """Await that an object, which lost its last finalizer for `key`, leaves or is without.

        The answer to such a write bears the version from before it: the object is not stored once more, but deleted.
        """
        self._expect_end(key, kind, at, uid, lambda record: not getattr(record, "finalizers", ()))

    def expect_change(self, key: ObjectKey, kind: str, held: Record) -> None:
        """A write for `key` found an object in another version than `held`, or gone: await that a store shows it."""
        at, version = ObjectKey(held.namespace, held.name), held.resource_version
        if any(
            (record := store.get(at)) is not None and record.resource_version == version
            for store in self._stores.get(kind, ())
        ):
            self._await(key, kind, at, held.uid, lambda record: record.resource_version != version)

    def pending(self, key: ObjectKey) -> bool:
        return key in self._pending

    def wakes(self, key: ObjectKey) -> bool:
        """Report whether what comes enqueues `key`: its turn was put off, or more than answers to writes is awaited."""
        return key in self._put_off or any(not each.version for each in self._pending.get(key, ()))

    def is_answer(self, key: ObjectKey, kind: str, record: Record) -> bool:
        """Report whether `record` is just the answer to a write for `key`, and was not shown before."""
        at = ObjectKey(record.namespace, record.name)
        return any(
            (each.place, each.version) == ((kind, at), record.resource_version) for each in self._pending.get(key, ())
        )

    def put_off_s(self, key: ObjectKey) -> float:
        """The turn of `key` has come: seconds for which it is put off; 0.0 when all has arrived or patience is over."""
        if key not in self._pending:
            return 0.0
        wait_s = max(each.deadline_s for each in self._pending[key]) - self._clock()
        if wait_s > 0.0:
            self._put_off.add(key)
            return wait_s
        logger.warning("%s: the watch has not shown the last write; continuing with what it shows", key)
        self.forget(key)
        return 0.0

    def forget(self, key: ObjectKey) -> None:
        """Await nothing for `key` any more."""
        self._put_off.discard(key)
        for expectation in self._pending.pop(key, ()):
            self._unfile(key, expectation.place)

    def _expect_end(
        self, key: ObjectKey, kind: str, at: ObjectKey, uid: str | None, ends: Callable[[Any], bool]
    ) -> None:
        stores = self._stores.get(kind, ())
        held = [record for store in stores if (record := store.get(at)) is not None]
        for record in held:
            if uid in (None, record.uid) and not ends(record):
                self._await(key, kind, at, record.uid, _end_of(record.uid, ends))
                return
        if uid is not None and not held and self._may_arrive(key, kind, at, uid):
            self._await(key, kind, at, uid, _end_of(uid, ends))

    def _may_arrive(self, key: ObjectKey, kind: str, at: ObjectKey, uid: str) -> bool:
        """Report whether an object that no store holds may yet be shown as it was before a write to it."""
        if any((each.place, each.uid) == ((kind, at), uid) for each in self._pending.get(key, ())):
            return True
        return any(
            store.awaits_snapshot(at.namespace) and store.selection.may_hold(at.namespace)
            for store in self._stores.get(kind, ())
        )

    def _await(
        self, key: ObjectKey, kind: str, at: ObjectKey, uid: str, shown_by: Callable[[Any], bool], version: str = ""
    ) -> None:
        expectation = _Expectation((kind, at), uid, shown_by, self._clock() + PATIENCE_S, version)
        self._pending.setdefault(key, []).append(expectation)
        self._waiting.setdefault(expectation.place, set()).add(key)

    def _unfile(self, key: ObjectKey, place: tuple[str, ObjectKey]) -> None:
        keys = self._waiting.get(place, set())
        keys.discard(key)
        if not keys:
            self._waiting.pop(place, None)

    def _handler(self, kind: str) -> Handler[Any]:
        def seen(before: Any, after: Any) -> None:
            if not self._pending:
                return
            record = after if after is not None else before
            place = (kind, ObjectKey(record.namespace, record.name))

            def arrived(each: _Expectation) -> bool:
                # A predecessor that leaves shows nothing of what we wrote in its place.
                return bool(before.uid == each.uid) if after is None else each.shown_by(after)

            for key in tuple(self._waiting.get(place, ())):
                left = [each for each in self._pending[key] if each.place != place or not arrived(each)]
                if left:
                    self._pending[key] = left
                else:
                    del self._pending[key]
                    self._put_off.discard(key)
                if not any(each.place == place for each in left):
                    self._unfile(key, place)

        return seen


def _end_of(uid: str, ends: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda record: record.uid != uid or ends(record)
