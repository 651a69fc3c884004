"""Pure: limits of a step's wait for servers, and what comes instead of it then: nothing waits for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from memcached_operator.api.status import HandoverStep
from memcached_operator.features.handover.situation import (
    EPOCH,
    MARKER_TTL_S,
    Action,
    Advance,
    Awaited,
    EmptyServers,
    GivenUp,
    GiveUp,
    HandoverServer,
    HandoverWait,
    Purge,
    SetPeers,
    Situation,
    former_list_end_of,
    start_of,
    status_at,
)

READY_WITHIN_S: Final = 600
"""As Kubernetes waits by default for the progress of a Deployment."""
CONFIRMED_WITHIN_S: Final = 60
"""A file of a pod's annotations may be late by that: the kubelet syncs each pod once a minute at the latest."""
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
