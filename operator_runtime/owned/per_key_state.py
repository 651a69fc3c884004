"""State that is kept for each key of a controller from one reconcile to the next, and forgotten in one place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from operator_runtime.cache.store import ObjectKey

T = TypeVar("T")


class KeyedStates:
    """Holds what `KeyedState`s remember; all of a key is forgotten at once, when its object is gone.

    Nothing in it is needed to do right: a successor that knows none of it comes to the same, by a request or two more.
    """

    def __init__(self) -> None:
        self._slots: list[dict[ObjectKey, Any]] = []

    def __len__(self) -> int:
        """Count the keys' states that are kept."""
        return sum(map(len, self._slots))

    def keyed(self, make: Callable[[], T]) -> KeyedState[T]:
        """A thing to remember of keys, which is what `make` gives at first."""
        slot: defaultdict[ObjectKey, T] = defaultdict(make)
        self._slots.append(slot)
        return KeyedState(slot)

    def forget(self, key: ObjectKey) -> None:
        """The object of that key is gone."""
        for slot in self._slots:
            slot.pop(key, None)


class KeyedState(Generic[T]):
    """One thing that is remembered of some keys; see `KeyedStates.keyed`.

    Attributes:
        find: return the state of a key, None for nothing.
        of: return the state of a key, made now where there is none.
        set: remember this of a key, in place of what was.
    """

    def __init__(self, slot: defaultdict[ObjectKey, T]) -> None:
        self._slot = slot
        # The dict's own: each reconcile calls them.
        self.find: Callable[[ObjectKey], T | None] = slot.get
        self.of: Callable[[ObjectKey], T] = slot.__getitem__
        self.set: Callable[[ObjectKey, T], None] = slot.__setitem__

    def drop(self, key: ObjectKey) -> None:
        """Remember nothing of that key any more."""
        self._slot.pop(key, None)

    def items(self) -> list[tuple[ObjectKey, T]]:
        """List all keys of which something is remembered, with it."""
        return list(self._slot.items())
