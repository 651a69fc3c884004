"""Hand-overs of one Memcached at a time: its servers are asked, the next step is decided, and taken; see `decision`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from memcached_operator.api.status import Handover, HandoverStep, Problem, Reason, Status, first_of
from memcached_operator.memcached.events import RecordEvent
from memcached_operator.memcached.handover.decision import (
    MARKS_LIVE_S,
    Action,
    Advance,
    Awaited,
    Change,
    Empty,
    GivenUp,
    GiveUp,
    Nothing,
    Purge,
    PurgeState,
    Server,
    Situation,
    Tell,
    Wait,
    are_servers_kept,
    decide,
    former_clients_s,
    is_list_held,
    is_rollout_held,
    published_s,
)
from memcached_operator.memcached.handover.peers import peers_of
from memcached_operator.memcached.handover.servers import HandoverState, Purged, Unsupported, purge, state_of
from memcached_operator.memcached.labels import OUTDATED_ITEMS_ANNOTATION, PEERS_ANNOTATION, PEERS_PORT
from memcached_operator.memcached.observed.caches import PODS
from memcached_operator.memcached.observed.memcacheds import MemcachedRecord
from memcached_operator.memcached.observed.pods import NO_ORDINAL, PodRecord
from memcached_operator.memcached.refusal_reasons import refusal_reason
from memcached_operator.memcached.rollout.container_restarts import AT_ONCE
from memcached_operator.memcached.rollout.reconcile_results import Outcome
from memcached_operator.memcached.server_list.published_list import FREE, ListPolicy, listed_ordinals
from memcached_operator.memcached.server_stats.server_connection import Endpoint, ErrorKind, Failure, exchange
from memcached_operator.memcached.spec import Spec
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
    rfc3339,
)

logger = logging.getLogger(__name__)

ANSWER_WITHIN_S: Final = 1.0
PURGE_WITHIN_S: Final = 300.0
"""Of one server: some ten million items."""
PURGE_AGAIN_S: Final = 5.0
"""After so long a server is asked again that did not delete what former owners have kept."""
RETRY_REFUSED_S: Final = 30.0
TELL_AGAIN_S: Final = 1.0
"""After so long a server is told again whose pod did not take the annotation, as where a webhook removes it."""
_REFUSALS: Final = (Conflict, NotFound, Forbidden, Invalid, ServerError, TooManyRequests)

_EVENTS: Final = {
    HandoverStep.PREPARING: "Preparing a hand-over: the list changes once every server has all others as peers",
    HandoverStep.CONNECTING: "Every server hides marks, and gets all others as peers",
    HandoverStep.PUBLISHED: "The list of servers has changed; servers fill themselves from each other",
    HandoverStep.DISCONNECTING: "Clients had their time to follow the list; servers have no peers any more",
    HandoverStep.COMPLETE: "The hand-over is complete",
}


class PeersPort(NamedTuple):
    """What servers are asked and told on the port of peers; each takes the address of a pod.

    Attributes:
        state_of: how far a server is.
        purge: deletes what was not used since a time, in seconds since 1970.
        empty: deletes all items.
    """

    state_of: Callable[[str, float], Awaitable[HandoverState | Unsupported | Failure]]
    purge: Callable[[str, float, float], Awaitable[Purged | Failure]]
    empty: Callable[[str, float], Awaitable[Failure | None]]


def _flushed(received: bytes) -> bool | Failure | None:
    line, whole, _ = received.partition(b"\r\n")
    if not whole:
        return None
    return line == b"OK" or Failure(ErrorKind.REFUSED, "it does not let its items be deleted")


async def _empty(address: str, timeout_s: float) -> Failure | None:
    said, _ = await exchange(Endpoint(address, port=PEERS_PORT), b"flush_all\r\n", _flushed, timeout_s)
    return said if isinstance(said, Failure) else None


PEERS: Final = PeersPort(state_of, purge, _empty)


class Progress(NamedTuple):
    """How far the hand-over of a Memcached is.

    Attributes:
        policy: what it asks of the list.
        state: to be written, None for none.
        message: how far it is, in a sentence; "" while none is under way.
        advice: why the list changes without one.
        holds_rollout: no server is replaced that has keys.
    """

    policy: ListPolicy = FREE
    state: Handover | None = None
    message: str = ""
    advice: tuple[Problem, ...] = ()
    outcome: Outcome = Outcome()
    holds_rollout: bool = False


@dataclass(slots=True)
class _Known:
    """What is known of a Memcached's hand-overs.

    Attributes:
        purge: of the hand-over that began to be prepared at `purge_of`.
        purged: addresses of servers that it was done at.
        purge_again_s: by the clock, before which it does not begin again.
        led_since: this leader's first reconcile of it.
        unsupported: by pod and number of its restarts, whether its server cannot hand over.
        told: the step that was told of last.
        given_up: of the last change, which had no hand-over.
        refusal: of the API server's, to change a pod; until `refused_until_s` (by the clock) none is changed.
    """

    purge: asyncio.Task[None] | None = None
    purged: set[str] = field(default_factory=set)
    purge_of: str = ""
    purge_again_s: float = float("-inf")
    led_since: datetime | None = None
    unsupported: dict[tuple[str, int], bool] = field(default_factory=dict)
    told: HandoverStep | None = None
    given_up: GiveUp | None = None
    refusal: Problem | None = None
    refused_until_s: float = float("-inf")


class Handovers:
    """Takes the next step of one Memcached's hand-over at a time; see `advance`."""

    def __init__(
        self,
        client: Client,
        states: KeyedStates,
        record_event: RecordEvent,
        wake: Callable[[ObjectKey], None],
        port: PeersPort,
        *,
        clock: Callable[[], float],
    ) -> None:
        """
        Args:
            client: patches pods.
            states: what is known of each Memcached; a successor asks servers once more, and purges again.
            record_event: records an event.
            wake: has a Memcached reconciled.
            port: asks servers.
            clock: monotonic seconds.
        """
        self._client = client
        self._known = states.keyed(_Known)
        self._record_event = record_event
        self._wake = wake
        self._port = port
        self._clock = clock

    async def advance(
        self, memcached: MemcachedRecord, spec: Spec, last: Status, pods: Sequence[PodRecord], now: datetime
    ) -> Progress:
        """Take the next step.

        Args:
            last: the status as it was last written.
            pods: the active ones.
            now: the time, with its zone.
        """
        if spec.handover is None and last.handover is None:
            return Progress()
        known = self._known.of(memcached.key)
        named = [each for each in pods if each.ordinal != NO_ORDINAL]
        known.led_since = min(known.led_since or now, now)
        servers = await self._servers(known, named, is_underway=_is_underway(spec, last))
        purge_state, unpurged = _purge_state(known, last.handover, servers)
        situation = Situation(
            last.handover,
            spec.size,
            frozenset(listed_ordinals(last)),
            servers,
            spec.handover.forSeconds if spec.handover is not None else None,
            now,
            purge_state,
            unpurged,
            known.led_since,
            is_refused=self._clock() < known.refused_until_s,
        )
        action = decide(situation)
        self._tell_of_step(memcached, known, last.handover)
        outcome = await self._act(memcached, known, last.handover, action, {each.name: each for each in named})
        policy = ListPolicy(is_list_held(situation, action), are_servers_kept(situation, action))
        state = action.to if isinstance(action, Advance | GiveUp) else last.handover
        if known.refusal is not None and (left_s := known.refused_until_s - self._clock()) > 0.0:
            outcome += Outcome((known.refusal,), requeue_s=left_s)
        advice = _advice(known, situation, state)
        if advice and state is not None and (left_s := former_clients_s(state, now)) > 0.0:
            outcome += Outcome(requeue_s=left_s)
        message, holds_rollout = _message(action, state, situation), is_rollout_held(situation, action)
        return Progress(policy, state, message, advice, outcome, holds_rollout)

    async def _servers(self, known: _Known, pods: Sequence[PodRecord], *, is_underway: bool) -> tuple[Server, ...]:
        """What servers say of themselves; while the list is as desired each is asked once whether it can hand over."""
        keys = {(pod.uid, pod.restarts) for pod in pods}
        known.unsupported = {key: value for key, value in known.unsupported.items() if key in keys}

        async def server(pod: PodRecord) -> Server:
            peers, key = peers_of(pod.peers), (pod.uid, pod.restarts)
            asks = pod.ready and pod.address and (is_underway or key not in known.unsupported)
            said = await self._port.state_of(pod.address, ANSWER_WITHIN_S) if asks else None
            if isinstance(said, HandoverState | Unsupported):
                known.unsupported[key] = isinstance(said, Unsupported)
            elif asks:
                known.unsupported.setdefault(key, False)  # until the list changes
            return Server(
                pod.name,
                pod.ordinal,
                pod.address,
                pod.since_s if pod.ready else None,
                peers,
                isinstance(said, HandoverState) and peers is not None and said.has_confirmed(peers.generation),
                known.unsupported.get(key, False),
                pod.outdated_items,
            )

        return tuple(await asyncio.gather(*map(server, pods)))

    async def _act(
        self,
        memcached: MemcachedRecord,
        known: _Known,
        last: Handover | None,
        action: Action,
        pods: Mapping[str, PodRecord],
    ) -> Outcome:
        match action:
            case Nothing():
                return Outcome()
            case Wait(requeue_s=requeue_s):
                return Outcome(requeue_s=requeue_s)
            case Tell(changes):
                outcome = Outcome()
                for each in changes:
                    outcome += await self._tell(known, each, pods[each.server.name])
                return outcome
            case Empty(servers):
                return await self._empty(known, [pods[each.name] for each in servers])
            case Purge(servers, unused_since_s):
                of = last.startTime if last is not None else ""
                if known.purge_of == of and (left_s := known.purge_again_s - self._clock()) > 0.0:
                    return Outcome(requeue_s=left_s)
                if known.purge_of != of:
                    known.purged = set()
                known.purge_of, known.purge_again_s = of, self._clock() + PURGE_AGAIN_S
                self._purge(memcached.key, known, servers, unused_since_s)
                return AT_ONCE
            case Advance(to, publishes):
                if publishes or to is None:
                    known.given_up = None
                return AT_ONCE
            case GiveUp():
                known.given_up = action
                return AT_ONCE

    async def _tell(self, known: _Known, change: Change, pod: PodRecord) -> Outcome:
        """Have a server read its peers: the kubelet writes the annotation of its pod into a file."""
        if self._clock() < known.refused_until_s:
            return Outcome()
        annotations = {PEERS_ANNOTATION: str(change.peers)}
        if change.outdated:
            annotations[OUTDATED_ITEMS_ANNOTATION] = "true"
        return await self._annotate(known, pod, annotations)

    async def _annotate(self, known: _Known, pod: PodRecord, annotations: Mapping[str, str | None]) -> Outcome:
        metadata = {"resourceVersion": pod.resource_version, "annotations": annotations}
        try:
            patched = await self._client.patch(PODS, pod, {"metadata": metadata})
            if patched.peers != annotations.get(PEERS_ANNOTATION, patched.peers):
                return Outcome(requeue_s=TELL_AGAIN_S)
        except _REFUSALS as error:
            message = f"{pod.name} cannot be given other peers: {error.message or error}"
            match error:
                case Conflict() | NotFound():
                    self._client.outdated(PODS, pod)
                    return AT_ONCE
                case Forbidden() | Invalid():
                    known.refused_until_s = self._clock() + RETRY_REFUSED_S
                    known.refusal = Problem(refusal_reason(message), message, blocking=False)
                    return Outcome()
                case ServerError() | TooManyRequests():
                    return Outcome(waiting=(message,), failures=(error,))
        return AT_ONCE  # the operator's own write enqueues no key

    async def _empty(self, known: _Known, pods: Sequence[PodRecord]) -> Outcome:
        """Have servers lose what others changed while they were away."""
        outcome = Outcome()
        for pod in pods:
            if (failure := await self._port.empty(pod.address, ANSWER_WITHIN_S)) is None:
                logger.info("%s was away, and begins anew", pod.name, extra={"fields": {"action": "empty"}})
                outcome += await self._annotate(known, pod, {OUTDATED_ITEMS_ANNOTATION: None})
            else:
                logger.debug("%s could not be emptied: %s", pod.name, failure.why)
                outcome += Outcome(requeue_s=ANSWER_WITHIN_S)
        return outcome

    def _purge(self, key: ObjectKey, known: _Known, servers: Sequence[Server], unused_since_s: float) -> None:
        """Begin to delete what former owners have kept: of many items it takes longer than a reconcile may."""

        purged = known.purged

        async def purge() -> None:
            doing = (self._port.purge(each.address, unused_since_s, PURGE_WITHIN_S) for each in servers)
            done = await asyncio.gather(*doing, return_exceptions=True)
            deleted = sum(each.deleted for each in done if isinstance(each, Purged))
            logger.info(
                "deleted %d items that only former owners may have", deleted, extra={"fields": {"action": "purge"}}
            )
            answers = zip(servers, done, strict=True)
            purged.update(server.address for server, each in answers if isinstance(each, Purged))

        known.purge = asyncio.get_running_loop().create_task(purge())
        known.purge.add_done_callback(lambda _: self._wake(key))

    def _tell_of_step(self, memcached: MemcachedRecord, known: _Known, last: Handover | None) -> None:
        """Record an event of each step once it stands in the status."""
        step = last.step if last is not None else None
        if step is not None and known.told not in (None, step) and (note := _EVENTS.get(step)) is not None:
            logger.info("%s", note, extra={"fields": {"action": "handover", "step": step}})
            self._record_event(memcached, "Normal", "Handover", "HandOver", note)
        known.told = step


