"""The workloads of one Memcached and their servers: kept as desired, given other memory, replaced one at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from memcached_operator.api.names import InvalidSpec, Workload
from memcached_operator.api.status import Problem, Reason, Status, decode_status
from memcached_operator.memcached.desired.applied_options import mark
from memcached_operator.memcached.desired.pod_template import noted
from memcached_operator.memcached.desired.workload import CODEC
from memcached_operator.memcached.desired.workload_types import WorkloadManifest
from memcached_operator.memcached.events import RecordEvent
from memcached_operator.memcached.labels import APPLIED_OPTIONS_ANNOTATION
from memcached_operator.memcached.observed.caches import PODS, Caches
from memcached_operator.memcached.observed.memcacheds import MemcachedRecord
from memcached_operator.memcached.observed.pod_status import AUTHORITY_REMOVED
from memcached_operator.memcached.observed.pod_termination import overdue
from memcached_operator.memcached.observed.pods import PodRecord
from memcached_operator.memcached.observed.workloads import WorkloadRecord
from memcached_operator.memcached.plan import OTHER, Plan
from memcached_operator.memcached.refusal_reasons import refusal_reason
from memcached_operator.memcached.rollout.container_restarts import ContainerRestarts
from memcached_operator.memcached.rollout.decision import Evict, Stuck, rollout
from memcached_operator.memcached.rollout.live_memory import NOTHING, LiveMemory, Resizing
from memcached_operator.memcached.rollout.messages import announced
from memcached_operator.memcached.rollout.missing_pods import MissingPods
from memcached_operator.memcached.rollout.outcome import Outcome
from memcached_operator.memcached.rollout.rollout_lock import RolloutLock
from memcached_operator.memcached.rollout.rollout_state import RolloutState
from memcached_operator.memcached.server_stats.stats_cache import StatsCache
from memcached_operator.memcached.spec import Spec, read_spec
from operator_runtime import Client, Forbidden, Keeper, KeyedStates, ObjectKey, ServerError, TooManyRequests

logger = logging.getLogger(__name__)

# No event says that a disruption budget allows an eviction again.
BUDGET_RETRY_S: Final = 10.0

# What is told of a server that is replaced for the sake of a Secret.
_RENEWED: Final = "with the renewed certificate"
_DISTRUSTING: Final = "that trusts no CA but those in ca.crt"

Keepers = Mapping[Workload, Keeper[MemcachedRecord, Any, WorkloadRecord]]
Desired = Callable[[Workload, MemcachedRecord, int, Spec, bool, str], WorkloadManifest]
"""The workload of a kind that a Memcached wants, with so many pods, whether it is paused, and what asks for a restart
of each server."""


class _Change(NamedTuple):
    """In what the pods of a live workload are to be made otherwise.

    Attributes:
        rolls: in something that only a new pod takes on.
        memory: in memory, which a running server can be given, too.
    """

    rolls: bool = False
    memory: bool = False


class WorkloadRollout:
    """Keeps the workloads of one Memcached at a time, and the servers that they run; see `keep`."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        keepers: Keepers,
        desired: Desired,
        memory: LiveMemory,
        states: KeyedStates,
        record_event: RecordEvent,
        wake: Callable[[ObjectKey], None],
        stats_cache: StatsCache | None = None,
    ) -> None:
        """
        Args:
            client: evicts, and reads what no cache has.
            caches: of all kinds.
            keepers: of the workloads.
            desired: makes what is to be kept.
            memory: gives servers other memory while they run.
            states: what is known of each Memcached; a successor says once more what a change costs, and gives
                missing servers their time anew.
            record_event: records an event.
            wake: has another Memcached looked at.
            stats_cache: what servers say and show that are asked; None where none is.
        """
        self._stats_cache = stats_cache
        self._client = client
        self._caches = caches
        self._keepers = keepers
        self._desired = desired
        self._memory = memory
        self._announced = states.keyed(_nothing)
        self._missing = MissingPods(client, states)
        self._restarts = ContainerRestarts(client, states, record_event, stats_cache)
        self._record_event = record_event
        self._rollout_lock = RolloutLock(self._underway, wake)

    async def keep(
        self,
        memcached: MemcachedRecord,
        spec: Spec,
        plan: Plan,
        last: Status,
        pods: Sequence[PodRecord],
        now: datetime,
        outcome: Outcome,
    ) -> None:
        """Make, put right and remove workloads as the plan says, and take the next step of a rollout.

        Args:
            pods: all of its workloads', also those that are ending.
            now: the time, with its zone.
            outcome: gets the result.

        Raises:
            KubeError: the API server could not be reached, or the caches are behind it; to be tried again.
        """
        key, owned = memcached.key, self._caches.workloads_of(memcached)
        pods, ending = [pod for pod in pods if pod.active], [pod for pod in pods if not pod.active]
        resizing, target = NOTHING, None
        for kind, replicas in plan.replicas.items():
            live = owned.get(kind)
            newer = last.observedGeneration != memcached.generation or kind in outcome.unmet
            paused = spec.rollout.paused and live is not None and live.begun
            # That nothing asks for a restart any more is no reason for one.
            restart = memcached.restart or (live.restart if live is not None else "")
            desired = self._desired(kind, memcached, replicas, spec, paused, restart)
            if live is not None and kind != plan.target and any(_change(desired, live)):
                desired = _with_template_of(live, desired)  # its servers go, and keep their keys until then
            change = _change(desired, live)
            named = newer or (live is not None and restart != live.restart)
            queued = live is not None and change.rolls and not named and not self._may_begin(key, spec)
            if kind == plan.target:
                await self._announce(memcached, spec, desired, live, pods, change, asked=named, queued=queued)
            if live is not None and kind == plan.target == "StatefulSet" and not change.rolls:
                resizing = await self._resize(memcached, spec, live, desired, pods)
                if change.memory and resizing.pending:
                    # Written last: until then a server that is lost comes back as it was.
                    desired = _with_template_of(live, desired)
            if live is not None and queued:
                desired, outcome.queued = _with_template_of(live, desired), True
            made_before = last.observedGeneration is not None and last.workload in (None, kind)
            seen = made_before and (live is not None or kind not in outcome.unmet)
            asked = named or plan.drained or paused or any(change)
            doing = self._keepers[kind].ensure(memcached, desired, seen=seen, desired_changed=asked)
            kept = await outcome.attempt(kind, doing, newer=newer, blocking=kind == plan.target)
            if kind == plan.target:
                target = desired
                held = None if kind in outcome.foreign else self._caches.workloads_of(memcached).get(kind)
                outcome.workload = kept.obj if kept is not None else held
        if plan.removed is not None:
            removal = self._keepers[plan.removed].remove(memcached, key, propagation="Foreground")
            await outcome.attempt(plan.removed, removal)
        _judge_leaving(owned.get(OTHER[plan.target]), ending, now, outcome)
        await self._replace(memcached, spec, target, last, pods, ending, resizing, now, outcome)

    def release(self, key: ObjectKey) -> None:
        """Nothing is done for the Memcached of that key any more: others wait for it no longer."""
        self._rollout_lock.leave(key)

    def _may_begin(self, key: ObjectKey, spec: Spec) -> bool:
        """Whether servers may be replaced now for a change that is the operator's own, as of its default image."""
        if spec.rollout.paused:
            self._rollout_lock.leave(key)
            return False
        held = self._rollout_lock.holder == key
        if not self._rollout_lock.take(key):
            return False
        if not held:
            logger.info(
                "starts to replace servers, as the operator's own defaults have changed; other Memcacheds wait for it"
            )
        return True

    async def _announce(
        self,
        memcached: MemcachedRecord,
        spec: Spec,
        desired: WorkloadManifest,
        live: WorkloadRecord | None,
        pods: Sequence[PodRecord],
        change: _Change,
        *,
        asked: bool,
        queued: bool,
    ) -> None:
        """Say once what a change is about to cost."""
        key, is_ = memcached.key, noted(desired.spec.template)
        if live is None or not any(change):
            self._announced.drop(key)
        elif self._announced.find(key) != is_:
            self._announced.set(key, is_)
            after = self._rollout_lock.holder if queued else None
            servers = _servers_of(live, spec, pods)
            why_not = "" if change.rolls else await self._memory.why_not([each for each in servers if each.ready])
            words = announced(
                spec, desired, live, servers, rolls=change.rolls, why_not=why_not, asked=asked, after=after
            )
            if words.note:
                logger.info("%s", words.line, extra={"fields": words.fields})
                self._record_event(memcached, "Normal", words.reason, words.action, words.note)

    async def _resize(
        self,
        memcached: MemcachedRecord,
        spec: Spec,
        live: WorkloadRecord,
        desired: WorkloadManifest,
        pods: Sequence[PodRecord],
    ) -> Resizing:
        memory = noted(desired.spec.template)[1]
        return await self._memory.resize(memcached, live, memory, _servers_of(live, spec, pods))

    async def _replace(
        self,
        memcached: MemcachedRecord,
        spec: Spec,
        desired: WorkloadManifest | None,
        last: Status,
        pods: Sequence[PodRecord],
        ending: Sequence[PodRecord],
        resizing: Resizing,
        now: datetime,
        outcome: Outcome,
    ) -> None:
        """Replace the server whose turn it is, if there is one."""
        workload = outcome.workload
        absence = await self._missing.look(memcached, spec, workload, pods, ending, now)
        underway = _is_updating(last)
        late = dict.fromkeys(self._stats_cache.late(pods) if self._stats_cache is not None else (), _RENEWED)
        late |= {pod.uid: _DISTRUSTING for pod in pods if pod.outdated.startswith(AUTHORITY_REMOVED)}
        state = None
        if workload is not None:
            state = RolloutState(
                spec,
                workload,
                pods,
                now.timestamp(),
                impossible=resizing.impossible,
                late=late,
                missing_s=absence.seconds,
                missing_reported=absence.cause is not None,
                underway=underway,
            )
        found = rollout(state)
        outcome.rollout = found
        outcome.look_again(resizing.next_s, found.requeue_s, absence.next_s)
        if resizing.pending:
            outcome.waiting.append(_not_resized(resizing))
            outcome.failure = resizing.failure or outcome.failure
        if resizing.refused:
            outcome.problems.append(Problem(refusal_reason(resizing.refused), resizing.refused, blocking=False))
        if isinstance(found.step, Stuck):
            outcome.problems.append(Problem(Reason.ROLLOUT_STUCK, found.step.why, blocking=False))
        if absence.cause is not None:
            outcome.problems.append(absence.cause)
            outcome.absent = absence.cause.message
        blocked = bool(outcome.unwritten) or any(each.blocking for each in outcome.problems)
        ready = sum(each.ready for each in pods if workload is not None and each.workload == workload.kind)
        rolled_out = workload is not None and workload.settled and workload.rolled_out
        done = rolled_out and not found.stale and ready >= spec.size
        needs_turn = outcome.queued or (self._rollout_lock.holder == memcached.key and not done)
        if blocked or spec.rollout.paused or not needs_turn:
            self._rollout_lock.leave(memcached.key)
        if workload is None or desired is None or blocked or _has_foreign_template(workload, desired):
            return
        unchanged = await self._restarts.go_on(memcached, found, workload, desired, now, outcome)
        evict = found.step.pod if isinstance(found.step, Evict) else unchanged
        if evict is not None:
            what = late.get(evict.uid, "with the current template")
            await self._evict(memcached, evict, found.stale, what, outcome)

    async def _evict(self, memcached: MemcachedRecord, pod: PodRecord, stale: int, what: str, outcome: Outcome) -> None:
        try:
            await self._client.evict(PODS, pod)
        except TooManyRequests as error:
            outcome.waiting.append(f"{pod.name} cannot be replaced yet: {error.message or error}")
            outcome.look_again(BUDGET_RETRY_S)
            return
        except ServerError as error:
            # As where two disruption budgets select one pod.
            outcome.waiting.append(f"{pod.name} cannot be replaced: {error.message or error}")
            outcome.failure = error
            return
        except Forbidden as error:
            message = f"{pod.name} cannot be replaced: {error.message or error}"
            outcome.problems.append(Problem(refusal_reason(message), message, blocking=False))
            return
        left = f", {stale - 1} more to follow" if stale > 1 else ""
        fields = {"action": "evict", "server": pod.name, "left": stale - 1}
        logger.info("replacing the server %s%s", pod.name, left, extra={"fields": fields})
        note = f"Replacing the server {pod.name} by one {what}{left}"
        self._record_event(memcached, "Normal", "Replacing", "Evict", note)

    def _underway(self) -> ObjectKey | None:
        """A Memcached whose servers are being replaced, for the operator's own sake as far as one can tell."""
        for each in self._caches.memcacheds.values():
            if each.deleting or b'"Updating"' not in (status_json := each.status):
                continue
            status = decode_status(status_json)
            degraded = status.condition("Degraded")
            stuck = degraded is not None and degraded.reason == Reason.ROLLOUT_STUCK
            # An image of the user's own that does not start must not hold up the others.
            if _is_updating(status) and not (stuck and _has_own_image(each)):
                return each.key
        return None


