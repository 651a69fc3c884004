"""Waiting for the work queue: futures and one timer around a `WorkQueue`, which has all the rules."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Hashable
from contextlib import suppress
from functools import cached_property
from typing import TypeVar

from operator_runtime.workqueue.queue import WorkQueue

K = TypeVar("K", bound=Hashable)


class AsyncWorkQueue(WorkQueue[K]):
    """A `WorkQueue` whose keys can be waited for, by any number of workers on one event loop.

    `_waiters` holds the futures of the workers that found nothing, first come first served. Whatever makes a key ready
    wakes one; a woken worker checks again, so a wake-up too many costs a check and one that was cancelled is passed on.
    `_timer` fires at the next deadline or before.
    """

    _timer: asyncio.TimerHandle | None = None
    _timer_at = 0.0

    @cached_property
    def _waiters(self) -> deque[asyncio.Future[None]]:
        return deque()

    def add(self, key: K, *, priority: int = 0, after_s: float = 0.0) -> None:
        super().add(key, priority=priority, after_s=after_s)
        if after_s > 0.0:
            self._arm()
        if self._waiters:
            self._wake()

    async def get(self) -> K | None:
        """The next key, as soon as there is one; None when the queue is shut down."""
        while (key := self.get_nowait()) is None and not self.stopped:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                with suppress(ValueError):
                    self._waiters.remove(waiter)
                if not waiter.cancelled():
                    self._wake()
                raise
        return key

    def done(self, key: K) -> None:
        super().done(key)
        if self._waiters:
            self._wake()

    def fail(self, key: K, *, at_least_s: float = 0.0, at_most_s: float = math.inf) -> float:
        delay_s = super().fail(key, at_least_s=at_least_s, at_most_s=at_most_s)
        self._arm()
        return delay_s

    def stop(self) -> None:
        """Stop handing out keys and send the waiting workers home. Keys in work may be finished."""
        super().stop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            self._wake_one()

    def _arm(self) -> None:
        deadline = self.next_deadline()
        if deadline is None or self.stopped or (self._timer is not None and self._timer_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        # A delay rather than the loop's own time: uvloop's clock stands still during an iteration.
        delay_s = max(0.0, deadline - self.clock())
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._wake()
        self._arm()

    def _wake(self) -> None:
        for _ in range(min(len(self), len(self._waiters))):
            self._wake_one()

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            # A waiter whose task was just cancelled is done but still in line; its turn goes to the next.
            if not waiter.done():
                waiter.set_result(None)
                return