def _is_underway(spec: Spec, last: Status) -> bool:
    """Whether servers are asked each time."""
    is_idle = last.handover is None or last.handover.step is HandoverStep.COMPLETE
    return not is_idle or listed_ordinals(last) != set(range(spec.size))


def _purge_state(known: _Known, last: Handover | None, servers: Sequence[Server]) -> tuple[PurgeState, frozenset[str]]:
    """How far the purge is, and the names of ready servers that it failed at, or that were not ready when it began."""
    if known.purge is None or last is None or known.purge_of != last.startTime:
        return PurgeState.DUE, frozenset()
    if not known.purge.done():
        return PurgeState.RUNNING, frozenset()
    ready = (each for each in servers if each.ready_since_s is not None)
    unpurged = frozenset(each.name for each in ready if each.address not in known.purged)
    return PurgeState.FAILED if unpurged else PurgeState.DONE, unpurged


def _message(action: Action, state: Handover | None, situation: Situation) -> str:
    """How far a hand-over is; it changes with its steps, and with the servers that are not ready."""
    now = situation.now
    if state is None or situation.for_s is None or state.step is HandoverStep.COMPLETE:
        return ""
    match action:
        case Wait(why=Awaited.SERVERS, names=names):
            return f"The list of servers does not change until these are ready: {first_of(names)}."
        case Wait(why=Awaited.FORMER_CLIENTS, requeue_s=left_s) if left_s > MARKS_LIVE_S:
            ends = _clock(now, left_s)
            return f"The list of servers does not change before {ends}, as clients may have the former list until then."
    if state.step is HandoverStep.PUBLISHED:
        return f"Servers fill themselves from each other until {_clock(now, published_s(state, situation.for_s, now))}."
    return _STEPS[state.step]


