"""Takes part in an election by a Lease: moves the bytes and the time that `lease_decision` decides about.

It runs on a thread and an event loop of its own, with connections of its own, so that a busy operator cannot lose its
Lease and a full pool of connections cannot either. What crosses the border between the two threads: the time until
which writes may go out, one float that the write fence reads; that this process leads now; that it shall let
go. That the Lease is lost crosses nothing: the thread ends the process there and then, whatever the rest of it does.
Nor does it renew for an operator that hangs: it requires a sign of life from the other event loop with each renewal.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import NoReturn, Protocol, Self

from operator_runtime.cache.reflector import Reflector, WatchClient
from operator_runtime.cache.store import ObjectKey, Store
from operator_runtime.client.errors import UNDECODABLE, ApiError, Conflict, Forbidden, KubeError, NotFound, WriteRefused
from operator_runtime.client.resources import LEASES, Resource
from operator_runtime.diagnostics.watchdog import stack_of
from operator_runtime.election.lease_codec import LeaseRecord, lease_body, lease_record
from operator_runtime.election.lease_decision import step, wake_at
from operator_runtime.election.lease_state import (
    Action,
    Candidate,
    Done,
    Event,
    Failed,
    Fetch,
    Fetched,
    Lead,
    Lease,
    Lost,
    Phase,
    Refused,
    Release,
    Seen,
    State,
    Tick,
    Write,
    Written,
)
from operator_runtime.election.timing import Timing

logger = logging.getLogger(__name__)

# What the release may take at the end: a request or two. A process that waits longer would be killed by the kubelet,
# which gives 30 s to a process that takes 25 s to drain and 1.5 s for its last events.
RELEASE_TIMEOUT_S = 2.0
# A Lease that is held changes every few seconds: a watch without a byte for two lengths of it is dead.
SILENT_LEASES = 2
# An event loop that is only slow turns some thousand times in this.
HANG_LIMIT_S = 60.0
_LOST_EXIT_CODE = 1


def awake_or_asleep() -> float:
    """Seconds on a clock that never goes back, and goes on while the machine is suspended where there is such a one.

    A laptop, or a virtual machine, that wakes up must know that its Lease has run out.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def own_identity(environ: Mapping[str, str]) -> str:
    """A name that no other process has or had, and that leads people to its process: the pod's name and a uuid."""
    return f"{environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}"


def _exit_at_once(code: int) -> NoReturn:
    os._exit(code)


