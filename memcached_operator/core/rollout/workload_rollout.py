"""The workloads of one Memcached and their servers: kept as desired, given other memory, replaced one at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from memcached_operator.api.reading import read_spec
from memcached_operator.api.status import Problem, Reason
from memcached_operator.api.v1alpha1 import Workload
from memcached_operator.core.access import Access
from memcached_operator.core.change_messages import announced
from memcached_operator.core.objects.holder import with_annotations
from memcached_operator.core.objects.labels import HOLDER_ANNOTATION
from memcached_operator.core.objects.pod_template import fingerprint
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import EMPTY, Blocked, Outcome, WorkloadResult, attempt
from memcached_operator.core.plan.plan import OTHER
from memcached_operator.core.rollout.diagnosis.ended_pods import overdue
from memcached_operator.core.rollout.live.live_memory import LiveMemory, Resizes, SetLimit
from memcached_operator.core.rollout.live.resize_state import NOTHING, Resizing
from memcached_operator.core.rollout.next_step import RolloutProgress
from memcached_operator.core.rollout.rollout_lock import RolloutLock
from memcached_operator.core.rollout.server_rollout import ServerRollout
from memcached_operator.core.rollout.workload_decision import (
    Hold,
    Provenance,
    WorkloadChange,
    decide_hold,
    has_foreign_template,
    written_now,
)
from memcached_operator.core.snapshot import Snapshot
from memcached_operator.features.memory_scaling.retaining_condition import refusal, without_replacing, without_step
from operator_runtime import Keeper, ObjectKey

logger = logging.getLogger(__name__)

Keepers = Mapping[Workload, Keeper[MemcachedRecord, Any, WorkloadRecord]]


class _Decided(NamedTuple):
    """Decision on a change of a workload.

    Attributes:
        hold: what of the change is held back.
        resizing: the progress of servers to other memory.
        refused: why not all servers can be given memory that nobody specified; None where they can.
    """

    hold: Hold
    resizing: Resizing = NOTHING
    refused: Blocked | None = None


class WorkloadRollout:
    """Keeps the workloads of one Memcached at a time, and the servers that they run; see `ensure`."""

    def __init__(self, access: Access, keepers: Keepers, set_limit: SetLimit, lock: RolloutLock) -> None:
        self._access = access
        self._keepers = keepers
        self._memory = LiveMemory(access, set_limit)
        self._servers = ServerRollout(access)
        self._lock = lock

    async def ensure(self, snapshot: Snapshot, *, lacks_scripts: bool = False) -> WorkloadResult:
        """Create, repair and remove workloads by the plan, and take the next step of a rollout.

        Args:
            lacks_scripts: pods of another template would not start, so that the live one stays.
        """
        plan, owned = snapshot.plan, self._access.caches.workloads_of(snapshot.memcached)
        target, resizing, outcome = WorkloadResult(), NOTHING, EMPTY
        for kind, replicas in plan.replicas.items():
            change = self._change(snapshot, kind, replicas, owned.get(kind))
            change = replace(change, lacks_scripts=True) if lacks_scripts else change
            decided = await self._decided(snapshot, change)
            result = replace(await self._written(snapshot, kind, change, decided.hold), refused=decided.refused)
            outcome += result.outcome
            if change.is_target:
                target, resizing = result, decided.resizing
        if plan.removed is not None:
            removal = self._keepers[plan.removed].remove(
                snapshot.memcached, snapshot.memcached.key, propagation="Foreground"
            )
            outcome += (await attempt(plan.removed, removal)).outcome
        if (other := owned.get(OTHER[plan.target])) is not None and other.deleting:
            outcome += _leaving(other, snapshot)
        return await self._rolled_out(snapshot, replace(target, outcome=outcome), resizing)

    def _change(self, snapshot: Snapshot, kind: Workload, replicas: int, live: WorkloadRecord | None) -> WorkloadChange:
        """Build the change to make now: the user's specification first, then a step of the memory once all have it.

        Servers that are replaced during a step might find no node for it.
        """
        memcached, spec, plan, last = snapshot.memcached, snapshot.spec, snapshot.plan, snapshot.last
        paused = spec.rollout.paused and live is not None and live.has_revision
        # Without the annotation on the Memcached the live text is kept: its removal restarts no server.
        restart = memcached.restart or (live.restart if live is not None else "")
        moving = snapshot.moving
        is_other_holder = (
            moving is not None and live is not None and live.holder != moving.made_with.get(HOLDER_ANNOTATION, "")
        )
        change = WorkloadChange(
            self._access.workload(kind, memcached, replicas, spec, paused, restart),
            live,
            is_target=kind == plan.target,
            restart=restart,
            is_pending=last.observedGeneration != memcached.generation
            or kind in last.pending_writes_for(memcached.generation),
            planned=plan.drained or paused or is_other_holder,
        )
        if live is None or not change.is_target or spec.memoryScaling is None:
            return change
        specified = without_step(spec, read_spec(memcached.spec).memory, live.memory)
        if specified is spec:
            return change
        first = replace(change, desired=self._access.workload(kind, memcached, replicas, specified, paused, restart))
        is_current = all(each.template_hash == live.template_hash for each in _servers_of(live, snapshot))
        return replace(change, is_step=True) if is_current and not any(first.template) else first

    async def _decided(self, snapshot: Snapshot, change: WorkloadChange) -> _Decided:
        """Decide what is written, after the progress of servers to other memory, which comes first."""
        paused, has_lock = snapshot.spec.rollout.paused, self._has_lock(snapshot, change)
        if not change.is_target or change.lacks_scripts:
            return _Decided(decide_hold(change, has_lock=has_lock, paused=paused, resizing=False))
        if change.template.needs_new_pods and change.provenance is Provenance.SPECIFICATION:
            self._lock.resume(snapshot.memcached.key)
        live, memory = change.live, fingerprint(change.desired.spec.template).memory
        servers = _servers_of(live, snapshot) if live is not None else ()
        if not change.is_step and (any(change.template) or snapshot.remembered.announced is not None):
            await self._announce(snapshot, change, servers, None if has_lock else self._lock.holder)
        resizing = NOTHING
        if live is not None and not change.template.needs_new_pods:
            scales = snapshot.spec.memoryScaling is not None
            resizes = snapshot.remembered.resizes
            differs = live.memory != memory or any(each.memory != memory or each.has_other_limit for each in servers)
            if resizes or differs:
                resizes = snapshot.remembered.resizes = resizes or Resizes()
                resizing = await self._memory.resize(
                    *(snapshot.memcached, live, memory, servers, resizes), scales=scales, replaces=not change.is_step
                )
        holds = bool(resizing.pending)
        if live is not None and change.is_step:
            refused = refusal(resizing, servers, live.memory, memory)
            holds = holds or refused is not None
            hold = decide_hold(change, has_lock=has_lock, paused=paused, resizing=holds)
            return _Decided(hold, without_replacing(resizing), refused)
        if resizing.impossible and not holds:
            change = replace(change, replaces=True)
            has_lock = self._has_lock(snapshot, change)
        hold = decide_hold(change, has_lock=has_lock, paused=paused, resizing=holds)
        # A new server would be made as the template is kept: without that memory.
        return _Decided(hold, resizing if hold is Hold.NONE else resizing._replace(impossible={}))

    async def _announce(
        self, snapshot: Snapshot, change: WorkloadChange, servers: Sequence[PodRecord], after: ObjectKey | None
    ) -> None:
        """Report once what a change of the workload is about to cost.

        Args:
            after: whose servers come first, None for none.
        """
        template, live, remembered = change.template, change.live, snapshot.remembered
        desired = fingerprint(change.desired.spec.template)
        if live is None or not any(template):
            remembered.announced = None
        elif remembered.announced != desired:
            remembered.announced = desired
            why_not = "" if template.needs_new_pods else await self._memory.why_not(servers, remembered.resizes)
            until = f"after the servers of {after}" if after is not None else ""
            words = announced(snapshot.spec, change, live, servers, why_not, until)
            if words.note:
                logger.info("%s", words.line, extra={"fields": words.fields})
                self._access.record_event(snapshot.memcached, "Normal", words.reason, words.action, words.note)

    def _has_lock(self, snapshot: Snapshot, change: WorkloadChange) -> bool:
        """Report whether a change may begin, as it needs no lock or holds it."""
        if not change.needs_lock:
            return True
        snapshot.remembered.in_lock = True
        return self._lock.may_begin(snapshot.memcached.key, paused=snapshot.spec.rollout.paused)

    async def _written(self, snapshot: Snapshot, kind: Workload, change: WorkloadChange, hold: Hold) -> WorkloadResult:
        last, manifest = snapshot.last, written_now(change, hold)
        if kind == "StatefulSet" and snapshot.moving is not None:  # also where its servers leave
            manifest = with_annotations(manifest, snapshot.moving.made_with)
        made_before = last.observedGeneration is not None and last.workload in (None, kind)
        doing = self._keepers[kind].ensure(
            snapshot.memcached,
            manifest,
            seen=made_before
            and (change.live is not None or kind not in last.pending_writes_for(snapshot.memcached.generation)),
            desired_changed=change.provenance is not Provenance.DRIFT,
        )
        done = await attempt(kind, doing, is_pending=change.is_pending, blocking=change.is_target)
        if done.kept is not None:
            workload = done.kept.obj
        elif kind in done.outcome.foreign:
            workload = None
        else:
            workload = self._access.caches.workloads_of(snapshot.memcached).get(kind)
        write_failed, outcome = bool(done.outcome.failures), done.outcome
        if hold is Hold.LACKING and change.is_pending:
            outcome += Outcome(pending_writes=frozenset((kind,)))
        return WorkloadResult(workload, manifest, hold, write_failed, outcome=outcome)

    async def _rolled_out(self, snapshot: Snapshot, target: WorkloadResult, resizing: Resizing) -> WorkloadResult:
        """Take the next step of a rollout, if nothing prevents it."""
        target = await self._servers.observe(snapshot, target, resizing)
        workload, manifest, rollout, outcome = target.workload, target.manifest, target.rollout, target.outcome
        prevented = target.write_failed or target.hold is Hold.LACKING
        blocked = prevented or any(each.blocking for each in outcome.problems)
        if snapshot.remembered.in_lock is not False:
            key, needs_lock = snapshot.memcached.key, target.hold in (Hold.QUEUED, Hold.PAUSED)
            has_begun = self._lock.has_begun(key) and not _is_done(snapshot, workload, rollout)
            snapshot.remembered.in_lock = needs_lock or has_begun
            if not (needs_lock or has_begun):
                self._lock.leave(key)
            elif blocked or snapshot.spec.rollout.paused:
                self._lock.suspend(key)
            elif not self._lock.may_continue(key):
                waits = f"Its servers are replaced after the servers of {self._lock.holder}."
                return replace(target, outcome=outcome + Outcome(waiting=(waits,)))
        if not (blocked or workload is None or manifest is None or has_foreign_template(workload, manifest)):
            outcome += await self._servers.act(snapshot, rollout, workload, manifest)
        return replace(target, outcome=outcome)


def _is_done(snapshot: Snapshot, workload: WorkloadRecord | None, rollout: RolloutProgress) -> bool:
    """Report whether all servers are ready, and of the present template."""
    if workload is None or not (workload.is_observed and workload.rolled_out):
        return False
    ready = sum(each.ready for each in _servers_of(workload, snapshot))
    return not rollout.stale and ready >= snapshot.spec.size


def _leaving(other: WorkloadRecord, snapshot: Snapshot) -> Outcome:
    """Pods that do not end, and so keep the workload that the servers have moved from."""
    late, next_s = overdue([pod for pod in snapshot.inactive if pod.workload == other.kind], snapshot.now.timestamp())
    return Outcome((Problem(Reason.TERMINATION_STALLED, late, blocking=False),) if late else (), requeue_s=next_s)


def _servers_of(workload: WorkloadRecord, snapshot: Snapshot) -> Sequence[PodRecord]:
    """The pods of a workload that are to stay."""
    size = snapshot.spec.size
    return [each for each in snapshot.pods if each.workload == workload.kind and each.ordinal < size]
