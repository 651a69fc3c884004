"""Pure: peers that each server is to have, and servers with items that others have changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memcached_operator.api.status import HandoverStep
from memcached_operator.memcached.handover.actions import PeersChange
from memcached_operator.memcached.handover.peers import Peers, peers_for
from memcached_operator.memcached.handover.situation import Server, Situation


def without_peers(servers: Sequence[Server]) -> tuple[PeersChange, ...]:
    """Changes after which these servers have no peers, and hide marks from clients all the same."""
    return tuple(_with_peers(each, ()) for each in servers)


def disconnected(situation: Situation) -> tuple[PeersChange, ...]:
    """Changes after which no server has peers."""
    return without_peers([each for each in situation.servers if each.is_connected])


def connected(situation: Situation, *, is_published: bool = False) -> Iterator[PeersChange]:
    """Changes after which each server has all others as peers.

    A server that is away keeps its peers, so that it asks them, and sends them tombs, from its first command on when it
    is back. For the same reason a new one has them before it runs. Where all are away, all keep what they have.

    Args:
        is_published: clients may have two lists, so that others do not send their changes to a new server.
    """
    members = _members(situation)
    addresses = [each.address for each in members]
    for each in situation.servers:
        desired = peers_for(each.address, 1, addresses).addresses
        if each.peers is None:
            yield _with_peers(each, desired if each.ready_since_s is None else (), outdated=is_published)
        elif members and each.peers.addresses != desired and (each.is_connected or each in members):
            yield _with_peers(each, desired)


def marked_as_left(situation: Situation) -> Iterator[PeersChange]:
    """The marks of servers that others do not have as a peer from now on: what these have is outdated.

    They are written before that, so that the next leader knows it, too.
    """
    members = _members(situation)
    for each in situation.servers if members else ():
        if each.peers is not None and not each.outdated and each not in members:
            yield PeersChange(each, each.peers, outdated=True)


def marked_as_unpurged(situation: Situation) -> tuple[PeersChange, ...]:
    """The marks of servers that nobody waits for: they were not ready for the purge, and may have old copies."""
    return tuple(
        PeersChange(each, each.peers, outdated=True) if each.peers is not None else _with_peers(each, (), outdated=True)
        for each in situation.servers
        if each.ordinal >= situation.size and each.ready_since_s is None and not each.outdated
    )


def outdated_members(situation: Situation) -> tuple[Server, ...]:
    """Servers whose items others have changed, and that all others have as a peer again."""
    members = _members(situation)
    return tuple(
        each
        for each in members
        if each.outdated
        and all(other.confirms and _names(other, each.address) for other in members if other is not each)
    )


def outdated_without_peers(situation: Situation) -> tuple[Server, ...]:
    """Servers that came back while clients have one list. Once a hand-over is complete, servers are not queried."""
    is_complete = situation.last is not None and situation.last.step is HandoverStep.COMPLETE
    return tuple(each for each in situation.ready if each.outdated and (each.confirms or is_complete))


def dropped_addresses(changes: Sequence[PeersChange]) -> frozenset[str]:
    """Addresses that some server has as a peer before these changes and not after."""
    pairs = [(each.server.peers, each.peers) for each in changes]
    return frozenset(a for old, new in pairs if old is not None for a in old.addresses if a not in new.addresses)


def _members(situation: Situation) -> Sequence[Server]:
    """Servers that others have as peers, or may: each is ready, and hides marks from clients."""

    def is_named(server: Server) -> bool:
        return any(_names(each, server.address) for each in situation.servers)

    return [each for each in situation.ready if each.peers is not None and (each.confirms or is_named(each))]


def _with_peers(server: Server, addresses: tuple[str, ...], *, outdated: bool = False) -> PeersChange:
    generation = server.peers.generation + 1 if server.peers is not None else 1
    return PeersChange(server, Peers(generation, addresses), outdated)


def _names(server: Server, address: str) -> bool:
    return server.peers is not None and address in server.peers.addresses
