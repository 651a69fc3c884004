"""The reconcile of one Memcached: observe, finalize, read the spec, plan, act, report.

Level-triggered: it reads the present state, never the event before it. A reconcile that finds nothing to change sends
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace
from prometheus_client import Metric

from memcached_operator.api.complaints import InvalidSpec
from memcached_operator.api.reading import read_spec
from memcached_operator.api.status import HandoverStep, Problem, Reason, Status, decode_status, joined
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.access import Access
from memcached_operator.core.deletion import Deletion
from memcached_operator.core.ensure import Objects
from memcached_operator.core.metrics import contested_family
from memcached_operator.core.observed.caches import MEMCACHEDS, Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import EMPTY, Outcome, soonest
from memcached_operator.core.plan.plan import Plan, plan as plan_servers
from memcached_operator.core.rollout.container_restarts import report_restarts
from memcached_operator.core.rollout.diagnosis.ended_pods import last_failure
from memcached_operator.core.rollout.diagnosis.mount_failures import MountFailures
from memcached_operator.core.rollout.live.live_memory import SetLimit
from memcached_operator.core.rollout.server_states import ObservedPods, observed_pods
from memcached_operator.core.snapshot import Remembered, Snapshot
from memcached_operator.core.status.debounce import StatusDebounce
from memcached_operator.core.status.observation import observed, unplanned
from memcached_operator.core.status.status_writer import StatusWriter
from memcached_operator.features.handover.handover_reconciler import NO_HANDOVER, HandoverReconciler, Progress
from memcached_operator.features.handover.server_state import PEERS, PeersPort
from memcached_operator.features.handover.situation import HandoverInput, desired_list, unchanged_list
from memcached_operator.features.memory_scaling.effective_memory import with_effective_memory
from memcached_operator.features.memory_scaling.memory_scaler import Scaler
from memcached_operator.servers.stats_cache import StatsCache
from memcached_operator.settings import Settings
from operator_runtime import ObjectKey, Operator, Result

LIST_WRITTEN_S: Final = 0.5
"""After so long a list that was to be published stands in the status."""


class MemcachedReconciler:
    """Makes the cluster fit one Memcached at a time; see `reconcile`."""

    def __init__(
        self,
        operator: Operator,
        caches: Caches,
        settings: Settings,
        *,
        set_limit: SetLimit,
        enqueue: Callable[[ObjectKey], None],
        peers_port: PeersPort = PEERS,
        stats_cache: StatsCache | None = None,
        clock: Callable[[], float] = time.monotonic,
        utc_now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        owners = operator.owners(MEMCACHEDS)
        self._access = access = Access(
            *(settings, operator.own_namespace, operator.client, caches, owners, operator.events),
            *(enqueue, clock, stats_cache),
        )
        self._utc_now = utc_now
        self._remembered = owners.states.keyed(Remembered)
        self._unmounted = MountFailures(access)
        self.debounce = StatusDebounce(settings.status_interval_ms / 1000, clock)
        self._status = StatusWriter(access, self.debounce, utc_now)
        self._objects = Objects(operator, access, set_limit)
        self.scaler = Scaler(caches, owners.states, settings.memory_scaling_window_s, clock)
        self._handovers = HandoverReconciler(access, peers_port)
        self._deletion = Deletion(access, self._status, self._objects.lists.follow)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Bring the objects and the status of one Memcached to what they should be.

        Raises:
            KubeError: the API server could not be reached, or the caches are behind it; to be tried again.
        """
        self.debounce.begin(key)
        memcached = self._access.caches.memcacheds.get(key)  # observe
        if memcached is None or memcached.deleting:  # finalize
            return await self._ended(key, memcached)
        memcached, prepared = await self._prepared(memcached)
        last, now = decode_status(memcached.status), self._utc_now()
        owned, known = self._access.caches.workloads_of(memcached), self._remembered[key]
        seen = await self._observe_pods(memcached, known, now)
        try:
            spec = _spec_in_force(memcached, last, owned)  # read the spec
        except InvalidSpec as error:
            self._objects.lock.leave(key)
            return await self._report_unreadable(memcached, last, owned, seen, now, error)
        handover, plan = await self._planned(memcached, spec, last, owned, seen, now)  # plan
        snapshot = Snapshot(memcached, spec, plan, last, seen.active, seen.inactive, now, known, *handover.of_rollout)
        done = await self._objects.ensure(snapshot)  # act
        outcome = done.outcome + prepared + handover.outcome
        if self._access.owners.contention.is_budget_used(key):
            return Result()
        is_scaled = spec.memoryScaling is not None or key in self.scaler.known
        scaling = self.scaler.decide(key, spec, snapshot.pods, done.workloads) if is_scaled else None
        found = observed(snapshot, replace(done, outcome=outcome), owned, handover, seen, scaling)  # report
        requeue_s = soonest(outcome.requeue_s, plan.next_s, seen.next_s)
        status, result = await self._status.report(memcached, last, found, next_s=requeue_s)
        follows = status.serverList not in (last.serverList, done.published)
        if follows and not await self._objects.publish(snapshot, status):
            result = Result(requeue_after_s=0.0)  # to report what prevented it
        outcome.raise_failure()
        return result

    async def _ended(self, key: ObjectKey, memcached: MemcachedRecord | None) -> Result:
        """End what is being deleted, or is gone: others wait for it no longer, nor do its pods for a move."""
        self._objects.lock.leave(key)
        dismissed = await self._handovers.moves.dismiss(self._access.caches.pods_of(key), self._utc_now())
        if memcached is None:
            self.debounce.forget(key)
            return Result(requeue_after_s=dismissed.requeue_s)
        result = await self._deletion.finalize(memcached)
        return Result(soonest(result.requeue_after_s, dismissed.requeue_s), result.priority, result.requeue)

    async def _prepared(self, memcached: MemcachedRecord) -> tuple[MemcachedRecord, Outcome]:
        """The Memcached with the finalizer and what was left behind for it, and why it has no finalizer."""
        outcome = EMPTY
        if self._access.settings.finalizer or memcached.key in self._deletion.progress:
            memcached, outcome = await self._deletion.add_finalizer(memcached)
        if memcached.restored_from:
            await self._objects.adoption.adopt(memcached)
        return memcached, outcome

    async def _planned(
        self,
        memcached: MemcachedRecord,
        spec: Spec,
        last: Status,
        owned: Mapping[Workload, WorkloadRecord],
        seen: ObservedPods,
        now: datetime,
    ) -> tuple[Progress, Plan]:
        """The next step of a hand-over, taken, and what follows for the servers."""
        progress, is_known = NO_HANDOVER, memcached.key in self._handovers.known
        waits = any(pod.transport.tell_port for pod in seen.inactive)
        if spec.handover is not None or last.handover is not None or is_known or waits:
            next_uid, desired = self._remembered[memcached.key].next_uid, desired_list(spec, last)
            found = HandoverInput(memcached, desired, last, seen.active, seen.inactive, now, spec, next_uid)
            progress = await self._handovers.advance(found)
        plan = plan_servers(memcached.key, spec, last, owned, seen.active, now, progress.policy)
        if spec.handover is not None and plan.servers.listed != last.serverList:
            # What follows is decided once the list stands in the status.
            progress = progress._replace(outcome=progress.outcome + Outcome(requeue_s=LIST_WRITTEN_S))
        return progress, plan

    async def _report_unreadable(
        self,
        memcached: MemcachedRecord,
        last: Status,
        owned: Mapping[Workload, WorkloadRecord],
        seen: ObservedPods,
        now: datetime,
        error: InvalidSpec,
    ) -> Result:
        """Report why the specification cannot be read. A hand-over comes to its end, and nothing else changes.

        While servers have each other as peers, one that is lost makes writes at all others fail.
        """
        before = last.handover
        handover = Progress(state=before)
        is_complete = before is None or (before.step, before.move) == (HandoverStep.COMPLETE, None)
        if not is_complete or any(pod.transport.tell_port for pod in seen.inactive):
            unchanged = unchanged_list(memcached.spec, last)
            found = HandoverInput(memcached, unchanged, last, seen.active, seen.inactive, now)
            handover = await self._handovers.advance(found)
        problems = [Problem(Reason.INVALID_SPEC, str(error)), *handover.outcome.problems]
        report = unplanned(memcached, last, owned, seen.active, joined(problems), progress=handover)
        _, result = await self._status.report(memcached, last, report, next_s=handover.outcome.requeue_s)
        handover.outcome.raise_failure()
        return result

    async def _observe_pods(self, memcached: MemcachedRecord, remembered: Remembered, now: datetime) -> ObservedPods:
        """The pods of a Memcached's workloads: their times as far as they are believed, and why they do not start."""
        pods = self._access.caches.own_pods_of(memcached)
        found = observed_pods(pods, remembered.times, now.timestamp(), self._access.clock())
        remembered.times = found.seen
        if remembered.failure.problem.reason or any(pod.failure.reason for pod in found.pods):
            remembered.failure = last_failure(found.pods, remembered.failure)
            found = found._replace(failure=remembered.failure.problem)
        if remembered.restarts is None or remembered.restarts or any(pod.restarts for pod in found.active):
            known = remembered.restarts
            remembered.restarts = report_restarts(self._access.record_event, memcached, found.active, known)
        waits = any(pod.waits.reason or pod.problem.reason for pod in found.active if not pod.ready)
        if waits or remembered.awaits_mounts:
            remembered.awaits_mounts = waits
            found = await self._unmounted.explained(memcached.key, found, now.timestamp())
        return found

    def families(self) -> Iterator[Metric]:
        yield from self._objects.repairs.families()
        yield from self._handovers.results.families()
        yield from self._handovers.moves.results.families()
        yield contested_family(len(self._access.owners.contention))


def _spec_in_force(memcached: MemcachedRecord, last: Status, workloads: Mapping[Workload, WorkloadRecord]) -> Spec:
    spec, stateful_set = read_spec(memcached.spec), workloads.get("StatefulSet")
    if spec.memoryScaling is None:
        return spec
    return with_effective_memory(spec, last.memory, stateful_set.memory if stateful_set is not None else "")
