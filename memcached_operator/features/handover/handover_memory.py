"""Memory of a Memcached's hand-overs, with tasks of deletion that may outlast a reconcile; a new leader has none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily

from memcached_operator.api.status import HandoverStatus, HandoverStep, Problem
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.features.handover.purge import PURGE_WITHIN_S, EmptyServer, Purged, PurgeServer
from memcached_operator.features.handover.situation import GiveUp, HandoverServer, Purge, PurgeState
from memcached_operator.servers.server_connection import Failure

logger = logging.getLogger(__name__)

_Key: TypeAlias = tuple[str, int, bool]


class Emptying:
    """Emptying of a Memcached's servers: twice each, however often its pod cannot say that it is done.

    A server is known by its pod and the time since which it is ready: one that starts again was away once more.
    """

    def __init__(self) -> None:
        self._tasks: dict[_Key, asyncio.Task[Purged | Failure]] = {}

    def keep(self, pods: Iterable[PodRecord]) -> None:
        """Forget all servers but those whose pods say that their items are outdated."""
        self._forget(self._tasks.keys() - {key for pod in pods if pod.outdated_items for key in _keys(pod)})

    def forget(self, addresses: Collection[str], pods: Iterable[PodRecord]) -> None:
        """Forget servers that another no longer has as a peer: their items are outdated once more."""
        self._forget({key for pod in pods if pod.address in addresses for key in _keys(pod)})

    def has_emptied(self, pod: PodRecord) -> bool:
        """Report whether a server was emptied once since it is ready."""
        first, _ = _keys(pod)
        task = self._tasks.get(first)
        return task is not None and task.done() and task.exception() is None and isinstance(task.result(), Purged)

    def result(
        self, pod: PodRecord, empty: EmptyServer, on_end: Callable[[], None], *, is_last: bool
    ) -> Purged | Failure | None:
        """Begin to empty a server, or return the result; None while that is under way. A failure is forgotten.

        Args:
            is_last: it was emptied since it is ready.
        """
        key = _keys(pod)[is_last]
        if (task := self._tasks.get(key)) is None:
            task = asyncio.get_running_loop().create_task(empty(pod.address, PURGE_WITHIN_S))
            task.add_done_callback(lambda ended: None if ended.cancelled() else on_end())
            self._tasks[key] = task
        if not task.done():
            return None
        if task.exception() is not None or isinstance(task.result(), Failure):
            del self._tasks[key]
        return task.result()

    def _forget(self, keys: Iterable[_Key]) -> None:
        for key in keys:
            if (task := self._tasks.pop(key, None)) is not None:
                task.cancel()


def _keys(pod: PodRecord) -> tuple[_Key, _Key]:
    """The keys of a server's two emptyings."""
    return (pod.uid, pod.since_s, False), (pod.uid, pod.since_s, True)


class PurgeRun:
    """The purge of the hand-over that began to be prepared at a time.

    Attributes:
        of: that time, as RFC 3339 has it.
        began_s: by the clock, when its last try began.
    """

    def __init__(self, of: str) -> None:
        self.of = of
        self.began_s = float("-inf")
        self._purged: set[str] = set()  # addresses
        self._task: asyncio.Task[None] | None = None

    def end(self) -> None:
        """Leave off what has yet to be deleted."""
        if self._task is not None:
            self._task.cancel()

    def state(self, servers: Sequence[HandoverServer]) -> tuple[PurgeState, frozenset[str]]:
        """Progress, and the names of ready servers that it failed at, or that were not ready when it began."""
        if self._task is None:
            return PurgeState.DUE, frozenset()
        if not self._task.done():
            return PurgeState.RUNNING, frozenset()
        ready = (each for each in servers if each.ready_since_s is not None)
        unpurged = frozenset(each.name for each in ready if each.address not in self._purged)
        return PurgeState.FAILED if unpurged else PurgeState.DONE, unpurged

    def begin(self, due: Purge, purge: PurgeServer, now_s: float, on_end: Callable[[], None]) -> None:
        """Have servers delete what former owners have kept; none of them is waited for here."""
        self.began_s = now_s

        async def run() -> None:
            purging = (purge(each.address, due.unused_since_s, PURGE_WITHIN_S) for each in due.servers)
            answers = await asyncio.gather(*purging, return_exceptions=True)
            deleted = sum(each.deleted for each in answers if isinstance(each, Purged))
            fields = {"action": "purge"}
            logger.info("deleted %d items that only former owners may have", deleted, extra={"fields": fields})
            purged = (
                each.address for each, answer in zip(due.servers, answers, strict=True) if isinstance(answer, Purged)
            )
            self._purged.update(purged)

        self._task = asyncio.get_running_loop().create_task(run())
        self._task.add_done_callback(lambda ended: None if ended.cancelled() else on_end())


def purge_state(
    purge: PurgeRun | None, last: HandoverStatus | None, servers: Sequence[HandoverServer]
) -> tuple[PurgeState, frozenset[str]]:
    """Progress of the purge, and the names of ready servers where it is yet to be done."""
    if purge is None or last is None or purge.of != last.startTime:
        return PurgeState.DUE, frozenset()
    return purge.state(servers)


@dataclass(slots=True)
class HandoverMemory:
    """State of a Memcached's hand-overs that is in memory alone.

    Attributes:
        purge: of the hand-over that is being prepared, or was last.
        size: how many servers are desired, and `waits_since` when that was first seen by this leader.
        unsupported: by pod and number of its restarts, whether its server cannot hand over.
        believed: the status that this leader wrote last, and the one before it, which stands where that failed.
        given_up: of the last change, which had no hand-over.
        refusal: of the API server's, to change a pod; until `refused_until_s` (by the clock) none is changed.
    """

    purge: PurgeRun | None = None
    size: int | None = None
    waits_since: datetime | None = None
    unsupported: dict[tuple[str, int], bool] = field(default_factory=dict)
    emptying: Emptying = field(default_factory=Emptying)
    reported: HandoverStep | None = None
    believed: tuple[HandoverStatus | None, ...] = ()
    given_up: GiveUp | None = None
    refusal: Problem | None = None
    refused_until_s: float = float("-inf")

    def end(self) -> None:
        """Leave off what is under way."""
        self.emptying.keep(())
        if self.purge is not None:
            self.purge.end()


class ResultCounts(dict[str, int]):
    """Counts of what hand-overs, or moves, came to, since this leader leads; each result is there from the start."""

    def __init__(self, name: str, help: str, *results: str) -> None:
        super().__init__(dict.fromkeys(results, 0))
        self._name, self._help = name, help

    def families(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._help, labels=("result",))
        for result, count in self.items():
            family.add_metric((result,), count)
        yield family
