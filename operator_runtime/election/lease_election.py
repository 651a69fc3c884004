"""Takes part in an election by a Lease: moves the bytes and the time that `lease_decision` decides about.

It has connections of its own, so that a full pool of them costs no renewal. A leader that has lost its Lease ends its
process there and then, whatever the rest of it does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from operator_runtime.cache.reflector import Reflector
from operator_runtime.cache.store import ObjectKey, Store
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import UNDECODABLE, ApiError, Conflict, Forbidden, KubeError, NotFound, WriteRefused
from operator_runtime.client.resources import LEASES
from operator_runtime.election.lease_decision import (
    Candidate,
    Event,
    Failed,
    Fetch,
    Fetched,
    Lead,
    Lease,
    LeaseConflict,
    Lost,
    Phase,
    ReleaseLease,
    Seen,
    State,
    Tick,
    WriteLease,
    Written,
    step,
    wake_at,
)
from operator_runtime.settings.timing import LONGEST_LEASE_S, Timing

logger = logging.getLogger(__name__)

# What the release may take at the end: a request or two. A process that waits longer would be killed by the kubelet,
# which gives 30 s to a process that takes 25 s to drain and 1.5 s for its last events.
RELEASE_TIMEOUT_S = 2.0
# A Lease that is held changes every few seconds: a watch without a byte for two lengths of it is dead.
SILENT_LEASES = 2
_LOST_EXIT_CODE = 1


def awake_or_asleep() -> float:
    """Seconds on a clock that never goes back, and goes on while the machine is suspended where there is such a one.

    A laptop, or a virtual machine, that wakes up must know that its Lease has run out.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class LeaseElection:
    """Stands for election from the first `elected` on, leads when it is its turn, and lets go in `aclose`.

    So a replica that cannot do the work, as its caches never get complete, does not keep others from it. `slow_paths`
    counts how often the leader had to read before it could renew, as another client seemed to have changed the Lease.
    """

    def __init__(
        self,
        client: ApiClient,
        lock: ObjectKey,
        identity: str,
        timing: Timing,
        *,
        field_manager: str,
        clock: Callable[[], float] = awake_or_asleep,
        end_process: Callable[[int], object] = os._exit,
        release_timeout_s: float = RELEASE_TIMEOUT_S,
    ) -> None:
        """`client` is for the election alone, without a write fence; it is closed at the end."""
        if problems := timing.problems():  # the decision relies on it that there are none
            raise ValueError("; ".join(problems))
        self.identity = identity
        self.lock = lock
        self.timing = timing
        self.slow_paths = 0
        self._client = client
        self._candidate = Candidate(identity, timing)
        self._field_manager = field_manager
        self._clock = clock
        self._end_process = end_process
        self._release_timeout_s = release_timeout_s
        self._elected = asyncio.Event()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._state = State()
        self._task: asyncio.Task[None] | None = None
        self._request: asyncio.Task[None] | None = None
        self._reported = ""

    def __str__(self) -> str:
        return f"Lease {self.lock}"

    async def aclose(self) -> None:
        """Let go of the Lease, for `release_timeout_s` at most. Nothing of this process writes any more."""
        if self._task is not None:
            self._events.put_nowait(ReleaseLease())
            await asyncio.wait({self._task}, timeout=self._release_timeout_s)
            if self._task.cancel():
                logger.warning(
                    "%s was not released within %g s: another replica can lead once it has expired",
                    self,
                    self._release_timeout_s,
                )
                await asyncio.wait({self._task})
        await self._client.close()

    async def elected(self) -> None:
        """Stand for election, and wait until this process leads."""
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="leader election")
        await self._elected.wait()

    def may_write(self) -> None:
        """Raise WriteRefused while this process does not lead: the write fence (`client.connection_pools`)."""
        if not self.leading:
            raise WriteRefused(f"not sent: this process does not hold {self}")

    @property
    def leading(self) -> bool:
        return self._state.may_write(self._clock())

    async def _work(self) -> None:
        try:
            await self._stand()
        except asyncio.CancelledError:
            raise
        except BaseException:
            logger.critical("leader election ended by an internal error", exc_info=True)
            self._end_process(_LOST_EXIT_CODE)
        finally:
            self._state = State(phase=Phase.ENDED)

    async def _stand(self) -> None:
        store: Store[Lease] = Store()
        store.add_handler(lambda _, after: self._events.put_nowait(Seen(after)))
        reflector = Reflector(
            self._client,
            LEASES,
            self._lease,
            store,
            namespace=self.lock.namespace,
            field_selector=f"metadata.name={self.lock.name}",
            silence_limit_s=SILENT_LEASES * self.timing.lease_s,
        )
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(reflector.run(), name="watch of the Lease")
            self._take(Tick(), group)
            while self._state.phase is not Phase.ENDED:
                self._take(await self._next_event(), group)
            watch.cancel()
            if self._request is not None:
                self._request.cancel()

    async def _next_event(self) -> Event:
        wait_s = wake_at(self._state) - self._clock()
        try:
            async with asyncio.timeout(None if wait_s == float("inf") else max(wait_s, 0.0)):
                return await self._events.get()
        except TimeoutError:
            return Tick()

    def _take(self, event: Event, group: asyncio.TaskGroup) -> None:
        before = self._state
        self._state, actions = step(self._candidate, before, event, self._clock())
        self.slow_paths += before.phase is Phase.LEADING and self._state.stale and not before.stale
        self._report(event)
        for action in actions:
            match action:
                case Fetch() | WriteLease():
                    self._request = group.create_task(self._send(action), name="request for the Lease")
                case Lead():
                    logger.info("leading: %s is held by %s", self, self.identity)
                    self._elected.set()
                case Lost(why):
                    logger.critical(
                        "lost %s: %s. Exiting at once: another replica may lead by now", self, why.rstrip(".")
                    )
                    self._end_process(_LOST_EXIT_CODE)

    async def _send(self, request: Fetch | WriteLease) -> None:
        try:
            async with asyncio.timeout(self.timing.request_timeout_s):
                answer = await self._answer(request)
        except TimeoutError:
            answer = Failed(f"no answer within {self.timing.request_timeout_s:g} s")
        self._events.put_nowait(answer)

    async def _answer(self, request: Fetch | WriteLease) -> Event:
        namespace, name = self.lock
        try:
            match request:
                case Fetch():
                    return Fetched(self._lease(await self._client.get(LEASES, namespace, name)))
                case WriteLease(over=over):
                    body = lease_body(request, name, namespace, datetime.now(UTC))
                    if over is None:
                        stored = await self._client.create(LEASES, namespace, body, field_manager=self._field_manager)
                    else:
                        stored = await self._client.patch(
                            LEASES, namespace, name, body, field_manager=self._field_manager
                        )
                    return Written(self._lease(stored))
        except Conflict:
            return LeaseConflict()
        except NotFound as error:
            if isinstance(request, Fetch):
                return Fetched(None)
            if request.over is not None:
                return LeaseConflict()
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

    def _lease(self, raw: msgspec.Raw | bytes) -> Lease:
        return lease_of(raw, self.timing.lease_s)

    def _report(self, event: Event) -> None:
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