class LeaseApi(WatchClient, Protocol):
    """Methods of `ApiClient` that an election calls."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> bytes: ...
    async def create(self, resource: Resource, namespace: str | None, body: object, *, field_manager: str) -> bytes: ...
    async def merge_patch(
        self, resource: Resource, namespace: str | None, name: str, body: object, *, field_manager: str
    ) -> bytes: ...
    async def close(self) -> None: ...


class LeaseElection:
    """Stands for election from the first `elected` on, leads when it is its turn, and lets go in `__aexit__`.

    So a replica that cannot do the work, as its caches never get complete, does not keep others from it.

    `_write_until` is written by the election's thread and read by any; everything below "On the election's thread" is
    touched by that thread alone.

    Attributes:
        slow_paths: how often the leader had to read before it could renew, as another client seemed to have changed
            the Lease.
    """

    def __init__(
        self,
        client: LeaseApi,
        lock: ObjectKey,
        identity: str,
        timing: Timing,
        *,
        field_manager: str,
        clock: Callable[[], float] = awake_or_asleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        end_process: Callable[[int], object] = _exit_at_once,
        release_timeout_s: float = RELEASE_TIMEOUT_S,
        hang_limit_s: float = HANG_LIMIT_S,
    ) -> None:
        """
        Args:
            client: for the election alone, credentials included; it is used on the election's thread, and closed.
            lock: namespace and name of the Lease.
            identity: see `own_identity`.
            timing: the lengths of the protocol.
            field_manager: named by every write.
            clock: seconds that never go back.
            now: for the times in the Lease, which are for people.
            end_process: ends this process with an exit code, at once.
            release_timeout_s: what letting go may take.
            hang_limit_s: for so long the operator's event loop may not turn while this process leads.

        Raises:
            ValueError: the lengths do not fit together.
        """
        if problems := timing.problems():
            raise ValueError("; ".join(problems))
        self.identity = identity
        self.lock = lock
        self.timing = timing
        self.slow_paths = 0
        self._client = client
        self._candidate = Candidate(identity, timing)
        self._field_manager = field_manager
        self._clock = clock
        self._now = now
        self._end_process = end_process
        self._release_timeout_s = release_timeout_s
        self._hang_limit_s = hang_limit_s
        self._write_until = float("-inf")
        self._renewed_at: float | None = None
        self._main_loop: asyncio.AbstractEventLoop
        self._elected = asyncio.Event()
        # Set by the operator's event loop, cleared by the election's.
        self._pulse = threading.Event()
        self._pulse.set()
        self._thread = threading.Thread(target=self._work, name="leader election", daemon=True)
        self._begun: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        # On the election's thread.
        self._loop: asyncio.AbstractEventLoop
        self._task: asyncio.Task[None] | None = None
        self._events: asyncio.Queue[Event]
        self._state = State()
        self._group: asyncio.TaskGroup
        self._requests: set[asyncio.Task[None]] = set()
        self._reported = ""
        self._pulse_requested_at = 0.0

    def __str__(self) -> str:
        return f"Lease {self.lock}"

    async def __aenter__(self) -> Self:
        self._main_loop = asyncio.get_running_loop()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of the Lease, for `release_timeout_s` at most. Nothing of this process writes any more."""
        if self._thread.ident is None:  # it never stood
            await self._client.close()
            return
        await asyncio.wrap_future(self._begun)
        with suppress(RuntimeError):  # it has ended, and its loop with it
            self._loop.call_soon_threadsafe(self._events.put_nowait, Release())
        await asyncio.wait({asyncio.wrap_future(self._ended)}, timeout=self._release_timeout_s)
        if not self._ended.done():
            logger.warning(
                "%s was not released within %g s: another replica can lead once it has expired",
                self,
                self._release_timeout_s,
            )
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._give_up)
            # The thread does not keep the process: it is a daemon.
            await asyncio.wait({asyncio.wrap_future(self._ended)}, timeout=self._release_timeout_s)

    async def elected(self) -> None:
        """Stand for election, and wait until this process leads."""
        if self._thread.ident is None:
            self._thread.start()
        # A caller that waits here may be cancelled, which must not reach the future.
        await asyncio.shield(asyncio.wrap_future(self._begun))
        await self._elected.wait()

    def may_write(self) -> None:
        """The write fence (`client.write_fence`); from any thread.

        Raises:
            WriteRefused: this process does not lead, or not any more.
        """
        if self._clock() >= self._write_until:
            raise WriteRefused(f"not sent: this process does not hold {self}")

    @property
    def leading(self) -> bool:
        """Report whether writes may go out now."""
        return self._clock() < self._write_until

    def complaint(self) -> str | None:
        """Return the election's complaint for a probe: a renewal so late that its thread must hang."""
        renewed_at = self._renewed_at
        overdue_s = 0.0 if renewed_at is None else self._clock() - renewed_at - self.timing.lease_s
        return f"{self} should have been renewed or given up {overdue_s:.0f} s ago" if overdue_s > 0.0 else None

    # On the election's thread.

    def _work(self) -> None:
        try:
            # asyncio's own loop: uvloop's children, which exec plugins are, belong to the main thread.
            asyncio.run(self._stand())
        except asyncio.CancelledError:
            pass
        except BaseException:
            logger.critical("leader election ended by an internal error", exc_info=True)
            self._end_process(_LOST_EXIT_CODE)
        finally:
            self._write_until = float("-inf")
            if not self._begun.done():
                self._begun.set_result(None)
            self._ended.set_result(None)

    async def _stand(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._events = asyncio.Queue()
        self._task = asyncio.current_task()
        self._begun.set_result(None)
        store: Store[LeaseRecord] = Store()
        store.add_handler(self._seen)
        reflector = Reflector(
            self._client,
            LEASES,
            lease_record,
            store,
            namespace=self.lock.namespace,
            field_selector=f"metadata.name={self.lock.name}",
            silence_limit_s=SILENT_LEASES * self.timing.lease_s,
        )
        try:
            async with asyncio.TaskGroup() as self._group:
                watch = self._group.create_task(reflector.run(), name="watch of the Lease")
                self._take(Tick())
                while self._state.phase is not Phase.ENDED:
                    self._take(await self._next_event())
                watch.cancel()
                for request in self._requests:
                    request.cancel()
        finally:
            await self._client.close()

    def _give_up(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _next_event(self) -> Event:
        wait_s = wake_at(self._state) - self._clock()
        try:
            async with asyncio.timeout(None if wait_s == float("inf") else max(wait_s, 0.0)):
                return await self._events.get()
        except TimeoutError:
            return Tick()

    def _take(self, event: Event) -> None:
        before = self._state
        self._state, actions = step(self._candidate, before, event, self._clock())
        self._write_until = self._state.right_ends_at
        self.slow_paths += before.phase is Phase.LEADING and self._state.stale and not before.stale
        self._renewed_at = self._state.sent_at if self._state.phase is Phase.LEADING else None
        self._report(before, event)
        if before.phase is Phase.LEADING and isinstance(event, Written):
            self._feel_pulse()
        for action in actions:
            self._do(action)

    def _feel_pulse(self) -> None:
        """End a process that renews and does nothing else: it would keep the Lease from others for ever."""
        now = self._clock()
        if self._pulse.is_set():
            self._pulse.clear()
            self._pulse_requested_at = now
            with suppress(RuntimeError):  # it has just ended
                self._main_loop.call_soon_threadsafe(self._pulse.set)
        elif (hangs_s := now - self._pulse_requested_at) > self._hang_limit_s:
            stack = stack_of(threading.main_thread().ident)
            logger.critical(
                "the event loop has not run for %.0f s, and this process holds %s. Exiting at once, so that another "
                "replica can lead. It hangs here:\n%s",
                hangs_s,
                self,
                "".join(stack.format()).rstrip(),
            )
            self._end_process(_LOST_EXIT_CODE)

    def _do(self, action: Action) -> None:
        match action:
            case Fetch() | Write():
                request = self._group.create_task(self._send(action), name="request for the Lease")
                self._requests.add(request)
                request.add_done_callback(self._requests.discard)
            case Lead():
                logger.info("leading: %s is held by %s", self, self.identity)
                self._main_loop.call_soon_threadsafe(self._elected.set)
            case Lost(why):
                logger.critical("lost %s: %s. Exiting at once: another replica may lead by now", self, why.rstrip("."))
                self._end_process(_LOST_EXIT_CODE)
            case Done():
                pass

    async def _send(self, request: Fetch | Write) -> None:
        try:
            async with asyncio.timeout(self.timing.request_timeout_s):
                answer = await self._answer(request)
        except TimeoutError:
            answer = Failed(f"no answer within {self.timing.request_timeout_s:g} s")
        self._events.put_nowait(answer)

    async def _answer(self, request: Fetch | Write) -> Event:
        namespace, name = self.lock
        try:
            match request:
                case Fetch():
                    return Fetched(self._lease(await self._client.get(LEASES, namespace, name)))
                case Write(over=over):
                    body = lease_body(request, name, namespace, self._now())
                    if over is None:
                        stored = await self._client.create(LEASES, namespace, body, field_manager=self._field_manager)
                    else:
                        stored = await self._client.merge_patch(
                            LEASES, namespace, name, body, field_manager=self._field_manager
                        )
                    return Written(self._lease(stored))
        except Conflict:
            return Refused()
        except NotFound as error:
            if isinstance(request, Fetch):
                return Fetched(None)
            if request.over is not None:
                return Refused()
            return Failed(f"{error}. The namespace {namespace} must exist")
        except Forbidden as error:
            needed = f"get, list, watch, create and patch on {LEASES.qualified_name} in namespace {namespace}"
            return Failed(f"{error}. Grant {needed} to the operator's account")
        except ApiError as error:
            return Failed(str(error), error.retry_after_s or 0.0)
        except KubeError as error:
            return Failed(str(error))
        except UNDECODABLE as error:
            return Failed(f"the Lease cannot be read: {error}")

    def _lease(self, raw: bytes) -> Lease:
        return lease_record(raw).lease(self.timing.lease_s)

    def _seen(self, before: LeaseRecord | None, after: LeaseRecord | None) -> None:
        self._events.put_nowait(Seen(None if after is None else after.lease(self.timing.lease_s)))

    def _report(self, before: State, event: Event) -> None:
        """Log who leads when that changes, and what keeps the Lease from being renewed or taken."""
        state = self._state
        if isinstance(event, Failed):
            if state.phase is Phase.LEADING:
                left_s = state.write_until - self._clock()
                logger.warning("renewing %s failed, %.1f s are left to do it: %s", self, left_s, event.why)
            elif state.phase is Phase.STANDBY and self._reported != event.why:
                self._reported = event.why
                logger.warning("cannot take part in the election by %s: %s", self, event.why)
            return
        if isinstance(event, Written) and state.phase is Phase.ENDED:
            logger.info("released %s", self)
        holder = "" if state.lease is None else state.lease.holder
        if state.phase is Phase.STANDBY and holder not in ("", self.identity) and self._reported != holder:
            self._reported = holder
            logger.info("waiting: %s is held by %s", self, holder)
