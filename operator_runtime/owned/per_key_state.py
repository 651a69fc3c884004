"""State that is kept for each key of a controller from one reconcile to the next, and forgotten in one place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from operator_runtime.cache.store import ObjectKey

T = TypeVar("T")


class KeyedStates:
    """Holds what is remembered of keys; all of a key is forgotten at once, when its object is gone.

    Nothing in it is needed to do right: a successor that knows none of it comes to the same, by a request or two more.
    """

    def __init__(self) -> None:
        self._slots: list[dict[ObjectKey, Any]] = []

    def __len__(self) -> int:
        """Count the keys' states that are kept."""
        return sum(map(len, self._slots))

    def keyed(self, make: Callable[[], T]) -> defaultdict[ObjectKey, T]:
        """A thing to remember of keys: `[key]` is what `make` gives at first, `get(key)` is None until then."""
        slot: defaultdict[ObjectKey, T] = defaultdict(make)
        self._slots.append(slot)
        return slot

    def forget(self, key: ObjectKey) -> None:
        """The object of that key is gone."""
        for slot in self._slots:
            slot.pop(key, None)