def _judge_leaving(other: WorkloadRecord | None, ending: Sequence[PodRecord], now: datetime, outcome: Outcome) -> None:
    """Report pods that do not end, and so keep the workload that the servers have moved from."""
    if other is None or not other.deleting:
        return
    late, next_s = overdue([pod for pod in ending if pod.workload == other.kind], now.timestamp())
    if late:
        outcome.problems.append(Problem(Reason.TERMINATION_STALLED, late, blocking=False))
    outcome.look_again(next_s)


def _has_own_image(memcached: MemcachedRecord) -> bool:
    try:
        return read_spec(memcached.spec).image is not None
    except InvalidSpec:
        return True


def _servers_of(workload: WorkloadRecord, spec: Spec, pods: Sequence[PodRecord]) -> Sequence[PodRecord]:
    """The pods of a workload that are to stay."""
    return [each for each in pods if each.workload == workload.kind and each.ordinal < spec.size]


def _is_updating(status: Status) -> bool:
    progressing = status.condition("Progressing")
    return progressing is not None and progressing.reason == Reason.UPDATING


def _not_resized(resizing: Resizing) -> str:
    why = str(resizing.failure.message or resizing.failure) if resizing.failure else ""
    name = min((each for each, waits in resizing.pending.items() if waits), default="")
    if name and not why:
        why = f"{name}: {resizing.pending[name]}"
    return f"{len(resizing.pending)} servers do not have their new memory yet{f': {why}' if why else '.'}"


