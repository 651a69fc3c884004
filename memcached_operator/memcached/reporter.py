"""What is told of a Memcached: its status, when it is written, and what is said of it in events and in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memcached_operator.memcached.kinds import MEMCACHEDS
from memcached_operator.memcached.observation import Observation
from memcached_operator.memcached.records import MemcachedRecord
from memcached_operator.memcached.status import Status, is_settled, our_part, status_of, status_patch
from operator_runtime import (
    Client,
    Condition,
    Conflict,
    EventRecorder,
    NotFound,
    ObjectKey,
    Repairs,
    Result,
    StaleCache,
    reference,
    rfc3339,
)

logger = logging.getLogger(__name__)

# How often to look again at what no watch may tell us of: a permission that was granted, a quota that was raised.
SLOW_RETRY_S = 30.0
# After a conflict: long enough not to race with whoever writes in a loop, short enough for nobody to wait for.
CONFLICT_PAUSE_S = 0.25
_NO_STATUS = (
    "the kind Memcached in the cluster has no status; install the operator's own CustomResourceDefinition with "
    "`kubectl apply --server-side -f manifests/crd/cache.example.com_memcacheds.yaml`"
)


@dataclass(slots=True)
class _Unwritten:
    """A status that is held back.

    Attributes:
        since_s: since when (by the clock) it has been other than what was written; None while it is not.
        not_before_s: until when none is written, after a write that met somebody else's.
    """

    since_s: float | None = None
    not_before_s: float = 0.0


class Reporter:
    """Writes the status of one Memcached at a time, and speaks of it; see `report`."""

    def __init__(
        self,
        client: Client,
        repairs: Repairs[MemcachedRecord],
        recorder: EventRecorder,
        *,
        status_delay_s: float,
        clock: Callable[[], float],
        utc_now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._repairs = repairs
        self._recorder = recorder
        self._status_delay_s = status_delay_s
        self._clock = clock
        self._utc_now = utc_now
        self._unwritten = repairs.memory.slot(_Unwritten)

    async def report(
        self, memcached: MemcachedRecord, last: Status, observed: Observation, *, next_s: float | None = None
    ) -> Result:
        """Write the status if it differs, at the latest `status_delay_s` after it began to.

        Args:
            memcached: whose status.
            last: its live status.
            observed: what it is to tell of.
            next_s: when to look again in any case, in seconds, None where nothing calls for it.

        Raises:
            StaleCache: somebody else wrote the Memcached, or deleted it, and the cache has yet to show it.
        """
        key = memcached.key
        wanted = status_of(observed, last, rfc3339(self._utc_now()))
        patch = status_patch(wanted, last)
        # A specification that cannot be read is mended by an event alone.
        retry_s = SLOW_RETRY_S if observed.problem and observed.size is not None else None
        again = [each for each in (retry_s, next_s) if each is not None]
        retry = Result(requeue_after_s=min(again)) if again else Result()
        if not patch:
            self.forget(key)
            return retry
        if (held_back_s := self._held_back_s(key, settled=is_settled(wanted, last, observed.size))) > 0.0:
            return Result(requeue_after_s=held_back_s)
        await self._write(memcached, wanted, patch)
        self.forget(key)
        self._warn(memcached, wanted.condition("Degraded"), last.condition("Degraded"))
        self._advise(memcached, observed.advice, last.condition("Ready"))
        # What is published besides follows the status.
        return Result(requeue_after_s=0.0) if observed.followed and wanted.serverList != last.serverList else retry

    def forget(self, key: ObjectKey) -> None:
        """Nothing of the status waits to be written."""
        self._unwritten.drop(key)

    def tell(
        self, memcached: MemcachedRecord, type_: Literal["Normal", "Warning"], reason: str, action: str, note: str
    ) -> None:
        """Record an event about the Memcached."""
        about = reference(MEMCACHEDS, memcached)
        self._recorder.emit(about, type=type_, reason=reason, action=action, note=note)

    def _held_back_s(self, key: ObjectKey, *, settled: bool) -> float:
        """Seconds for which a status that differs is not written yet."""
        now, unwritten = self._clock(), self._unwritten.of(key)
        if unwritten.since_s is None:
            unwritten.since_s = now
        due_s = now if settled else unwritten.since_s + self._status_delay_s
        return max(due_s, unwritten.not_before_s) - now

    async def _write(self, memcached: MemcachedRecord, wanted: Status, patch: dict[str, object]) -> None:
        # The version guards a re-created Memcached of the same name (/status ignores a wrong uid), and conditions that
        # somebody else wrote meanwhile: a merge patch replaces the list as a whole.
        body = {"metadata": {"resourceVersion": memcached.resource_version}, "status": patch}

        async def send() -> MemcachedRecord:
            return await self._client.patch(MEMCACHEDS, memcached.key, body, subresource="status")

        try:
            await self._repairs.write_status(memcached, our_part(wanted), patch, send)
        except Conflict as error:
            pause_s = max(self._status_delay_s, CONFLICT_PAUSE_S)
            self._unwritten.of(memcached.key).not_before_s = self._clock() + pause_s
            self._client.outdated(MEMCACHEDS, memcached)
            raise StaleCache(f"somebody else wrote the Memcached: {error}", retry_s=CONFLICT_PAUSE_S) from error
        except NotFound as error:
            if await self._repairs.still_there(memcached):
                # It is there, its status is not: the CRD in the cluster is not the operator's.
                raise NotFound(404, "NotFound", _NO_STATUS) from None
            raise StaleCache("the Memcached is gone, whatever the cache shows") from error

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
        self.tell(memcached, "Warning", degraded.reason, "Reconcile", degraded.message)

    def _advise(self, memcached: MemcachedRecord, advice: str, before: Condition | None) -> None:
        """Say once what a person should know although all is as they asked; the condition bears it from then on."""
        if advice and (before is None or advice not in before.message):
            logger.warning("%s", advice)
            self.tell(memcached, "Warning", "FoundByChance", "Reconcile", advice)
