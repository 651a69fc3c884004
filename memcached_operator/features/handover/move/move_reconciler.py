"""Moves of one Memcached's servers, one at a time: servers are queried, the next step is decided, and taken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace as with_fields

from memcached_operator.api.status import HandoverMove, HandoverStep, MoveStep, Status
from memcached_operator.api.status_times import parsed_time, status_time
from memcached_operator.api.v1alpha1 import DisruptionBudget, Spec
from memcached_operator.core.access import Access
from memcached_operator.core.objects.holder import Moving, holder_key
from memcached_operator.core.objects.labels import HOLDER_ANNOTATION, PEERS_ANNOTATION
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.outcome import AT_ONCE, EMPTY, Outcome
from memcached_operator.core.rollout.server_states import is_stale
from memcached_operator.features.handover.handover_memory import ResultCounts
from memcached_operator.features.handover.move.holders import Holders
from memcached_operator.features.handover.move.move_memory import MoveMemory
from memcached_operator.features.handover.move.move_messages import UNDER_WAY, moved, not_moved, progress
from memcached_operator.features.handover.move.move_steps import decide_move, dismissed, unserved
from memcached_operator.features.handover.move.situation import (
    HOT_S,
    AbandonMove,
    Await,
    Copied,
    Copy,
    End,
    Ending,
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
from memcached_operator.features.handover.purge import PURGE_WITHIN_S
from memcached_operator.features.handover.server_state import (
    ANSWER_WITHIN_S,
    DONE,
    HandoverState,
    PeersPort,
    Unsupported,
)
from memcached_operator.features.handover.situation import (
    MARKER_TTL_S,
    DesiredList,
    HandoverInput,
    Peers,
    former_clients_s,
    former_list_end_of,
    peers_of,
)
from operator_runtime import ObjectKey

logger = logging.getLogger(__name__)

_AGAIN_S: Final = 0.3
"""After so long servers are queried again."""
_DISMISS_AGAIN_S: Final = 1.0
"""After so long a pod that did not hear that it may end is told again, as before its hook began."""
# While a holder has a server's items, no other client is to evict a server.
_NO_DISRUPTIONS: Final = {"disruptionBudget": DisruptionBudget.model_construct(maxUnavailable=0)}


class MoveProgress(NamedTuple):
    """Progress of a Memcached's moves.

    Attributes:
        moving: what they require, None where none is desired or under way.
        waiting: uids of pods that are ending, and may wait until their items have moved.
    """

    moving: Moving | None = None
    status: HandoverMove | None = None
    outcome: Outcome = EMPTY
    waiting: frozenset[str] = frozenset()


NO_MOVE: Final = MoveProgress()


class MoveReconciler:
    """Takes the next step of one Memcached's move at a time; see `advance`."""

    def __init__(
        self,
        access: Access,
        port: PeersPort,
        tell: Callable[[ObjectKey, PodRecord, Peers], Awaitable[Outcome]],
    ) -> None:
        """
        Args:
            tell: gives the pod of a server other peers.
        """
        self._access = access
        self._known = access.owners.states.keyed(MoveMemory)
        self._port = port
        self._tell = tell
        self._holders = Holders(access)
        self.results = ResultCounts(
            "memcached_operator_moves_total",
            "Servers that were to be replaced with their items, by whether these moved.",
            *("moved", "not_moved"),
        )

    def is_left(self, memcached: MemcachedRecord) -> bool:
        """Report whether there is a holder that is not going, as where another client removed the move's status."""
        live = self._holders.live(memcached)
        return live is not None and not live.deleting

    async def dismiss(self, pods: Sequence[PodRecord], now: datetime) -> Outcome:
        """Have those pods end that wait until their items have moved, where these do not."""
        waiting = [each for each in pods if _ending(each, now) is not None and each.address]
        heard = await asyncio.gather(*(self._port.say(each.address, DONE, ANSWER_WITHIN_S) for each in waiting))
        return Outcome(requeue_s=_DISMISS_AGAIN_S) if any(each is not True for each in heard) else EMPTY

    async def advance(self, found: HandoverInput) -> MoveProgress:
        memcached, spec = found.memcached, found.spec
        known = self._known[memcached.key]
        known.collect()
        situation = await self._situation(found, known)
        decision = decide_move(situation)
        if self._is_late(known, decision):
            if decision.late is not None:
                name = next((each.pod.name for each in situation.servers if each.pod.uid == decision.uid), "")
                decision = replace(decision, action=AbandonMove(decision.late, name))
            else:
                known.unconfirmed.add(decision.uid)
        outcome = await self._act(found, known, decision)
        for each in unserved(situation):
            known.given_up[each.pod.uid] = NotMoved.NO_TIME
            self._report_not_moved(memcached, each.pod.name, NotMoved.NO_TIME)
        outcome += await self.dismiss([each.pod for each in dismissed(situation, decision)], found.now)
        known.keep(situation)
        waiting = frozenset(each.pod.uid for each in situation.servers if each.ending is not None)
        status = _status(memcached, decision, found.last, found.now)
        if status is None:
            known.purged.clear()  # the list may change now
            is_off = spec is not None and not spec.moves
            message = ""
            if isinstance(decision.action, Await):
                is_going = decision.action.why is MoveAwaited.HOLDER_GONE
                outcome += Outcome(requeue_s=_AGAIN_S if is_going else decision.action.for_s)
                message = UNDER_WAY[MoveStep.DISCONNECTING if is_going else None].format(decision.name, _pod(memcached))
            if waiting:
                outcome += Outcome(requeue_s=_AGAIN_S)  # it waits as long as it hears of the operator
            moving = None if is_off else Moving({}, frozenset(known.given_up), message)
            return MoveProgress(moving, None, outcome, waiting)
        made_with = {}
        if (born := decision.made_with) is not None:
            peers = Peers(1, (born.pod.address,))
            made_with = {HOLDER_ANNOTATION: born.pod.uid, PEERS_ANNOTATION: str(peers)}
        released = frozenset((decision.uid,) if isinstance(decision.action, Release) else ())
        server = next((each for each in situation.servers if each.pod.name == status.server), None)
        message = progress(status, server, situation.holder, known.carried, known.copied)
        is_held = situation.holder is not None and status.step not in (MoveStep.CLOSING, MoveStep.REPLACING)
        overrides = _NO_DISRUPTIONS if is_held and spec is not None and _has_budget(spec) else {}
        outcome += Outcome(requeue_s=_AGAIN_S)
        return MoveProgress(Moving(made_with, released, message, overrides), status, outcome, waiting)

    async def _situation(self, found: HandoverInput, known: MoveMemory) -> MoveSituation:
        memcached, spec, next_uid = found.memcached, found.spec, found.next_uid
        workload = self._access.caches.workloads_of(memcached).get("StatefulSet")
        holder = self._holders.find(memcached)
        servers = [each for each in found.pods if workload is not None and each.workload == workload.kind]
        staying = [each for each in servers if spec is None or each.ordinal < spec.size]
        uids = {next_uid} if holder is None else {each.uid for each in servers if each.name == holder.name}
        if workload is not None and not workload.deleting:
            waiting = [each for each in found.ending if _may_wait(each, spec, holder, found.now)]
            servers += waiting
            uids |= {each.uid for each in waiting}
        seen = await asyncio.gather(
            *(self._server(known, each, found.now, is_queried=each.uid in uids) for each in servers),
            *([self._server(known, holder.server.pod, found.now)] if holder is not None and holder.server else []),
        )
        if holder is not None and holder.server is not None:
            holder = replace(holder, server=seen.pop())
        there = {each.pod.uid for each in (*seen, *([holder.server] if holder is not None and holder.server else []))}
        # One that took the place of another has nothing yet.
        known.copied = {step: each for step, each in known.copied.items() if each.target in there}
        return MoveSituation(
            None if spec is None else spec.moves and not spec.rollout.paused,
            _begins_in_s(found.desired, found.last, found.now),
            next_uid,
            seen,
            frozenset(each.uid for each in staying if workload is not None and is_stale(each, workload)),
            holder,
            workload.holder if workload is not None else "",
            workload is None or workload.is_observed,
            frozenset(known.purged),
            frozenset(known.given_up),
            frozenset(known.unconfirmed),
            known.copied,
        )

    async def _server(
        self, known: MoveMemory, pod: PodRecord, now: datetime, *, is_queried: bool = True
    ) -> MovingServer:
        peers, now_s, ending = peers_of(pod.peers), self._access.clock(), _ending(pod, now)
        if not is_queried or not pod.address:
            return MovingServer(pod, peers, ending=ending)
        if ending is not None and pod.uid not in known.given_up:
            # What its annotation has, it may not have been told yet; and it waits as long as it hears of the operator.
            await self._port.say(pod.address, pod.peers, ANSWER_WITHIN_S)
        answer = await self._port.state_of(pod.address, ANSWER_WITHIN_S)
        if not isinstance(answer, HandoverState):
            silent_s = now_s - known.silent_since_s.setdefault(pod.uid, now_s)
            return MovingServer(pod, peers, None, silent_s, isinstance(answer, Unsupported), ending)
        known.silent_since_s.pop(pod.uid, None)
        confirmed_s = None
        if peers is not None and answer.has_confirmed(peers.generation):
            confirmed_s = now_s - known.confirmed_s.setdefault((pod.uid, peers.generation), now_s)
        return MovingServer(pod, peers, confirmed_s, ending=ending, items=answer.items)

    def _is_late(self, known: MoveMemory, decision: MoveDecision) -> bool:
        """Report whether the same was to be done or waited for as long as it may take."""
        action = decision.action
        what = (decision.uid, decision.step, type(action), action.why if isinstance(action, Await) else None)
        if known.awaited is None or known.awaited[0] != what:
            known.awaited = (what, self._access.clock())
        return decision.limit_s is not None and self._access.clock() - known.awaited[1] >= decision.limit_s

    async def _act(self, found: HandoverInput, known: MoveMemory, decision: MoveDecision) -> Outcome:
        memcached, last = found.memcached, found.last
        match decision.action:
            case PurgeServer(server):
                if MoveStep.PREPARING not in known.tasks:
                    since_s = former_list_end_of(last.handover).timestamp() if last.handover is not None else 0.0
                    purge = self._port.purge(server.pod.address, since_s, PURGE_WITHIN_S)
                    known.purges = server.pod.uid
                    self._begin(memcached.key, known, MoveStep.PREPARING, purge)
            case Await(MoveAwaited.TEMPLATE) if decision.made_with is None and found.spec is None:
                return await self._holders.forget_in_template(memcached)
            case Await() if decision.holds is not None and found.spec is not None:
                pod = decision.holds.pod
                if not await self._holders.hold(memcached, known, found.spec, pod):
                    known.given_up[pod.uid] = NotMoved.HOLDER_NOT_READY  # nobody is told: no event can be made there
                    return AT_ONCE
            case Tell(server, peers):
                if peers.is_closed:
                    known.copied.pop(MoveStep.CLOSING, None)  # of a former try
                return await self._tell(memcached.key, server.pod, peers)
            case Copy():
                assert decision.step is not None
                self._copy(memcached.key, known, decision.step, decision.action, found.now)
            case AbandonMove(why, name):
                known.end()
                if decision.uid not in known.given_up:
                    known.given_up[decision.uid] = why
                    self._report_not_moved(memcached, name or decision.name, why)
                return AT_ONCE
            case End(has_moved, why):
                if (outcome := await self._holders.let_go(memcached, known)) is not None:
                    return outcome
                if has_moved:
                    since = parsed_time(last.handover.move.startTime) if last.handover and last.handover.move else None
                    seconds = (found.now - since).total_seconds() if since is not None else None
                    self.results["moved"] += 1
                    self._report(memcached, "Normal", "Moved", moved(decision.name, known.copied, seconds))
                elif why is not None:
                    self._report_not_moved(memcached, decision.name, why)
                known.end()
        return EMPTY

    def _copy(self, key: ObjectKey, known: MoveMemory, step: MoveStep, copy: Copy, now: datetime) -> None:
        before = known.copied.get(step, Copied(target=copy.target.pod.uid))
        known.copied[step] = replace(before, is_running=True)
        known.carried = 0

        def carried(items: int) -> None:
            known.carried = items

        used_since_s = now.timestamp() - HOT_S if copy.is_hot else None
        transfer = self._port.transfer(copy.source.pod.address, copy.target.pod.address, used_since_s, carried)
        self._begin(key, known, step, transfer)

    def _report_not_moved(self, memcached: MemcachedRecord, server: str, why: NotMoved) -> None:
        if why is not NotMoved.UNNEEDED:
            self.results["not_moved"] += 1
        type_: Literal["Normal", "Warning"] = "Normal" if why is NotMoved.UNNEEDED else "Warning"
        self._report(memcached, type_, "NotMoved", not_moved(server, why))

    def _report(self, memcached: MemcachedRecord, type_: Literal["Normal", "Warning"], reason: str, note: str) -> None:
        logger.info("%s", note, extra={"fields": {"action": "move"}})
        self._access.record_event(memcached, type_, reason, "Move", note)

    def _begin(self, key: ObjectKey, known: MoveMemory, step: MoveStep, doing: Coroutine[Any, Any, Any]) -> None:
        """Have it done in a task of its own, and the Memcached reconciled at its end."""
        task = known.tasks[step] = asyncio.get_running_loop().create_task(doing)
        task.add_done_callback(lambda ended: None if ended.cancelled() else self._access.enqueue(key))


def _ending(pod: PodRecord, now: datetime) -> Ending | None:
    """The end of a pod that waits until its items have moved, None of one that does not."""
    termination = pod.termination
    if termination is None or not pod.transport.tell_port or (left_s := termination.ends_s - now.timestamp()) <= 0.0:
        return None
    return Ending(left_s, termination.ends_s - termination.since_s)


def _may_wait(pod: PodRecord, spec: Spec | None, holder: Holder | None, now: datetime) -> bool:
    """Report whether the items of a pod that is ending are to move to the one that takes its place."""
    if _ending(pod, now) is None or pod.workload != "StatefulSet" or pod.down:
        return False
    if spec is None:  # what is under way comes to its end
        return holder is not None and holder.uid == pod.uid
    return spec.moves and pod.ordinal < spec.size


def _status(memcached: MemcachedRecord, decision: MoveDecision, last: Status, now: datetime) -> HandoverMove | None:
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
