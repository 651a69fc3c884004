"""Hand-overs of one Memcached at a time: its servers are queried, the next step is decided, and taken; see `steps`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from memcached_operator.api.status import HandoverStatus, HandoverStep, Problem
from memcached_operator.core.access import Access
from memcached_operator.core.objects.holder import Moving
from memcached_operator.core.objects.labels import OUTDATED_ITEMS_ANNOTATION, PEERS_ANNOTATION
from memcached_operator.core.observed.caches import PODS
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import NO_ORDINAL, PodRecord
from memcached_operator.core.outcome import AT_ONCE, EMPTY, WRITE_REFUSALS, Outcome, refused_write
from memcached_operator.core.plan.plan import FREE, ListPolicy
from memcached_operator.features.handover.handover_memory import HandoverMemory, PurgeRun, ResultCounts, purge_state
from memcached_operator.features.handover.move.move_reconciler import NO_MOVE, MoveReconciler, without_move
from memcached_operator.features.handover.peer_changes import dropped_addresses
from memcached_operator.features.handover.progress_messages import (
    EVENTS,
    NO_HANDOVER_UNDER_WAY,
    RESUMED,
    advice,
    handing_over,
)
from memcached_operator.features.handover.purge import Purged
from memcached_operator.features.handover.server_state import ANSWER_WITHIN_S, HandoverState, PeersPort, Unsupported
from memcached_operator.features.handover.situation import (
    Action,
    Advance,
    EmptyServers,
    GiveUp,
    HandoverInput,
    HandoverServer,
    HandoverWait,
    Nothing,
    Peers,
    Purge,
    Resume,
    SetPeers,
    Situation,
    StatusOrigin,
    former_clients_s,
    peers_of,
    was_applied,
)
from memcached_operator.features.handover.steps import (
    are_servers_kept,
    decide_handover,
    is_list_frozen,
    is_rollout_held,
)
from memcached_operator.servers.server_connection import Failure
from operator_runtime import Condition, ObjectKey

logger = logging.getLogger(__name__)

DELETE_AGAIN_S: Final = 5.0
"""After so long a server that did not delete what it has to is tried again."""
RETRY_REFUSED_S: Final = 30.0
SET_AGAIN_S: Final = 1.0
"""After so long peers are set again of a pod that did not take the annotation, as where a webhook removes it."""


class Progress(NamedTuple):
    """Progress of a Memcached's hand-over.

    Attributes:
        policy: what it requires of the list.
        state: to be written, None for none.
        condition: HandingOver, None where there is none.
        advice: why the list changes without one.
        of_rollout: whether no server is replaced that has keys; and what moves of servers require, None where none is
            desired or under way.
    """

    policy: ListPolicy = FREE
    state: HandoverStatus | None = None
    condition: Condition | None = None
    advice: tuple[Problem, ...] = ()
    outcome: Outcome = EMPTY
    of_rollout: tuple[bool, Moving | None] = (False, None)


NO_HANDOVER: Final = Progress()


class HandoverReconciler:
    """Takes the next step of one Memcached's hand-over at a time; see `advance`."""

    def __init__(self, access: Access, port: PeersPort) -> None:
        self._access = access
        self.known = access.owners.states.keyed(HandoverMemory)
        self._port = port
        self.results = ResultCounts(
            "memcached_operator_handovers_total",
            "Changes of the list of servers that were to take place with a hand-over, by whether they did.",
            *("handed_over", "given_up"),
        )
        self.moves = MoveReconciler(access, port, self._set_peers_of)

    async def advance(self, found: HandoverInput) -> Progress:
        """Take the next step, of the move of a server where one is under way; a hand-over waits for its end."""
        before = found.last.handover
        handover = found.spec.handover if found.spec is not None else None
        is_wanted = handover is not None and handover.moves is not None
        if before is not None:
            is_left = before.step is HandoverStep.COMPLETE and self.moves.is_left(found.memcached)
            is_wanted = is_wanted or before.move is not None or is_left
        move = await self.moves.advance(found) if is_wanted else NO_MOVE
        others = [each for each in found.ending if each.uid not in move.waiting]
        outcome = move.outcome + await self.moves.dismiss(others, found.now) if others else move.outcome
        if move.status is not None:
            state = before and msgspec.structs.replace(before, move=move.status)
            policy = ListPolicy(is_frozen=True, keeps_all=True)
            return Progress(policy, state, NO_HANDOVER_UNDER_WAY, (), outcome, (False, move.moving))
        done = await self._handed_over(found._replace(last=without_move(found.last)) if is_wanted else found)
        return done._replace(outcome=done.outcome + outcome, of_rollout=(done.of_rollout[0], move.moving))

    async def _handed_over(self, found: HandoverInput) -> Progress:
        memcached, desired, last, now = found.memcached, found.desired, found.last, found.now
        if desired.for_s is None and last.handover is None:
            if (former := self.known.pop(memcached.key, None)) is not None:
                former.end()
            return NO_HANDOVER
        known = self.known[memcached.key]
        named = [each for each in found.pods if each.ordinal != NO_ORDINAL]
        if known.size != desired.size or known.waits_since is None:
            known.size, known.waits_since = desired.size, now
        known.waits_since = min(known.waits_since, now)
        is_idle = last.handover is None or last.handover.step is HandoverStep.COMPLETE
        is_changing = not is_idle or desired.listed != frozenset(range(desired.size))
        servers = await self._servers(known, named, is_queried=is_changing)
        purging, unpurged = purge_state(known.purge, last.handover, servers)
        origin = StatusOrigin.OWN if last.handover in known.believed else StatusOrigin.FOREIGN
        origin = origin if known.believed else StatusOrigin.FORMER
        situation = Situation(
            last.handover,
            desired.size,
            desired.listed,
            servers,
            desired.for_s,
            now,
            purging,
            unpurged,
            known.waits_since,
            is_refused=self._access.clock() < known.refused_until_s,
            origin=origin,
        )
        action = decide_handover(situation)
        self._report_step(memcached, known, last.handover)
        outcome = await self._act(memcached, known, last.handover, action, {each.name: each for each in named})
        policy = ListPolicy(is_list_frozen(situation, action), are_servers_kept(situation, action))
        state = action.to if isinstance(action, Advance | Resume | GiveUp) else last.handover
        known.believed = (state,) if origin is StatusOrigin.FOREIGN else (last.handover, state)
        if known.refusal is not None and (left_s := known.refused_until_s - self._access.clock()) > 0.0:
            outcome += Outcome((known.refusal,), requeue_s=left_s)
        advised = advice(situation, state, known.given_up)
        if advised and state is not None and (left_s := former_clients_s(state, now)) > 0.0:
            outcome += Outcome(requeue_s=left_s)
        condition, holds_rollout = handing_over(action, state, situation), is_rollout_held(situation, action)
        return Progress(policy, state, condition, advised, outcome, (holds_rollout, None))

    async def _servers(
        self, known: HandoverMemory, pods: Sequence[PodRecord], *, is_queried: bool
    ) -> tuple[HandoverServer, ...]:
        """Query servers; while the list is as desired, each once for whether it can hand over, or to be emptied."""
        keys = {(pod.uid, pod.restarts) for pod in pods}
        known.unsupported = {key: value for key, value in known.unsupported.items() if key in keys}

        async def server(pod: PodRecord) -> HandoverServer:
            peers, key = peers_of(pod.peers), (pod.uid, pod.restarts)
            is_known = key in known.unsupported and not pod.outdated_items
            queries = pod.ready and pod.address and (is_queried or not is_known)
            answer = await self._port.state_of(pod.address, ANSWER_WITHIN_S) if queries else None
            if isinstance(answer, HandoverState | Unsupported):
                known.unsupported[key] = isinstance(answer, Unsupported)
            elif queries:
                known.unsupported.setdefault(key, False)  # until the list changes
            return HandoverServer(
                pod.name,
                pod.ordinal,
                pod.address,
                pod.since_s if pod.ready else None,
                peers,
                isinstance(answer, HandoverState) and peers is not None and answer.has_confirmed(peers.generation),
                known.unsupported.get(key, False),
                pod.outdated_items,
                known.emptying.has_emptied(pod),
            )

        return tuple(await asyncio.gather(*map(server, pods)))

    async def _act(
        self,
        memcached: MemcachedRecord,
        known: HandoverMemory,
        last: HandoverStatus | None,
        action: Action,
        pods: Mapping[str, PodRecord],
    ) -> Outcome:
        known.emptying.keep(pods.values())
        match action:
            case Nothing():
                return EMPTY
            case HandoverWait(requeue_s=requeue_s):
                return Outcome(requeue_s=requeue_s)
            case SetPeers(changes):
                if last is not None and last.step is HandoverStep.PUBLISHED:
                    known.emptying.forget(dropped_addresses(changes), pods.values())
                outcome = EMPTY
                for change in changes:
                    # The kubelet writes the annotation of the pod into a file.
                    annotations = {PEERS_ANNOTATION: str(change.peers)}
                    if change.outdated:
                        annotations[OUTDATED_ITEMS_ANNOTATION] = "true"
                    outcome += await self._annotate(known, pods[change.server.name], annotations)
                return outcome
            case EmptyServers(servers, is_last):
                outcome = EMPTY
                for server in servers:
                    outcome += await self._empty(memcached.key, known, pods[server.name], is_last=is_last)
                return outcome
            case Purge():
                return self._purge(memcached.key, known, last.startTime if last is not None else "", action)
            case Advance(to, publishes):
                if publishes or to is None:
                    known.given_up = None
                return AT_ONCE
            case Resume(to):
                note = RESUMED[to.step]
                logger.warning("%s", note, extra={"fields": {"action": "handover"}})
                self._access.record_event(memcached, "Warning", "HandoverResumed", "HandOver", note)
                return AT_ONCE
            case GiveUp():
                known.given_up = action
                return AT_ONCE

    async def _set_peers_of(self, key: ObjectKey, pod: PodRecord, peers: Peers) -> Outcome:
        return await self._annotate(self.known[key], pod, {PEERS_ANNOTATION: str(peers)})

    async def _empty(self, key: ObjectKey, known: HandoverMemory, pod: PodRecord, *, is_last: bool) -> Outcome:
        """Have a server lose what others changed while it was away."""
        match known.emptying.result(pod, self._port.empty, lambda: self._access.enqueue(key), is_last=is_last):
            case Purged() if is_last:
                note = f"{pod.name} returned after an outage; its items were deleted"
                logger.info("%s", note, extra={"fields": {"action": "empty"}})
                return await self._annotate(known, pod, {OUTDATED_ITEMS_ANNOTATION: None})
            case Failure() as failure:
                logger.debug("%s could not be emptied: %s", pod.name, failure.why)
                return Outcome(requeue_s=DELETE_AGAIN_S)
            case None | Purged():
                return EMPTY

    async def _annotate(self, known: HandoverMemory, pod: PodRecord, annotations: Mapping[str, str | None]) -> Outcome:
        if self._access.clock() < known.refused_until_s:
            return EMPTY
        metadata = {"resourceVersion": pod.resource_version, "annotations": annotations}
        try:
            patched = await self._access.client.patch(PODS, pod, {"metadata": metadata})
            if not was_applied(patched, annotations):
                return Outcome(requeue_s=SET_AGAIN_S)
        except WRITE_REFUSALS as error:
            what = f"The annotations of {pod.name} for its hand-over cannot be changed"
            outcome = refused_write(self._access.client, PODS, pod, what, error)
            if not outcome.problems:
                return outcome
            known.refused_until_s, known.refusal = self._access.clock() + RETRY_REFUSED_S, outcome.problems[0]
            return EMPTY
        return AT_ONCE

    def _purge(self, key: ObjectKey, known: HandoverMemory, start: str, due: Purge) -> Outcome:
        """Begin to delete what former owners have kept, or again where some server failed to."""
        now_s = self._access.clock()
        if known.purge is None or known.purge.of != start:
            known.purge = PurgeRun(start)
        elif (left_s := known.purge.began_s + DELETE_AGAIN_S - now_s) > 0.0:
            return Outcome(requeue_s=left_s)
        known.purge.begin(due, self._port.purge, now_s, lambda: self._access.enqueue(key))
        return AT_ONCE

    def _report_step(self, memcached: MemcachedRecord, known: HandoverMemory, last: HandoverStatus | None) -> None:
        """Record an event of each step once it stands in the status."""
        step = last.step if last is not None else None
        if step is HandoverStep.PUBLISHED and known.reported not in (None, step):
            self.results["handed_over"] += 1
        elif known.given_up is not None and last == known.given_up.to and known.reported is not step:
            self.results["given_up"] += 1
        if step is not None and known.reported not in (None, step):
            note = EVENTS[step]
            logger.info("%s", note, extra={"fields": {"action": "handover", "step": step}})
            self._access.record_event(memcached, "Normal", "Handover", "HandOver", note)
        known.reported = step
