"""Kubernetes events: what an operator did to an object, where `kubectl describe` shows it.

An event is a courtesy. So `EventRecorder.emit` only queues it; one coroutine writes what was queued to
events.k8s.io/v1, slowly, and gives up before it gets in the way.

Rates and where they come from:

- one object: 25 events at once, then one in 300 s (client-go's spam filter of its older recorder). More are dropped.
- all objects: 25 writes at once, then 5 per second (client-go's default QPS for a client). More wait in a queue of
  1000 (client-go's length) and the oldest of these is dropped for a newer one. So a mass creation spends no more on
  events than five small requests a second, and the last thousand objects still get theirs.
- the same event again: no new object but a series (a count) on the first, written once a minute at most, and finished
  after 6 minutes of silence (client-go's time). An event is the same if its object, type, reason, action and note are.
  client-go leaves out the note and so hides that 3 to 4 and 4 to 5 were two things; notes that never repeat are held
  back by the rate of their object.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, get_args

from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import (
    ApiError,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from operator_runtime.client.resources import EVENTS
from operator_runtime.events.event_bodies import (
    MAX_REASON_BYTES,
    Event,
    EventType,
    ObjectReference,
    cut,
    event_name,
    event_of,
    series_patch,
)

log = logging.getLogger(__name__)

DropReason = Literal["queue full", "object too busy", "write failed"]

DROP_REASONS: tuple[DropReason, ...] = get_args(DropReason)

_QUEUE_LENGTH = 1000
_SERIES_REFRESH_S = 60.0
_SERIES_FINISH_S = 360.0
# Objects and events that are remembered for rates and series; client-go's cache holds 4096 of each, in a process that
# has the memory for it. The longest unseen are forgotten: they then get a new event instead of a count.
_MAX_OBJECTS = 4096
_MAX_KNOWN = 1024

_TRIES = 3
_RETRY_S = 1.0
_LONGEST_RETRY_S = 10.0


@dataclass(frozen=True, slots=True)
class _Rate:
    """`burst` at once, then one per `interval_s`. The state of a bucket is the time until which it is exhausted."""

    interval_s: float
    burst: int

    def wait_s(self, exhausted_until: float, now: float) -> float:
        return max(0.0, exhausted_until - (self.burst - 1) * self.interval_s - now)

    def spend(self, exhausted_until: float, now: float) -> float:
        return max(exhausted_until, now) + self.interval_s


_OBJECT_RATE = _Rate(interval_s=300.0, burst=25)
_OVERALL_RATE = _Rate(interval_s=0.2, burst=25)


@dataclass(slots=True, eq=False)
class _Recorded:
    """One event and what of it the API server has. `written` is the count there, 0 before the first write."""

    event: Event
    recorded_at: float
    seen_at: float
    first_ns: int
    last_ns: int
    name: str = ""
    count: int = 1
    written: int = 0
    written_at: float = 0.0


class EventRecorder:
    """Notes events down and writes them from `run`, in the order in which they are due.

    Attributes:
        written: writes that the API server took.
        dropped: events that were given up, by reason.

    Invariants: `_queue` holds events that were never written, `_refreshes` those whose count has grown since, with the
    time of the next write. `_known` holds events that can still become a series, `_objects` how much of its rate each
    object has spent; both are ordered by last use.
    """

    def __init__(
        self,
        api: ApiClient,
        *,
        reporting_controller: str,
        reporting_instance: str,
        field_manager: str,
        flush_s: float = 1.5,
        clock: Callable[[], float] = time.monotonic,
        now_ns: Callable[[], int] = time.time_ns,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`reporting_instance` names this process; `flush_s` is what the rest may take when the recorder is stopped."""
        self.written = 0
        self.dropped: Counter[DropReason] = Counter()
        self._api = api
        self._reporting_controller = reporting_controller
        self._reporting_instance = cut(reporting_instance, MAX_REASON_BYTES)
        self._field_manager = field_manager
        self._flush_s = flush_s
        self._clock = clock
        self._now_ns = now_ns
        self._sleep = sleep
        self._queue: deque[_Recorded] = deque()
        self._refreshes: dict[_Recorded, float] = {}
        self._known: OrderedDict[tuple[str, ...], _Recorded] = OrderedDict()
        self._objects: dict[str, float] = {}
        self._exhausted_until = 0.0
        self._last_name_ns = 0
        self._reported: set[str] = set()
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()

    def emit(self, regarding: ObjectReference, *, type: EventType, reason: str, action: str, note: str) -> None:
        """Note an event down. Never waits, never fails.

        Args:
            type: Warning if someone should act.
            reason: why, in one CamelCase word for machines.
            action: what was done, in one CamelCase word for machines.
            note: what happened, for people; cut to 1024 bytes.
        """
        now, now_ns = self._clock(), self._now_ns()
        event = event_of(regarding, type, reason, action, note)
        while self._known and now - next(iter(self._known.values())).seen_at >= _SERIES_FINISH_S:
            self._known.popitem(last=False)
        known = self._known.get(event.identity)
        if known is not None:
            self._known.move_to_end(event.identity)
            known.count += 1
            known.seen_at, known.last_ns = now, now_ns
            self._schedule_refresh(known)
        elif self._may_report(regarding, now):
            recorded = self._known[event.identity] = _Recorded(event, now, now, now_ns, now_ns)
            self._known.move_to_end(event.identity)
            if len(self._known) > _MAX_KNOWN:
                self._known.popitem(last=False)
            self._queue.append(recorded)
            if len(self._queue) > _QUEUE_LENGTH:
                self._drop(self._queue.popleft(), "queue full")
        else:
            self.dropped["object too busy"] += 1
        self._wake.set()

    def stop(self) -> None:
        """End `run`, after what is queued was written or `flush_s` has passed."""
        self._stopping.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            delivery = group.create_task(self._deliver(), name="events")
            await self._stopping.wait()
            delivery.cancel()
        try:
            async with asyncio.timeout(self._flush_s):
                while (recorded := self._take(float("inf"))) is not None:
                    await self._write(recorded, tries=1)
        except TimeoutError:
            log.info("stopped with %d events not written", len(self._queue) + len(self._refreshes))

    async def _deliver(self) -> None:
        while True:
            await self._wait_until_due()
            if wait_s := _OVERALL_RATE.wait_s(self._exhausted_until, self._clock()):
                await self._sleep(wait_s)
            recorded = self._take(self._clock())
            if recorded is None:
                continue
            self._exhausted_until = _OVERALL_RATE.spend(self._exhausted_until, self._clock())
            await self._write(recorded, tries=_TRIES)

    async def _wait_until_due(self) -> None:
        while not self._queue:
            wait_s = min(self._refreshes.values()) - self._clock() if self._refreshes else None
            if wait_s is not None and wait_s <= 0.0:
                return
            self._wake.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()

    def _take(self, now: float) -> _Recorded | None:
        """The event to write next: the one that has been due longest."""
        due_at = min(self._refreshes.values(), default=float("inf"))
        if due_at <= now and self._refreshes and not (self._queue and self._queue[0].recorded_at < due_at):
            recorded = next(each for each, at in self._refreshes.items() if at == due_at)
            del self._refreshes[recorded]
            return recorded
        return self._queue.popleft() if self._queue else None

    def _schedule_refresh(self, recorded: _Recorded) -> None:
        if recorded.written and recorded.count > recorded.written:
            self._refreshes.setdefault(recorded, recorded.written_at + _SERIES_REFRESH_S)

    def _may_report(self, regarding: ObjectReference, now: float) -> bool:
        key = regarding.uid or f"{regarding.kind} {regarding.namespace}/{regarding.name}"
        exhausted_until = self._objects.get(key, now)
        if _OBJECT_RATE.wait_s(exhausted_until, now):
            return False
        self._objects.pop(key, None)  # to the end
        self._objects[key] = _OBJECT_RATE.spend(exhausted_until, now)
        surplus = len(self._objects) - _MAX_OBJECTS
        gone = takewhile(lambda each: each[0] < surplus or each[1][1] <= now, enumerate(self._objects.items()))
        for _, (old, _) in list(gone):
            del self._objects[old]
        return True

    def _drop(self, recorded: _Recorded, why: DropReason) -> None:
        self.dropped[why] += 1
        if self._known.get(recorded.event.identity) is recorded:
            del self._known[recorded.event.identity]

    async def _write(self, recorded: _Recorded, *, tries: int) -> None:
        try:
            for attempt in range(1, tries + 1):
                try:
                    return await self._send(recorded)
                except (Unreachable, TooManyRequests, ServerError) as failure:
                    if attempt == tries:
                        raise
                    retry_after_s = failure.retry_after_s if isinstance(failure, ApiError) else None
                await self._sleep(min(max(retry_after_s or 0.0, _RETRY_S * attempt), _LONGEST_RETRY_S))
        except KubeError as failure:
            self._give_up(recorded, failure)
        except asyncio.CancelledError:
            # Interrupted by the stop; the flush tries once more. If this write did arrive, that one is a Conflict.
            if recorded.written == 0:
                self._queue.appendleft(recorded)
            else:
                self._schedule_refresh(recorded)
            raise

    async def _send(self, recorded: _Recorded) -> None:
        if recorded.written:
            seen = recorded.count
            patch = series_patch(seen, recorded.last_ns)
            try:
                await self._api.patch(
                    EVENTS, recorded.event.namespace, recorded.name, patch, field_manager=self._field_manager
                )
                recorded.written = seen
            except NotFound:
                # The API server forgets events, after an hour by default. The series begins anew.
                recorded.name, recorded.first_ns, recorded.count, recorded.written = "", recorded.last_ns, 1, 0
        if not recorded.written:
            await self._send_new(recorded)
        self.written += 1
        self._reported.clear()
        recorded.written_at = self._clock()
        self._schedule_refresh(recorded)

    async def _send_new(self, recorded: _Recorded) -> None:
        event = recorded.event
        if not recorded.name:
            self._last_name_ns = max(self._last_name_ns + 1, self._now_ns())
            recorded.name = event_name(event.regarding, self._last_name_ns)
        body = event.body(
            recorded.name, recorded.first_ns, controller=self._reporting_controller, instance=self._reporting_instance
        )
        try:
            await self._api.create(EVENTS, event.namespace, body, field_manager=self._field_manager)
        except Conflict:
            # The name is unique, so this is our own event: an earlier try arrived and its answer did not.
            log.debug("event %s was written by an earlier try", recorded.name)
        recorded.written = 1

    def _give_up(self, recorded: _Recorded, error: KubeError) -> None:
        if recorded.written == 0:
            self._drop(recorded, "write failed")
        if _namespace_is_going(error) or type(error).__name__ in self._reported:
            return
        # Reported once, until a write succeeds again.
        self._reported.add(type(error).__name__)
        remedy = ""
        if isinstance(error, Forbidden):
            remedy = "; to see events, grant create and patch on events.events.k8s.io to the operator's service account"
        log.warning("events are not written: %s%s", error, remedy)


def _namespace_is_going(error: KubeError) -> bool:
    """Report whether a write failed because its namespace is being deleted or gone: that event will not be read."""
    if isinstance(error, NotFound):
        return True
    return isinstance(error, Forbidden) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)
