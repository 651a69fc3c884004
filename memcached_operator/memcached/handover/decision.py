"""Pure: which step is next while the list of servers changes, so that no client misses or reads an older value.

Each step is confirmed by every server before the next:

    Preparing      all servers are ready, and what former owners have kept is deleted
    Hiding         every server hides marks from clients, and asks nobody
    Connecting     every server has all others as peers, old and new; then the list is published
    Published      clients follow the list, for `spec.handover.forSeconds`
    Disconnecting  no server has peers; then servers that left the list are removed

A second change while the list is published goes straight to the union of all. What is decided follows from the status,
the pods and what the servers answer, so that a new leader goes on where the last one was. Nothing waits for ever: where
some server does not confirm a step in its time, the list changes as it does without a hand-over (`GiveUp`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from memcached_operator.api.status import Handover, HandoverStep
from memcached_operator.memcached.handover.peers import Peers, peers_for
from operator_runtime import rfc3339

MARKS_LIVE_S: Final = 3
"""After so long no server has a mark any more; `handover.lua` sets it."""
READY_WITHIN_S: Final = 600
"""As Kubernetes waits by default for the progress of a Deployment."""
CONFIRMED_WITHIN_S: Final = 60
"""A file of a pod's annotations may be late by that: the kubelet looks at each pod once a minute at the latest."""
_ASK_AGAIN_S: Final = 0.5
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CONNECTED: Final = (HandoverStep.CONNECTING, HandoverStep.PUBLISHED)
_UNDERWAY: Final = (HandoverStep.HIDING, *_CONNECTED, HandoverStep.DISCONNECTING)


class PurgeState(Enum):
    """How far the purge of this hand-over is."""

    DUE = "not begun"
    RUNNING = "under way"
    DONE = "done at every server"
    FAILED = "over, and not done at some server"


class GivenUp(Enum):
    """Why the list changes without a hand-over."""

    UNSUPPORTED = "cannot hand over: they need memcached 1.6.45 or newer, with its proxy, in an image that contains sh"
    NOT_READY = "are not ready"
    NOT_CONFIRMED = "did not confirm their peers"
    NOT_PURGED = "did not delete what former owners have kept"
    REFUSED = "could not be given peers, as the API server refused to change the annotations of their pods"


class Awaited(Enum):
    """What a hand-over waits for."""

    FORMER_CLIENTS = "clients of the former list"
    SERVERS = "servers to be ready"
    PURGE = "the purge"
    CONFIRMATIONS = "servers to confirm their peers"
    CLIENTS = "clients to follow the list"


@dataclass(frozen=True, slots=True)
class Server:
    """A server of the StatefulSet that is not being deleted.

    Attributes:
        name: of its pod.
        address: of its pod, "" before it has one.
        ready_since_s: in seconds since 1970, None while it is not ready.
        peers: what its annotation says, None before it says anything.
        confirms: each of its threads has read that.
        unsupported: it answers, and cannot hand over.
        outdated: others may have changed what it has while it was away.
    """

    name: str
    ordinal: int
    address: str
    ready_since_s: int | None
    peers: Peers | None = None
    confirms: bool = False
    unsupported: bool = False
    outdated: bool = False

    @property
    def is_connected(self) -> bool:
        return self.peers is not None and bool(self.peers.addresses)


@dataclass(frozen=True, slots=True)
class Situation:
    """What a decision follows from.

    Attributes:
        last: as the status has it.
        size: how many servers are desired.
        listed: ordinals of those that the status lists.
        for_s: how long clients take to follow a list, None where no hand-over is desired.
        now: the time, with its zone.
        unpurged: names of servers that are ready, and were not purged.
        led_since: the time since which this leader leads, with its zone: before that, nobody may have.
        is_refused: the API server refuses to change pods.
    """

    last: Handover | None
    size: int
    listed: frozenset[int]
    servers: Sequence[Server]
    for_s: int | None
    now: datetime
    purge: PurgeState = PurgeState.DUE
    unpurged: frozenset[str] = frozenset()
    led_since: datetime = _EPOCH
    is_refused: bool = False

    @property
    def is_changing(self) -> bool:
        return self.listed != frozenset(range(self.size))

    @property
    def has_others(self) -> bool:
        """Whether there is a list before and after, with servers to hand over from and to."""
        return bool(self.listed) and self.size > 0

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of desired servers that are not ready."""
        ready = {each.ordinal for each in self.servers if each.ready_since_s is not None and each.address}
        known = {each.ordinal: each.name for each in self.servers}
        return tuple(known.get(each, f"ordinal {each}") for each in range(self.size) if each not in ready)

    @property
    def ready(self) -> Sequence[Server]:
        return [each for each in self.servers if each.ready_since_s is not None and each.address]


@dataclass(frozen=True, slots=True)
class Nothing:
    """No hand-over is under way; the list is as the plan says."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Something else comes first.

    Attributes:
        requeue_s: seconds until it is looked at again.
        names: of servers that are waited for.
    """

    why: Awaited
    requeue_s: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """What the pod of a server is to say.

    Attributes:
        outdated: from now on others change what the server has, without its knowledge.
    """

    server: Server
    peers: Peers
    outdated: bool = False


@dataclass(frozen=True, slots=True)
class Tell:
    """Servers are to be told of other peers."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Empty:
    """These servers are to delete all their items."""

    servers: tuple[Server, ...]