# The API has 32 bits for them. It refuses one more, and no replica would lead until a person corrects the Lease.
_MOST_TRANSITIONS = 2**31 - 1


class _Meta(msgspec.Struct):
    name: str
    uid: str
    resourceVersion: str
    namespace: str = ""


class _Spec(msgspec.Struct):
    holderIdentity: str | None = None
    leaseDurationSeconds: int | None = None
    acquireTime: str | None = None
    leaseTransitions: int | None = None


class _Object(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode = msgspec.json.Decoder(_Object).decode


def lease_of(raw: msgspec.Raw | bytes, default_duration_s: float) -> Lease:
    """The record for the rules of the election from a Lease's JSON; msgspec.DecodeError where it is none.

    A Lease that was made by hand may lack a duration, or have one that no leader has.
    """
    found = _decode(raw)
    meta, spec = found.metadata, found.spec
    duration_s = default_duration_s if spec.leaseDurationSeconds is None else float(spec.leaseDurationSeconds)
    return Lease(
        uid=meta.uid,
        resource_version=meta.resourceVersion,
        holder=spec.holderIdentity or "",
        duration_s=min(duration_s, LONGEST_LEASE_S),
        acquire_time=spec.acquireTime,
        transitions=spec.leaseTransitions or 0,
        namespace=meta.namespace,
        name=meta.name,
    )


def lease_body(write: WriteLease, name: str, namespace: str, now: datetime) -> dict[str, object]:
    """Build the body of a write: a whole Lease to create, or a merge patch, which leaves fields of others alone.

    The patch carries the uid and the version of what it replaces, so that it changes exactly that or nothing.
    """
    # `metav1.MicroTime`: the API server refuses any other number of digits.
    time = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {
        "holderIdentity": write.holder,
        "leaseDurationSeconds": write.duration_s,
        "acquireTime": write.acquire_time or time,
        "renewTime": time,
        "leaseTransitions": min(write.transitions, _MOST_TRANSITIONS),
    }
    if write.over is not None:
        version = {"uid": write.over.uid, "resourceVersion": write.over.resource_version}
        return {"metadata": version, "spec": spec}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