_STEPS: Final = {
    HandoverStep.PREPARING: "Servers are prepared for a change of the list.",
    HandoverStep.HIDING: "Servers are prepared for a change of the list.",
    HandoverStep.CONNECTING: "The list of servers changes once every server has all others as peers.",
    HandoverStep.DISCONNECTING: "Servers stop filling themselves from each other.",
}


def _advice(known: _Known, situation: Situation, state: Handover | None) -> tuple[Problem, ...]:
    """Why the list changes without a hand-over, or did so lately."""
    if situation.for_s is None:
        return ()
    if names := [each.name for each in situation.servers if each.unsupported]:
        message = (
            f"{first_of(names)} {GivenUp.UNSUPPORTED.value}: the list of servers changes without a hand-over. Set "
            "spec.image to such an image, or omit spec.handover."
        )
        return (Problem(Reason.HANDOVER_UNAVAILABLE, message),)
    if known.given_up is None or state is None or (left_s := former_clients_s(state, situation.now)) <= 0.0:
        return ()
    message = (
        f"The list of servers changed without a hand-over, as {first_of(known.given_up.names)} "
        f"{known.given_up.why.value}. Clients may have the former list until {_clock(situation.now, left_s)}."
    )
    return (Problem(Reason.HANDOVER_UNAVAILABLE, message),)


def _clock(now: datetime, left_s: float) -> str:
    """The time of day after so many seconds, to the nearest second."""
    return rfc3339(now + timedelta(seconds=left_s + 0.5)).partition("T")[2]