@dataclass(frozen=True, slots=True)
class Purge:
    """These servers are to delete what nobody used since the former list had its last client."""

    servers: tuple[Server, ...]
    unused_since_s: float


@dataclass(frozen=True, slots=True)
class Advance:
    """The next step is to be written; None: there is no hand-over.

    Attributes:
        publishes: the list changes with it.
    """

    to: Handover | None
    publishes: bool = False


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The list changes without a hand-over.

    Attributes:
        names: of the servers that kept it from one.
    """

    to: Handover
    why: GivenUp
    names: tuple[str, ...]


Action: TypeAlias = Nothing | Wait | Tell | Empty | Purge | Advance | GiveUp


def decide(situation: Situation) -> Action:
    """The next thing to be done."""
    last = situation.last
    if situation.for_s is None or last is None:
        return _without(situation)
    if (readable := _bounded(last, situation)) != last:
        return Advance(readable)
    if last.step is not HandoverStep.PUBLISHED and (outdated := _left_outdated(situation, last)):
        return Empty(outdated)
    match last.step:
        case HandoverStep.COMPLETE:
            return _complete(situation, last)
        case HandoverStep.PREPARING:
            return _preparing(situation, last)
        case HandoverStep.HIDING:
            return _hiding(situation, last)
        case HandoverStep.CONNECTING:
            return _connecting(situation, last)
        case HandoverStep.PUBLISHED:
            return _published(situation, last, situation.for_s)
        case HandoverStep.DISCONNECTING:
            return _disconnecting(situation, last)


def is_list_held(situation: Situation, action: Action) -> bool:
    """Whether the published list stays as it is for now."""
    match action:
        case GiveUp() | Advance(publishes=True) | Advance(to=None) | Nothing():
            return False
        case _:
            return situation.last is not None and situation.for_s is not None and situation.has_others


def are_servers_kept(situation: Situation, action: Action) -> bool:
    """Whether servers that left the list stay, however long they have drained."""
    return _is_underway(action.to if isinstance(action, Advance | GiveUp) else situation.last)


def is_rollout_held(situation: Situation, action: Action) -> bool:
    """Whether no server is replaced that has keys: from the purge on, as without that server it would have failed."""
    match action:
        case Purge() | Wait(why=Awaited.PURGE) | Advance(to=Handover(step=HandoverStep.HIDING)):
            return True
        case _:
            return _is_underway(situation.last)


def _is_underway(state: Handover | None) -> bool:
    """Whether servers have others as peers, are about to, or had."""
    return state is not None and state.step in _UNDERWAY


def former_clients_s(state: Handover, now: datetime) -> float:
    """Seconds for which clients may have the list before the present one; 0 or less where none has."""
    return (_time(state.formerListEndTime) - now).total_seconds()


def published_s(state: Handover, for_s: int, now: datetime) -> float:
    """Seconds until clients have had their time to follow a list that was published."""
    return (_time(state.startTime) - now).total_seconds() + for_s + MARKS_LIVE_S


def _without(situation: Situation) -> Action:
    """No hand-over is desired, or the list never had all servers: while it fills for the first time it just grows."""
    last = situation.last
    if last is not None and last.step is HandoverStep.DISCONNECTING:
        return _disconnecting(situation, last)
    if last is not None and _is_underway(last):
        return Advance(_at(HandoverStep.DISCONNECTING, situation, _time(last.formerListEndTime)))
    if not situation.is_refused and (leftover := _disconnect(situation)):
        return Tell(leftover)
    if situation.for_s is None:
        return Advance(None) if last is not None else Nothing()
    if not situation.has_others or situation.is_changing:
        return Nothing()
    return Advance(_at(HandoverStep.COMPLETE, situation, situation.now))


def _complete(situation: Situation, last: Handover) -> Action:
    if situation.is_changing and situation.has_others:
        return Advance(_at(HandoverStep.PREPARING, situation, _time(last.formerListEndTime)))
    if not situation.is_refused and (leftover := _disconnect(situation)):
        return Tell(leftover)
    return Nothing() if situation.has_others else Advance(None)


def _preparing(situation: Situation, last: Handover) -> Action:
    former_end, now = _time(last.formerListEndTime), situation.now
    if not (situation.is_changing and situation.has_others):
        return Advance(_at(HandoverStep.COMPLETE, situation, _former_end(situation, last)))
    if given_up := _impossible(situation):
        return given_up
    if leftover := _disconnect(situation):
        return _in_time(situation, Tell(leftover), [each.server for each in leftover])
    begins = max(former_end, _time(last.startTime)) + timedelta(seconds=MARKS_LIVE_S)
    if now < begins:
        return Wait(Awaited.FORMER_CLIENTS, (begins - now).total_seconds())
    if situation.missing:
        return _await(situation, Awaited.SERVERS, situation.missing)
    match situation.purge:
        case PurgeState.DUE:
            return Purge(tuple(situation.ready), former_end.timestamp())
        case PurgeState.RUNNING:
            return Wait(Awaited.PURGE, _ASK_AGAIN_S)
        case PurgeState.FAILED if failed := tuple(each for each in situation.ready if each.name in situation.unpurged):
            return _in_time(situation, Purge(failed, former_end.timestamp()), failed)
        case PurgeState.DONE | PurgeState.FAILED:
            if changes := _unpurged(situation):
                return _in_time(situation, Tell(changes), [each.server for each in changes])
            return Advance(_at(HandoverStep.HIDING, situation, former_end))


def _hiding(situation: Situation, last: Handover) -> Action:
    if not (situation.is_changing and situation.has_others):
        return Advance(_at(HandoverStep.DISCONNECTING, situation, _former_end(situation, last)))
    if given_up := _impossible(situation):
        return given_up
    changes = tuple(_told(each, ()) for each in situation.ready if each.peers is None or each.is_connected)
    if changes:
        return _in_time(situation, Tell(changes), [each.server for each in changes])
    next_step = _at(HandoverStep.CONNECTING, situation, _time(last.formerListEndTime))
    return _unconfirmed(situation) or Advance(next_step)


def _connecting(situation: Situation, last: Handover) -> Action:
    if not (situation.is_changing and situation.has_others):
        return Advance(_at(HandoverStep.DISCONNECTING, situation, _former_end(situation, last)))
    if given_up := _impossible(situation):
        return given_up
    if changes := tuple(_connect(situation)):
        return _in_time(situation, Tell(changes), [each.server for each in changes])
    published = _at(HandoverStep.PUBLISHED, situation, _time(last.formerListEndTime))
    return _unconfirmed(situation) or Advance(published, publishes=True)


def _published(situation: Situation, last: Handover, for_s: int) -> Action:
    now, left_s = situation.now, published_s(last, for_s, situation.now)
    if not situation.has_others:
        return Advance(_at(HandoverStep.DISCONNECTING, situation, _former_end(situation, last)))
    if left_s <= 0.0:
        return Advance(_at(HandoverStep.DISCONNECTING, situation, now - timedelta(seconds=MARKS_LIVE_S)))
    if changes := tuple(_leaving(situation)) or tuple(_connect(situation, is_published=True)):
        return Tell(changes)
    if outdated := _outdated(situation):
        return Empty(outdated)
    unconfirmed = tuple(each.name for each in situation.ready if not each.confirms)
    if unconfirmed:
        return Wait(Awaited.CONFIRMATIONS, min(_ASK_AGAIN_S, left_s), unconfirmed)
    if situation.is_changing and not situation.missing:
        return Advance(_at(HandoverStep.PUBLISHED, situation, _time(last.formerListEndTime)), publishes=True)
    return Wait(Awaited.SERVERS if situation.is_changing else Awaited.CLIENTS, left_s, situation.missing)


def _disconnecting(situation: Situation, last: Handover) -> Action:
    left_s = (_time(last.startTime) - situation.now).total_seconds() + CONFIRMED_WITHIN_S
    if left_s > 0.0 and (changes := _disconnect(situation)):
        return Tell(changes)
    unconfirmed = tuple(each.name for each in situation.ready if each.peers is not None and not each.confirms)
    if left_s > 0.0 and unconfirmed:
        return Wait(Awaited.CONFIRMATIONS, min(_ASK_AGAIN_S, left_s), unconfirmed)
    return Advance(_at(HandoverStep.COMPLETE, situation, _time(last.formerListEndTime)))


def _former_end(situation: Situation, last: Handover) -> datetime:
    """From when on no client has the list before the present one; where no server is desired, the list ends now."""
    if situation.size == 0 and situation.listed:
        return situation.now + timedelta(seconds=situation.for_s or 0)
    return _time(last.formerListEndTime)


def _members(situation: Situation) -> Sequence[Server]:
    """Servers that others have as peers, or may: each is ready, and hides marks from clients."""

    def is_named(server: Server) -> bool:
        return any(server.address in each.peers.addresses for each in situation.servers if each.peers is not None)

    return [each for each in situation.ready if each.peers is not None and (each.confirms or is_named(each))]


def _leaving(situation: Situation) -> Iterator[Change]:
    """What the pods of servers say that others do not have as a peer from now on.

    It is written before that, so that the next leader knows it, too.
    """
    members = _members(situation)
    for each in situation.servers if members else ():
        if each.peers is not None and not each.outdated and each not in members:
            yield Change(each, each.peers, outdated=True)


def _connect(situation: Situation, *, is_published: bool = False) -> Iterator[Change]:
    """What servers are to be told so that each has all others as peers.

    A server that is away keeps its peers, so that it asks and tells them from its first command on when it is back. For
    the same reason a new one is told of them before it runs. Where all are away, all keep what they have.

    Args:
        is_published: clients may have two lists, so that others do not tell a new server of what they change.
    """
    members = _members(situation)
    addresses = [each.address for each in members]
    for each in situation.servers:
        desired = peers_for(each.address, 1, addresses).addresses
        if each.peers is None:
            yield _told(each, desired if each.ready_since_s is None else (), outdated=is_published)
        elif members and each.peers.addresses != desired and (each.is_connected or each in members):
            yield _told(each, desired)


def _unpurged(situation: Situation) -> tuple[Change, ...]:
    """What pods of servers say that nobody waits for: they were not ready for the purge, and may have old copies."""
    return tuple(
        Change(each, each.peers, outdated=True) if each.peers is not None else _told(each, (), outdated=True)
        for each in situation.servers
        if each.ordinal >= situation.size and each.ready_since_s is None and not each.outdated
    )


def _outdated(situation: Situation) -> tuple[Server, ...]:
    """Servers whose items others have changed, and that all others have as a peer again."""
    members = _members(situation)
    return tuple(
        each
        for each in members
        if each.outdated
        and all(other.confirms and _names(other, each.address) for other in members if other is not each)
    )


def _left_outdated(situation: Situation, last: Handover) -> tuple[Server, ...]:
    """Those that came back after the list was published. While a hand-over is complete, servers are not queried."""
    is_complete = last.step is HandoverStep.COMPLETE
    return tuple(each for each in situation.ready if each.outdated and (each.confirms or is_complete))


def _disconnect(situation: Situation) -> tuple[Change, ...]:
    return tuple(_told(each, ()) for each in situation.servers if each.is_connected)


def _told(server: Server, addresses: tuple[str, ...], *, outdated: bool = False) -> Change:
    generation = server.peers.generation + 1 if server.peers is not None else 1
    return Change(server, Peers(generation, addresses), outdated)


def _names(server: Server, address: str) -> bool:
    return server.peers is not None and address in server.peers.addresses


def _unconfirmed(situation: Situation) -> Action | None:
    """What a step waits for whose servers were all told, None for nothing."""
    if situation.missing:
        return _await(situation, Awaited.SERVERS, situation.missing)
    unconfirmed = tuple(each.name for each in situation.ready if not each.confirms)
    return _await(situation, Awaited.CONFIRMATIONS, unconfirmed) if unconfirmed else None


_LIMITS: Final[Mapping[Awaited, tuple[int, GivenUp]]] = {
    Awaited.SERVERS: (READY_WITHIN_S, GivenUp.NOT_READY),
    Awaited.PURGE: (READY_WITHIN_S, GivenUp.NOT_PURGED),
    Awaited.CONFIRMATIONS: (CONFIRMED_WITHIN_S, GivenUp.NOT_CONFIRMED),
}


def _await(situation: Situation, why: Awaited, names: tuple[str, ...]) -> Action:
    """This wait, or what comes instead once the step has taken too long."""
    limit_s, given_up = _LIMITS[why]
    last = situation.last or _at(HandoverStep.PREPARING, situation, _EPOCH)
    since, former_end = max(_time(last.startTime), situation.led_since), _time(last.formerListEndTime)
    if last.step is HandoverStep.PREPARING:
        since = max(since, former_end + timedelta(seconds=MARKS_LIVE_S))
    if why is Awaited.CONFIRMATIONS:
        ready_s = max((each.ready_since_s or 0 for each in situation.ready), default=0)
        since = max(since, datetime.fromtimestamp(ready_s, UTC))
    left_s = (since - situation.now).total_seconds() + limit_s
    if left_s <= 0.0:
        if (action := _give_up(situation, given_up, names)) is not None:
            return action
        if last.step is not HandoverStep.PREPARING:
            return Advance(_at(HandoverStep.DISCONNECTING, situation, former_end))  # to wait without peers
        return Wait(why, limit_s, names)
    return Wait(why, min(_ASK_AGAIN_S, left_s) if why is Awaited.CONFIRMATIONS else left_s, names)


def _in_time(situation: Situation, action: Tell | Purge, servers: Sequence[Server]) -> Action:
    """This action, or what comes instead once the step has taken too long: of these servers it is yet to be done."""
    names = tuple(each.name for each in servers)
    if situation.missing:
        late = _await(situation, Awaited.SERVERS, situation.missing)
    else:
        late = _await(situation, Awaited.PURGE if isinstance(action, Purge) else Awaited.CONFIRMATIONS, names)
    return action if isinstance(late, Wait) else late


def _impossible(situation: Situation) -> GiveUp | None:
    """Why waiting for servers is in vain, None where it is not."""
    if names := tuple(each.name for each in situation.servers if each.unsupported):
        return _give_up(situation, GivenUp.UNSUPPORTED, names)
    if situation.is_refused:
        return _give_up(situation, GivenUp.REFUSED, tuple(each.name for each in situation.ready))
    return None


def _give_up(situation: Situation, why: GivenUp, names: tuple[str, ...]) -> GiveUp | None:
    """None where the list would be the same: then waiting takes nothing from anyone."""
    desired = range(situation.size)
    ready = {each.ordinal for each in situation.ready}
    if situation.listed == {each for each in desired if each in situation.listed or each in ready}:
        return None
    step = HandoverStep.DISCONNECTING if any(each.is_connected for each in situation.servers) else HandoverStep.COMPLETE
    return GiveUp(_at(step, situation, situation.now + timedelta(seconds=situation.for_s or 0)), why, names)


def _at(step: HandoverStep, situation: Situation, former_list_end: datetime) -> Handover:
    return Handover(step, _whole(situation.now), _whole(former_list_end) if former_list_end > _EPOCH else None)


def _bounded(last: Handover, situation: Situation) -> Handover:
    """The status without times that are yet to come, as of a leader whose clock was ahead: else steps would last for as
    long as it was."""
    latest = situation.now + timedelta(seconds=1)
    if _time(last.startTime) > latest:
        last = msgspec.structs.replace(last, startTime=_whole(situation.now))
    latest += timedelta(seconds=situation.for_s or 0)
    if _time(last.formerListEndTime) > latest:
        last = msgspec.structs.replace(last, formerListEndTime=_whole(latest))
    return last


def _whole(time: datetime) -> str:
    """A time in whole seconds, which is not before it."""
    return rfc3339(time + timedelta(microseconds=999_999))


def _time(text: str | None) -> datetime:
    """A time of the status; long ago where there is none, or another client wrote what is no time."""
    try:
        time = datetime.fromisoformat(text) if text is not None else _EPOCH
        return time.astimezone(UTC) if time.tzinfo is not None else _EPOCH
    except (ValueError, OverflowError):
        return _EPOCH
