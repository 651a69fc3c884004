"""Sources of a controller's keys: the kind it is for, those it owns and watches, and channels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.cache.store import ObjectKey, Store, key_of
from operator_runtime.client.watch import Record
from operator_runtime.controller.channel import Channel
from operator_runtime.controller.controller import Controller, current_reconcile
from operator_runtime.controller.informers import Informers
from operator_runtime.controller.predicates import Predicate, always
from operator_runtime.diagnostics.callback_errors import CallbackErrors, check_plain
from operator_runtime.objects.api_objects import ApiObject, same
from operator_runtime.objects.kinds import Kind
from operator_runtime.workqueue.queue import LOW_PRIORITY

R = TypeVar("R", bound=Record)
Owned = TypeVar("Owned", bound=ApiObject)
E = TypeVar("E")

MappedKeys = ObjectKey | Iterable[ObjectKey] | None
"""What a change is a reason to reconcile: one key, several, or none."""


class ControllerBuilder:
    """Adds reasons to reconcile to one controller, whose keys name objects of `kind`; each method gives the builder
    back.

    A change enqueues the keys that the object maps to before it and those that it maps to after it, unless a predicate
    finds it of no interest, or nothing but the resourceVersion differs. A key whose turn was put off until a write of
    its own is shown is enqueued whatever a predicate returns, as this change may be that write. What a list brings has
    a low priority.

    What a mapping function or a predicate raises is logged and stops nothing: a predicate that fails counts the change,
    a mapping function that fails, or gives no key, enqueues nothing.
    """

    def __init__(
        self,
        controller: Controller[ObjectKey],
        kind: Kind[Any],
        informers: Informers,
        own: OwnWrites,
    ) -> None:
        self.controller = controller
        self.kind = kind
        self._informers = informers
        self._own_writes = own
        self._first_keys: list[Callable[[], Iterable[ObjectKey]]] = []
        self._all_keys: list[Callable[[], Iterable[ObjectKey]]] = []
        self._callback_errors = CallbackErrors()
        self._finished = False
        self._watched: list[tuple[str, Store[Any]]] = []

    def owns(
        self,
        kind: Kind[Owned],
        *,
        when: Predicate[Owned] = always,
        labels: str = "",
        crd_hint: str = "",
        optional: bool = False,
    ) -> ControllerBuilder:
        """Enqueue the owner of an object of `kind`, by its controller reference, also when the owner is gone already.

        Otherwise as `watches`.
        """
        return self.watches(kind, self._owner_of, when=when, labels=labels, crd_hint=crd_hint, optional=optional)

    def watches(
        self,
        kind: Kind[R],
        map_to_keys: Callable[[R], MappedKeys],
        *,
        when: Predicate[R] = always,
        labels: str = "",
        crd_hint: str = "",
        optional: bool = False,
        after_create: bool = True,
    ) -> ControllerBuilder:
        """Enqueue what `map_to_keys` finds for an object of `kind`.

        Args:
            map_to_keys: the keys for an object; quick, and without I/O.
            when: which changes count.
            labels: see `Operator.informer`, as `crd_hint` and `optional`.
            after_create: reconcile once more when the watch shows what a reconcile of the same key made; False where
                that reconcile took the answer to its create for it.

        Raises:
            RuntimeError: the operator runs already.
            TypeError: `map_to_keys` or `when` is a coroutine function.
        """
        if self._finished:
            raise RuntimeError(
                f"a watch of {kind.resource.kind} comes too late for controller {self.controller.name!r}: "
                "add it in the set-up function, as the operator runs already"
            )
        check_plain(when, f"the predicate of controller {self.controller.name!r} for {kind.resource.kind}")
        store = self._informers.store(kind, labels=labels, crd_hint=crd_hint, optional=optional)
        keys = self._keys(map_to_keys, kind.resource.kind)
        controller, own, name = self.controller, self._own_writes, kind.resource.qualified_name
        what, instead = f"a change of {kind.resource.kind}", "The change is treated as relevant."

        def changed(before: R | None, after: R | None) -> None:
            if not controller.begun:
                return  # thousands come with the first lists, and `initial_keys` has them all
            priority = LOW_PRIORITY if store.relisting else 0
            counts = not same(before, after) and self._holds(when, before, after, what=what, instead=instead)
            # The key whose reconcile knows of the change, as it is the answer to its own write.
            context = current_reconcile.get() if store.known_to == controller.name else None
            new = after if counts and before is None and not after_create else None
            # A set: most changes map to the same key before and after.
            for key in {key for each in (before, after) if each is not None for key in keys(each)}:
                matters = counts and (new is None or not own.is_answer(key, name, new))
                if (matters or own.wakes(key)) and (context is None or key != context.key):
                    controller.enqueue(key, priority=priority)

        store.add_handler(changed)
        self._informers.when_late(store, self._enqueue_all)
        self._watched.append((name, store))
        self._all_keys.append(lambda: (key for each in store.values() for key in keys(each)))
        return self

    def watches_channel(self, channel: Channel[E], map_to_keys: Callable[[E], MappedKeys]) -> ControllerBuilder:
        """Enqueue what `map_to_keys`, which is no coroutine function, finds for an event of `channel`."""
        keys = self._keys(map_to_keys, "an event of a channel")

        def received(event: E) -> None:
            for key in keys(event):
                self.controller.enqueue(key)

        channel.listen(received)
        return self

    def begins_with(self, store: Store[R], overdue: Callable[[R], bool]) -> ControllerBuilder:
        """Reconcile first those that a user waits for, when the controller begins, and then everything.

        A new process finds thousands for which there is nothing to do, and a few that were changed while no operator
        ran. Where `overdue` fails, an object keeps its turn.

        Args:
            store: the cache of the controller's own kind.
            overdue: whether an object is such a one, as its status has another generation as reconciled last;
                quick, without I/O, and no coroutine function.
        """
        check_plain(overdue, f"what controller {self.controller.name!r} begins with")
        what, instead = self.kind.resource.kind, "It keeps its turn."

        def first() -> Iterable[ObjectKey]:
            for each in store.values():
                if self._holds(overdue, each, what=what, instead=instead, else_=False):
                    yield key_of(each)

        self._first_keys.append(first)
        return self

    def initial_keys(self) -> Iterable[ObjectKey]:
        """The keys that the controller reconciles when it begins, as the caches hold them now, in their order."""
        return dict.fromkeys(key for keys in (*self._first_keys, *self._all_keys) for key in keys())

    def _enqueue_all(self) -> None:
        """Enqueue all keys: what was done without a cache is done with it, also for those of whom it has nothing."""
        for key in self.initial_keys():
            self.controller.enqueue(key, priority=LOW_PRIORITY)

    def finish(self) -> None:
        """Finish the controller, to which nothing is added: let the caches report which own writes have arrived.

        After the handlers: they must still find pending what a change is about to fulfil.
        """
        self._finished = True
        for kind, store in dict.fromkeys(self._watched):
            self._own_writes.observe(kind, store)

    def _owner_of(self, owned: ApiObject) -> ObjectKey | None:
        group, kind = self.kind.resource.group, self.kind.resource.kind
        for owner in owned.owners:
            if owner.controller and owner.kind == kind and owner.api_version.rpartition("/")[0] == group:
                return ObjectKey(owned.namespace if self.kind.resource.namespaced else "", owner.name)
        return None

    def _keys(self, map_to_keys: Callable[[E], MappedKeys], what: str) -> Callable[[E], Iterable[ObjectKey]]:
        """`map_to_keys` as a function that always gives several keys, and reports to the author where it does not."""
        check_plain(map_to_keys, f"the mapping function of controller {self.controller.name!r} for {what}")

        def checked(of: E) -> Iterable[ObjectKey]:
            found = map_to_keys(of)
            if found is None:
                return ()
            several = (
                (found,) if isinstance(found, ObjectKey | str) or not isinstance(found, Iterable) else tuple(found)
            )
            for key in several:
                if not isinstance(key, ObjectKey):
                    raise TypeError(
                        f"controller {self.controller.name!r} was given {key!r} as a key for {what}: "
                        "give ObjectKey(namespace, name), several of them, or None"
                    )
            return several

        def keys(of: E) -> Iterable[ObjectKey]:
            try:
                return checked(of)
            except Exception as error:
                instead = f"Controller {self.controller.name} does not reconcile for it."
                self._callback_errors.report(map_to_keys, _in_words(what, of), instead, error)
                return ()

        return keys

    def _holds(self, test: Callable[..., bool], *of: object, what: str, instead: str, else_: bool = True) -> bool:
        """Report what an author's function does of these, of which the last is the newest; `else_` where it fails."""
        try:
            return test(*of)
        except Exception as error:
            newest = next(each for each in reversed(of) if each is not None)
            self._callback_errors.report(test, _in_words(what, newest), instead, error)
            return else_


def _in_words(what: str, of: object) -> str:
    """Name an author's function and what it was called with; an event of a channel may hold what no log should."""
    key = f"{getattr(of, 'namespace', '')}/{getattr(of, 'name', '')}".strip("/")
    return f"{what} {key}" if key else what