def _nothing() -> tuple[str, str]:
    return "", ""


def _change(desired: WorkloadManifest, live: WorkloadRecord | None) -> _Change:
    if live is None:
        return _Change()
    rolls, memory = noted(desired.spec.template)
    other = memory != live.memory
    return _Change(rolls != live.rolls or (other and live.kind == "Deployment"), other)


def _has_foreign_template(workload: WorkloadRecord, desired: WorkloadManifest) -> bool:
    """Whether new pods would be made of what another client wrote there, which is put right as soon as it may be."""
    return any(each.path.startswith("spec.template") for each in CODEC.differ(desired, workload))


def _with_template_of(live: WorkloadRecord, desired: WorkloadManifest) -> WorkloadManifest:
    """What is desired, with the pods left as they are made now."""
    held, meta = CODEC.held(live), desired.metadata
    annotations = {name: text for name, text in (meta.annotations or {}).items() if name != APPLIED_OPTIONS_ANNOTATION}
    if taken := mark(held):
        annotations[APPLIED_OPTIONS_ANNOTATION] = taken
    return msgspec.structs.replace(
        desired,
        metadata=msgspec.structs.replace(meta, annotations=annotations),
        spec=msgspec.structs.replace(desired.spec, template=held.spec.template),
        passed=held.passed,
    )
