"""Pure: steps in which a server is replaced, and no client misses a key or reads an older value.

    Preparing      what former owners have kept is deleted at the server; a holder of the new template gets ready
    Connecting     the server hides marks, then has the holder as its peer; then new servers are made with it
    Copying        the holder copies the server's items, until few lack (`item_copy`)
    Closing        the server refuses writes, until nothing lacks
    Replacing      the server's pod is replaced
    Restoring      the new server, which was born with the holder as its peer, copies the items back
    Disconnecting  new servers are made without it, then the server forgets the holder, then the holder goes

What is decided follows from the pods, the workloads and what servers answer, so that a new leader goes on where the
last one was. The order keeps a holder that may lack a write from being read: nothing is copied before the server is
known to tell the holder of all writes; a pod that was not born with the holder never gets it; and where a holder is
given up, it is marked first (it has no peers itself), then new servers are made without it, and then the server forgets
it. `tests/handover/moves.py` is the model in which each of that was left out.

A pod that others delete or evict waits meanwhile (`Ending`). It ends once its items are with the holder, or do not
move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memcached_operator.api.status import MoveStep
from memcached_operator.core.objects.holder import HELD_NAME_MAX_LENGTH
from memcached_operator.features.handover.move.situation import (
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
    NoMove,
    NotMoved,
    PurgeServer,
    Release,
    Tell,
)
from memcached_operator.features.handover.situation import CONFIRMED_WITHIN_S, READY_WITHIN_S, Peers

BEGUN_S: Final = 1.0
"""After so long what a thread began before it knew the holder is over."""
CLOSED_S: Final = 0.2
"""Likewise of writes, before it refused them."""
CLOSED_WITHIN_S: Final = 10.0
"""After so long without writes the server is replaced with what was copied. Marks last 3 s, and hide what lacks."""
REPLACED_WITHIN_S: Final = 30.0
"""After so long it takes writes again."""
HOLDER_WITHIN_S: Final = 120.0
"""As a rollout waits for a new server."""
GONE_WITHIN_S: Final = 60.0
"""For so long the next server waits for the holder of the one before to be gone."""
SILENT_S: Final = 1.0
"""For so long a holder may not answer; writes fail meanwhile."""
PLACED_WITHIN_S: Final = 60.0
"""For so long a new server may wait for a node, or for its pod, that the holder may keep it from, as by a quota."""
LEAST_S: Final = 15.0
"""A pod that has less until its end has no time to move anything."""
UNANSWERED_S: Final = 5.0
"""For so long a server whose pod waits may not answer before its items move."""
LAST_S: Final = 5.0
"""So long before its end what was copied has to do."""
_FAILURES: Final = 3


def decide_move(situation: MoveSituation) -> MoveDecision:
    """Decide the next step of a move."""
    holder = situation.holder
    if holder is None:
        return _without_holder(situation)
    if holder.is_deleting and not situation.made_with:  # nobody is to know it any more, so that the list may change
        server = _next(situation)
        uid = server.pod.uid if server is not None else situation.next_uid or ""
        found = MoveDecision(Await(MoveAwaited.HOLDER_GONE), None, holder.name, uid)
        if not found.uid or found.uid in situation.given_up:
            return replace(found, action=NoMove())
        return replace(found, limit_s=GONE_WITHIN_S, late=NotMoved.HOLDER_STAYS)  # as on a node that is lost
    old = next((each for each in situation.servers if each.pod.uid == holder.uid), None)
    if old is not None:
        return _before(situation, holder, old)
    new = next((each for each in situation.servers if each.pod.name == holder.name), None)
    return _replacing(situation, holder) if new is None else _after(situation, holder, new)


def dismissed(situation: MoveSituation, decision: MoveDecision) -> Sequence[MovingServer]:
    """Servers whose pods wait no longer: their items are with a holder, or do not move.

    One whose holder was given up waits until no new server would be made with that.
    """
    is_named = bool(situation.made_with) or not situation.is_observed
    kept = {situation.holder.name} if situation.holder is not None and is_named else set[str]()
    due = {each.pod.uid for each in situation.servers if each.pod.name not in kept} & situation.given_up
    if isinstance(decision.action, Release):
        due.add(decision.uid)
    return [each for each in situation.servers if each.ending is not None and each.pod.uid in due]


def unserved(situation: MoveSituation) -> Sequence[MovingServer]:
    """Servers whose time is over while another one moves."""
    holder = situation.holder
    others = (each for each in situation.servers if holder is not None and each.pod.name != holder.name)
    late = (each for each in others if each.ending is not None and each.ending.left_s < LAST_S)
    return [each for each in late if each.pod.uid not in situation.given_up]


def _without_holder(situation: MoveSituation) -> MoveDecision:
    if situation.made_with:
        return MoveDecision(Await(MoveAwaited.TEMPLATE), MoveStep.DISCONNECTING)
    server = _next(situation)
    if server is not None and server.ending is not None:
        return _ending(situation, server, server.ending)
    if server is None or not server.is_ready or not situation.wanted or server.pod.uid in situation.given_up:
        return MoveDecision(NoMove())
    if situation.begins_in_s is None and server.pod.transport.peers_port:
        return MoveDecision(NoMove())  # the rollout waits for the hand-over
    return _preparing(situation, server)


def _next(situation: MoveSituation) -> MovingServer | None:
    """The server that is to move: one whose pod waits goes before the one that the rollout is about to replace."""
    ending = (each for each in situation.servers if each.ending is not None and each.pod.uid not in situation.given_up)
    return next(ending, None) or next((each for each in situation.servers if each.pod.uid == situation.next_uid), None)


def _ending(situation: MoveSituation, server: MovingServer, ending: Ending) -> MoveDecision:
    """Before there is a holder for a server whose pod waits."""
    begins_in_s, why = situation.begins_in_s, None
    if not server.pod.address or server.pod.outdated_items:
        why = NotMoved.NOT_READY
    elif server.silent_s > UNANSWERED_S:
        why = NotMoved.UNANSWERED
    elif begins_in_s is None or (begins_in_s and ending.left_s < begins_in_s + LEAST_S):
        why = NotMoved.HANDOVER
    elif ending.left_s < LEAST_S:
        why = NotMoved.NO_TIME
    if why is not None:
        return MoveDecision(AbandonMove(why), name=server.pod.name, uid=server.pod.uid)
    return _preparing(situation, server)


def _preparing(situation: MoveSituation, server: MovingServer) -> MoveDecision:
    found = MoveDecision(Await(MoveAwaited.HOLDER), MoveStep.PREPARING, server.pod.name, server.pod.uid)
    if server.unsupported or not server.pod.transport.peers_port:
        return replace(found, action=AbandonMove(NotMoved.UNSUPPORTED), step=None)
    if len(server.pod.memcached) > HELD_NAME_MAX_LENGTH:
        return replace(found, action=AbandonMove(NotMoved.NAME_TOO_LONG), step=None)
    if situation.begins_in_s:
        return replace(found, action=Await(MoveAwaited.FORMER_CLIENTS, situation.begins_in_s), step=None)
    if server.pod.uid not in situation.purged:
        limit_s = READY_WITHIN_S if server.ending is None else min(READY_WITHIN_S, server.ending.grace_s / 2)
        return replace(found, action=PurgeServer(server), limit_s=limit_s, late=NotMoved.NOT_PURGED)
    return replace(found, holds=server, limit_s=_holder_within_s(server), late=NotMoved.HOLDER_NOT_READY)


def _holder_within_s(server: MovingServer) -> float:
    ending = server.ending
    return HOLDER_WITHIN_S if ending is None else min(HOLDER_WITHIN_S / 2, ending.grace_s / 4)


def _before(situation: MoveSituation, holder: Holder, server: MovingServer) -> MoveDecision:
    """While the server is there."""
    found = _replaced(situation, holder, server)
    is_over = server.ending is not None and server.ending.left_s < LAST_S
    if not is_over or found.step is MoveStep.DISCONNECTING or isinstance(found.action, AbandonMove):
        return found
    found, held = replace(found, limit_s=None, late=None), holder.server
    if held is None or not held.is_ready or situation.made_with != held.pod.uid or not server.is_connected:
        return replace(found, action=AbandonMove(NotMoved.NO_TIME))
    # The holder is told of all writes, and new servers have it as their peer: what it has is right.
    return replace(found, action=Release(), step=MoveStep.CLOSING)


def _replaced(situation: MoveSituation, holder: Holder, server: MovingServer) -> MoveDecision:
    held, uid = holder.server, server.pod.uid
    found = MoveDecision(Await(MoveAwaited.CONFIRMATION), MoveStep.CONNECTING, holder.name, uid)
    if uid in situation.given_up or (held is not None and _is_given_up(held)):
        return _given_up(situation, found, held, server)
    if held is not None and situation.made_with == held.pod.uid:
        found = replace(found, made_with=held)
    is_due = uid in situation.stale or situation.next_uid in (None, uid)
    first = _next(situation)
    is_due = is_due and (first is None or first.ending is None)  # one that waits cannot do so for long
    if server.ending is None and (situation.wanted is False or not is_due):
        return replace(found, action=AbandonMove(NotMoved.UNNEEDED))
    if held is None or not held.is_ready or held.confirmed_s is None:
        if server.is_connected and (held is None or not held.is_ready or held.silent_s > SILENT_S):
            return replace(found, action=AbandonMove(NotMoved.HOLDER_FAILED))
        found = replace(found, action=Await(MoveAwaited.HOLDER), step=MoveStep.PREPARING)
        return replace(found, limit_s=_holder_within_s(server), late=NotMoved.HOLDER_NOT_READY)
    return _connecting(situation, found, held, server)


def _connecting(
    situation: MoveSituation, found: MoveDecision, held: MovingServer, server: MovingServer
) -> MoveDecision:
    peers, others = server.peers, (held.pod.address,)
    found = replace(found, limit_s=CONFIRMED_WITHIN_S, late=NotMoved.NOT_CONFIRMED)
    if peers is None or peers.addresses not in ((), others):
        return replace(found, action=_told(server))
    if peers.is_closed:
        found = replace(found, step=MoveStep.CLOSING)
    if server.confirmed_s is None:
        is_right = server.is_connected and situation.made_with == held.pod.uid
        if server.ending is not None and server.silent_s > UNANSWERED_S and is_right:
            # It has ended before its pod, as where a sidecar takes longer.
            return replace(found, action=Release(), step=MoveStep.CLOSING, made_with=held, limit_s=None, late=None)
        return found
    if not peers.addresses:
        return replace(found, action=_told(server, others))
    if server.confirmed_s < BEGUN_S and not peers.is_closed:
        return replace(found, action=Await(MoveAwaited.BEGUN, BEGUN_S - server.confirmed_s))
    found = replace(found, made_with=held)
    if situation.made_with != held.pod.uid:
        return replace(found, action=Await(MoveAwaited.TEMPLATE), late=NotMoved.NOT_WRITTEN)
    found = replace(found, limit_s=None, late=None)
    is_due = server.ending is not None or situation.next_uid in (None, server.pod.uid)
    if peers.is_closed:
        if not is_due:
            return replace(found, action=_told(server, others))
        return _closed(situation, found, held, server, server.confirmed_s)
    found = replace(found, step=MoveStep.COPYING)
    copied = situation.copied.get(MoveStep.COPYING, Copied())
    if copied.is_running or not copied.is_near:
        return _copying(found, copied, server, held, is_hot=server.ending is not None and not copied.has_hot)
    if not is_due:
        return replace(found, action=Await(MoveAwaited.TURN), limit_s=READY_WITHIN_S, late=NotMoved.UNNEEDED)
    return replace(found, step=MoveStep.CLOSING, action=_told(server, others, is_closed=True))


def _closed(
    situation: MoveSituation, found: MoveDecision, held: MovingServer, server: MovingServer, closed_s: float
) -> MoveDecision:
    if closed_s < CLOSED_S:
        return replace(found, action=Await(MoveAwaited.BEGUN, CLOSED_S - closed_s))
    if closed_s > REPLACED_WITHIN_S:
        return replace(found, action=AbandonMove(NotMoved.NOT_REPLACED))
    copied = situation.copied.get(MoveStep.CLOSING, Copied())
    if copied.is_whole or closed_s > CLOSED_WITHIN_S:
        return replace(found, action=Release())
    return _copying(found, copied, server, held)


def _copying(
    found: MoveDecision, copied: Copied, source: MovingServer, target: MovingServer, *, is_hot: bool = False
) -> MoveDecision:
    if copied.is_running:
        return replace(found, action=Await(MoveAwaited.COPY))
    if copied.failures >= _FAILURES:
        return replace(found, action=AbandonMove(NotMoved.NOT_COPIED))
    return replace(found, action=Copy(source, target, is_hot))


def _given_up(
    situation: MoveSituation, found: MoveDecision, held: MovingServer | None, server: MovingServer
) -> MoveDecision:
    """A holder that was dropped is never used again, by no leader."""
    found = replace(found, step=MoveStep.DISCONNECTING)
    if held is not None and server.is_connected and not _is_given_up(held):
        return replace(found, action=_told(held))
    return _disconnecting(situation, found, server, End())


def _replacing(situation: MoveSituation, holder: Holder) -> MoveDecision:
    """While the server is away."""
    held = holder.server
    found = MoveDecision(Await(MoveAwaited.SUCCESSOR), MoveStep.REPLACING, holder.name, holder.uid)
    if holder.uid in situation.given_up:
        return _disconnecting(situation, found, None, End())
    if held is not None and situation.made_with == held.pod.uid:
        found = replace(found, made_with=held)
    if held is not None and held.is_connected:
        return replace(found, action=_told(held))
    return replace(found, limit_s=PLACED_WITHIN_S, late=NotMoved.NO_SUCCESSOR)


def _after(situation: MoveSituation, holder: Holder, server: MovingServer) -> MoveDecision:
    """While the new server is there."""
    held, uid = holder.server, server.pod.uid
    found = MoveDecision(Await(MoveAwaited.SUCCESSOR), MoveStep.RESTORING, holder.name, uid)
    if held is None or server.pod.holder != held.pod.uid:
        return _disconnecting(situation, found, server, End(not_moved=NotMoved.ENDED))
    if uid in situation.given_up:
        return _disconnecting(situation, found, server, End())
    if situation.made_with != held.pod.uid or (server.peers is not None and not server.is_connected):
        return _disconnecting(situation, found, server, End(has_moved=True))
    found = replace(found, made_with=held)
    if not held.is_ready or held.silent_s > SILENT_S:
        return replace(found, action=AbandonMove(NotMoved.HOLDER_FAILED))
    if held.is_connected:
        return replace(found, action=_told(held))
    if not server.is_ready:
        return found if server.pod.placed else replace(found, limit_s=PLACED_WITHIN_S, late=NotMoved.NO_SUCCESSOR)
    if server.confirmed_s is None or not server.is_connected:
        late = NotMoved.NOT_CONFIRMED
        return replace(found, action=Await(MoveAwaited.CONFIRMATION), limit_s=CONFIRMED_WITHIN_S, late=late)
    copied = situation.copied.get(MoveStep.RESTORING, Copied())
    is_full = len(copied.lacking) > 2 and copied.lacking[-1] >= copied.lacking[-2]
    if copied.is_running or not (copied.is_whole or is_full):
        return _copying(found, copied, held, server)
    return _disconnecting(situation, found, server, End(has_moved=True))


def _disconnecting(
    situation: MoveSituation, found: MoveDecision, server: MovingServer | None, end: End
) -> MoveDecision:
    """New servers are made without the holder first: one that forgets it may be replaced before that is written."""
    found = replace(found, step=MoveStep.DISCONNECTING, made_with=None, limit_s=None, late=None)
    if situation.made_with or not situation.is_observed:
        return replace(found, action=Await(MoveAwaited.TEMPLATE))
    if situation.connected:
        return replace(found, action=_told(situation.connected[0]))
    if server is None or not server.is_ready or server.peers is None or server.confirmed_s is not None:
        return replace(found, action=end)
    if server.pod.uid in situation.unconfirmed:
        return replace(found, action=end)
    return replace(found, action=Await(MoveAwaited.CONFIRMATION), limit_s=CONFIRMED_WITHIN_S)


def _is_given_up(held: MovingServer) -> bool:
    """Report whether a holder that had the server as its peer from its birth was given up."""
    return held.peers is not None and not held.is_connected


def _told(server: MovingServer, addresses: tuple[str, ...] = (), *, is_closed: bool = False) -> Tell:
    generation = server.peers.generation + 1 if server.peers is not None else 1
    return Tell(server, Peers(generation, addresses, is_closed=is_closed))
