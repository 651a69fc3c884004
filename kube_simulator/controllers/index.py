"""Objects of one collection by something in them, such as their controller's uid, kept up to date by the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kube_simulator.controllers.controller import Key, key_of
from kube_simulator.controllers.object_fields import controller_uid
from kube_simulator.store.store import Change, Store
from kube_simulator.values import Json


class Index:
    """Index that knows all objects of a collection between `open` and `close`; else none.

    Open it before the controllers that read it: listeners are called in the order in which they came.
    """

    def __init__(self, store: Store, collection: str, by: Callable[[Json], str]) -> None:
        self._store = store
        self._collection = collection
        self._by = by
        self._found: dict[str, dict[Key, Json]] = {}
        self._leave: Callable[[], None] | None = None

    def open(self) -> None:
        """Read all there is, and follow what changes."""
        self._leave = self._store.subscribe(self._changed, self._collection)
        for found in self._store.list(self._collection):
            self._put(found)

    def close(self) -> None:
        """Follow no more, and forget; can be called twice."""
        if self._leave is not None:
            self._leave()
            self._leave = None
        self._found.clear()

    def get(self, value: str) -> list[Json]:
        """The objects of which `by` says this."""
        return list(self._found.get(value, _NONE).values())

    def count(self, value: str) -> int:
        """Count the objects for which `by` returns this."""
        return len(self._found.get(value, _NONE))

    def _changed(self, change: Change) -> None:
        if change.before is not None:
            self._drop(change.before)
        if change.type != "DELETED":
            self._put(change.object)

    def _put(self, found: Json) -> None:
        self._found.setdefault(self._by(found), {})[key_of(found)] = found

    def _drop(self, found: Json) -> None:
        value = self._by(found)
        group = self._found.get(value)
        if group is not None:
            group.pop(key_of(found), None)
            if not group:
                del self._found[value]


_NONE: Mapping[Key, Json] = {}


def orphans_in(namespace: str) -> str:
    """Return what `by_controller` returns for objects in a namespace that nobody controls."""
    return f"orphans/{namespace}"


def by_controller(found: Json) -> str:
    """The uid of what controls an object."""
    return controller_uid(found) or orphans_in(found["metadata"].get("namespace", ""))
