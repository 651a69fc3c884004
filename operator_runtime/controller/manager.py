"""Start, supervise and stop what makes up an operator: one TaskGroup, no loose tasks.

The order: watches and services first, workers once every cache is in sync and this process leads, and on the way out
workers first, then the watches and last the services, so that the workers' last writes still find a client and a
recorder. An election is entered and left outside: it lets go when all of this has ended. Whatever ends unexpectedly
ends the whole: a process that looks alive and watches nothing is worse than one that is restarted.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from operator_runtime.cache.reflector import Reflector

logger = logging.getLogger(__name__)

# Only reported when a sync takes longer than a person waits without wondering.
_SYNC_PATIENCE_S = 10.0
# How many objects more than have gone make the garbage collector run, and how seldom for older ones. Python's 700, 10
# and 10 were made for programs that begin small: what is in work for thousands of keys would be gone through again and
# again, and hardly any of it is garbage that is not freed by itself. 10,000 objects are some 2 MiB.
_GARBAGE = (10_000, 20, 50)


class Service(Protocol):
    """Works next to everything else from the start on, like an event recorder."""

    async def run(self) -> None:
        """Work until `stop` was called and what was begun is finished."""

    def stop(self) -> None:
        """Begin nothing more."""


class Runnable(Service, Protocol):
    """A controller, or whatever else works between the sync and the end."""

    @property
    def name(self) -> str: ...


class UnexpectedEndError(Exception):
    """A part of the operator that runs for as long as the process does has ended."""


class Manager:
    """Owns the life of reflectors, controllers and services. Add everything before `run`, or a RuntimeError is raised.

    The runnables wait for `elected`, with warm caches; None where there is no other replica.
    """

    def __init__(self, elected: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        self._elected = elected
        self.reflectors: list[Reflector[Any]] = []  # those that were added, for probes and metrics
        self._runnables: list[Runnable] = []
        self._services: list[tuple[str, Service]] = []
        self.running = False  # once it has begun, nothing can be added any more
        self._ending = False

    @property
    def awaited(self) -> Sequence[Reflector[Any]]:
        """Reflectors that readiness depends on: the runnables do nothing before their first lists."""
        return [each for each in self.reflectors if not each.optional]

    @property
    def settled(self) -> bool:
        """Report whether it has begun, and no runnable waits for a cache any more."""
        return self.running and all(each.settled.is_set() for each in self.reflectors)

    def add_reflector(self, reflector: Reflector[Any]) -> None:
        """Feed a cache from the start on; the runnables wait until it is settled (`Reflector.settled`)."""
        self._check_not_running(f"the watch of {reflector.description}")
        self.reflectors.append(reflector)

    def add_runnable(self, runnable: Runnable) -> None:
        """Run once all caches are settled; stopped before everything else.

        Raises ValueError where there is one of that name: logs and metrics could not distinguish them.
        """
        self._check_not_running(f"the controller {runnable.name!r}")
        if any(runnable.name == other.name for other in self._runnables):
            raise ValueError(f"two controllers are named {runnable.name!r}: give each a name of its own")
        self._runnables.append(runnable)

    def add_service(self, name: str, service: Service) -> None:
        """Run next to everything from the start on; stopped last."""
        self._check_not_running(f"the service {name!r}")
        self._services.append((name, service))

    def _check_not_running(self, what: str) -> None:
        if self.running:
            raise RuntimeError(f"{what} comes too late: add it in the set-up function, as the operator runs already")

    async def run(self, stop: asyncio.Event) -> None:
        """Run everything until `stop` is set.

        Raises:
            UnexpectedEndError: a part ended although it was not stopped.
            BaseExceptionGroup: a part died of an exception.
        """
        self.running = True
        gc.set_threshold(*_GARBAGE)
        async with asyncio.TaskGroup() as background:
            for name, service in self._services:
                background.create_task(self._until_end(name, service.run), name=name)
            watches = [
                background.create_task(self._until_end(f"watch of {each.description}", each.run), name=each.description)
                for each in self.reflectors
            ]
            if await _unless(stop, self._synced()) and (not self._elected or await _unless(stop, self._elected())):
                await self._work(stop)
            self._ending = True
            for watch in watches:
                watch.cancel()
            for _, service in self._services:
                service.stop()

    async def _until_end(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        await run()
        if not self._ending:
            raise UnexpectedEndError(f"{name} ended by itself")

    async def _synced(self) -> None:
        """Wait for all caches, and log once which are missing when it takes long."""
        syncs = {asyncio.create_task(each.settled.wait()): each for each in self.reflectors}
        try:
            waiting = set(syncs)
            reported = waiting - waiting
            while waiting:
                await asyncio.wait(waiting, timeout=_SYNC_PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
                late = {task for task in waiting if not task.done()}
                if late == waiting != reported:
                    missing = ", ".join(sorted(syncs[task].description for task in late))
                    logger.warning("nothing is reconciled yet: still waiting for the first list of %s", missing)
                    reported = late
                waiting = late
        finally:
            for task in syncs:
                task.cancel()
        there = ", ".join(each.description for each in self.reflectors if each.refusal is None)
        refused = [f"{each.description} ({each.refusal})" for each in self.reflectors if each.refusal is not None]
        without = f"; going on without {', '.join(refused)}" if refused else ""
        logger.info("caches are in sync: %s%s", there or "none", without)

    async def _work(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as work:
            running = [work.create_task(each.run(), name=each.name) for each in self._runnables]
            stopping = work.create_task(stop.wait(), name="stop signal")
            await asyncio.wait({stopping, *running}, return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                ended = next(task for task in running if task.done())
                if not ended.cancelled() and ended.exception() is None:
                    raise UnexpectedEndError(f"{ended.get_name()} ended by itself")
            for each in self._runnables:
                each.stop()


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do this until its end; False when `stop` came first."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()  # its error, if it is one
        return not stopping.done()
    finally:
        working.cancel()
        stopping.cancel()
