"""Polling of every server once an interval: which are due, pure; and the part that queries, on the leader alone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, Protocol

from memcached_operator.servers.certificates import read_certificate
from memcached_operator.servers.queried_pod import Endpoints, QueriedPod, without_credentials
from memcached_operator.servers.server_connection import Endpoint, Failure
from memcached_operator.servers.stats_answer import StatsAnswer
from memcached_operator.servers.stats_cache import StatsCache, is_queried
from memcached_operator.servers.text_protocol import query
from operator_runtime import Channel, ObjectKey, Store

logger = logging.getLogger(__name__)

TIMEOUT_S: Final = 1.0
"""As the exporter has it by default: a server that takes longer fails its clients, too."""
TICK_S: Final = 0.5
"""Time between two checks which are due."""
# A few milliseconds of work between two reconciles.
AT_ONCE: Final = 16
# At most so many besides those that are due, when many begin at once.
_MISSING_AT_ONCE: Final = 25

Query = Callable[[Endpoint, float], Awaitable[tuple[StatsAnswer | Failure, bytes]]]


class Servers(Protocol):
    """Servers of all Memcacheds, as the caches have them."""

    @property
    def pods(self) -> Store[Any]:
        """Pods as they are now."""

    def each_server(self) -> Iterator[QueriedPod]:
        """Iterate over the servers, each as it is when its turn comes."""


class Rounds:
    """Schedule of the servers that are due: each once an interval, spread evenly over it, and new ones first.

    Invariants:
        `_round` gives the pods that are still to come in this round, `_ended` when there are no more; `_seen` has the
        uids of those that were queried in it.
        `_due` is how many of them are due, in fractions of one.
    """

    def __init__(self, servers: Servers, stats_cache: StatsCache, interval_s: float, now_s: float) -> None:
        self._servers = servers
        self._stats_cache = stats_cache
        self._interval_s = interval_s
        self._began_s = self._last_s = now_s
        self._seen: set[str] = set()
        self._due = 1.0
        self._ended = False
        self._round = servers.each_server()

    def due(self, now_s: float) -> list[QueriedPod]:
        """Return the servers to be queried now."""
        found = self._missing()
        passed_s, self._last_s = now_s - self._last_s, now_s
        self._due += passed_s * len(self._servers.pods) / self._interval_s
        while self._begun(now_s) and self._due >= 1.0:
            self._due -= 1.0
            if (pod := next(self._round, None)) is None:
                self._ended = True
                self._stats_cache.keep(self._seen)
            elif is_queried(pod) and pod.uid not in self._seen:
                self._seen.add(pod.uid)
                found.append(pod)
        return found

    def _begun(self, now_s: float) -> bool:
        """Report whether a round is underway; a new one begins when it is time."""
        if self._ended and now_s >= self._began_s + self._interval_s:
            self._ended, self._began_s, self._due = False, now_s, 1.0
            self._seen, self._round = set(), self._servers.each_server()
        return not self._ended

    def _missing(self) -> list[QueriedPod]:
        """Return the servers that a reconcile read in vain, as they are now."""
        missing, found = self._stats_cache.missing, list[QueriedPod]()
        while missing and len(found) < _MISSING_AT_ONCE:
            uid = next(iter(missing))
            before = missing.pop(uid)
            pod: QueriedPod | None = self._servers.pods.get(ObjectKey(before.namespace, before.name))
            if pod is not None and pod.uid == uid and is_queried(pod):
                self._seen.add(uid)
                found.append(pod)
        return found


class Poller:
    """Queries the servers that are due, a few at once, while this process leads; reports Memcacheds with news."""

    name = "server stats"

    def __init__(
        self,
        servers: Servers,
        stats_cache: StatsCache,
        changed: Channel[ObjectKey],
        *,
        interval_s: float,
        endpoints: Endpoints = without_credentials,
        on_answer: Callable[[QueriedPod, StatsAnswer], bool] = lambda *_: False,
        query: Query = query,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        tick_s: float = TICK_S,
    ) -> None:
        """
        Args:
            changed: is sent the key of each Memcached whose report changes.
            on_answer: takes a server's answer; whether something else is to be reported since.
            tick_s: between two checks which are due.
        """
        self._servers = servers
        self._stats_cache = stats_cache
        self._changed = changed
        self._interval_s = interval_s
        self._on_answer = on_answer
        self._failures = set[str]()
        self._endpoints = endpoints
        self._query = query
        self._clock = clock
        self._now = now
        self._tick_s = tick_s
        self._places = asyncio.Semaphore(AT_ONCE)
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as running:
            polling = running.create_task(self._poll(), name="server queries")
            await self._stopping.wait()
            polling.cancel()

    def stop(self) -> None:
        self._stopping.set()

    async def _poll(self) -> None:
        rounds = Rounds(self._servers, self._stats_cache, self._interval_s, self._clock())
        async with asyncio.TaskGroup() as queries:
            while True:
                for pod in rounds.due(self._clock()):
                    await self._places.acquire()
                    queries.create_task(self._query_server(pod))
                await asyncio.sleep(self._tick_s)

    async def _query_server(self, pod: QueriedPod) -> None:
        try:
            resolved = await self._endpoints(pod)
            answer, shown = await self._query(resolved.endpoint, TIMEOUT_S)
        finally:
            self._places.release()
        answer = resolved.explained(answer) if isinstance(answer, Failure) else answer
        certificate = read_certificate(shown) if shown else None
        key = pod.memcached_key
        due = resolved.due or None
        is_change = self._stats_cache.record(pod, answer, certificate, self._now(), due=due)
        if isinstance(answer, StatsAnswer):
            is_change = self._taken(pod, answer) or is_change
        if is_change and key is not None:
            self._changed.send(key)

    def _taken(self, pod: QueriedPod, answer: StatsAnswer) -> bool:
        """Report whether an answer changes what is to be reported.

        A server can send anything: what its answer leads to must not end a process that takes care of all others.
        """
        try:
            return self._on_answer(pod, answer)
        except Exception as error:
            kind = type(error).__name__
            level = logging.DEBUG if kind in self._failures else logging.ERROR
            self._failures.add(kind)
            where = f"{pod.namespace}/{pod.name}"
            logger.log(level, "the answer of %s is dropped, as it cannot be used: %r", where, error, exc_info=True)
            return False
