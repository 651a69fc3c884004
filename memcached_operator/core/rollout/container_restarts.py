"""Restarts of servers' containers: those by which they come to another image in their pods, and those by themselves.

`next_step` chooses the step, and `in_place_restart` makes the request. Without the permission to patch pods servers are
replaced, and a condition reports why.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from memcached_operator.api.status import Problem, Reason
from memcached_operator.core.access import Access, RecordEvent
from memcached_operator.core.objects.labels import RESTART_ANNOTATION
from memcached_operator.core.objects.refusal_reasons import is_permission_missing
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.caches import PODS
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import AT_ONCE, EMPTY, WRITE_REFUSALS, Outcome, refused_write
from memcached_operator.core.rollout.in_place_restart import LATE_AFTER_S, mark_updated_patch, restart_patch
from memcached_operator.core.rollout.next_step import left_of
from operator_runtime import Forbidden

logger = logging.getLogger(__name__)

# So long a server that is ready is given to report how many items it has.
QUERY_FOR_S: Final = 10.0


class Restarts(dict[str, int]):
    """Items that servers of a Memcached had, by the uids of their pods; and why none can be changed in place.

    Attributes:
        refused: why the operator may change no pod, in the API server's words; "" where it may.
        emptied: the server that came back without its items, "" for none; then no other is changed.
        emptied_by: digest of the template that it was given.
    """

    refused = ""
    emptied = emptied_by = ""


class ContainerRestarts:
    """Changes servers of one Memcached at a time in their pods; see `restart` and `mark_updated`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def restart(
        self,
        known: Restarts,
        memcached: MemcachedRecord,
        pod: PodRecord,
        workload: WorkloadRecord,
        desired: WorkloadManifest,
        stale: int,
        now: datetime,
    ) -> Outcome | None:
        """Have a server's container start again; None where the operator lacks the permission to patch pods."""
        if known.emptied and known.emptied_by == workload.template_hash and not pod.down:
            return EMPTY
        known.emptied = ""
        try:
            body = restart_patch(pod, workload, desired, now.timestamp())
            await self._access.client.patch(PODS, pod, body, strategic=True)
        except WRITE_REFUSALS as error:
            if isinstance(error, Forbidden) and is_permission_missing(error):
                known.refused = error.message or str(error)
                return None
            return refused_write(self._access.client, PODS, pod, f"{pod.name} cannot be changed in place", error)
        known.refused = ""
        if (items := self._items(pod)) is not None:
            known[pod.uid] = items
        left = f", {stale - 1} more to follow" if stale > 1 else ""
        fields = {"action": "restart", "server": pod.name, "left": stale - 1}
        logger.info("restarting the container of %s in place%s", pod.name, left, extra={"fields": fields})
        note = f"Restarting the container of the server {pod.name} in place with the current template{left}"
        self._access.record_event(memcached, "Normal", "Restarting", "Restart", note)
        return Outcome(requeue_s=LATE_AFTER_S)

    async def mark_updated(
        self,
        known: Restarts,
        memcached: MemcachedRecord,
        pod: PodRecord,
        workload: WorkloadRecord,
        stale: int,
        now: datetime,
    ) -> Outcome:
        """Have a server that came back counted as one of the present template; the arguments are those of `restart`."""
        had, has = known.get(pod.uid), self._items(pod)
        left_s = pod.since_s + QUERY_FOR_S - now.timestamp()
        if had is not None and has is None and left_s > 0.0:
            return Outcome(requeue_s=left_s)  # its first answer has the Memcached reconciled, too
        try:
            await self._access.client.patch(PODS, pod, mark_updated_patch(pod, workload))
        except WRITE_REFUSALS as error:
            return refused_write(self._access.client, PODS, pod, f"{pod.name} cannot be changed in place", error)
        known.pop(pod.uid, None)
        counted = f" with {has} of {had} items" if had is not None and has is not None else ""
        fields = {"action": "restarted", "server": pod.name, "left": stale - 1, "items": has, "before": had}
        logger.info("%s is back in its pod%s", pod.name, counted, extra={"fields": fields})
        lost = bool(had) and has == 0
        if lost:
            known.emptied, known.emptied_by = pod.name, workload.template_hash
        why = f"; the log of its container says why: kubectl logs {pod.name}" if lost else ""
        note = f"The server {pod.name} is back in its pod{counted}{why}"
        self._access.record_event(memcached, "Warning" if lost else "Normal", "Restarted", "Restart", note)
        return AT_ONCE  # for the next one

    @staticmethod
    def report(known: Restarts, stale: int) -> Outcome:
        """Report why stale servers are replaced that could be restarted in place, or are not changed any more."""
        if known.emptied:
            message = (
                f"The server {known.emptied} is back in its pod without its items{left_of(stale, 'changed')}. The log "
                f"of its container says why. Restore the previous specification, or change the annotation "
                f"{RESTART_ANNOTATION} of the Memcached to go on."
            )
            return Outcome(problems=(Problem(Reason.ROLLOUT_STUCK, message, blocking=False),))
        if known.refused:
            message = f"Servers are replaced, and lose their items, as they cannot be changed in place: {known.refused}"
            return Outcome(problems=(Problem(Reason.FORBIDDEN, message, blocking=False),))
        return EMPTY

    def _items(self, pod: PodRecord) -> int | None:
        """Return how many items a server has reported since its container was started, None where it has not."""
        server = self._access.stats_cache.of(pod) if self._access.stats_cache is not None else None
        answer = server.answer if server is not None else None
        items = answer.number("curr_items") if answer is not None else None
        return int(items) if items is not None and items == items else None  # NaN is not itself


def report_restarts(
    record_event: RecordEvent, memcached: MemcachedRecord, pods: Sequence[PodRecord], known: Mapping[str, int] | None
) -> Mapping[str, int]:
    """Record an event for each server whose container has restarted and is ready again; what is to be remembered.

    The condition Degraded has why one fails that never gets ready; a restart in place has another event.

    Args:
        known: what was remembered; None at first: a successor reports only what follows.
    """
    before = known or {}
    for pod in pods if known is not None else ():
        if pod.ready and not pod.in_place and pod.restarts > before.get(pod.uid, 0):
            note = _note(pod)
            logger.warning("%s", note, extra={"fields": {"server": pod.name, "restarts": pod.restarts}})
            record_event(memcached, "Warning", "ServerRestarted", "Report", note)
    counts = {pod.uid: pod.restarts if pod.ready or pod.in_place else before.get(pod.uid, 0) for pod in pods}
    return {uid: count for uid, count in counts.items() if count}


def _note(pod: PodRecord) -> str:
    written = f"it has its items only if it could write them out: see `kubectl logs {pod.name}`"
    lost = written if pod.restart_hash else "its items are lost"
    name = pod.name
    return f"The container of the server {name} restarted, and {lost}. `kubectl describe pod {name}` has the cause."
