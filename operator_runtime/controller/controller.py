"""The controller: workers that take keys from a queue, reconcile them, and decide what a result means for its key."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar

from operator_runtime.client.errors import NOT_ABOUT_THE_OBJECT, ApiError, KubeError
from operator_runtime.client.retry import check_seconds
from operator_runtime.diagnostics.failure_log import FailureLog, ReconcileTimeout, TerminalError
from operator_runtime.diagnostics.reconcile_hot_loops import LIMIT, HotLoopDetector
from operator_runtime.workqueue.async_queue import AsyncWorkQueue
from operator_runtime.workqueue.queue import LOW_PRIORITY, OUTAGE_LONGEST_S

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Result:
    """Request of a reconcile that went well.

    Attributes:
        requeue_after_s: reconcile again after so many seconds at the latest; None when only a change is a reason.
        priority: the priority of that reconcile; None keeps the one that this reconcile had.
        requeue: reconcile again after the backoff of failures, which grows for as long as this is requested in a row;
            for what is not finished and nothing will report. `requeue_after_s` goes before it.
    """

    requeue_after_s: float | None = None
    priority: int | None = None
    requeue: bool = False

    def __post_init__(self) -> None:
        if self.requeue_after_s is not None:
            check_seconds("requeue_after_s", self.requeue_after_s)
        if self.priority is not None and not isinstance(self.priority, int):
            raise ValueError(f"priority is {self.priority!r}: it must be a whole number, such as {LOW_PRIORITY}")


Reconcile = Callable[[K], Awaitable[Result]]
"""A coroutine function that makes the world of one key as it should be."""


class StaleCache(KubeError):
    """The caches are behind what a write, or a read from the API server, has found: nothing is done on what they show.

    Raised by a reconcile, it is no failure: the key is reconciled again when an event comes, and after `retry_s`
    seconds at the latest.
    """

    def __init__(self, message: str, *, retry_s: float = 5.0) -> None:
        super().__init__(message)
        check_seconds("retry_s", retry_s)
        self.retry_s = retry_s


class ReconcileOutcome(StrEnum):
    """Outcome of a reconcile; `BUG` for an exception that no correct program meets."""

    SUCCESS = "success"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"
    TERMINAL = "terminal"
    TIMEOUT = "timeout"
    BUG = "bug"


# Makes ids of this process differ from those of its predecessor in the same log. One draw, not one per reconcile.
_PROCESS_ID = secrets.token_hex(3)


class ReconcileContext(NamedTuple):
    controller: str
    key: object
    sequence: int

    @property
    def id(self) -> str:
        """Short and unique among all reconciles of this controller; made when a log line needs it."""
        return f"{_PROCESS_ID}-{self.sequence}"


current_reconcile: ContextVar[ReconcileContext | None] = ContextVar("current_reconcile", default=None)


# A worker that finds one ready key after another and never has to wait lets the loop breathe after this long: with
# 16 workers, probes and watches then wait some 16 ms at most.
_SLICE_S = 0.001


# Errors that a correct program meets too; any other is a bug, and counted as one.
_ABOUT_THE_WORLD = (KubeError, OSError)  # TimeoutError is an OSError


class Controller(Generic[K]):
    """Reconciles keys with a fixed number of workers, each key in one worker at a time.

    What an end means for the key, in the order of controller-runtime: an error schedules the next attempt after the
    backoff (and after Retry-After, if the server named one), of at most `OUTAGE_LONGEST_S` where it is a timeout or
    is not about the object (`client.errors.NOT_ABOUT_THE_OBJECT`); a `TerminalError` schedules nothing;
    `requeue_after_s` forgets the failures and schedules the next reconcile; `requeue` schedules it after the backoff;
    success forgets the failures.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[K],
        *,
        workers: int = 16,
        reconcile_timeout_s: float = 60.0,
        drain_timeout_s: float = 20.0,
        queue: AsyncWorkQueue[K] | None = None,
        initial_keys: Callable[[], Iterable[K]] = tuple,
        delay_s: Callable[[K], float] = lambda _: 0.0,
        reconciled: Callable[[ReconcileOutcome, float], None] = lambda outcome, seconds: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            name: names the controller in logs and metrics.
            reconcile: makes the world of one key as it should be.
            workers: reconciles at the same time. controller-runtime's single one is its most complained-of default; a
                reconcile mostly waits for the API server.
            reconcile_timeout_s: a reconcile that takes longer is cancelled and counted as failed.
            drain_timeout_s: how long reconciles may still take after `stop`.
            delay_s: seconds that a key must still wait before it may be reconciled, 0.0 for none, e.g. until the cache
                has seen the key's own last write. A key that waits is neither counted nor logged.
            reconciled: called with each outcome and the seconds that it took.
        """
        if workers < 1:
            raise ValueError(f"workers is {workers}: a controller needs at least 1")
        self.name = name
        self.workers = workers
        self._reconcile_timeout_s = reconcile_timeout_s
        self._drain_timeout_s = drain_timeout_s
        self.queue: AsyncWorkQueue[K] = AsyncWorkQueue() if queue is None else queue
        self.reconcile: Final = reconcile
        self.delay_s: Final = delay_s
        self._initial_keys = initial_keys
        self._reconciled = reconciled
        self._clock = clock
        self._sequence = itertools.count(1)
        self._failures = FailureLog(clock)
        self._hot_loops = HotLoopDetector()
        self.begun = False  # nothing is enqueued yet
        self._stopping = asyncio.Event()

    def enqueue(self, key: K, *, priority: int = 0) -> None:
        """Enqueue a key, as the handlers of caches do. It counts for nothing before `begin`.

        A standby would heap up keys, of objects that are long gone, and reconcile each of them hours late. It
        reconciles everything that is there when its turn comes.
        """
        if self.begun:
            self.queue.add(key, priority=priority)

    def begin(self) -> None:
        """Enqueue everything; `run` does so first."""
        self.begun = True
        for key in self._initial_keys():
            self.queue.add(key, priority=LOW_PRIORITY)

    def stop(self) -> None:
        """Take no more keys; `run` returns when the workers have finished what they do."""
        self._stopping.set()
        self.queue.stop()

    async def run(self) -> None:
        """Work until `stop`, then let the workers finish for `drain_timeout_s` and cancel those that have not.

        Raises:
            ExceptionGroup: a worker ended although it was not stopped. The reconciler's own errors never do this.
        """
        self.begin()
        async with asyncio.TaskGroup() as group:
            workers = [
                group.create_task(self._work(), name=f"{self.name}-worker-{number}") for number in range(self.workers)
            ]
            await self._stopping.wait()
            _, late = await asyncio.wait(workers, timeout=self._drain_timeout_s)
            if unfinished := self.queue.processing:
                log.warning(
                    "%s: cancelled %d reconciles that had not finished within %g s of the stop",
                    self.name,
                    unfinished,
                    self._drain_timeout_s,
                )
            for worker in late:
                worker.cancel()

    async def _work(self) -> None:
        queue, clock = self.queue, self._clock
        slice_ends = 0.0
        while (key := await queue.get()) is not None:
            try:
                await self._process(key)
            finally:
                queue.done(key)
            if (now := clock()) >= slice_ends:
                await asyncio.sleep(0)
                slice_ends = now + _SLICE_S
        if not self._stopping.is_set():
            raise RuntimeError(
                f"a worker of controller {self.name!r} found its queue shut down, although it was not stopped"
            )

    async def _process(self, key: K) -> None:
        if (wait_s := self.delay_s(key)) > 0.0:
            self.queue.requeue(key, after_s=wait_s)
            return
        token = current_reconcile.set(ReconcileContext(self.name, key, next(self._sequence)))
        began = self._clock()
        try:
            outcome = await self._attempt(key)
            if (within_s := self._hot_loops.reconciled(key, began)) is not None:
                log.warning(
                    "reconciled %d times within %.3g s: does it write something that differs each time, such as a time"
                    ", or request another reconcile at once (requeue_after_s=0)?",
                    LIMIT,
                    within_s,
                )
        finally:
            current_reconcile.reset(token)
        self._reconciled(outcome, self._clock() - began)

    async def _attempt(self, key: K) -> ReconcileOutcome:
        queue = self.queue
        limit = asyncio.timeout(self._reconcile_timeout_s)
        try:
            async with limit:
                result = await self.reconcile(key)
            if not isinstance(result, Result):
                raise TypeError(f"the reconciler of controller {self.name!r} returned {result!r}: return a Result")
        except asyncio.CancelledError as error:
            # A worker that is cancelled to end must end. Any other cancellation is a bug of the reconciler;
            # passed on, it would end this worker without a sound.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._failures.failed(key, error, queue.fail(key))
            return ReconcileOutcome.BUG
        except StaleCache as error:
            log.debug("reconciled again within %.3g s: %s", error.retry_s, error)
            queue.forget(key)
            queue.requeue(key, after_s=error.retry_s)
            return ReconcileOutcome.REQUEUE_AFTER
        except TerminalError as error:
            queue.forget(key)
            self._failures.failed(key, error, None)
            return ReconcileOutcome.TERMINAL
        except Exception as error:
            if limit.expired() and isinstance(error, TimeoutError):
                late = ReconcileTimeout(f"not finished within {self._reconcile_timeout_s:g} s, cancelled")
                self._failures.failed(key, late, queue.fail(key, at_most_s=OUTAGE_LONGEST_S))
                return ReconcileOutcome.TIMEOUT
            retry_after_s = error.retry_after_s if isinstance(error, ApiError) else None
            at_most_s = OUTAGE_LONGEST_S if isinstance(error, NOT_ABOUT_THE_OBJECT) else math.inf
            retry_in_s = queue.fail(key, at_least_s=retry_after_s or 0.0, at_most_s=at_most_s)
            self._failures.failed(key, error, retry_in_s)
            return ReconcileOutcome.ERROR if isinstance(error, _ABOUT_THE_WORLD) else ReconcileOutcome.BUG
        self._failures.worked(key)
        if result.requeue and result.requeue_after_s is None:
            queue.fail(key)
            return ReconcileOutcome.REQUEUE
        queue.forget(key)
        if result.requeue_after_s is None:
            return ReconcileOutcome.SUCCESS
        queue.requeue(key, after_s=result.requeue_after_s, priority=result.priority)
        return ReconcileOutcome.REQUEUE_AFTER
