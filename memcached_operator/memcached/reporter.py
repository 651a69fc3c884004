"""What is told of a Memcached: its status, when it is written, and what is said of it in events and in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from memcached_operator.api.names import API_VERSION, GROUP, KIND, PLURAL, VERSION
from memcached_operator.memcached.contests import REASON as CONTESTED, Contests
from memcached_operator.memcached.records import DeploymentRecord, MemcachedRecord, PodRecord, memcached_record
from memcached_operator.memcached.status import (
    Observed,
    Reason,
    Status,
    Trouble,
    decode_status,
    is_settled,
    status_of,
    status_patch,
)
from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.cache.store import ObjectKey, Store
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Conflict, NotFound
from operator_runtime.client.frames import object_of
from operator_runtime.client.resources import Resource
from operator_runtime.controller.controller import Result
from operator_runtime.events.event_bodies import ObjectReference
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.objects.conditions import Condition, rfc3339

logger = logging.getLogger(__name__)

MEMCACHEDS = Resource(GROUP, VERSION, PLURAL, KIND)

# How often to look again at what no watch may tell us of: a right that was granted, a quota that was raised.
SLOW_RETRY_S = 30.0
# After something turned out to be other than the cache says: an event should be here well before. There is none after a
# create under a ResourceQuota that many creates change at once, which is answered 409 as well.
VANISHED_RETRY_S = 5.0
# After a conflict: long enough not to race with whoever writes in a loop, short enough for nobody to wait for.
CONFLICT_PAUSE_S = 0.25
_NO_STATUS = (
    "the kind Memcached in the cluster has no status; install the operator's own CustomResourceDefinition with "
    "`kubectl apply --server-side -f manifests/crd/cache.example.com_memcacheds.yaml`"
)
_DONE = Result()


@dataclass(frozen=True, slots=True)
class Caches:
    """The three stores, as the reflectors fill them. `pods` has the index "memcached"."""

    memcacheds: Store[MemcachedRecord]
    deployments: Store[DeploymentRecord]
    pods: Store[PodRecord]


class Found(NamedTuple):
    """How things stand after a reconcile did what it could.

    Attributes:
        deployment: the Deployment that the Memcached controls, None when there is none.
        trouble: what is in the way.
        waiting: what is being waited for, "" for nothing.
        terminating: what its deletion waits for, "" while it is not being deleted.
    """

    deployment: DeploymentRecord | None
    trouble: Trouble | None = None
    waiting: str = ""
    terminating: str = ""


class Reporter:
    """Writes the status of one Memcached at a time, and speaks of it; see `report`.

    `_unreported` holds since when a Memcached's status has been other than what was written, while that is held back.
    `_not_before` holds until when no status is written, after a write that met somebody else's. `_gone` holds which
    version of a Memcached the cache still had when the API server had none any more, and until when that is believed:
    an API server that boots knows no kinds of CRDs for a moment.

    Attributes:
        contests: the fights over fields, of the Deployment and of the status.
    """

    def __init__(
        self,
        client: ApiClient,
        caches: Caches,
        own_writes: OwnWrites,
        recorder: EventRecorder,
        *,
        field_manager: str,
        status_delay_s: float,
        clock: Callable[[], float],
        utc_now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._caches = caches
        self._own_writes = own_writes
        self._recorder = recorder
        self._field_manager = field_manager
        self._status_delay_s = status_delay_s
        self._clock = clock
        self._utc_now = utc_now
        self.contests = Contests(client, self._tell_of_contest, field_manager=field_manager, clock=clock)
        self._unreported: dict[ObjectKey, float] = {}
        self._not_before: dict[ObjectKey, float] = {}
        self._gone: dict[ObjectKey, tuple[str, float]] = {}

    async def live_memcached(self, key: ObjectKey) -> MemcachedRecord | None:
        """The Memcached as the API server has it now, None when there is none."""
        self._gone.pop(key, None)
        try:
            return object_of(memcached_record, await self._client.get(MEMCACHEDS, key.namespace, key.name))
        except NotFound:
            if (cached := self._caches.memcacheds.get(key)) is not None:
                self._gone[key] = (cached.resource_version, self._clock() + VANISHED_RETRY_S)
            return None

    def gone_for_s(self, memcached: MemcachedRecord) -> float | None:
        """Seconds for which a Memcached that the cache still has counts as gone; None when it does not.

        At 0.0 it is time to ask the API server again. Without this a watch that is down would have us make again what
        the garbage collector deletes.
        """
        key = ObjectKey(memcached.namespace, memcached.name)
        version, until_s = self._gone.get(key, ("", 0.0))
        return max(0.0, until_s - self._clock()) if version == memcached.resource_version else None

    async def still_wanted(self, key: ObjectKey, uid: str) -> bool:
        """Whether the Memcached of that uid is there now and is not being deleted, whatever the cache says."""
        live = await self.live_memcached(key)
        return live is not None and live.uid == uid and not live.deleting

    async def report(self, memcached: MemcachedRecord, size: int | None, found: Found) -> Result:
        """Write the status if it differs, at the latest `status_delay_s` after it began to."""
        key = ObjectKey(memcached.namespace, memcached.name)
        trouble = found.trouble
        # Under a Deployment that is not ours, pods with our labels are not ours either.
        ours = trouble is None or trouble.reason is not Reason.NOT_CONTROLLED
        pods = [pod for pod in self._caches.pods.by_index("memcached", key) if pod.active] if ours else []
        last = decode_status(memcached.status)
        now = rfc3339(self._utc_now())
        observed = Observed(
            key.name, memcached.generation, size, found.deployment, pods, trouble, found.waiting, found.terminating
        )
        wanted = status_of(observed, last, now)
        patch = status_patch(wanted, last)
        # A specification that cannot be read is mended by an event alone.
        retry = Result(requeue_after_s=SLOW_RETRY_S) if trouble and size is not None else _DONE
        if not patch:
            self.forget(key)
            return retry
        pause_s = self._not_before.get(key, 0.0) - self._clock()
        if pause_s > 0:
            return Result(requeue_after_s=pause_s)
        if not is_settled(wanted, last, size):
            since = self._unreported.setdefault(key, self._clock())
            left_s = since + self._status_delay_s - self._clock()
            if left_s > 0:
                return Result(requeue_after_s=left_s)
        # The version guards a re-created Memcached of the same name (/status ignores a wrong uid), and conditions that
        # somebody else wrote meanwhile: a merge patch replaces the list as a whole.
        body = {"metadata": {"resourceVersion": memcached.resource_version}, "status": patch}
        undone = self.contests.status_repairs(memcached, wanted, patch)
        rivals = await self.contests.rivals(memcached, MEMCACHEDS, undone)
        try:
            answer = await self._client.merge_patch(
                MEMCACHEDS,
                key.namespace,
                key.name,
                body,
                field_manager=self._field_manager,
                subresource="status",
            )
        except Conflict:
            self._status_written(memcached, wanted, undone, rivals)
            return await self.after_conflict(memcached)
        except NotFound:
            if await self.still_wanted(key, memcached.uid):
                # It is there, its status is not: the CRD in the cluster is not the operator's.
                raise NotFound(404, "NotFound", _NO_STATUS) from None
            return Result(requeue_after_s=VANISHED_RETRY_S)
        self.forget(key)
        self._status_written(memcached, wanted, undone, rivals)
        self._warn(memcached, wanted.condition("Degraded"), last.condition("Degraded"))
        if self._caches.memcacheds.get(key) is not None:
            # Quiet: the version in our write vouches that nothing else changed, and this is what was just looked at.
            self._caches.memcacheds.put(object_of(memcached_record, answer), quiet=True)
        return retry

    async def after_conflict(self, memcached: MemcachedRecord) -> Result:
        """It changed since the cache saw it: wait for the cache, and do not race with who else writes it."""
        key = ObjectKey(memcached.namespace, memcached.name)
        self._not_before[key] = self._clock() + max(self._status_delay_s, CONFLICT_PAUSE_S)
        live = await self.live_memcached(key)
        if live is not None:
            self._own_writes.expect(key, MEMCACHEDS.qualified_name, live.uid, live.resource_version)
        return Result(requeue_after_s=CONFLICT_PAUSE_S)

    def _status_written(
        self, memcached: MemcachedRecord, wanted: Status, undone: list[str], rivals: dict[str, str]
    ) -> None:
        """Remember what was written, for who changes it, and what had to be written once more."""
        self.contests.status_written(memcached, wanted)
        if undone:
            self.contests.repaired(memcached, MEMCACHEDS, undone, rivals, asked=False)

    def _tell_of_contest(self, memcached: MemcachedRecord, note: str) -> None:
        self.tell(memcached, "Warning", CONTESTED, "Repair", note)

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

    def forget(self, key: ObjectKey) -> None:
        """Nothing of the status waits to be written, and the Memcached is not missed."""
        self._unreported.pop(key, None)
        self._not_before.pop(key, None)
        self._gone.pop(key, None)

    def tell(
        self, memcached: MemcachedRecord, type_: Literal["Normal", "Warning"], reason: str, action: str, note: str
    ) -> None:
        """Record an event about the Memcached."""
        reference = ObjectReference(
            API_VERSION, KIND, memcached.namespace, memcached.name, memcached.uid, memcached.resource_version
        )
        self._recorder.emit(reference, type=type_, reason=reason, action=action, note=note)


def was_reported(memcached: MemcachedRecord) -> bool:
    """Whether a status was written, so that this is not the first look at it."""
    return decode_status(memcached.status).observedGeneration is not None


def was_asked(memcached: MemcachedRecord) -> bool:
    """Whether the user has asked for something else than last time, so that a difference is nobody's doing."""
    return decode_status(memcached.status).observedGeneration != memcached.generation
