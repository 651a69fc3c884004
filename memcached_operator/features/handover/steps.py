"""Pure: steps of a change of the list of servers in which no client misses or reads an older value.

Each step is confirmed by every server before the next:

    Preparing      all servers are ready, and what former owners have kept is deleted
    Connecting     every server has all others as peers, old and new; then the list is published
    Published      clients follow the list, for `spec.handover.periodSeconds`
    Disconnecting  no server has peers; then servers that left the list are removed

A second change while the list is published goes straight to the union of all. What is decided follows from the status,
the pods and what the servers answer, so that a new leader goes on where the last one was. Where the status says less
than the pods, as after a restore, clients get their time to follow the list anew. Where some server does not confirm a
step in its time, the list changes as it does without a hand-over: nothing waits for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from memcached_operator.api.status import HandoverStatus, HandoverStep
from memcached_operator.api.v1alpha1 import HANDOVER_SECONDS_MAX
from memcached_operator.features.handover.peer_changes import (
    connected,
    disconnected,
    marked_as_left,
    marked_as_unpurged,
    outdated_members,
    outdated_without_peers,
    returned,
)
from memcached_operator.features.handover.situation import (
    CONFIRMED_WITHIN_S,
    EPOCH,
    MARKER_TTL_S,
    READY_WITHIN_S,
    Action,
    Advance,
    Awaited,
    EmptyServers,
    GivenUp,
    GiveUp,
    HandoverServer,
    HandoverWait,
    Nothing,
    Purge,
    PurgeState,
    Resume,
    SetPeers,
    Situation,
    StatusOrigin,
    bounded,
    former_list_end_of,
    published_s,
    start_of,
    status_at,
)

_UNDERWAY: Final = (HandoverStep.CONNECTING, HandoverStep.PUBLISHED, HandoverStep.DISCONNECTING)


def decide_handover(situation: Situation) -> Action:
    last, for_s = situation.last, situation.for_s
    if for_s is not None and situation.size > 0 and not situation.listed:
        return Advance(None) if last is not None else Nothing()  # the list grows as servers get ready
    if for_s is not None and situation.size > 0 and _is_lost(situation):
        # Nothing says since when clients have that list.
        step = HandoverStep.PUBLISHED if _is_connected(situation) else HandoverStep.COMPLETE
        return Resume(status_at(step, situation.now, situation.now + timedelta(seconds=for_s)))
    if for_s is None or last is None:
        return _without(situation)
    if (readable := bounded(last, for_s, situation.now)) != last:
        return Advance(readable)
    match last.step:
        case HandoverStep.COMPLETE:
            return _complete(situation, last)
        case HandoverStep.PREPARING:
            return _preparing(situation, last)
        case HandoverStep.CONNECTING:
            return _connecting(situation, last)
        case HandoverStep.PUBLISHED:
            return _published(situation, last, for_s)
        case HandoverStep.DISCONNECTING:
            return _disconnecting(situation, last)


def is_list_frozen(situation: Situation, action: Action) -> bool:
    """Report whether the published list must not change for now."""
    match action:
        case GiveUp() | Advance(publishes=True) | Advance(to=None) | Nothing():
            return False
        case Resume():
            return True
        case _:
            return situation.last is not None and situation.for_s is not None and situation.has_others


def are_servers_kept(situation: Situation, action: Action) -> bool:
    """Report whether servers that left the list must not be removed, however long they have drained."""
    state = action.to if isinstance(action, Advance | Resume | GiveUp) else situation.last
    return is_underway(state) or (situation.for_s is not None and _is_connected(situation))


def is_rollout_held(situation: Situation, action: Action) -> bool:
    """Report whether no server with keys may be replaced: from the purge on, which fails without that server."""
    match action:
        case (
            Purge()
            | HandoverWait(why=Awaited.PURGE)
            | Advance(to=HandoverStatus(step=HandoverStep.CONNECTING))
            | Resume()
        ):
            return True
        case _:
            return is_underway(situation.last)


def is_underway(status: HandoverStatus | None) -> bool:
    """Report whether servers have others as peers, are about to, or had."""
    return status is not None and status.step in _UNDERWAY


def _is_lost(situation: Situation) -> bool:
    """Report whether the status is not what the operator wrote last, as far as that shows."""
    match situation.origin:
        case StatusOrigin.FOREIGN:
            return True
        case StatusOrigin.OWN:
            return situation.last is None and _is_connected(situation)  # the list was lost, and grew again
        case StatusOrigin.FORMER:
            return not is_underway(situation.last) and _is_connected(situation)


def _is_connected(situation: Situation) -> bool:
    """Report whether servers have peers that the operator may take away."""
    return not situation.is_refused and any(each.is_connected for each in situation.servers)


def _without(situation: Situation) -> Action:
    """Return the step where no hand-over is desired, or the list never had all servers: at first it just grows."""
    last, leftover = situation.last, () if situation.is_refused else disconnected(situation)
    if last is not None and (is_underway(last) or leftover):
        # The list is free from now on: where the field is set again before all is done, its clients must be waited for.
        former_end = _former_end(situation, last)
        is_told = former_end - former_list_end_of(last) < timedelta(seconds=HANDOVER_SECONDS_MAX)
        if last.step is HandoverStep.DISCONNECTING and is_told:
            return _disconnecting(situation, last)
        if is_underway(last) or not is_told:
            return _advance(HandoverStep.DISCONNECTING, situation, former_end)
    if leftover:
        return SetPeers(leftover)
    if situation.for_s is None:
        return Advance(None) if last is not None else Nothing()
    if not situation.has_others or situation.is_changing:
        return Nothing()
    # Until now the list grew, or its clients were not waited for.
    return _advance(HandoverStep.COMPLETE, situation, situation.now + timedelta(seconds=situation.for_s))


def _complete(situation: Situation, last: HandoverStatus) -> Action:
    if situation.is_changing and situation.has_others:
        return _advance(HandoverStep.PREPARING, situation, former_list_end_of(last))
    if not situation.is_refused and (leftover := disconnected(situation)):
        return SetPeers(leftover)
    if (emptying := _emptying(situation, outdated_without_peers(situation))) is not None:
        return emptying
    if outdated := tuple(each.name for each in situation.ready if each.outdated):
        return HandoverWait(Awaited.CONFIRMATIONS, QUERY_AGAIN_S, outdated)
    return Nothing() if situation.has_others else Advance(None)


def _preparing(situation: Situation, last: HandoverStatus) -> Action:
    former_end, now = former_list_end_of(last), situation.now
    if not (situation.is_changing and situation.has_others):
        return _advance(HandoverStep.COMPLETE, situation, _former_end(situation, last))
    if (first := _first_of_all(situation)) is not None:
        return first
    if leftover := disconnected(situation):
        return in_time(situation, SetPeers(leftover), [each.server for each in leftover])
    begins = max(former_end, start_of(last)) + timedelta(seconds=MARKER_TTL_S)
    if now < begins:
        return HandoverWait(Awaited.FORMER_CLIENTS, (begins - now).total_seconds())
    if situation.missing:
        return wait_for(situation, Awaited.SERVERS, situation.missing)
    return _purging(situation, former_end)


def _purging(situation: Situation, former_end: datetime) -> Action:
    match situation.purge:
        case PurgeState.DUE:
            return Purge(tuple(situation.ready), former_end.timestamp())
        case PurgeState.RUNNING:
            return HandoverWait(Awaited.PURGE, QUERY_AGAIN_S)
        case PurgeState.FAILED if failed := tuple(each for each in situation.ready if each.name in situation.unpurged):
            return in_time(situation, Purge(failed, former_end.timestamp()), failed)
        case PurgeState.DONE | PurgeState.FAILED:
            if changes := marked_as_unpurged(situation):
                return in_time(situation, SetPeers(changes), [each.server for each in changes])
            return _advance(HandoverStep.CONNECTING, situation, former_end)


def _connecting(situation: Situation, last: HandoverStatus) -> Action:
    if not (situation.is_changing and situation.has_others):
        return _advance(HandoverStep.DISCONNECTING, situation, _former_end(situation, last))
    if (first := _first_of_all(situation)) is not None:
        return first
    if changes := tuple(connected(situation)):
        return in_time(situation, SetPeers(changes), [each.server for each in changes])
    return wait_for_confirmations(situation) or _publish(situation, last)


def _published(situation: Situation, last: HandoverStatus, for_s: int) -> Action:
    now, left_s = situation.now, published_s(last, for_s, situation.now)
    if not situation.has_others:
        return _advance(HandoverStep.DISCONNECTING, situation, _former_end(situation, last))
    if left_s <= 0.0:
        return _advance(HandoverStep.DISCONNECTING, situation, now - timedelta(seconds=MARKER_TTL_S))
    if changes := tuple(marked_as_left(situation)) or tuple(connected(situation, is_published=True)):
        return SetPeers(changes)
    if (emptying := _emptying(situation, outdated_members(situation))) is not None:
        return emptying
    unconfirmed = tuple(each.name for each in situation.ready if not each.confirms)
    if unconfirmed:
        return HandoverWait(Awaited.CONFIRMATIONS, min(QUERY_AGAIN_S, left_s), unconfirmed)
    if situation.is_changing and not situation.missing:
        return _publish(situation, last)
    return HandoverWait(Awaited.SERVERS if situation.is_changing else Awaited.CLIENTS, left_s, situation.missing)


def _disconnecting(situation: Situation, last: HandoverStatus) -> Action:
    since = max(start_of(last), situation.waits_since)
    left_s = (since - situation.now).total_seconds() + CONFIRMED_WITHIN_S
    if left_s > 0.0 and (changes := disconnected(situation)):
        return SetPeers(changes)
    if left_s > 0.0 and (emptying := _emptying(situation, outdated_without_peers(situation))) is not None:
        return emptying
    unconfirmed = tuple(each.name for each in situation.ready if each.peers is not None and not each.confirms)
    if left_s > 0.0 and unconfirmed:
        return HandoverWait(Awaited.CONFIRMATIONS, min(QUERY_AGAIN_S, left_s), unconfirmed)
    return _advance(HandoverStep.COMPLETE, situation, _former_end(situation, last))


def _first_of_all(situation: Situation) -> Action | None:
    """Action that comes before all others of a step that prepares a change of the list; None for nothing."""
    given_up, emptying = given_up_at_once(situation), _emptying(situation, outdated_without_peers(situation))
    if emptying is None or (given_up is not None and situation.is_refused):
        return given_up
    return in_time(situation, emptying, emptying.servers)


def _emptying(situation: Situation, settled: tuple[HandoverServer, ...]) -> EmptyServers | None:
    """Emptying of servers that are back: as soon as they are, and once more when they are settled."""
    if back := returned(situation):
        return EmptyServers(back, is_last=False)
    return EmptyServers(settled) if settled else None


def _former_end(situation: Situation, last: HandoverStatus) -> datetime:
    """End of the list before the present one; where no server is desired, the present one ends now.

    Without `spec.handover` the list changes at any time, and nothing tells how long clients have the one before: as
    long as can be, until the field is set again and `bounded` has its time.
    """
    if situation.for_s is None:
        return situation.now + timedelta(seconds=2 * HANDOVER_SECONDS_MAX)
    if situation.size == 0 and situation.listed:
        return situation.now + timedelta(seconds=situation.for_s)
    return former_list_end_of(last)


def _publish(situation: Situation, last: HandoverStatus) -> Advance:
    status = status_at(HandoverStep.PUBLISHED, situation.now, former_list_end_of(last))
    return Advance(status, publishes=True)


def _advance(step: HandoverStep, situation: Situation, former_list_end: datetime) -> Advance:
    return Advance(status_at(step, situation.now, former_list_end))


QUERY_AGAIN_S: Final = 0.5

_LIMITS: Final[Mapping[Awaited, tuple[int, GivenUp]]] = {
    Awaited.SERVERS: (READY_WITHIN_S, GivenUp.NOT_READY),
    Awaited.PURGE: (READY_WITHIN_S, GivenUp.NOT_PURGED),
    Awaited.CONFIRMATIONS: (CONFIRMED_WITHIN_S, GivenUp.NOT_CONFIRMED),
}


def wait_for_confirmations(situation: Situation) -> Action | None:
    """Wait of a step whose servers all have their peers set, None for none."""
    if situation.missing:
        return wait_for(situation, Awaited.SERVERS, situation.missing)
    unconfirmed = tuple(each.name for each in situation.ready if not each.confirms)
    return wait_for(situation, Awaited.CONFIRMATIONS, unconfirmed) if unconfirmed else None


def wait_for(situation: Situation, why: Awaited, names: tuple[str, ...]) -> Action:
    """Wait, or decide what comes instead once the step has taken too long."""
    limit_s, given_up = _LIMITS[why]
    last = situation.last or status_at(HandoverStep.PREPARING, situation.now, EPOCH)
    since, former_end = max(start_of(last), situation.waits_since), former_list_end_of(last)
    if last.step is HandoverStep.PREPARING:
        since = max(since, former_end + timedelta(seconds=MARKER_TTL_S))
    if why is Awaited.CONFIRMATIONS:
        ready_s = max((each.ready_since_s or 0 for each in situation.ready), default=0)
        since = max(since, datetime.fromtimestamp(ready_s, UTC))
    left_s = (since - situation.now).total_seconds() + limit_s
    if left_s <= 0.0:
        if (action := _give_up(situation, given_up, names)) is not None:
            return action
        if last.step is not HandoverStep.PREPARING:
            return Advance(status_at(HandoverStep.DISCONNECTING, situation.now, former_end))  # to wait without peers
        return HandoverWait(why, limit_s, names)
    return HandoverWait(why, min(QUERY_AGAIN_S, left_s) if why is Awaited.CONFIRMATIONS else left_s, names)


def in_time(situation: Situation, action: SetPeers | Purge | EmptyServers, servers: Sequence[HandoverServer]) -> Action:
    """Choose this action, yet to be done at these servers, or what comes instead once the step has taken too long."""
    names = tuple(each.name for each in servers)
    if situation.missing:
        late = wait_for(situation, Awaited.SERVERS, situation.missing)
    else:
        late = wait_for(situation, Awaited.CONFIRMATIONS if isinstance(action, SetPeers) else Awaited.PURGE, names)
    return action if isinstance(late, HandoverWait) else late


def given_up_at_once(situation: Situation) -> GiveUp | None:
    """The end of a step where waiting is in vain, None where it is not."""
    if names := tuple(each.name for each in situation.servers if each.unsupported):
        return _give_up(situation, GivenUp.UNSUPPORTED, names)
    if situation.is_refused:
        return _give_up(situation, GivenUp.REFUSED, tuple(each.name for each in situation.ready))
    return None


def _give_up(situation: Situation, why: GivenUp, names: tuple[str, ...]) -> GiveUp | None:
    """Give up; None where the list would be the same: then waiting takes nothing from anyone."""
    desired = range(situation.size)
    ready = {each.ordinal for each in situation.ready}
    if situation.listed == {each for each in desired if each in situation.listed or each in ready}:
        return None
    step = HandoverStep.DISCONNECTING if any(each.is_connected for each in situation.servers) else HandoverStep.COMPLETE
    former_end = situation.now + timedelta(seconds=situation.for_s or 0)
    return GiveUp(status_at(step, situation.now, former_end), why, names)
