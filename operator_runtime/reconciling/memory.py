"""What is remembered of each key of a controller from one reconcile to the next, in one dictionary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from operator_runtime.cache.store import ObjectKey

T = TypeVar("T")


class Memory:
    """Holds what `Slot`s remember; all of a key is forgotten at once, when its object is gone.

    Nothing in it is needed to do right: a successor that knows none of it comes to the same, by a request or two more.
    """

    def __init__(self) -> None:
        self._of: dict[ObjectKey, dict[Slot[Any], Any]] = {}

    def __len__(self) -> int:
        return len(self._of)

    def slot(self, make: Callable[[], T]) -> Slot[T]:
        """A thing to remember of keys.

        Args:
            make: what is remembered of a key at first.
        """
        return Slot(self._of, make)

    def forget(self, key: ObjectKey) -> None:
        """The object of that key is gone."""
        self._of.pop(key, None)


class Slot(Generic[T]):
    """One thing that is remembered of some keys; see `Memory.slot`."""

    def __init__(self, of: dict[ObjectKey, dict[Slot[Any], Any]], make: Callable[[], T]) -> None:
        self._of = of
        self._make = make

    def find(self, key: ObjectKey) -> T | None:
        """What is remembered of that key, None for nothing."""
        return cast("T | None", self._of.get(key, {}).get(self))

    def of(self, key: ObjectKey) -> T:
        """What is remembered of that key, begun now where it was nothing."""
        remembered = self._of.setdefault(key, {})
        if self not in remembered:
            remembered[self] = self._make()
        return cast("T", remembered[self])

    def set(self, key: ObjectKey, value: T) -> None:
        """Remember this of that key, in place of what was."""
        self._of.setdefault(key, {})[self] = value

    def drop(self, key: ObjectKey) -> None:
        """Remember nothing of that key any more."""
        if (remembered := self._of.get(key)) is not None:
            remembered.pop(self, None)
            if not remembered:
                del self._of[key]

    def items(self) -> list[tuple[ObjectKey, T]]:
        """All keys of which something is remembered here, with it."""
        return [(key, remembered[self]) for key, remembered in self._of.items() if self in remembered]
