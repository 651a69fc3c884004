"""Moves of one Memcached's servers, one at a time: servers are queried, the next step is decided, and taken."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec.structs import replace as with_fields
from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily

from memcached_operator.api.status import HandoverMove, HandoverStep, MoveStep, Problem, Status
from memcached_operator.api.status_times import parsed_time, status_time
from memcached_operator.api.v1alpha1 import DisruptionBudget, Spec
from memcached_operator.core.events import RecordEvent
from memcached_operator.core.objects.holder import Moving, holder_key, holder_label
from memcached_operator.core.objects.labels import HOLDER_ANNOTATION, PEERS_ANNOTATION
from memcached_operator.core.objects.owned_object import is_owned
from memcached_operator.core.objects.refusal_reasons import refusal_reason
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.caches import STATEFUL_SETS, Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.outcome import EMPTY, Outcome
from memcached_operator.core.rollout.container_restarts import AT_ONCE
from memcached_operator.core.rollout.server_states import is_stale
from memcached_operator.features.handover.desired_list import DesiredList
from memcached_operator.features.handover.move.move_memory import MoveMemory
from memcached_operator.features.handover.move.move_messages import UNDER_WAY, moved, moving, not_moved
from memcached_operator.features.handover.move.move_steps import decide_move
from memcached_operator.features.handover.move.situation import (
    AbandonMove,
    Await,
    Copied,
    Copy,
    End,
    Holder,
    MoveAwaited,
    MoveDecision,
    MoveSituation,
    MovingServer,
    NotMoved,
    PurgeServer,
    Release,
    Tell,
)
from memcached_operator.features.handover.peers import Peers, peers_of
from memcached_operator.features.handover.purge import PURGE_WITHIN_S, Purged
from memcached_operator.features.handover.server_state import HandoverState, Unsupported
from memcached_operator.features.handover.step_times import MARKER_TTL_S, former_clients_s, former_list_end_of
from memcached_operator.features.handover.transfer import Transferred
from memcached_operator.servers.server_connection import Failure
from operator_runtime import (
    Client,
    Conflict,
    Forbidden,
    Invalid,
    KeyedStates,
    NotFound,
    ObjectKey,
    ServerError,
    TooManyRequests,
)

logger = logging.getLogger(__name__)

_ANSWER_WITHIN_S: Final = 1.0
_AGAIN_S: Final = 0.3
"""After so long servers are queried again."""

_HOLD_AGAIN_S: Final = 10.0
"""After so long a holder that the API server refused is tried again."""
# While a holder has a server's items, no other client is to evict a server.
_NO_DISRUPTIONS: Final = {"disruptionBudget": DisruptionBudget.model_construct(maxUnavailable=0)}

_RESULTS: Final = {"moved": "Moved", "not_moved": "NotMoved"}

MakeHolder: TypeAlias = Callable[[MemcachedRecord, Spec, str, Mapping[str, str]], WorkloadManifest]
"""Makes the StatefulSet of a holder, by the text that requested a restart of servers, and annotations of its pod."""
Transfer: TypeAlias = Callable[[str, str], Coroutine[Any, Any, Transferred | Failure]]


class MoveCalls(NamedTuple):
    """Requests and writes of a move; see `PeersPort`.

    Attributes:
        tell: gives the pod of a server other peers.
        holder: makes a holder.
    """

    state_of: Callable[[str, float], Awaitable[HandoverState | Unsupported | Failure]]
    purge: Callable[[str, float, float], Coroutine[Any, Any, Purged | Failure]]
    transfer: Transfer
    tell: Callable[[ObjectKey, PodRecord, Peers], Awaitable[Outcome]]
    holder: MakeHolder


class MoveProgress(NamedTuple):
    """Progress of a Memcached's moves.

    Attributes:
        moving: what they require, None where none is desired or under way.
        status: of the one that is under way, None for none.
    """

    moving: Moving | None = None
    status: HandoverMove | None = None
    outcome: Outcome = EMPTY

    @property
    def is_underway(self) -> bool:
        return self.status is not None


NO_MOVE: Final = MoveProgress()


class MoveReconciler:
    """Takes the next step of one Memcached's move at a time; see `advance`."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        states: KeyedStates,
        record_event: RecordEvent,
        enqueue: Callable[[ObjectKey], None],
        calls: MoveCalls,
        clock: Callable[[], float],
    ) -> None:
        """
        Args:
            client: makes and deletes holders.
            states: what is known of each Memcached.
            clock: monotonic seconds.
        """
        self._client = client
        self._caches = caches
        self._known = states.keyed(MoveMemory)
        self._record_event = record_event
        self._enqueue = enqueue
        self._calls = calls
        self._clock = clock
        self._counts = Counter[str]()

    def families(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "memcached_operator_moves_total",
            "Servers that were to be replaced with their items, by whether these moved.",
            labels=("result",),
        )
        for result, reason in _RESULTS.items():
            family.add_metric((result,), self._counts[reason])
        yield family

    def is_left(self, memcached: MemcachedRecord) -> bool:
        """Report whether there is a holder that is not going, as where another client removed the move's status."""
        holder = self._holder(memcached)
        return holder is not None and not holder.is_deleting

    async def advance(
        self,
        memcached: MemcachedRecord,
        spec: Spec | None,
        next_uid: str | None,
        desired: DesiredList,
        last: Status,
        pods: Sequence[PodRecord],
        now: datetime,
    ) -> MoveProgress:
        """Take the next step.

        Args:
            spec: the specification, None while it cannot be read.
            next_uid: of the pod that the rollout is about to replace; see `MoveSituation`.
            last: the status as it was last written.
            pods: the active ones.
            now: the time, with its zone.
        """
        known = self._known.of(memcached.key)
        known.collect()
        situation = await self._situation(memcached, known, spec, next_uid, desired, last, pods, now)
        decision = decide_move(situation)
        if self._is_late(known, decision):
            if decision.late is not None:
                name = next((each.name for each in pods if each.uid == decision.uid), "")
                decision = replace(decision, action=AbandonMove(decision.late, name))
            else:
                known.unconfirmed.add(decision.uid)
        outcome = await self._act(memcached, known, decision, spec, last, now)
        known.keep(situation)
        status = self._status(memcached, decision, last, now)
        if status is None:
            known.purged.clear()  # the list may change now
            is_off = spec is not None and not spec.moves
            message = ""
            if isinstance(decision.action, Await):
                is_going = decision.action.why is MoveAwaited.HOLDER_GONE
                outcome += Outcome(requeue_s=_AGAIN_S if is_going else decision.action.for_s)
                message = UNDER_WAY[MoveStep.DISCONNECTING if is_going else None].format(decision.name, _pod(memcached))
            return MoveProgress(None if is_off else Moving({}, frozenset(known.given_up), message), None, outcome)
        made_with = {}
        if (born := decision.made_with) is not None:
            peers = Peers(1, (born.pod.address,))
            made_with = {HOLDER_ANNOTATION: born.pod.uid, PEERS_ANNOTATION: str(peers)}
        released = frozenset((decision.uid,) if isinstance(decision.action, Release) else ())
        message = UNDER_WAY[status.step].format(status.server, status.holder)
        is_held = situation.holder is not None and status.step not in (MoveStep.CLOSING, MoveStep.REPLACING)
        overrides = _NO_DISRUPTIONS if is_held and spec is not None and _has_budget(spec) else {}
        outcome += Outcome(requeue_s=_AGAIN_S)
        return MoveProgress(Moving(made_with, released, message, overrides), status, outcome)

    async def _situation(
        self,
        memcached: MemcachedRecord,
        known: MoveMemory,
        spec: Spec | None,
        next_uid: str | None,
        desired: DesiredList,
        last: Status,
        pods: Sequence[PodRecord],
        now: datetime,
    ) -> MoveSituation:
        workload = self._caches.workloads_of(memcached).get("StatefulSet")
        servers = [each for each in pods if workload is not None and each.workload == workload.kind]
        holder = self._holder(memcached)
        staying = [each for each in servers if spec is None or each.ordinal < spec.size]
        uids = {next_uid} if holder is None else {each.uid for each in servers if each.name == holder.name}
        found = await asyncio.gather(
            *(self._server(known, each, is_queried=each.uid in uids) for each in servers),
            *([self._server(known, holder.server.pod)] if holder is not None and holder.server is not None else []),
        )
        if holder is not None and holder.server is not None:
            holder = replace(holder, server=found.pop())
        return MoveSituation(
            None if spec is None else spec.moves and not spec.rollout.paused,
            _begins_in_s(desired, last, now),
            next_uid,
            found,
            frozenset(each.uid for each in staying if workload is not None and is_stale(each, workload)),
            holder,
            workload.holder if workload is not None else "",
            workload is None or workload.is_observed,
            frozenset(known.purged),
            frozenset(known.given_up),
            frozenset(known.unconfirmed),
            known.copied,
        )

    def _holder(self, memcached: MemcachedRecord) -> Holder | None:
        """The holder that there is; its pod only where that was made for the same server."""
        key, labelled = holder_key(memcached.key), memcached.key._replace(name=holder_label(memcached.name))
        live = self._caches.stateful_sets.get(key)
        if live is None or not is_owned(live, memcached.uid):
            return None
        name, _, uid = live.holder.partition(" ")
        own = (each for each in self._caches.pods_of(labelled) if each.active and each.holder == live.holder)
        pod = next(own, None)
        return Holder(name, uid, live.deleting, MovingServer(pod) if pod is not None else None)

    async def _server(self, known: MoveMemory, pod: PodRecord, *, is_queried: bool = True) -> MovingServer:
        peers, now_s = peers_of(pod.peers), self._clock()
        if not is_queried or not pod.address:
            return MovingServer(pod, peers)
        answer = await self._calls.state_of(pod.address, _ANSWER_WITHIN_S)
        answered_s = known.answered_s.setdefault(pod.uid, now_s)
        if isinstance(answer, HandoverState):
            answered_s = known.answered_s[pod.uid] = now_s
        confirmed_s = None
        if isinstance(answer, HandoverState) and peers is not None and answer.has_confirmed(peers.generation):
            confirmed_s = now_s - known.confirmed_s.setdefault((pod.uid, peers.generation), now_s)
        return MovingServer(pod, peers, confirmed_s, now_s - answered_s, isinstance(answer, Unsupported))

    def _is_late(self, known: MoveMemory, decision: MoveDecision) -> bool:
        """Report whether the same was to be done or waited for as long as it may take."""
        action = decision.action
        what = (decision.uid, decision.step, type(action), action.why if isinstance(action, Await) else None)
        if known.awaited is None or known.awaited[0] != what:
            known.awaited = (what, self._clock())
        return decision.limit_s is not None and self._clock() - known.awaited[1] >= decision.limit_s

    async def _act(
        self,
        memcached: MemcachedRecord,
        known: MoveMemory,
        decision: MoveDecision,
        spec: Spec | None,
        last: Status,
        now: datetime,
    ) -> Outcome:
        key = memcached.key
        match decision.action:
            case PurgeServer(server):
                if MoveStep.PREPARING not in known.tasks:
                    since_s = former_list_end_of(last.handover).timestamp() if last.handover is not None else 0.0
                    purge = self._calls.purge(server.pod.address, since_s, PURGE_WITHIN_S)
                    known.purges = server.pod.uid
                    self._begin(key, known, MoveStep.PREPARING, purge)
            case Await() if decision.holds is not None and spec is not None:
                return await self._hold(memcached, known, spec, decision.holds.pod)
            case Tell(server, peers):
                if peers.is_closed:
                    known.copied.pop(MoveStep.CLOSING, None)  # of a former try
                return await self._calls.tell(key, server.pod, peers)
            case Copy(source, target):
                assert decision.step is not None
                before = known.copied.get(decision.step, Copied())
                known.copied[decision.step] = replace(before, is_running=True)
                transfer = self._calls.transfer(source.pod.address, target.pod.address)
                self._begin(key, known, decision.step, transfer)
            case AbandonMove(why, name):
                known.end()
                if decision.uid not in known.given_up:
                    known.given_up[decision.uid] = why
                    type_ = "Normal" if why is NotMoved.UNNEEDED else "Warning"
                    self._report(memcached, type_, "NotMoved", not_moved(name or decision.name, why))
                return AT_ONCE
            case End(has_moved, why):
                if (outcome := await self._let_go(memcached, known)) is not None:
                    return outcome
                if has_moved:
                    since = parsed_time(last.handover.move.startTime) if last.handover and last.handover.move else None
                    seconds = (now - since).total_seconds() if since is not None else None
                    self._report(memcached, "Normal", "Moved", moved(decision.name, known.copied, seconds))
                elif why is not None:
                    self._report(memcached, "Warning", "NotMoved", not_moved(decision.name, why))
                known.end()
        return EMPTY

    def _report(self, memcached: MemcachedRecord, type_: Any, reason: str, note: str) -> None:
        logger.info("%s", note, extra={"fields": {"action": "move"}})
        self._counts[reason] += type_ == "Warning" or reason == "Moved"
        self._record_event(memcached, type_, reason, "Move", note)

    def _begin(self, key: ObjectKey, known: MoveMemory, step: MoveStep, doing: Coroutine[Any, Any, Any]) -> None:
        """Have it done in a task of its own, and the Memcached reconciled at its end."""
        task = known.tasks[step] = asyncio.get_running_loop().create_task(doing)
        task.add_done_callback(lambda ended: None if ended.cancelled() else self._enqueue(key))

    async def _hold(self, memcached: MemcachedRecord, known: MoveMemory, spec: Spec, pod: PodRecord) -> Outcome:
        """Make the holder of a server's items, which is born with the server as its peer."""
        if self._clock() < known.refused_s + _HOLD_AGAIN_S:
            return EMPTY
        known.copied.clear()
        peers = Peers(1, (pod.address,))
        annotations = {HOLDER_ANNOTATION: f"{pod.name} {pod.uid}", PEERS_ANNOTATION: str(peers)}
        workload = self._caches.workloads_of(memcached).get("StatefulSet")
        restart = workload.restart if workload is not None else ""
        made = self._calls.holder(memcached, spec, restart, annotations)
        if pod.uid not in known.reported:
            known.reported.add(pod.uid)
            self._report(memcached, "Normal", "Moving", moving(pod.name))
        try:
            await self._client.create(STATEFUL_SETS, made.body())
        except (Conflict, Forbidden, Invalid, ServerError, TooManyRequests) as error:
            known.refused_s = self._clock()
            logger.warning("no holder of %s can be made: %s", pod.name, error.message or error)
        return EMPTY

    async def _let_go(self, memcached: MemcachedRecord, known: MoveMemory) -> Outcome | None:
        """Delete the holder, with its pod before it; None once that was done."""
        live = self._caches.stateful_sets.get(holder_key(memcached.key))
        if live is None or not is_owned(live, memcached.uid):
            return None
        if known.refusal is not None and self._clock() < known.refused_s + _HOLD_AGAIN_S:
            return Outcome((known.refusal,))
        try:
            await self._client.delete(
                STATEFUL_SETS, live, resource_version=live.resource_version, propagation="Foreground"
            )
        except (Conflict, NotFound):
            self._client.outdated(STATEFUL_SETS, live)
            return AT_ONCE
        except (Forbidden, Invalid) as error:
            message = f"The StatefulSet {live.name} cannot be deleted: {error.message or error}"
            known.refusal = Problem(refusal_reason(error.message), message, blocking=False)
            known.refused_s = self._clock()
            return Outcome((known.refusal,))
        except (ServerError, TooManyRequests) as error:
            return Outcome(failures=(error,))
        return None

    def _status(
        self, memcached: MemcachedRecord, decision: MoveDecision, last: Status, now: datetime
    ) -> HandoverMove | None:
        if decision.step is None:
            return None
        before = last.handover.move if last.handover is not None else None
        name = decision.name or (before.server if before is not None else memcached.name)
        since = before.startTime if before is not None and before.server == name else status_time(now)
        return HandoverMove(name, _pod(memcached), decision.step, since)


def _pod(memcached: MemcachedRecord) -> str:
    """Name of the holder's pod."""
    return f"{holder_key(memcached.key).name}-0"


def _has_budget(spec: Spec) -> bool:
    """Report whether a budget is desired, as by default of more than one server; see `disruption_budget`."""
    return spec.size > 1 if spec.disruptionBudget is None else spec.disruptionBudget.maxUnavailable != "100%"


def _begins_in_s(desired: DesiredList, last: Status, now: datetime) -> float | None:
    """Seconds until a move may begin, None while the list changes, or is about to."""
    handover = last.handover
    if handover is None or handover.step is not HandoverStep.COMPLETE or desired.listed != set(range(desired.size)):
        return None
    return max(0.0, former_clients_s(handover, now) + MARKER_TTL_S)


def without_move(last: Status) -> Status:
    """A status by which no move is under way."""
    if last.handover is None or last.handover.move is None:
        return last
    return with_fields(last, handover=with_fields(last.handover, move=None))
