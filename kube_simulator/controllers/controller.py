"""A level-triggered controller: changes become keys, and a few tasks make each key's object what it should be.

A key that is added twice is done once, and one that is added while it is being done is done again. What fails is done
again after a short, growing delay; what fails because something has vanished (404) is not, as there is nothing to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from kube_simulator.access.users import MASTERS
from kube_simulator.controllers.object_fields import controller_of
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Caller, Target, User
from kube_simulator.resources import Registry, Resource
from kube_simulator.store.store import Change, Store
from kube_simulator.values import Json

if TYPE_CHECKING:
    from kube_simulator.requests.api import Api

Key = tuple[str, str]
"""Namespace ("" for none) and name."""

K = TypeVar("K", bound=Hashable)

# As client-go's default rate limiter; its longest delay of 1,000 s would make a person wait for nothing.
_FIRST_RETRY_S = 0.005
_LONGEST_RETRY_S = 5.0
# As kube-controller-manager's --concurrent-deployment-syncs.
_WORKERS = 5


@dataclass(frozen=True, slots=True)
class Context:
    """Context that every controller works with."""

    api: Api
    store: Store
    registry: Registry
    now: Callable[[], datetime]
    """The present time, in UTC."""

    def target(self, collection: str, namespace: str = "", name: str = "", subresource: str = "") -> Target:
        """An object, or a collection in one namespace or all; KeyError if it is not served."""
        return Target(self.resource(collection), namespace, name, subresource)

    def resource(self, collection: str) -> Resource:
        """The resource that is stored under this name; KeyError if it is not served."""
        plural, _, group = collection.partition(".")
        found = self.registry.of(group, plural)
        if found is None:
            raise KeyError(collection)
        return found


def controller_caller(controller: str) -> Caller:
    """A controller of kube-controller-manager as a client: it has a service account of its own."""
    groups = {"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated", MASTERS}
    user = User(f"system:serviceaccount:kube-system:{controller}", frozenset(groups))
    return Caller(user, "kube-controller-manager")


def namespace_is_leaving(error: ApiError) -> bool:
    """Report whether the namespace is being deleted and lets nothing new in: no reason to complain, or to try again."""
    causes = error.details.get("causes") or ()
    return any(each.get("reason") == "NamespaceTerminating" for each in causes)


def key_of(found: Json) -> Key:
    """The key of an object."""
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def own_key(change: Change) -> Iterable[Key]:
    """The key of the object that has changed."""
    return (key_of(change.object),)


class Owned:
    """Objects of one collection by the uid of their controller, or by namespace where they have none.

    It knows them between `open` and `close`. Open it before the controllers that read it: listeners are called in the
    order in which they came.
    """

    def __init__(self, store: Store, collection: str) -> None:
        self._store = store
        self._collection = collection
        self._found: dict[str, dict[Key, Json]] = {}
        self._leave: Callable[[], None] = lambda: None

    def open(self) -> None:
        """Read all there is, and follow what changes."""
        self._leave = self._store.subscribe(self._changed, self._collection)
        for found in self._store.list(self._collection):
            self._changed(Change("ADDED", self._collection, 0, found, None))

    def close(self) -> None:
        """Follow no more, and forget; can be called twice."""
        self._leave()
        self._found.clear()

    def by(self, uid: str) -> list[Json]:
        """The objects that an owner controls."""
        return list(self._found.get(uid, {}).values())

    def orphans(self, namespace: str) -> list[Json]:
        """The objects of a namespace that nobody controls."""
        return list(self._found.get(f"orphans/{namespace}", {}).values())

    def _changed(self, change: Change) -> None:
        if change.before is not None:
            self._found.get(_group(change.before), {}).pop(key_of(change.before), None)
        if change.type != "DELETED":
            self._found.setdefault(_group(change.object), {})[key_of(change.object)] = change.object


def _group(found: Json) -> str:
    reference = controller_of(found)
    return f"orphans/{found['metadata'].get('namespace', '')}" if reference is None else str(reference["uid"])


class Controller(Generic[K]):
    """One queue of keys and the tasks that drain it.

    It watches between `start` and `stop` alone. Nothing is lost in between, as `start` adds the keys of all objects.
    """

    def __init__(self, name: str, reconcile: Callable[[K], Awaitable[None]], *, workers: int = _WORKERS) -> None:
        self.name = name
        self._reconcile = reconcile
        self._workers = workers
        self._watches: list[tuple[Store, str | None, Callable[[Change], Iterable[K]]]] = []
        self._ways_out: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        self._due: dict[K, None] = {}  # a set that keeps its order
        self._busy: set[K] = set()
        self._later: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}

    def watch(self, store: Store, collection: str | None, keys_of: Callable[[Change], Iterable[K]]) -> None:
        """Add the keys that `keys_of` finds in each change of a collection (None: of all), and of all there is.

        What is there already, `keys_of` sees as if it were added at the start; with None it sees changes alone.
        """
        self._watches.append((store, collection, keys_of))

    def start(self) -> None:
        """Watch, and begin with everything there is."""
        for store, collection, keys_of in self._watches:
            listener = self._listener(keys_of)
            self._ways_out.append(store.subscribe(listener, collection))
            for found in store.list(collection) if collection else ():
                listener(Change("ADDED", collection or "", store.revision, found, None))
        self._tasks = [asyncio.create_task(self._work(), name=self.name) for _ in range(self._workers)]

    async def stop(self) -> None:
        """Watch no more, and forget what is left to do; can be called twice."""
        for leave in self._ways_out:
            leave()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for timer in self._later.values():
            timer.cancel()
        for left in (self._ways_out, self._tasks, self._due, self._busy, self._later, self._failures):
            left.clear()

    def add(self, key: K) -> None:
        """See to it soon."""
        self._due[key] = None
        self._wake.set()

    def add_after(self, key: K, delay_s: float) -> None:
        """See to it when this time has passed, or sooner if that was asked for before."""
        loop = asyncio.get_running_loop()
        known = self._later.get(key)
        if known is not None:
            if known.when() <= loop.time() + delay_s:
                return
            known.cancel()
        self._later[key] = loop.call_later(delay_s, self._ripe, key)

    @property
    def idle(self) -> bool:
        """Report whether nothing is being done or due; something may be later."""
        return not self._due and not self._busy

    def _ripe(self, key: K) -> None:
        del self._later[key]
        self.add(key)

    def _listener(self, keys_of: Callable[[Change], Iterable[K]]) -> Callable[[Change], None]:
        def changed(change: Change) -> None:
            for key in keys_of(change):
                self.add(key)

        return changed

    async def _work(self) -> None:
        while True:
            while (key := next((each for each in self._due if each not in self._busy), None)) is None:
                self._wake.clear()
                await self._wake.wait()
            del self._due[key]
            self._busy.add(key)
            await self._attempt(key)
            self._busy.discard(key)
            self._wake.set()
            await asyncio.sleep(0)

    async def _attempt(self, key: K) -> None:
        try:
            await self._reconcile(key)
        except ApiError as error:
            if error.code != 404:
                failures = self._failures[key] = self._failures.get(key, 0) + 1
                self.add_after(key, min(_FIRST_RETRY_S * 2 ** min(failures - 1, 20), _LONGEST_RETRY_S))
                return
        except Exception as error:
            # A fault of ours that one object brings to light: said aloud, and the other objects go on.
            context = {"message": f"the simulator's {self.name} controller failed for {key}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
        self._failures.pop(key, None)
