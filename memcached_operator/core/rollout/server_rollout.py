"""The servers of one Memcached: the next step of their rollout is decided, and taken."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from memcached_operator.api.status import Problem, Reason
from memcached_operator.core.access import Access
from memcached_operator.core.objects.labels import RESTART_ANNOTATION
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.caches import PODS
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pod_status import AUTHORITY_REMOVED
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import EMPTY, Outcome, WorkloadResult, refused_write, soonest
from memcached_operator.core.rollout.container_restarts import ContainerRestarts, Restarts
from memcached_operator.core.rollout.diagnosis.missing_pods import NONE_MISSING, MissingPods
from memcached_operator.core.rollout.live.resize_state import NOTHING, Resizing
from memcached_operator.core.rollout.next_step import (
    Evict,
    MarkUpdated,
    Move,
    RestartInPlace,
    RolloutProgress,
    Stuck,
    rollout,
)
from memcached_operator.core.rollout.server_states import RolloutState, missing_servers
from memcached_operator.core.snapshot import Snapshot
from operator_runtime import Conflict, Forbidden, Invalid, ServerError, TooManyRequests

logger = logging.getLogger(__name__)

# No event reports that a disruption budget allows an eviction again, or that nobody else writes to it.
BUDGET_RETRY_S: Final = 10.0

# The note of the event of a replaced server.
_CURRENT: Final = "with the current template"
_RENEWED: Final = "with the renewed certificate"
_DISTRUSTING: Final = "that trusts no CA but those in ca.crt"

# What the user can do where a resize turned out to have containers start again.
_INSTEAD: Final = (
    f"Restore the previous memory, or change the annotation {RESTART_ANNOTATION} of the Memcached to have its servers "
    "replaced one at a time."
)


class ServerRollout:
    """Brings the servers of one Memcached at a time to its workload's template; see `observe` and `act`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._missing = MissingPods(access)
        self._restarts = ContainerRestarts(access)

    async def observe(self, snapshot: Snapshot, target: WorkloadResult, resizing: Resizing) -> WorkloadResult:
        """Observe the progress of the servers of a workload, and choose the next step."""
        spec, pods, workload = snapshot.spec, snapshot.pods, target.workload
        remembered, absence = snapshot.remembered, NONE_MISSING
        if missing_servers(spec, workload, pods) or remembered.missing_since_s is not None:
            absence = await self._missing.absence(snapshot, workload)
        state, progressing = None, snapshot.last.condition("Progressing")
        if workload is not None:
            state = RolloutState(
                spec,
                workload,
                pods,
                snapshot.now.timestamp(),
                impossible=resizing.impossible,
                outdated_secrets=self._outdated_secrets(pods),
                missing_s=absence.missing_s,
                missing_reported=absence.cause is not None,
                handing_over=snapshot.handing_over,
                moving=snapshot.moving,
                underway=progressing is not None and progressing.reason in (Reason.UPDATING, Reason.MOVING),
            )
        found = rollout(state)
        next_uid = found.step.pod.uid if isinstance(found.step, Evict | Move) else ""
        at_once_s = 0.0 if isinstance(found.step, Move) and next_uid != remembered.next_uid else None
        remembered.next_uid = next_uid
        requeue_s = soonest(resizing.requeue_s, found.requeue_s, absence.requeue_s, at_once_s)
        outcome = target.outcome + (Outcome(requeue_s=requeue_s) if requeue_s is not None else EMPTY)
        if resizing is not NOTHING:
            outcome += _resizing(resizing)
        if isinstance(found.step, Stuck):
            outcome += Outcome(problems=(Problem(Reason.ROLLOUT_STUCK, found.step.why, blocking=False),))
        absent = ""
        if absence.cause is not None:
            absent = absence.cause.message
            outcome += Outcome(problems=(absence.cause,))
        return replace(target, rollout=found, absent=absent, outcome=outcome)

    async def act(
        self, snapshot: Snapshot, found: RolloutProgress, workload: WorkloadRecord, manifest: WorkloadManifest
    ) -> Outcome:
        memcached, remembered = snapshot.memcached, snapshot.remembered
        if not found.stale:
            remembered.in_place = None
            return EMPTY
        if remembered.in_place is None:
            remembered.in_place = Restarts()
        known, stale, now = remembered.in_place, found.stale, snapshot.now
        match found.step:
            case MarkUpdated(pod):
                outcome = await self._restarts.mark_updated(known, memcached, pod, workload, stale, now)
            case RestartInPlace(pod):
                restarted = await self._restarts.restart(known, memcached, pod, workload, manifest, stale, now)
                outcome = restarted or await self._evict(memcached, pod, stale, _CURRENT)
            case Evict(pod):
                what = self._outdated_secrets(snapshot.pods).get(pod.uid, _CURRENT)
                outcome = await self._evict(memcached, pod, stale, what)
            case _:
                outcome = EMPTY
        return self._restarts.report(known, stale) + outcome

    def _outdated_secrets(self, pods: Sequence[PodRecord]) -> dict[str, str]:
        """Words on a new server, by the uids of pods that a Secret's change makes stale."""
        cache = self._access.stats_cache
        renewed = dict.fromkeys(cache.with_outdated_certificate(pods) if cache is not None else (), _RENEWED)
        return renewed | {pod.uid: _DISTRUSTING for pod in pods if pod.outdated.reason == AUTHORITY_REMOVED}

    async def _evict(self, memcached: MemcachedRecord, pod: PodRecord, stale: int, what: str) -> Outcome:
        try:
            await self._access.client.evict(PODS, pod)
        except (TooManyRequests, Conflict) as error:
            message = f"{pod.name} cannot be replaced yet: {error.message or error}"
            return Outcome(waiting=(message,), requeue_s=BUDGET_RETRY_S)
        except (ServerError, Forbidden, Invalid) as error:
            # As where two disruption budgets select one pod; a policy answers with a code that its author chose.
            return refused_write(self._access.client, PODS, pod, f"{pod.name} cannot be replaced", error)
        left = f", {stale - 1} more to follow" if stale > 1 else ""
        fields = {"action": "evict", "server": pod.name, "left": stale - 1}
        logger.info("replacing the server %s%s", pod.name, left, extra={"fields": fields})
        note = f"Replacing the server {pod.name} by one {what}{left}"
        self._access.record_event(memcached, "Normal", "Replacing", "Evict", note)
        return EMPTY


def _resizing(resizing: Resizing) -> Outcome:
    refused = resizing.refused
    if refused is not None and refused.reason is Reason.ROLLOUT_STUCK:
        refused = refused._replace(message=f"{refused.message}. {_INSTEAD}")
    problems = tuple(each for each in (refused, resizing.limited) if each is not None)
    if not resizing.pending:
        return Outcome(problems) if problems else EMPTY
    why = str(resizing.failure.message or resizing.failure) if resizing.failure else ""
    name = min((each for each, waits in resizing.pending.items() if waits), default="")
    if name and not why:
        why = f"{name}: {resizing.pending[name]}"
    message = f"{len(resizing.pending)} servers do not have their new memory yet{f': {why}' if why else '.'}"
    return Outcome(problems, (message,), failures=(resizing.failure,) if resizing.failure else ())
