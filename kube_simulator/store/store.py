"""Store in memory: collections of objects under one counter of revisions, and the changes that led here.

It takes the place of etcd, and as etcd it knows neither schemas nor rules: whoever writes has checked and completed the
object, and copied it first. A stored object is shared by all readers and never changed in place.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kube_simulator.values import Json

# Per collection. A change keeps up to two states of an object alive, some 10 kB each.
HISTORY_CHANGES = 10_000
# Dropping the oldest changes moves all others: it is done once in so many writes.
_DROPPED_AT_ONCE = 1_000


class Change(NamedTuple):
    """One write and what it made of an object."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    collection: str
    revision: int
    object: Json
    """As it is now; of a deletion, its last state with the deletion's resourceVersion."""
    before: Json | None
    """As it was before; None of a new object."""


Listener = Callable[[Change], None]
# Within `Store`, `list` is its method.
Objects = list[Json]
Changes = list[Change]


class Forgotten(Exception):
    """A revision of which the history says nothing any more; the argument is the oldest that can be asked for."""

    def __init__(self, oldest: int) -> None:
        super().__init__(oldest)
        self.oldest = oldest


@dataclass(slots=True)
class _Collection:
    """Objects by key, their keys in order, and the changes since revision `oldest`."""

    oldest: int
    objects: dict[str, Json] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    changes: Changes = field(default_factory=list)

    def keys_in(self, namespace: str) -> list[str]:
        """List keys in order; those of one namespace stand side by side."""
        if not namespace:
            return self.keys
        start = bisect_left(self.keys, f"{namespace}/")
        return self.keys[start : bisect_left(self.keys, f"{namespace}0", start)]  # which is after "/" in ASCII

    def since(self, revision: int) -> Changes:
        """The changes after it."""
        if revision < self.oldest:
            raise Forgotten(self.oldest)
        return self.changes[bisect_right(self.changes, revision, key=lambda change: change.revision) :]


class Store:
    """Objects by collection, namespace and name. Single-threaded; nothing here waits.

    Order is that of etcd's keys, `namespace/name`: namespace `a-b` comes before `a`, as "-" comes before "/".
    """

    def __init__(self, history_changes: int = HISTORY_CHANGES) -> None:
        """Remember at least `history_changes` changes of each collection."""
        # The first object gets 2, so that "1" can stand for a version that no object ever has.
        self.revision = 1
        self._history_changes = history_changes
        self._collections: dict[str, _Collection] = {}
        self._oldest = 0
        self._listeners: dict[str | None, tuple[Listener, ...]] = {}
        self._untold: deque[Change] = deque()
        self._notifying = False

    def get(self, collection: str, namespace: str, name: str) -> Json | None:
        """The object; the namespace of what belongs to the whole cluster is empty."""
        found = self._collections.get(collection)
        return None if found is None else found.objects.get(f"{namespace}/{name}")

    def list(self, collection: str, namespace: str = "") -> Objects:
        """The objects of a namespace, or without one of all, in the order of their keys."""
        found = self._collections.get(collection)
        return [] if found is None else [found.objects[key] for key in found.keys_in(namespace)]

    def list_at(self, collection: str, namespace: str, revision: int) -> Objects:
        """Return what `list` gave when `revision` was the present. Raises Forgotten."""
        found = self._collection(collection)
        # The first change of an object after the revision says what the object was at it.
        then: dict[str, Json | None] = {}
        for change in found.since(revision):
            then.setdefault(_key(change.object), change.before)
        keys = [key for key in found.keys_in(namespace) if key not in then]
        keys += [key for key, before in then.items() if before and key.startswith(f"{namespace}/" if namespace else "")]
        return [then.get(key) or found.objects[key] for key in sorted(keys)]

    def put(self, collection: str, object: Json) -> Json:
        """Create the object or replace it; gives what is stored, with its new resourceVersion."""
        found = self._collection(collection)
        key = _key(object)
        before = found.objects.get(key)
        if before is None:
            insort(found.keys, key)
        stored = found.objects[key] = self._stamped(object)
        self._record(found, Change("MODIFIED" if before else "ADDED", collection, self.revision, stored, before))
        return stored

    def delete(self, collection: str, namespace: str, name: str, last: Json | None = None) -> Json:
        """Remove the object; gives its last state with the deletion's resourceVersion. Raises KeyError.

        Args:
            last: the state to tell of, where the write that removes the object changes it too.
        """
        found = self._collection(collection)
        key = f"{namespace}/{name}"
        before = found.objects.pop(key)
        del found.keys[bisect_left(found.keys, key)]
        last = self._stamped(before if last is None else last)
        self._record(found, Change("DELETED", collection, self.revision, last, before))
        return last

    def changes_since(self, collection: str, revision: int) -> Changes:
        """The changes after a revision, oldest first. Raises Forgotten."""
        return self._collection(collection).since(revision)

    def forget(self) -> None:
        """Drop the history: of what was before the present revision nothing can be said any more."""
        self._oldest = self.revision
        for found in self._collections.values():
            found.oldest, found.changes = self.revision, []

    def subscribe(self, listener: Listener, collection: str | None = None) -> Callable[[], None]:
        """Call it at each write, of one collection or of all; gives the way out.

        It is called before the write returns, and must not raise. A listener may write: then all are told of the first
        write before anybody is told of the second, so that everybody hears of changes in the order of their revisions.
        """
        self._listeners[collection] = (*self._listeners.get(collection, ()), listener)

        def unsubscribe() -> None:
            self._listeners[collection] = tuple(each for each in self._listeners[collection] if each is not listener)

        return unsubscribe

    def _collection(self, name: str) -> _Collection:
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = _Collection(self._oldest)
        return found

    def _stamped(self, object: Json) -> Json:
        self.revision += 1
        return {**object, "metadata": {**object["metadata"], "resourceVersion": str(self.revision)}}

    def _record(self, collection: _Collection, change: Change) -> None:
        collection.changes.append(change)
        surplus = len(collection.changes) - self._history_changes
        if surplus >= _DROPPED_AT_ONCE:
            collection.oldest = collection.changes[surplus - 1].revision
            del collection.changes[:surplus]
        self._untold.append(change)
        if self._notifying:
            return
        self._notifying = True
        try:
            while self._untold:
                change = self._untold.popleft()
                for listener in (*self._listeners.get(None, ()), *self._listeners.get(change.collection, ())):
                    listener(change)
        finally:
            self._notifying = False


def _key(object: Json) -> str:
    metadata = object["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"
