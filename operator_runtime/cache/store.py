"""The cache: slim records by namespace and name, with indexes, fed by reflectors and read by reconcilers.

Everything is synchronous and on one event loop, so a reader sees one consistent state between two awaits. Records
are never changed in place: a new version replaces the old one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from operator_runtime.client.watch import Record
from operator_runtime.diagnostics.callback_errors import CallbackErrors, check_plain

R = TypeVar("R", bound=Record)

# One requirement of a label selector in the form that most have. Of the others nothing is known.
_EQUALITY = re.compile(r"\s*([A-Za-z0-9][-A-Za-z0-9_./]*)\s*==?\s*([-A-Za-z0-9_.]*)\s*")


class ObjectKey(NamedTuple):
    """Names one object of a kind; the namespace of a cluster-scoped one is ""."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(record: Record) -> ObjectKey:
    """The key under which a store holds `record`."""
    return ObjectKey(record.namespace, record.name)


# (before, after): None before means new, None after means gone from the watched set.
Handler = Callable[[R | None, R | None], None]
IndexFunction = Callable[[R], ObjectKey | None]


def version_reached(seen: str, desired: str) -> bool:
    """Report whether a resourceVersion `seen` is `desired` or later.

    Kubernetes promises since 1.35 that versions of one kind compare as decimal numbers: the shorter is the smaller,
    then digit by digit. It was so with etcd before. What is no such number is compared for equality.
    """
    return seen == desired or version_newer(seen, desired)


def version_newer(seen: str, other: str) -> bool:
    """Report whether a resourceVersion is later than another, which is never so of what is no number."""
    return _is_number(seen) and _is_number(other) and (len(seen), seen) > (len(other), other)


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit() and version[0] != "0"


@dataclass(frozen=True, slots=True)
class Selection:
    """Objects that a cache can hold at all, by the label selector and the scope of its watches (() for all)."""

    namespaces: tuple[str, ...] = ()
    labels: str = ""

    def may_hold(self, namespace: str, labels: Mapping[str, str] | None = None) -> bool:
        """Report whether such an object (`labels` None: not known) belongs here; False only where that is certain."""
        if self.namespaces and namespace not in self.namespaces:
            return False
        required = (_EQUALITY.fullmatch(each) for each in self.labels.split(",") if labels is not None)
        return all(each is None or (labels or {}).get(each[1]) == each[2] for each in required)


