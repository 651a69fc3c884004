"""Writer of a Memcached's status, which also records its events and log lines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from memcached_operator.api import names
from memcached_operator.api.status import DISCOURAGED, Problem, Status, owned_part, status_patch
from memcached_operator.core.access import Access
from memcached_operator.core.observed.caches import MEMCACHEDS
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.outcome import soonest
from memcached_operator.core.status.conditions import status_of
from memcached_operator.core.status.debounce import CONFLICT_PAUSE_S, StatusDebounce
from memcached_operator.core.status.observation import Observation, client_names
from memcached_operator.features.memory_scaling.retaining_condition import events
from memcached_operator.servers.certificates import next_change_s
from memcached_operator.servers.serving_condition import certificates
from operator_runtime import Conflict, NotFound, Result, StaleCache, rfc3339

logger = logging.getLogger(__name__)

# How often to reconcile for what no watch may report: a permission that was granted, a quota that was raised.
SLOW_RETRY_S = 30.0
# So long a wait for a certificate to expire is cut, as clocks are set.
_DAY_S: Final = 86_400.0
_NO_STATUS = (
    "the kind Memcached in the cluster has no status; install the operator's own CustomResourceDefinition with "
    f"`kubectl apply --server-side -f {names.CRD_FILE}`"
)


class StatusWriter:
    """Writes the status of one Memcached at a time, and records its events; see `report`."""

    def __init__(self, access: Access, debounce: StatusDebounce, utc_now: Callable[[], datetime]) -> None:
        self._access = access
        self.debounce = debounce
        self._utc_now = utc_now

    async def report(
        self, memcached: MemcachedRecord, last: Status, observed: Observation, *, next_s: float | None = None
    ) -> tuple[Status, Result]:
        """Write the status if it differs, at once or later; the status as it is now, and when to reconcile again.

        Args:
            next_s: when to reconcile again in any case, in seconds, None where nothing calls for it.

        Raises:
            StaleCache: another client wrote the Memcached, or deleted it, and the cache has yet to show it.
        """
        key = memcached.key
        now = self._utc_now()
        changes_s = None
        if self._access.stats_cache is not None:
            health = self._access.stats_cache.read(observed.serving)
            if shown := certificates(health):
                observed = replace(observed, names=client_names(observed, memcached.namespace))
                # As the status has it, in whole seconds: what is not due by that must be reconciled again.
                changes_s = min(next_change_s(shown, now.timestamp() // 1) or _DAY_S, _DAY_S)
            observed = replace(observed, health=health)
        desired = status_of(observed, last, rfc3339(now))
        patch = status_patch(desired, last)
        # A specification that cannot be read is mended by an event alone.
        retry_s = SLOW_RETRY_S if observed.problem and observed.size is not None else None
        again_s = soonest(retry_s, next_s, changes_s)
        retry = Result(requeue_after_s=again_s)
        if not patch:
            self.debounce.forget(key)
            return last, retry
        if (held_back_s := self.debounce.held_back_s(key, observed, desired, last)) > 0.0:
            return last, Result(requeue_after_s=soonest(held_back_s, again_s))
        await self._write(memcached, desired, patch)
        self.debounce.written(key, observed, desired, last)
        self._warn(memcached, desired, last)
        self._advise(memcached, observed.advice, desired, last)
        for each in events(observed.scaling, last) if observed.scaling is not None else ():
            logger.log(logging.WARNING if each.type == "Warning" else logging.INFO, "%s", each.note)
            self._access.record_event(memcached, each.type, each.reason, "ScaleMemory", each.note)
        return desired, retry

    async def _write(self, memcached: MemcachedRecord, desired: Status, patch: dict[str, object]) -> None:
        # The version guards a re-created Memcached of the same name (/status ignores a wrong uid), and conditions that
        # another client wrote meanwhile: a merge patch replaces the list as a whole.
        body = {"metadata": {"resourceVersion": memcached.resource_version}, "status": patch}
        owners, key, fields = self._access.owners, memcached.key, [f"status.{field}" for field in patch]

        def digest() -> int:
            return hash(tuple(owned_part(desired).items()))

        try:
            async with owners.repair(memcached, MEMCACHEDS, key, "changed", fields, digest=digest, status=True):
                await self._access.client.patch(MEMCACHEDS, key, body, subresource="status")
        except Conflict as error:
            self.debounce.conflicted(memcached.key)
            self._access.client.outdated(MEMCACHEDS, memcached)
            raise StaleCache(f"another client wrote the Memcached: {error}", retry_s=CONFLICT_PAUSE_S) from error
        except NotFound as error:
            if await self._access.owners.still_there(memcached):
                # It is there, its status is not: the CRD in the cluster is not the operator's.
                raise NotFound(404, "NotFound", _NO_STATUS) from None
            raise StaleCache("the Memcached no longer exists: the cache is stale") from error

    def _warn(self, memcached: MemcachedRecord, desired: Status, last: Status) -> None:
        """Report each change of the condition Degraded: its begin, another message, and its end."""
        degraded, before = desired.condition("Degraded"), last.condition("Degraded")
        was = before is not None and before.status == "True"
        if degraded is None or degraded.status != "True":
            if was:
                logger.info("no longer degraded")
            return
        if was and before is not None and before.message == degraded.message:
            return
        logger.warning("degraded: %s: %s", degraded.reason, degraded.message)
        self._access.record_event(memcached, "Warning", degraded.reason, "Reconcile", degraded.message)

    def _advise(self, memcached: MemcachedRecord, advice: Sequence[Problem], desired: Status, last: Status) -> None:
        """Report once what a person should know although all is as specified: not again while the condition stays."""
        discouraged, before = desired.condition(DISCOURAGED), last.condition(DISCOURAGED)
        if before is not None and discouraged is not None and before.message == discouraged.message:
            return
        for each in advice:
            if before is None or before.reason != each.reason:
                logger.warning("%s", each.message)
                self._access.record_event(memcached, "Warning", each.reason, "Reconcile", each.message)
