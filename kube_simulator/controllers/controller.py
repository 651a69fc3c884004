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

from kube_simulator.access.identities import MASTERS
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

    def resource(self, collection: str) -> Resource:
        """The resource that is stored under this name; KeyError if it is not served."""
        plural, _, group = collection.partition(".")
        found = self.registry.of(group, plural)
        if found is None:
            raise KeyError(collection)
        return found

    def target(self, collection: str, namespace: str = "", name: str = "", subresource: str = "") -> Target:
        """An object, or a collection in one namespace or all."""
        return Target(self.resource(collection), namespace, name, subresource)


def controller_caller(controller: str) -> Caller:
    """A controller of kube-controller-manager as a client: it has a service account of its own.

    Differs from Kubernetes: there each has a role that gives it what it needs, here all are among the masters.
    """
    groups = {"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated", MASTERS}
    user = User(f"system:serviceaccount:kube-system:{controller}", frozenset(groups))
    return Caller(user, "kube-controller-manager")


def key_of(found: Json) -> Key:
    """The key of an object."""
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def own_key(change: Change) -> Iterable[Key]:
    """The key of the object that has changed."""
    return (key_of(change.object),)


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
        self._again: set[K] = set()
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
            self._ways_out.append(store.subscribe(self._listener(keys_of), collection))
            for found in store.list(collection) if collection else ():
                for key in keys_of(Change("ADDED", collection or "", store.revision, found, None)):
                    self.add(key)
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
        for left in (self._ways_out, self._tasks, self._due, self._busy, self._again, self._later, self._failures):
            left.clear()

    def add(self, key: K) -> None:
        """See to it soon."""
        if key in self._busy:
            self._again.add(key)
        elif key not in self._due:
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
            while not self._due:
                self._wake.clear()
                await self._wake.wait()
            key = next(iter(self._due))
            del self._due[key]
            self._busy.add(key)
            await self._attempt(key)
            self._busy.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key)
            await asyncio.sleep(0)

    async def _attempt(self, key: K) -> None:
        try:
            await self._reconcile(key)
        except ApiError as error:
            if error.code == 404:
                self._failures.pop(key, None)
                return
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            self.add_after(key, min(_FIRST_RETRY_S * 2 ** min(failures - 1, 20), _LONGEST_RETRY_S))
        except Exception as error:
            # A fault of ours that one object brings to light: said aloud, and the other objects go on.
            context = {"message": f"the simulator's {self.name} controller failed for {key}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
        else:
            self._failures.pop(key, None)
