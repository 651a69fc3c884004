"""The end of a Memcached with our finalizer: its workload is deleted, and it goes when its pods are gone.

What is to be done follows from what there is, never from what was done before. The workload, of which there are two
while servers move from one to the other, is followed by its ownerReference, as the garbage collector does: one that was
orphaned, or that has another owner, is neither deleted nor waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import msgspec

from memcached_operator.api.names import FINALIZER
from memcached_operator.api.status import Problem, Reason, decode_status, first_names
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.access import Access
from memcached_operator.core.objects.owned_object import (
    ORPHAN_FINALIZER,
    foreign_finalizers,
    named_finalizers,
    who_must_remove,
)
from memcached_operator.core.objects.refusal_reasons import refusal_reason
from memcached_operator.core.observed.caches import MEMCACHEDS, WORKLOADS
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import EMPTY, WRITE_REFUSALS, Outcome, refused_write, soonest
from memcached_operator.core.rollout.diagnosis.ended_pods import why_not_ended
from memcached_operator.core.status.debounce import CONFLICT_PAUSE_S
from memcached_operator.core.status.observation import unplanned
from memcached_operator.core.status.status_writer import SLOW_RETRY_S, StatusWriter
from operator_runtime import (
    Conflict,
    Finalizer,
    Forbidden,
    Invalid,
    NotFound,
    Result,
    ServerError,
    Stage,
    StaleCache,
    TooManyRequests,
    Waiting,
)

logger = logging.getLogger(__name__)

# Twice the 30 s that a pod has by default to end; then the kubelet kills it.
STALLED_AFTER_S = 60.0
_ENDED = "They have ended, but are not deleted: check that kube-controller-manager runs."


@dataclass(frozen=True, slots=True)
class ReleaseMemcached:
    """End of the wait, so that the finalizer goes; `why` in words, to follow a colon."""

    why: str


@dataclass(frozen=True, slots=True)
class DeleteWorkload:
    """Deletion of a workload, its pods before it."""

    workload: WorkloadRecord


@dataclass(frozen=True, slots=True)
class DeletionWait(Waiting):
    """Wait for what is terminating.

    Attributes:
        remedy: what a person can do about it once nothing has moved for long.
    """

    remedy: str


Step = ReleaseMemcached | DeleteWorkload | DeletionWait


def next_deletion_step(
    memcached: MemcachedRecord, workloads: Sequence[WorkloadRecord], pods: Sequence[PodRecord]
) -> Step:
    """Choose the next step of the deletion of a Memcached that carries our finalizer."""
    if ORPHAN_FINALIZER in memcached.finalizers:
        return ReleaseMemcached("it was deleted with --cascade=orphan, so its servers stay")
    owned = [each for each in workloads if each.owner_uid == memcached.uid]
    if workloads and not owned:
        # Among them one that was owned and was orphaned: the garbage collector takes its own finalizer off the
        # Memcached as soon as it has done so.
        named = " and ".join(f"the {each.kind} {each.name}" for each in workloads)
        return ReleaseMemcached(f"{named} is not controlled by it, and is left alone")
    for each in owned:
        if not each.deleting:
            return DeleteWorkload(each)
    foreign = {each.kind for each in workloads if each not in owned}
    if left := [pod for pod in pods if pod.workload not in foreign]:
        return _wait_for_pods(owned, left)
    if not owned:
        return ReleaseMemcached("its pods are gone")
    kept = next((each for each in owned if each.finalizers), None)
    if kept is not None:
        return DeletionWait(
            f"Waiting for the {kept.kind} {kept.name}, which has {named_finalizers(kept.finalizers)}, to be deleted.",
            f"The {who_must_remove(kept.finalizers)}.",
        )
    return DeletionWait(
        f"Waiting for the {owned[0].kind} {owned[0].name} to be deleted.",
        "The garbage collector deletes it: check that kube-controller-manager runs.",
    )


def _wait_for_pods(workloads: Sequence[WorkloadRecord], pods: Sequence[PodRecord]) -> DeletionWait:
    counted = "1 pod" if len(pods) == 1 else f"{len(pods)} pods"
    what = f"Waiting for {counted} to end: {_named(pods)}."
    left = [pod for pod in pods if pod.active]
    if left and not workloads:
        return DeletionWait(
            what, f"No controller deletes {_named(left)}: delete them, and their ReplicaSet if they have one."
        )
    if left:
        return DeletionWait(what, "The garbage collector deletes them: check that kube-controller-manager runs.")
    return DeletionWait(what, why_not_ended([pod for pod in pods if pod.termination is not None]) or _ENDED)


def _named(pods: Sequence[PodRecord]) -> str:
    return first_names(sorted(pod.name for pod in pods))


@dataclass(slots=True)
class _Progress:
    """Progress of the deletion of a Memcached.

    Attributes:
        deleted: a workload's deletion was requested, so that one that is missing need not be read.
    """

    step: Step | None = None
    deleted: bool = False
    waits_for: str = ""
    since_s: float = 0.0


class Deletion:
    """Puts the finalizer on one Memcached at a time, and takes it off; see `add_finalizer` and `finalize`."""

    def __init__(
        self,
        access: Access,
        status_writer: StatusWriter,
        follow: Callable[[MemcachedRecord, Spec, Sequence[str]], Awaitable[bool]],
    ) -> None:
        """
        Args:
            follow: has the published list follow the servers; whether that is so.
        """
        self._access = access
        self._status = status_writer
        self._follow = follow
        self.progress = access.owners.states.keyed(_Progress)
        self._finalizer = Finalizer(
            *(FINALIZER, access.client, MEMCACHEDS, self._clean_up),
            add=access.settings.finalizer,
            events=None,
            owners=access.owners,
        )

    async def add_finalizer(self, memcached: MemcachedRecord) -> tuple[MemcachedRecord, Outcome]:
        """Return the Memcached with the finalizer, and what came of that; all else goes on."""
        # What was done for one of the same name that was deleted before is over.
        self.progress.pop(memcached.key, None)
        try:
            _, memcached = await self._finalizer.finalize(memcached)
        except (Conflict, NotFound) as error:
            raise self._stale(memcached, error) from error
        except WRITE_REFUSALS as error:
            what = f"The finalizer {FINALIZER} cannot be added, so deleting the Memcached will not wait for its pods"
            return memcached, refused_write(self._access.client, MEMCACHEDS, memcached, what, error)
        return memcached, EMPTY

    async def finalize(self, memcached: MemcachedRecord) -> Result:
        """Do what the deletion of a Memcached requires, and report what it waits for."""
        key, progress = memcached.key, self.progress[memcached.key]
        try:
            stage, _ = await self._finalizer.finalize(memcached)
        except (Forbidden, Invalid, ServerError, TooManyRequests) as error:
            what = "Its servers cannot be deleted"
            if isinstance(progress.step, DeleteWorkload):
                what = f"The {progress.step.workload.kind} {key.name} cannot be deleted"
            if isinstance(progress.step, ReleaseMemcached):
                what = f"The finalizer {FINALIZER} cannot be removed"
            reason = refusal_reason(error.message) if isinstance(error, Forbidden) else Reason.TERMINATION_STALLED
            result = await self._report(memcached, Problem(reason, f"{what}: {error.message or error}"))
            if isinstance(error, (ServerError, TooManyRequests)):
                raise  # it may pass at any moment: tried again after a growing pause
            return result
        except (Conflict, NotFound) as error:
            raise self._stale(memcached, error) from error
        if stage is Stage.WAITING:
            return await self._report(memcached)
        if stage is Stage.CLEANED and isinstance(progress.step, ReleaseMemcached):
            why = progress.step.why
            logger.info("removed the finalizer: %s", why, extra={"fields": {"action": "release", "why": why}})
            note = f"Removed the finalizer {FINALIZER}: {why}"
            self._access.record_event(memcached, "Normal", "Finalized", "Release", note)
        # Without our finalizer, what becomes of its objects is the garbage collector's, in the mode that the user
        # chose. Until others take theirs off, clients go on to read the status.
        self.progress.pop(key, None)
        if stage is not Stage.CLEANED and (holders := _holders(memcached)):
            return await self._report_status(memcached, None, holders)
        self._status.debounce.forget(key)
        return Result()

    async def _clean_up(self, memcached: MemcachedRecord) -> Waiting | None:
        """Delete the workloads; return what the deletion waits for, None for nothing."""
        key, progress = memcached.key, self.progress[memcached.key]
        workloads, pods = self._access.caches.workloads(key), self._access.caches.pods_of(key)
        progress.step = next_deletion_step(memcached, workloads, pods)
        if isinstance(progress.step, ReleaseMemcached) and not workloads and not progress.deleted:
            # One that another leader made a moment ago may not have been seen yet.
            progress.step = None
            workloads = await self._live_workloads(memcached)
            progress.step = next_deletion_step(memcached, workloads, pods)
        while isinstance(progress.step, DeleteWorkload):
            live = progress.step.workload
            await self._delete(memcached, live)
            progress.deleted = True
            gone = msgspec.structs.replace(live, deleting=True)
            workloads = [gone if each is live else each for each in workloads]
            progress.step = next_deletion_step(memcached, workloads, pods)
        return progress.step if isinstance(progress.step, DeletionWait) else None

    async def _delete(self, memcached: MemcachedRecord, live: WorkloadRecord) -> None:
        """Delete a workload, its pods first. The version guards one that is being orphaned, unseen by the cache."""
        kind, version = WORKLOADS[live.kind], live.resource_version
        try:
            with self._access.owners.trying(memcached, kind, memcached.key, ("delete", live.uid)):
                await self._access.client.delete(kind, live, resource_version=version, propagation="Foreground")
        except Conflict as error:
            self._access.client.outdated(kind, live)
            raise StaleCache(f"the {live.kind} changed: {error}", retry_s=CONFLICT_PAUSE_S) from error
        logger.info("deleted %s, as the Memcached is being deleted", live.kind, extra={"fields": {"action": "delete"}})
        note = f"Deleted {live.kind} {live.name}, as the Memcached is being deleted"
        self._access.record_event(memcached, "Normal", "Deleted", "Delete", note)

    async def _report(self, memcached: MemcachedRecord, problem: Problem | None = None) -> Result:
        """Report in the status what is waited for, and that it takes too long."""
        step = self.progress[memcached.key].step
        terminating, retry_s = "Being deleted; see the condition Degraded.", SLOW_RETRY_S
        if isinstance(step, DeletionWait) and problem is None:
            terminating = step.why
            problem, retry_s = self._judge_wait(memcached, step)
        result = await self._report_status(memcached, problem, terminating)
        return Result(requeue_after_s=soonest(result.requeue_after_s, retry_s))

    async def _report_status(self, memcached: MemcachedRecord, problem: Problem | None, terminating: str) -> Result:
        last, spec = decode_status(memcached.status), memcached.readable_spec
        owned, pods = self._access.caches.workloads_of(memcached), self._access.caches.servers_of(memcached)
        seen = unplanned(memcached, last, owned, pods, problem, spec=spec, terminating=terminating)
        status, result = await self._status.report(memcached, last, seen)
        if spec is None or status.serverList is None or await self._follow(memcached, spec, status.serverList):
            return result
        return Result(requeue_after_s=soonest(result.requeue_after_s, SLOW_RETRY_S))

    def _judge_wait(self, memcached: MemcachedRecord, wait: DeletionWait) -> tuple[Problem | None, float]:
        """Report whether a wait has become a problem, and in how many seconds to reconcile again."""
        progress, now = self.progress[memcached.key], self._access.clock()
        if progress.waits_for != wait.why:
            if not progress.waits_for:
                logger.info("being deleted: %s", wait.why, extra={"fields": {"action": "wait"}})
                self._access.record_event(memcached, "Normal", "Terminating", "Delete", wait.why)
            progress.waits_for, progress.since_s = wait.why, now
        stalled = Problem(
            Reason.TERMINATION_STALLED, f"No progress for {STALLED_AFTER_S:.0f} s: {wait.why} {wait.remedy}"
        )
        left_s = progress.since_s + STALLED_AFTER_S - now
        if left_s <= 0 or _was_reported(memcached, stalled):
            return stalled, SLOW_RETRY_S
        return None, left_s

    async def _live_workloads(self, memcached: MemcachedRecord) -> list[WorkloadRecord]:
        found = []
        for name, kind in WORKLOADS.items():
            try:
                found.append(await self._access.client.get(kind, memcached.key))
            except NotFound:
                pass
            except Forbidden:
                # An operator without the right to a kind has made none of it, unless it had the right before.
                if name in _kinds_of(memcached):
                    raise
        return found

    def _stale(self, memcached: MemcachedRecord, error: Exception) -> StaleCache:
        self._access.client.outdated(MEMCACHEDS, memcached)
        pause_s = CONFLICT_PAUSE_S if isinstance(error, Conflict) else 5.0
        return StaleCache(f"the Memcached changed before it could be written: {error}", retry_s=pause_s)


def _holders(memcached: MemcachedRecord) -> str:
    """Describe what keeps a Memcached without our finalizer, in a sentence; "" for nothing or an orphan."""
    if ORPHAN_FINALIZER in memcached.finalizers:
        return ""
    if foreign := foreign_finalizers(memcached.finalizers, FINALIZER):
        return f"Being deleted; waiting for {named_finalizers(foreign)}."
    return "Being deleted; its objects are deleted first." if memcached.finalizers else ""


def _kinds_of(memcached: MemcachedRecord) -> set[str]:
    """The kinds of workloads that a Memcached specifies, or that its status has; a Deployment it may have had."""
    last = decode_status(memcached.status)
    kinds = {"Deployment", last.workload or "", *(each.workload for each in last.draining or ())}
    spec = memcached.readable_spec
    return kinds | ({spec.workload} if spec is not None else set())


def _was_reported(memcached: MemcachedRecord, problem: Problem) -> bool:
    """Report whether the status has this problem already, as of before a restart."""
    degraded = decode_status(memcached.status).condition("Degraded")
    return degraded is not None and (degraded.reason, degraded.message) == (problem.reason, problem.message)
