"""Has servers come to another image in their pods, one step at a time; which step is next says `in_place`.

It takes one more permission, to patch pods. Without it servers are replaced, and a condition says why.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from memcached_operator.api.status import Problem, Reason
from memcached_operator.memcached.desired.workload_types import WorkloadManifest
from memcached_operator.memcached.events import RecordEvent
from memcached_operator.memcached.observed.caches import PODS
from memcached_operator.memcached.observed.memcacheds import MemcachedRecord
from memcached_operator.memcached.observed.pods import PodRecord
from memcached_operator.memcached.observed.workloads import WorkloadRecord
from memcached_operator.memcached.refusal_reasons import refusal_reason
from memcached_operator.memcached.rollout import in_place
from memcached_operator.memcached.rollout.decision import MarkUpdated, RestartInPlace, Rollout
from memcached_operator.memcached.rollout.live_memory import NO_RIGHT
from memcached_operator.memcached.rollout.outcome import Outcome
from memcached_operator.memcached.server_stats.stats_cache import StatsCache
from operator_runtime import Client, Conflict, Forbidden, Invalid, KeyedStates, NotFound, ServerError

logger = logging.getLogger(__name__)

LOOK_AGAIN_S: Final = 1.0
# So long a server that is ready is given to say how many items it has.
ASK_FOR_S: Final = 10.0


class _Known(dict[str, int]):
    """How many items servers had, by the uids of their pods; and why none can be changed in place.

    Attributes:
        refused: in the API server's words, "" where that is not so.
    """

    refused = ""


class ContainerRestarts:
    """Changes servers of one Memcached at a time in their pods; see `go_on`."""

    def __init__(
        self, client: Client, states: KeyedStates, record_event: RecordEvent, stats_cache: StatsCache | None
    ) -> None:
        """
        Args:
            client: patches pods.
            states: what is known of each Memcached; a successor does not know how many items servers had.
            record_event: records an event.
            stats_cache: what servers say that are asked; None where none is.
        """
        self._client = client
        self._known = states.keyed(_Known)
        self._record_event = record_event
        self._stats_cache = stats_cache

    async def go_on(
        self,
        memcached: MemcachedRecord,
        found: Rollout,
        workload: WorkloadRecord,
        desired: WorkloadManifest,
        now: datetime,
        outcome: Outcome,
    ) -> PodRecord | None:
        """Do what is next; the server that is to be replaced, as it cannot be changed so, None for none."""
        evict = None
        match found.step:
            case MarkUpdated(pod):
                await self._settle(memcached, found, pod, workload, now, outcome)
            case RestartInPlace(pod):
                allowed = await self._change(memcached, found, pod, workload, desired, now, outcome)
                evict = None if allowed else pod
        known = self._known.find(memcached.key)
        if known is not None and not found.stale:
            self._known.drop(memcached.key)
        elif known is not None and known.refused:
            outcome.problems.append(
                Problem(
                    Reason.FORBIDDEN,
                    f"Servers are replaced, and lose their items, as they cannot be changed in place: {known.refused}",
                    blocking=False,
                )
            )
        return evict

    async def _change(
        self,
        memcached: MemcachedRecord,
        found: Rollout,
        pod: PodRecord,
        workload: WorkloadRecord,
        desired: WorkloadManifest,
        now: datetime,
        outcome: Outcome,
    ) -> bool:
        """Have a server's container start again; whether that is allowed."""
        known = self._known.of(memcached.key)
        try:
            body = in_place.change(pod, workload, desired, now.timestamp())
            await self._client.strategic_patch(PODS, pod, body)
        except Forbidden as error:
            if NO_RIGHT in (message := error.message or str(error)):
                known.refused = message
                return False
            self._refused(pod, error, outcome)
        except Invalid as error:
            self._refused(pod, error, outcome)
        except ServerError as error:
            self._failed(pod, error, outcome)
        except (Conflict, NotFound):
            outcome.look_again(LOOK_AGAIN_S)  # it is not as it was
        else:
            known.refused = ""
            if (items := self._items(pod)) is not None:
                known[pod.uid] = items
            left = f", {found.stale - 1} more to follow" if found.stale > 1 else ""
            fields = {"action": "restart", "server": pod.name, "left": found.stale - 1}
            logger.info("restarting the container of %s in place%s", pod.name, left, extra={"fields": fields})
            note = f"Restarting the container of the server {pod.name} in place with the current template{left}"
            self._record_event(memcached, "Normal", "Restarting", "Restart", note)
            outcome.look_again(in_place.LATE_AFTER_S)
        return True

    async def _settle(
        self,
        memcached: MemcachedRecord,
        found: Rollout,
        pod: PodRecord,
        workload: WorkloadRecord,
        now: datetime,
        outcome: Outcome,
    ) -> None:
        """Have a server that came back counted as one of the present template."""
        known = self._known.of(memcached.key)
        had, has = known.get(pod.uid), self._items(pod)
        if had is not None and has is None and now.timestamp() < pod.since_s + ASK_FOR_S:
            outcome.look_again(LOOK_AGAIN_S)
            return
        try:
            await self._client.patch(PODS, pod, in_place.settlement(pod, workload))
        except (Forbidden, Invalid) as error:
            self._refused(pod, error, outcome)
        except ServerError as error:
            self._failed(pod, error, outcome)
        except (Conflict, NotFound):
            outcome.look_again(LOOK_AGAIN_S)
        else:
            outcome.look_again(LOOK_AGAIN_S)  # for the next one: the operator's own write wakes no key
            known.pop(pod.uid, None)
            counted = f" with {has} of {had} items" if had is not None and has is not None else ""
            fields = {"action": "restarted", "server": pod.name, "left": found.stale - 1, "items": has, "before": had}
            logger.info("%s is back in its pod%s", pod.name, counted, extra={"fields": fields})
            lost = bool(had) and has == 0
            why = f"; the log of its container says why: kubectl logs {pod.name}" if lost else ""
            note = f"The server {pod.name} is back in its pod{counted}{why}"
            self._record_event(memcached, "Warning" if lost else "Normal", "Restarted", "Restart", note)

    def _items(self, pod: PodRecord) -> int | None:
        """How many items a server said that it has since its container was started, None where it did not."""
        server = self._stats_cache.of(pod) if self._stats_cache is not None else None
        answer = server.answer if server is not None else None
        items = answer.number("curr_items") if answer is not None else None
        return int(items) if items is not None and items == items else None  # NaN is not itself

    def _refused(self, pod: PodRecord, error: Forbidden | Invalid, outcome: Outcome) -> None:
        message = f"{pod.name} cannot be changed in place: {error.message or error}"
        outcome.problems.append(Problem(refusal_reason(message), message, blocking=False))

    def _failed(self, pod: PodRecord, error: ServerError, outcome: Outcome) -> None:
        outcome.waiting.append(f"{pod.name} cannot be changed in place: {error.message or error}")
        outcome.failure = error
