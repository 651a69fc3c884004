"""State that is kept for each key of a controller from one reconcile to the next, and forgotten in one place."""

from __future__ import annotations

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
        """A thing to remember of keys.

        Args:
            make: what is remembered of a key at first.
        """
        of: dict[ObjectKey, T] = {}
        self._slots.append(of)
        return KeyedState(of, make)

    def forget(self, key: ObjectKey) -> None:
        """The object of that key is gone."""
        for of in self._slots:
            of.pop(key, None)


class KeyedState(Generic[T]):
    """One thing that is remembered of some keys; see `KeyedStates.keyed`."""

    def __init__(self, of: dict[ObjectKey, T], make: Callable[[], T]) -> None:
        self._of = of
        self._make = make

    def find(self, key: ObjectKey) -> T | None:
        """Return the state of that key, None for nothing."""
        return self._of.get(key)

    def of(self, key: ObjectKey) -> T:
        """Return the state of that key, made now where there is none."""
        if key not in self._of:
            self._of[key] = self._make()
        return self._of[key]

    def set(self, key: ObjectKey, value: T) -> None:
        """Remember this of that key, in place of what was."""
        self._of[key] = value

    def drop(self, key: ObjectKey) -> None:
        """Remember nothing of that key any more."""
        self._of.pop(key, None)

    def items(self) -> list[tuple[ObjectKey, T]]:
        """List all keys of which something is remembered, with it."""
        return list(self._of.items())
