"""Finds out which cached objects an operator under test has changed in place.

What a store gives is shared by all who read it. Code that writes into a body, a label or a model there changes what
every other reader sees, and hides from comparisons what is really on the server. An operator in production pays for no
copies and no checks; a test does.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from operator_runtime.cache.store import ObjectKey, Store, key_of
from operator_runtime.client.watch import Record


class CacheChangedError(AssertionError):
    """Change of an object in the cache; the message names each, with the place."""


class _Snapshot(NamedTuple):
    record: Record
    original: Record


class CacheGuard:
    """Keeps a copy of each version that comes into the stores it watches, and compares when that is replaced."""

    def __init__(self) -> None:
        self._snapshots: dict[tuple[int, ObjectKey], tuple[str, _Snapshot]] = {}
        # A dict for its order: one sentence for each place, however often it is written to.
        self._changed: dict[str, None] = {}

    def watch(self, kind: str, store: Store[Any]) -> None:
        """Guard what comes into a store from now on."""

        def changed(before: Record | None, after: Record | None) -> None:
            if before is not None and (snapshot := self._snapshots.pop((id(store), key_of(before)), None)) is not None:
                self._compare(*snapshot)
            if after is not None and (copied := _copied(after)) is not None:
                self._snapshots[id(store), key_of(after)] = kind, _Snapshot(after, copied)

        store.add_handler(changed)

    def check(self) -> None:
        """Raise CacheChangedError where an object is not as it came, or was not when its next version came."""
        for snapshot in self._snapshots.values():
            self._compare(*snapshot)
        if self._changed:
            raise CacheChangedError(
                f"{'; '.join(self._changed)}. What a store gives is shared by all who read it: change a copy, such as "
                "copy.deepcopy(obj.body), or build a new object"
            )

    def _compare(self, kind: str, snapshot: _Snapshot) -> None:
        if snapshot.record != snapshot.original:
            place = _place(snapshot.original, snapshot.record)
            self._changed[f"{kind} {key_of(snapshot.record)} was changed in the cache, at {place}"] = None


def _copied(record: Record) -> Record | None:
    """A deep copy, None where a type of an author's own has no copy that is equal to it."""
    try:
        copied = copy.deepcopy(record)
        return copied if copied == record else None
    except Exception:
        return None


def _place(was: object, now: object) -> str:
    """Find where two values differ first, as Python would write it: `.body['data']['apples']`."""
    for step, old, new in _steps(was, now):
        if old != new:
            return step + _place(old, new)
    return ""


def _steps(was: object, now: object) -> Iterable[tuple[str, object, object]]:
    """The parts that two values have in common, each with its way there."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        return [(f"[{key!r}]", was.get(key), now.get(key)) for key in dict.fromkeys((*was, *now))]
    if isinstance(was, list | tuple) and isinstance(now, list | tuple) and len(was) == len(now):
        return [(f"[{number}]", old, new) for number, (old, new) in enumerate(zip(was, now, strict=True))]
    names: Iterable[str] = getattr(was, "__struct_fields__", ()) or getattr(type(was), "model_fields", ())
    if dataclasses.is_dataclass(was):
        names = [field.name for field in dataclasses.fields(was)]
    return [(f".{name}", getattr(was, name), getattr(now, name, None)) for name in names]