class Store(Generic[R]):
    """Records of one kind.

    Invariants:
        Under one name a resourceVersion never goes backwards by `put`, nor a uid: a late answer cannot undo what a
            watch has shown. By `replace` it may: a complete snapshot is the truth, also after an etcd was restored;
            but for what was put since the snapshot was begun, in a version that is later than the snapshot's own.
        Each index holds exactly the keys of records for which its function gives a value.
        Handlers run after the store and its indexes have changed, never for an unchanged record.
    """

    def __init__(self, selection: Selection | None = None) -> None:
        self.selection = selection or Selection()
        self._records: dict[ObjectKey, R] = {}
        self._functions: dict[str, IndexFunction[R]] = {}
        self._indexes: dict[str, dict[ObjectKey, set[ObjectKey]]] = {}
        self._handlers: list[Handler[R]] = []
        self._callback_errors = CallbackErrors()
        # By scope, while a snapshot of it is being read: what was put since it was begun.
        self._put_since: dict[str | None, set[ObjectKey]] = {}
        self.known_to = ""  # for handlers: the controller that does not need what comes now
        self.relisting = False  # for handlers: what comes now is a snapshot, of no urgency

    def __len__(self) -> int:
        return len(self._records)

    def add_index(self, name: str, function: IndexFunction[R]) -> None:
        """File the records, those held already too, under what `function` gives of each; None files it nowhere.

        So does an error, which is logged: one object must not end the process that takes care of all others. `function`
        must always give the same of the same record.

        Raises:
            ValueError: there is an index of that name.
            TypeError: `function` is a coroutine function.
        """
        check_plain(function, f"the function of the index {name!r}")
        if name in self._functions:
            raise ValueError(f"there is an index {name!r} already: share it, or give yours another name")
        self._functions[name] = function
        self._indexes[name] = {}
        for key, record in self._records.items():
            self._file(name, self._value(name, record), key)

    def add_handler(self, handler: Handler[R]) -> None:
        """Call `handler` on each change from now on. What it raises ends the operator: a change would be lost."""
        self._handlers.append(handler)

    def get(self, key: ObjectKey) -> R | None:
        """The record of that name, None when the watched set has none."""
        return self._records.get(key)

    def by_index(self, index: str, value: ObjectKey) -> list[R]:
        """The records that the index files under `value`, in no order; ValueError where there is no such index."""
        try:
            filed = self._indexes[index]
        except KeyError:
            names = ", ".join(map(repr, self._indexes)) or "none"
            raise ValueError(f"there is no index {index!r}: add it by add_index; there are {names}") from None
        return [self._records[key] for key in filed.get(value, ())]

    def values(self, namespace: str | None = None) -> list[R]:
        """The records held, of one namespace or of all, in no particular order."""
        return [record for key, record in self._records.items() if namespace is None or key.namespace == namespace]

    def keys(self, namespace: str | None = None) -> list[ObjectKey]:
        """The keys held, of one namespace or of all."""
        return [key for key in self._records if namespace is None or key.namespace == namespace]

    def put(self, record: R, *, known_to: str = "") -> bool:
        """Take a version of an object; False when the same or a later one, or a successor, is held already.

        `known_to` is the controller that knows all that is new in it, as it is the answer to a write of its own that
        changed exactly the version held here. The write's echo in the watch will find nothing new either.
        """
        before = self._records.get(key_of(record))
        if before is not None and version_reached(before.resource_version, record.resource_version):
            return False
        self.known_to = known_to
        try:
            self._set(before, record)
        finally:
            self.known_to = ""
        if self._put_since:
            key = key_of(record)
            for scope, put in self._put_since.items():
                if scope in (None, key.namespace):
                    put.add(key)
        return True

    def remove(self, key: ObjectKey, uid: str | None = None) -> bool:
        """Drop an object; with `uid` only if it is still that one, not its successor of the same name."""
        before = self._records.get(key)
        if before is None or (uid is not None and before.uid != uid):
            return False
        del self._records[key]
        for name in self._functions:
            self._unfile(name, self._value(name, before), key)
        for handler in self._handlers:
            handler(before, None)
        return True

    def begin(self, namespace: str | None = None) -> None:
        """A snapshot of a namespace (or of all) is requested now; `replace` follows, or another `begin`."""
        self._put_since[namespace] = set()

    def awaits_snapshot(self, namespace: str) -> bool:
        """Report whether a snapshot that has objects of that namespace is being read."""
        return None in self._put_since or namespace in self._put_since

    def replace(
        self, records: Iterable[R], kept: set[ObjectKey], namespace: str | None = None, *, version: str = ""
    ) -> None:
        """Make what is held of a namespace (None: of all) equal to a snapshot; what is missing counts as deleted.

        The answer to our own write may have been put here since the snapshot was begun. Where it is later than the
        snapshot it stays, also where the snapshot does not know the object: the watch that goes on from the snapshot
        shows the result.

        Args:
            kept: keys that are there although no record of them could be read: what is held of them stays.
            version: the snapshot's own, from which its watch goes on.
        """
        held = ((key, self._records.get(key)) for key in self._put_since.pop(namespace, ()))
        later = {key for key, each in held if each is not None and version_newer(each.resource_version, version)}
        missing = set(self.keys(namespace)) - kept - later
        self.relisting = True
        try:
            for record in records:
                key = key_of(record)
                if key in later:
                    continue
                missing.discard(key)
                before = self._records.get(key)
                if before is None or (before.uid, before.resource_version) != (record.uid, record.resource_version):
                    self._set(before, record)
            for key in missing:
                self.remove(key)
        finally:
            self.relisting = False

    def _set(self, before: R | None, record: R) -> None:
        key = key_of(record)
        self._records[key] = record
        for name in self._functions:
            old, new = (None if before is None else self._value(name, before)), self._value(name, record)
            if old != new:
                self._unfile(name, old, key)
                self._file(name, new, key)
        for handler in self._handlers:
            handler(before, record)

    def _value(self, index: str, record: R) -> ObjectKey | None:
        try:
            return self._functions[index](record)
        except Exception as error:
            about = f"the {type(record).__name__} {key_of(record)}"
            self._callback_errors.report(self._functions[index], about, f"The index {index!r} leaves it out.", error)
            return None

    def _file(self, index: str, value: ObjectKey | None, key: ObjectKey) -> None:
        if value is not None:
            self._indexes[index].setdefault(value, set()).add(key)

    def _unfile(self, index: str, value: ObjectKey | None, key: ObjectKey) -> None:
        if value is None:
            return
        filed = self._indexes[index][value]
        filed.discard(key)
        if not filed:
            del self._indexes[index][value]
