"""Pure: peers that each server is to have, and servers with items that others have changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memcached_operator.api.status import HandoverStep
from memcached_operator.features.handover.situation import (
    CONFIRMED_WITHIN_S,
    HandoverServer,
    Peers,
    PeersChange,
    Situation,
)


def disconnected(situation: Situation) -> tuple[PeersChange, ...]:
    """Changes after which no server has peers; they hide marks from clients all the same."""
    return tuple(_with_peers(each) for each in situation.servers if each.is_connected)


def connected(situation: Situation, *, is_published: bool = False) -> Iterator[PeersChange]:
    """Changes after which each server has all others as peers.

    A server that is away keeps its peers, so that it asks them, and sends them tombs, from its first command on when it
    is back. For the same reason a new one has them before it runs. Where all are away, all keep what they have.
    One that is back with outdated items is emptied before others have it as a peer, and is not queried until it was
    emptied again: what it got in between, others may have changed.

    Args:
        is_published: clients may have two lists, so that others do not send their changes to a new server.
    """
    members = _members(situation)
    for each in situation.servers:
        others = [other for other in members if other is not each]
        if each.peers is None:
            is_late = is_published and each.ready_since_s is not None  # it is emptied before others know it
            yield _with_peers(each, () if is_late else others, outdated=is_published)
        elif members and (each.is_connected or each in members):
            change = _with_peers(each, others)
            if change.peers[1:] != each.peers[1:]:
                yield change


def marked_as_left(situation: Situation) -> Iterator[PeersChange]:
    """The marks, written before, of servers that others drop as peers, or lack: what these have is outdated."""
    members = _members(situation)
    for each in situation.servers if members else ():
        is_named = any(_names(other, each.address) for other in situation.servers)
        has_others = any(other.is_connected for other in situation.servers if other is not each)
        is_left = each not in members or (not is_named and has_others)
        if each.peers is not None and not each.outdated and is_left:
            yield PeersChange(each, each.peers, outdated=True)


def marked_as_unpurged(situation: Situation) -> tuple[PeersChange, ...]:
    """The marks of servers that nobody waits for: they were not ready for the purge, and may have old copies."""
    return tuple(
        PeersChange(each, each.peers, outdated=True) if each.peers is not None else _with_peers(each, outdated=True)
        for each in situation.servers
        if each.ordinal >= situation.size and each.ready_since_s is None and not each.outdated
    )


def returned(situation: Situation) -> tuple[HandoverServer, ...]:
    """Servers that are back, and still have what others have changed."""
    return tuple(each for each in situation.ready if each.outdated and not each.emptied)


def outdated_members(situation: Situation) -> tuple[HandoverServer, ...]:
    """Servers whose items others have changed, and that are told of all writes again."""
    members = _members(situation)
    return tuple(
        each
        for each in members
        if each.outdated
        and each.confirms
        and all(other.confirms and _names(other, each.address) for other in members if other is not each)
    )


def outdated_without_peers(situation: Situation) -> tuple[HandoverServer, ...]:
    """Servers that came back while clients have one list, and query no others. Nothing waits for that for ever."""
    is_complete = _is_at(situation, HandoverStep.COMPLETE)
    late_s = situation.now.timestamp() - CONFIRMED_WITHIN_S if is_complete else 0.0
    return tuple(
        each for each in situation.ready if each.outdated and (each.confirms or (each.ready_since_s or 0) < late_s)
    )


def dropped_addresses(changes: Sequence[PeersChange]) -> frozenset[str]:
    """Addresses that some server has as a peer before these changes and not after."""
    pairs = [(each.server.peers, each.peers) for each in changes]
    return frozenset(a for old, new in pairs if old is not None for a in old.addresses if a not in new.addresses)


def _members(situation: Situation) -> Sequence[HandoverServer]:
    """Servers that others have as peers, or may: each is ready, and has no items that others have changed since.

    While clients may have two lists, one without a peers' file has yet to be emptied.
    """
    back, is_published = returned(situation), _is_at(situation, HandoverStep.PUBLISHED)
    return [each for each in situation.ready if each not in back and not (is_published and each.peers is None)]


def _is_at(situation: Situation, step: HandoverStep) -> bool:
    return situation.last is not None and situation.last.step is step


def _with_peers(server: HandoverServer, peers: Sequence[HandoverServer] = (), *, outdated: bool = False) -> PeersChange:
    generation = server.peers.generation + 1 if server.peers is not None else 1
    joining = frozenset(each.address for each in peers if each.outdated)
    addresses = tuple(sorted(each.address for each in peers))
    return PeersChange(server, Peers(generation, addresses, joining), outdated)


def _names(server: HandoverServer, address: str) -> bool:
    return server.peers is not None and address in server.peers.addresses
