"""What the tests of the controller share: a reconciler that plays a script, and an observer to wait by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from operator_runtime.client.retry import Backoff
from operator_runtime.controller.controller import Controller, ReconcileOutcome, Result
from operator_runtime.workqueue.async_queue import AsyncWorkQueue
from tests.unit.operator_runtime.running import DEADLINE_S, running

Step = Result | BaseException | Callable[[], Awaitable[Result]]


class Reconciler:
    """Plays a script, one step per call; the calls beyond it succeed."""

    def __init__(self, *script: Step) -> None:
        self.script = list(script)
        self.calls: list[str] = []
        self.called = asyncio.Condition()

    async def __call__(self, key: str) -> Result:
        self.calls.append(key)
        async with self.called:
            self.called.notify_all()
        step = self.script.pop(0) if self.script else Result()
        if isinstance(step, BaseException):
            raise step
        return step if isinstance(step, Result) else await step()

    async def wait_for_calls(self, number: int) -> None:
        async with asyncio.timeout(DEADLINE_S), self.called:
            await self.called.wait_for(lambda: len(self.calls) >= number)


class Outcomes:
    def __init__(self) -> None:
        self.seen: list[ReconcileOutcome] = []
        self.changed = asyncio.Condition()
        self.tasks: set[asyncio.Task[None]] = set()

    def reconciled(self, outcome: ReconcileOutcome, seconds: float) -> None:
        assert seconds >= 0.0
        self.seen.append(outcome)
        self.tasks.add(asyncio.create_task(self.notify()))

    async def notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def wait_for(self, number: int) -> list[ReconcileOutcome]:
        async with asyncio.timeout(DEADLINE_S), self.changed:
            await self.changed.wait_for(lambda: len(self.seen) >= number)
        return list(self.seen)


def quick_queue() -> AsyncWorkQueue[str]:
    return AsyncWorkQueue(backoff=Backoff(first_s=0.001, longest_s=0.002))


@asynccontextmanager
async def playing(
    reconcile: Callable[[str], Awaitable[Result]], **settings: Any
) -> AsyncIterator[tuple[Controller[str], Outcomes]]:
    """A controller of a quick queue with the key "a" in it, and what becomes of it."""
    outcomes = Outcomes()
    given: dict[str, Any] = {"queue": quick_queue(), "reconciled": outcomes.reconciled} | settings
    controller = Controller("memcached", reconcile, **given)
    async with running(controller):
        controller.queue.add("a")
        yield controller, outcomes


async def never() -> Result:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")
