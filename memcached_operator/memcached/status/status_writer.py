"""When the status of a Memcached is written, and what is said of it in events and in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from memcached_operator.api.status import (
    DISCOURAGED,
    Problem,
    Status,
    is_settled,
    is_urgent,
    our_part,
    status_patch,
)
from memcached_operator.memcached.events import RecordEvent
from memcached_operator.memcached.observed.caches import MEMCACHEDS
from memcached_operator.memcached.observed.memcacheds import MemcachedRecord
from memcached_operator.memcached.server_stats.certificates import next_change_s
from memcached_operator.memcached.server_stats.health import certificates
from memcached_operator.memcached.server_stats.stats_cache import StatsCache
from memcached_operator.memcached.status.conditions import status_of
from memcached_operator.memcached.status.observation import Observation, client_names
from operator_runtime import Client, Condition, Conflict, NotFound, ObjectKey, Owners, Result, StaleCache, rfc3339

logger = logging.getLogger(__name__)

# How often to look again at what no watch may tell us of: a permission that was granted, a quota that was raised.
SLOW_RETRY_S = 30.0
# After a conflict: long enough not to race with a client that writes in a loop, and too short to notice.
CONFLICT_PAUSE_S = 0.25
# What 10,000 Memcacheds take on two cores; after it a status is written although its servers are still on their way.
_LONGEST_S: Final = 300.0
# So long a wait for a certificate to expire is cut, as clocks are set.
_DAY_S: Final = 86_400.0
# What the API server and Kubernetes' controllers take on two cores for all that one Memcached of two servers brings;
# until that was seen often enough here.
_EACH_S: Final = 0.03
_OFTEN: Final = 50
_NO_STATUS = (
    "the kind Memcached in the cluster has no status; install the operator's own CustomResourceDefinition with "
    "`kubectl apply --server-side -f manifests/crd/cache.example.com_memcacheds.yaml`"
)


@dataclass(slots=True)
class _Unwritten:
    """A status that is held back.

    Attributes:
        since_s: since when (by the clock) it has been other than what was written; None while it is not.
        due_s: when it is looked at again without an event.
        pods: how many there are of its servers once more than their number is to be told; None where each event may be.
        not_before_s: until when none is written, after a conflict.
        others: how many were held back beside it, at most.
    """

    since_s: float | None = None
    due_s: float = 0.0
    pods: int | None = None
    not_before_s: float = 0.0
    others: int = 0


class _Pace:
    """How long a Memcached takes to get its servers while others wait for theirs, as far as that was seen."""

    def __init__(self) -> None:
        self._since_s: float | None = None
        self._settled = 0

    def each_s(self, now_s: float) -> float:
        """Seconds from one Memcached that has got its servers to the next."""
        if self._since_s is None:
            self._since_s = now_s
        return (now_s - self._since_s + _OFTEN * _EACH_S) / (self._settled + _OFTEN)

    def settled(self) -> None:
        """One has got its servers."""
        self._settled += 1

    def rest(self) -> None:
        """None waits any more."""
        self._since_s, self._settled = None, 0


class StatusWriter:
    """Writes the status of one Memcached at a time, and speaks of it; see `report`."""

    def __init__(
        self,
        client: Client,
        owners: Owners[MemcachedRecord],
        record_event: RecordEvent,
        *,
        status_delay_s: float,
        clock: Callable[[], float],
        utc_now: Callable[[], datetime],
        stats_cache: StatsCache | None = None,
    ) -> None:
        self._client = client
        self._owners = owners
        self._record_event = record_event
        self._status_delay_s = status_delay_s
        self._clock = clock
        self._utc_now = utc_now
        self._stats_cache = stats_cache
        self._unwritten: dict[ObjectKey, _Unwritten] = {}
        self._pace = _Pace()

    async def report(
        self, memcached: MemcachedRecord, last: Status, observed: Observation, *, next_s: float | None = None
    ) -> tuple[Status, Result]:
        """Write the status if it differs: at once where its servers are all there, else after a while.

        Returns the status as it is now, and when to look again.

        That is `status_delay_s`, and more while many are on their way and no user is to act on it, so that the API
        server's time goes into what they wait for: as long as all that wait together take to get their servers.

        Args:
            next_s: when to look again in any case, in seconds, None where nothing calls for it.

        Raises:
            StaleCache: another client wrote the Memcached, or deleted it, and the cache has yet to show it.
        """
        key = memcached.key
        now = self._utc_now()
        changes_s = None
        if self._stats_cache is not None:
            health = self._stats_cache.look(observed.serving)
            if shown := certificates(health):
                observed = replace(observed, names=client_names(observed, memcached.namespace))
                # As the status has it, in whole seconds: what is not due by that must be looked at again.
                changes_s = min(next_change_s(shown, now.timestamp() // 1) or _DAY_S, _DAY_S)
            observed = replace(observed, health=health)
        desired = status_of(observed, last, rfc3339(now))
        patch = status_patch(desired, last, memcached.status)
        # A specification that cannot be read is mended by an event alone.
        retry_s = SLOW_RETRY_S if observed.problem and observed.size is not None else None
        again = [each for each in (retry_s, next_s, changes_s) if each is not None]
        retry = Result(requeue_after_s=min(again)) if again else Result()
        if not patch:
            self.forget(key)
            return last, retry
        if (held_back_s := self._held_back_s(key, desired, last, observed)) > 0.0:
            return last, Result(requeue_after_s=min([held_back_s, *again]))
        await self._write(memcached, desired, patch)
        if is_settled(desired, last, observed.size):
            self._pace.settled()
        self.forget(key)
        self._warn(memcached, desired.condition("Degraded"), last.condition("Degraded"))
        self._advise(memcached, observed.advice, desired.condition(DISCOURAGED), last.condition(DISCOURAGED))
        return desired, retry

    def forget(self, key: ObjectKey) -> None:
        """Nothing of the status waits to be written."""
        self._unwritten.pop(key, None)
        if not self._unwritten:
            self._pace.rest()

    def begin(self, key: ObjectKey) -> None:
        """A look begins: what comes from now on it may not see."""
        if (unwritten := self._unwritten.get(key)) is not None:
            unwritten.pods = None

    def awaited(self, key: ObjectKey) -> int | None:
        """How many pods a Memcached is to have before there is more to tell of it than their number.

        None where any event may be worth a look. Where it is a number, there is a look without an event, too.
        """
        unwritten = self._unwritten.get(key)
        return unwritten.pods if unwritten is not None and unwritten.due_s > self._clock() else None

    def _held_back_s(self, key: ObjectKey, desired: Status, last: Status, observed: Observation) -> float:
        """Seconds for which a status that differs is not written yet."""
        now, unwritten = self._clock(), self._unwritten.setdefault(key, _Unwritten())
        if unwritten.since_s is None:
            unwritten.since_s = now
        settled, delay_s = is_settled(desired, last, observed.size), self._status_delay_s
        unwritten.pods = None if is_urgent(desired, last) else observed.awaited
        unwritten.others = max(unwritten.others, len(self._unwritten) - 1)
        each_s = self._pace.each_s(now)
        if delay_s and unwritten.pods is not None:
            delay_s += min(unwritten.others * each_s, _LONGEST_S)
        unwritten.due_s = max(now if settled else unwritten.since_s + delay_s, unwritten.not_before_s)
        return unwritten.due_s - now

    async def _write(self, memcached: MemcachedRecord, desired: Status, patch: dict[str, object]) -> None:
        # The version guards a re-created Memcached of the same name (/status ignores a wrong uid), and conditions that
        # another client wrote meanwhile: a merge patch replaces the list as a whole.
        body = {"metadata": {"resourceVersion": memcached.resource_version}, "status": patch}

        async def send() -> MemcachedRecord:
            return await self._client.patch(MEMCACHEDS, memcached.key, body, subresource="status")

        try:
            await self._owners.write_status(memcached, our_part(desired), patch, send)
        except Conflict as error:
            pause_s = max(self._status_delay_s, CONFLICT_PAUSE_S)
            self._unwritten.setdefault(memcached.key, _Unwritten()).not_before_s = self._clock() + pause_s
            self._client.outdated(MEMCACHEDS, memcached)
            raise StaleCache(f"another client wrote the Memcached: {error}", retry_s=CONFLICT_PAUSE_S) from error
        except NotFound as error:
            if await self._owners.still_there(memcached):
                # It is there, its status is not: the CRD in the cluster is not the operator's.
                raise NotFound(404, "NotFound", _NO_STATUS) from None
            raise StaleCache("the Memcached no longer exists, whatever the cache contains") from error

    def _warn(self, memcached: MemcachedRecord, degraded: Condition | None, before: Condition | None) -> None:
        """Say what is in the way when it begins, when it changes and when it is over."""
        was = before is not None and before.status == "True"
        if degraded is None or degraded.status != "True":
            if was:
                logger.info("no longer degraded")
            return
        if was and before is not None and before.message == degraded.message:
            return
        logger.warning("degraded: %s: %s", degraded.reason, degraded.message)
        self._record_event(memcached, "Warning", degraded.reason, "Reconcile", degraded.message)

    def _advise(
        self,
        memcached: MemcachedRecord,
        advice: Sequence[Problem],
        discouraged: Condition | None,
        before: Condition | None,
    ) -> None:
        """Say once what a person should know although all is as they specified: not again while the condition stays."""
        if before is not None and discouraged is not None and before.message == discouraged.message:
            return
        for each in advice:
            if before is None or before.reason != each.reason:
                logger.warning("%s", each.message)
                self._record_event(memcached, "Warning", each.reason, "Reconcile", each.message)
