"""Each step of a hand-over, case by case; `test_steps_machine` holds its promises in any order of events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import ANY

import pytest

from memcached_operator.api.status import HandoverStatus, HandoverStep
from memcached_operator.api.v1alpha1 import HANDOVER_SECONDS_MAX
from memcached_operator.features.handover.situation import (
    CONFIRMED_WITHIN_S,
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
    Peers,
    PeersChange,
    Purge,
    PurgeState,
    Resume,
    SetPeers,
    Situation,
    StatusOrigin,
)
from memcached_operator.features.handover.steps import (
    are_servers_kept,
    decide_handover,
    is_list_frozen,
    is_rollout_held,
)
from operator_runtime import rfc3339

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
LONG_AGO_S = int(NOW.timestamp()) - 100_000
JUST_NOW_S = int(NOW.timestamp()) - 5
FOR_S = 100


def at(after_s: float) -> str:
    return rfc3339(NOW + timedelta(seconds=after_s))


def step(name: HandoverStep, since_s: float = -10, former_end_s: float = -1000) -> HandoverStatus:
    return HandoverStatus(name, at(since_s), at(former_end_s))


def address(ordinal: int) -> str:
    return f"10.0.0.{ordinal}"


def server(
    ordinal: int, peers: Sequence[int] | None = None, *, ready: int | None = LONG_AGO_S, **more: Any
) -> HandoverServer:
    """A server that confirms what its pod says: that it has these peers, or nothing."""
    found = None if peers is None else Peers(1, tuple(map(address, peers)))
    return HandoverServer(
        f"s-{ordinal}", ordinal, address(ordinal), ready, found, **{"confirms": peers is not None} | more
    )


def fresh(count: int) -> tuple[HandoverServer, ...]:
    return tuple(server(each) for each in range(count))


def hidden(count: int) -> tuple[HandoverServer, ...]:
    return tuple(server(each, ()) for each in range(count))


def connected(*ordinals: int) -> tuple[HandoverServer, ...]:
    return tuple(server(each, [other for other in ordinals if other != each]) for each in ordinals)


def situation(
    last: HandoverStatus | None,
    size: int,
    listed: int,
    servers: Sequence[HandoverServer],
    *,
    for_s: int | None = FOR_S,
    **more: Any,
) -> Situation:
    return Situation(last, size, frozenset(range(listed)), servers, for_s, NOW, **more)


def peers_set(action: Action) -> dict[int, tuple[int, ...]]:
    """The ordinals of peers by the ordinals of the servers that are to have them."""
    assert isinstance(action, SetPeers)
    return {
        each.server.ordinal: tuple(int(found.rpartition(".")[2]) for found in each.peers.addresses)
        for each in action.changes
    }


def emptied(found: Situation) -> tuple[str, ...]:
    """Names of the servers that are emptied now and, when they are, once more."""
    action = decide_handover(found)
    assert isinstance(action, EmptyServers)
    assert not action.is_last
    servers = [replace(each, emptied=True) if each in action.servers else each for each in found.servers]
    last = decide_handover(replace(found, servers=servers))
    if isinstance(last, EmptyServers):
        assert last.is_last
        assert [each.name for each in last.servers] == [each.name for each in action.servers]
    return tuple(each.name for each in action.servers)


def advanced(action: Action) -> HandoverStep | None:
    assert isinstance(action, Advance)
    return action.to.step if action.to is not None else None


PREPARING, CONNECTING, COMPLETE = map(step, (HandoverStep.PREPARING, HandoverStep.CONNECTING, HandoverStep.COMPLETE))
DISCONNECTING = step(HandoverStep.DISCONNECTING, -10, -13)


def published(since_s: float) -> HandoverStatus:
    return step(HandoverStep.PUBLISHED, since_s)


@pytest.mark.parametrize(
    ("size", "listed", "begins"), [(3, 3, True), (3, 2, False), (2, 3, False), (3, 0, False), (0, 0, False)]
)
def test_the_first_list_just_grows_until_it_has_all_servers(size: int, listed: int, begins: bool) -> None:
    found = situation(None, size, listed, fresh(3))
    action = decide_handover(found)
    assert action == (Advance(HandoverStatus(HandoverStep.COMPLETE, at(0), at(FOR_S))) if begins else Nothing())
    assert not are_servers_kept(found, action)


@pytest.mark.parametrize("name", HandoverStep)
def test_who_desires_no_hand_over_any_more_has_all_peers_taken_away(name: HandoverStep) -> None:
    found = situation(step(name), 3, 2, connected(0, 1, 2), for_s=None)
    action = decide_handover(found)
    assert action == Advance(step(HandoverStep.DISCONNECTING, 0, 2 * HANDOVER_SECONDS_MAX)), "the list is free"
    assert are_servers_kept(found, action), "others have them as a peer"
    found = replace(found, last=action.to)
    action = decide_handover(found)
    assert peers_set(action) == {0: (), 1: (), 2: ()}
    assert not is_list_frozen(found, action)
    found = replace(found, servers=hidden(3))
    assert advanced(decide_handover(found)) is HandoverStep.COMPLETE
    found = replace(found, last=COMPLETE)
    assert decide_handover(found) == Advance(None)
    assert not are_servers_kept(found, decide_handover(found))
    assert decide_handover(replace(found, servers=hidden(3), last=None)) == Nothing()


PREPARE, CONNECT, DISCONNECT, END = (
    *(HandoverStep.PREPARING, HandoverStep.CONNECTING),
    *(HandoverStep.DISCONNECTING, HandoverStep.COMPLETE),
)
LATE, LATE_TO_CONFIRM = step(PREPARE, -READY_WITHIN_S), step(CONNECT, -CONFIRMED_WITHIN_S)
LATE_TO_DISCONNECT = step(DISCONNECT, -CONFIRMED_WITHIN_S)
UNTIL_READY, FOR_ALL_S = READY_WITHIN_S - 10, FOR_S + MARKER_TTL_S
THREE, FOUR = connected(0, 1, 2), connected(0, 1, 2, 3)
# The last one is not ready, has yet to know its peers, just got ready, has yet to know that it has none.
UNREADY, UNKNOWING = (*fresh(3), server(3, ready=None)), (*FOUR[:3], replace(FOUR[3], confirms=False))
JUST_READY = replace(UNKNOWING[3], ready_since_s=int(NOW.timestamp()) - CONFIRMED_WITHIN_S + 1)
CONNECTED_STILL = (*hidden(2), server(2, (), confirms=False))
TO_EMPTY, OLD = (*hidden(2), server(2, (), outdated=True)), (*fresh(3), server(3, unsupported=True))


def to(name: HandoverStep, former_end_s: float = -1000) -> Advance:
    return Advance(step(name, 0, former_end_s))


def waits(what: Awaited, requeue_s: float, *names: str) -> HandoverWait:
    return HandoverWait(what, requeue_s, names)


def gives_up(why: GivenUp, name: str, then: HandoverStep = END) -> GiveUp:
    return GiveUp(step(then, 0, FOR_S), why, (name,))


def prepared(purge: PurgeState, *unpurged: str, last: HandoverStatus = PREPARING) -> Situation:
    """A list that is to grow, with all servers ready."""
    return situation(last, 4, 3, fresh(4), purge=purge, unpurged=frozenset(unpurged))


# What stays as it is meanwhile: the list, the servers that are desired no more, both or neither.
LIST, SERVERS, BOTH, NEITHER = (True, False), (False, True), (True, True), (False, False)
PUBLISH = Advance(published(0), publishes=True)
DUE, RUNNING, DELETED, FAILED = PurgeState.DUE, PurgeState.RUNNING, PurgeState.DONE, PurgeState.FAILED
DECIDED: dict[str, tuple[Situation, Any, tuple[bool, bool]]] = {
    "a list as desired": (situation(COMPLETE, 3, 3, hidden(3)), Nothing(), NEITHER),
    "no server after": (situation(COMPLETE, 0, 3, fresh(3)), Advance(None), NEITHER),
    "no server before": (situation(COMPLETE, 3, 0, fresh(3)), Advance(None), NEITHER),
    "a list ends": (situation(PREPARING, 0, 3, THREE), to(END, FOR_S), SERVERS),
    "one ends that changes": (situation(CONNECTING, 0, 3, THREE), to(DISCONNECT, FOR_S), SERVERS),
    "one ends that has changed": (situation(published(-10), 0, 3, THREE), to(DISCONNECT, FOR_S), SERVERS),
    "a change": (situation(COMPLETE, 6, 3, fresh(3)), to(PREPARE), LIST),
    "markers": (prepared(DUE, last=step(PREPARE, -1)), waits(Awaited.FORMER_CLIENTS, MARKER_TTL_S - 1), LIST),
    "clients": (prepared(DUE, last=step(PREPARE, -9, 5)), waits(Awaited.FORMER_CLIENTS, 5 + MARKER_TTL_S), LIST),
    "one is missing": (situation(PREPARING, 4, 3, fresh(3)), waits(Awaited.SERVERS, UNTIL_READY, "ordinal 3"), LIST),
    "one is not ready": (situation(PREPARING, 4, 3, UNREADY), waits(Awaited.SERVERS, UNTIL_READY, "s-3"), LIST),
    "old copies": (prepared(DUE), Purge(fresh(4), NOW.timestamp() - 1000), LIST),
    "they are being deleted": (prepared(RUNNING), waits(Awaited.PURGE, 0.5), LIST),
    "they are gone": (prepared(DELETED), to(CONNECT), BOTH),
    "they stay at one": (prepared(FAILED, "s-1"), Purge((server(1),), NOW.timestamp() - 1000), LIST),
    "they stay at one that is gone": (prepared(FAILED, "s-4"), to(CONNECT), BOTH),
    "they stay for a while": (
        prepared(FAILED, "s-1", last=step(PREPARE, 1 - READY_WITHIN_S)),
        Purge((server(1),), ANY),
        LIST,
    ),
    "they stay for long": (prepared(FAILED, "s-1", last=LATE), gives_up(GivenUp.NOT_PURGED, "s-1"), NEITHER),
    # Others have them as a peer.
    "status and list are lost": (situation(None, 3, 0, THREE), Nothing(), SERVERS),
    "a list is lost": (situation(COMPLETE, 3, 0, THREE), Advance(None), SERVERS),
    "a list is lost that changed": (situation(published(-40), 3, 0, THREE), Advance(None), SERVERS),
    "a list is lost at the end": (situation(DISCONNECTING, 3, 0, THREE), Advance(None), SERVERS),
    "a change is taken back": (situation(PREPARING, 3, 3, hidden(4)), to(END), LIST),
    "one is taken back later": (situation(CONNECTING, 3, 3, hidden(4)), to(DISCONNECT), BOTH),
    "one that leaves has none yet": (
        situation(CONNECTING, 2, 3, (*THREE[:2], replace(THREE[2], confirms=False))),
        waits(Awaited.CONFIRMATIONS, 0.5, "s-2"),
        BOTH,
    ),
    "all have peers": (situation(CONNECTING, 2, 3, THREE), PUBLISH, SERVERS),
    "one is gone": (situation(CONNECTING, 4, 3, THREE), waits(Awaited.SERVERS, UNTIL_READY, "ordinal 3"), BOTH),
    "one is gone that leaves": (situation(CONNECTING, 2, 4, THREE), PUBLISH, SERVERS),
    "clients follow": (situation(published(-40), 3, 3, THREE), waits(Awaited.CLIENTS, FOR_ALL_S - 40), BOTH),
    "clients have followed": (situation(published(-FOR_ALL_S), 3, 3, THREE), to(DISCONNECT, -MARKER_TTL_S), BOTH),
    "a second change": (situation(published(-40), 2, 4, FOUR), PUBLISH, SERVERS),
    "a second one that adds": (
        situation(published(-40), 5, 4, FOUR),
        waits(Awaited.SERVERS, FOR_ALL_S - 40, "ordinal 4"),
        BOTH,
    ),
    "one is yet to be emptied": (situation(COMPLETE, 4, 3, TO_EMPTY), to(PREPARE), LIST),
    "one is to be emptied at the end": (situation(LATE_TO_DISCONNECT, 3, 3, TO_EMPTY), to(END), LIST),
    # It may be set again.
    "no field": (situation(published(-5), 3, 3, THREE, for_s=None), to(DISCONNECT, 2 * HANDOVER_SECONDS_MAX), SERVERS),
    "one has peers still": (
        situation(DISCONNECTING, 2, 2, CONNECTED_STILL),
        waits(Awaited.CONFIRMATIONS, 0.5, "s-2"),
        BOTH,
    ),
    "one has peers for long": (situation(LATE_TO_DISCONNECT, 2, 2, CONNECTED_STILL), to(END), LIST),
    "none has peers": (situation(DISCONNECTING, 2, 2, hidden(3)), to(END, -13), LIST),
    "one cannot": (situation(PREPARING, 4, 3, OLD), gives_up(GivenUp.UNSUPPORTED, "s-3"), NEITHER),
    "one cannot later": (situation(CONNECTING, 4, 3, OLD), gives_up(GivenUp.UNSUPPORTED, "s-3"), NEITHER),
    "one is not ready in time": (situation(LATE, 4, 2, UNREADY), gives_up(GivenUp.NOT_READY, "s-3"), NEITHER),
    "one is gone for long": (situation(step(CONNECT, -READY_WITHIN_S), 4, 3, THREE), to(DISCONNECT), BOTH),
    "one has no peers in time": (
        situation(LATE_TO_CONFIRM, 4, 3, UNKNOWING),
        gives_up(GivenUp.NOT_CONFIRMED, "s-3", DISCONNECT),
        SERVERS,
    ),
    "one just got ready": (
        situation(step(CONNECT, -READY_WITHIN_S + 1), 4, 3, (*UNKNOWING[:3], JUST_READY)),
        waits(Awaited.CONFIRMATIONS, 0.5, "s-3"),
        BOTH,
    ),
    "it would be the same": (
        situation(LATE, 4, 3, fresh(3)),
        waits(Awaited.SERVERS, READY_WITHIN_S, "ordinal 3"),
        LIST,
    ),
    "a time yet to come": (situation(published(3600), 4, 3, THREE), Advance(published(0)), BOTH),
    "an end too far away": (
        situation(step(PREPARE, -10, 3600), 4, 3, hidden(3)),
        Advance(step(PREPARE, -10, FOR_S)),
        LIST,
    ),
}


@pytest.mark.parametrize(("found", "expected", "held"), DECIDED.values(), ids=DECIDED)
def test_each_step_follows_from_what_is_seen(found: Situation, expected: Any, held: tuple[bool, bool]) -> None:
    action = decide_handover(found)
    assert action == expected
    assert (is_list_frozen(found, action), are_servers_kept(found, action)) == held


@pytest.mark.parametrize("peers", [None, ()])
def test_one_that_leaves_and_was_not_ready_for_the_purge_is_marked_before_it_has_peers(
    peers: Sequence[int] | None,
) -> None:
    away = server(3, peers, ready=None)
    found = situation(PREPARING, 3, 4, (*fresh(3), away), purge=PurgeState.DONE)
    action = decide_handover(found)
    assert peers_set(action) == {3: ()}
    assert isinstance(action, SetPeers)
    assert action.changes[0].outdated
    away = replace(away, peers=Peers(1), outdated=True, confirms=True)
    assert advanced(decide_handover(replace(found, servers=(*fresh(3), away)))) is HandoverStep.CONNECTING
    back = replace(away, ready_since_s=JUST_NOW_S)
    for others in (hidden(3), connected(0, 1, 2)):
        assert emptied(situation(CONNECTING, 3, 4, (*others, back))) == ("s-3",)


@pytest.mark.parametrize(
    ("last", "servers", "purge", "held"),
    [
        (COMPLETE, fresh(4), PurgeState.DUE, False),
        (step(HandoverStep.PREPARING, -1), fresh(4), PurgeState.DUE, False),
        (PREPARING, (*fresh(3), server(3, ready=None)), PurgeState.RUNNING, False),
        (PREPARING, fresh(4), PurgeState.DUE, True),
        (PREPARING, fresh(4), PurgeState.RUNNING, True),
        (PREPARING, fresh(4), PurgeState.DONE, True),
        (CONNECTING, hidden(4), PurgeState.DONE, True),
        (DISCONNECTING, hidden(4), PurgeState.DUE, True),
    ],
)
def test_from_the_purge_on_no_server_is_replaced_that_has_keys(
    last: HandoverStatus, servers: Sequence[HandoverServer], purge: PurgeState, held: bool
) -> None:
    found = situation(last, 4, 3, servers, purge=purge)
    assert is_rollout_held(found, decide_handover(found)) is held


@pytest.mark.parametrize("last", [None, COMPLETE, PREPARING])
@pytest.mark.parametrize(("size", "listed"), [(3, 3), (4, 3), (3, 4)])
def test_where_servers_have_peers_and_the_status_does_not_say_so_clients_get_their_time_anew(
    last: HandoverStatus | None, size: int, listed: int
) -> None:
    found = situation(last, size, listed, (*connected(0, 1, 2), server(3, ready=None)))
    assert decide_handover(found) == Resume(step(HandoverStep.PUBLISHED, 0, FOR_S))
    assert is_list_frozen(found, decide_handover(found))
    assert are_servers_kept(found, decide_handover(found))
    assert is_rollout_held(found, decide_handover(found))


@pytest.mark.parametrize("last", [None, *(step(name, -5000) for name in HandoverStep)])
@pytest.mark.parametrize("servers", [connected(0, 1, 2), hidden(3)])
def test_of_a_status_that_another_client_wrote_only_the_servers_tell_the_step(
    last: HandoverStatus | None, servers: Sequence[HandoverServer]
) -> None:
    found = situation(last, 3, 3, servers, origin=StatusOrigin.FOREIGN)
    name = HandoverStep.PUBLISHED if servers[0].is_connected else HandoverStep.COMPLETE
    assert decide_handover(found) == Resume(step(name, 0, FOR_S))


def test_all_have_peers_at_once_whether_or_not_they_read_a_file_before() -> None:
    partly = (server(0, ()), server(1), server(2, (), confirms=False))
    assert peers_set(decide_handover(situation(CONNECTING, 3, 2, partly))) == {0: (1, 2), 1: (0, 2), 2: (0, 1)}


def test_all_old_and_new_have_all_others_as_peers_under_a_greater_generation() -> None:
    action = decide_handover(situation(CONNECTING, 2, 3, hidden(3)))
    assert peers_set(action) == {0: (1, 2), 1: (0, 2), 2: (0, 1)}
    assert isinstance(action, SetPeers)
    assert [each.peers.generation for each in action.changes] == [2, 2, 2]


def test_one_that_comes_meanwhile_has_peers_from_its_start_and_is_emptied_before_and_after_others_have_it() -> None:
    def with_new(*servers: HandoverServer, **more: Any) -> Action:
        return decide_handover(situation(published(-40), 3, 3, servers, **more))

    others = connected(0, 1)
    assert peers_set(with_new(*others, server(2, ready=None))) == {2: (0, 1)}
    new = server(2, (0, 1), ready=JUST_NOW_S, outdated=True)
    assert isinstance(with_new(*others, replace(new, ready_since_s=None)), HandoverWait)
    assert with_new(*others, new) == EmptyServers((new,), is_last=False)
    assert with_new(*others, replace(new, confirms=False)) == EmptyServers(
        (replace(new, confirms=False),), is_last=False
    )
    new = replace(new, emptied=True)
    action = with_new(*others, new)
    assert peers_set(action) == {0: (1, 2), 1: (0, 2)}
    assert isinstance(action, SetPeers)
    assert all(each.peers.joining == {address(2)} for each in action.changes), "it is told of writes, and not queried"
    known = tuple(
        replace(each, peers=Peers(2, change.peers.addresses, change.peers.joining))
        for each, change in zip(others, action.changes, strict=True)
    )
    assert isinstance(with_new(known[0], replace(known[1], confirms=False), new), HandoverWait)
    assert isinstance(with_new(*known, replace(new, confirms=False)), HandoverWait), (
        "what it gets is told to nobody yet"
    )
    assert with_new(*known, new) == EmptyServers((new,))
    action = with_new(*known, replace(new, outdated=False))
    assert peers_set(action) == {0: (1, 2), 1: (0, 2)}
    assert isinstance(action, SetPeers)
    assert not any(each.peers.joining for each in action.changes)


def test_a_new_one_is_marked_to_be_emptied_once_clients_may_have_two_lists() -> None:
    for last, is_marked in ((published(-40), True), (CONNECTING, False)):
        action = decide_handover(situation(last, 3, 2, (*connected(0, 1), server(2, ready=None))))
        assert isinstance(action, SetPeers)
        assert [each.outdated for each in action.changes] == [is_marked]


@pytest.mark.parametrize("peers", [None, ()])
def test_one_that_others_do_not_know_is_marked_as_outdated_first(peers: Sequence[int] | None) -> None:
    new = server(2, peers, ready=JUST_NOW_S)
    action = decide_handover(situation(published(-40), 3, 3, (*connected(0, 1), new)))
    assert peers_set(action) == {2: ()}
    assert isinstance(action, SetPeers)
    assert action.changes[0].outdated


def test_of_two_the_one_that_was_never_away_keeps_its_items() -> None:
    back = server(1, (0,), ready=JUST_NOW_S, outdated=True)
    assert emptied(situation(published(-40), 2, 2, (server(0, ()), back))) == ("s-1",)


@pytest.mark.parametrize("last", [published(-40), published(-4), CONNECTING])
def test_a_server_that_is_not_ready_or_gone_leaves_all_others_at_once(last: HandoverStatus) -> None:
    away = replace(connected(0, 1, 2)[2], ready_since_s=None)
    others = connected(0, 1, 2)[:2]
    if last.step is HandoverStep.PUBLISHED:
        marked = decide_handover(situation(last, 3, 2, (*others, away)))
        assert marked == SetPeers((PeersChange(away, Peers(1, (address(0), address(1))), outdated=True),)), (
            "before others drop it"
        )
        away = replace(away, outdated=True)
    assert peers_set(decide_handover(situation(last, 3, 2, (*others, away)))) == {0: (1,), 1: (0,)}
    assert peers_set(decide_handover(situation(last, 3, 2, others))) == {0: (1,), 1: (0,)}


def test_where_no_server_is_ready_all_keep_their_peers_and_their_items() -> None:
    """As where a node, or the API server's sight of it, was away for a moment."""
    away = [replace(each, ready_since_s=None) for each in connected(0, 1, 2)]
    assert isinstance(decide_handover(situation(published(-40), 3, 3, away)), HandoverWait)
    back = [replace(each, ready_since_s=JUST_NOW_S) for each in away]
    assert isinstance(decide_handover(situation(published(-40), 3, 3, back)), HandoverWait)


@pytest.mark.parametrize(("last", "size"), [(COMPLETE, 3), (PREPARING, 4), (DISCONNECTING, 3)])
def test_one_that_comes_back_later_is_emptied_all_the_same(last: HandoverStatus, size: int) -> None:
    back = server(2, (), ready=JUST_NOW_S, outdated=True)
    assert emptied(situation(last, size, 3, (*hidden(2), back))) == ("s-2",)


def test_one_that_has_yet_to_read_that_it_has_no_peers_is_emptied_once_more_when_it_has() -> None:
    back = server(2, (), ready=JUST_NOW_S, outdated=True, emptied=True, confirms=False)
    found = situation(COMPLETE, 3, 3, (*hidden(2), back))
    assert decide_handover(found) == HandoverWait(Awaited.CONFIRMATIONS, 0.5, ("s-2",))
    late = replace(back, ready_since_s=LONG_AGO_S)
    assert decide_handover(replace(found, servers=(*hidden(2), late))) == EmptyServers((late,))


@pytest.mark.parametrize(("name", "others"), [(HandoverStep.PREPARING, fresh(3)), (HandoverStep.CONNECTING, hidden(3))])
def test_one_that_cannot_be_emptied_keeps_the_list_for_a_while(
    name: HandoverStep, others: Sequence[HandoverServer]
) -> None:
    back = server(3, (), outdated=True)
    late = situation(step(name, 1 - READY_WITHIN_S), 4, 3, (*others, back))
    assert decide_handover(late) == EmptyServers((back,), is_last=False)
    expected = GiveUp(step(HandoverStep.COMPLETE, 0, FOR_S), GivenUp.NOT_PURGED, ("s-3",))
    assert decide_handover(replace(late, last=step(name, -READY_WITHIN_S))) == expected


def test_peers_are_taken_away_before_a_server_is_emptied() -> None:
    back = server(2, (), outdated=True)
    assert peers_set(decide_handover(situation(DISCONNECTING, 3, 3, (*connected(0, 1), back)))) == {0: (), 1: ()}


def test_without_the_right_to_change_pods_no_server_is_emptied_while_the_list_waits() -> None:
    back = server(3, (), outdated=True)
    found = decide_handover(situation(CONNECTING, 4, 3, (*hidden(3), back), is_refused=True))
    assert isinstance(found, GiveUp)
    assert found.why is GivenUp.REFUSED


@pytest.mark.parametrize("last", [step(HandoverStep.PREPARING, -9999), step(HandoverStep.CONNECTING, -9999)])
def test_what_no_leader_did_has_its_time_from_the_next_one_on(last: HandoverStatus) -> None:
    def led_for(led_s: float) -> Action:
        servers = (*hidden(4), server(4, ready=None))
        return decide_handover(situation(last, 5, 3, servers, waits_since=NOW - timedelta(seconds=led_s)))

    assert not isinstance(led_for(READY_WITHIN_S - 1), GiveUp)
    assert isinstance(led_for(READY_WITHIN_S), GiveUp)


def test_peers_that_cannot_be_taken_away_do_not_keep_the_list_from_its_next_change() -> None:
    found = situation(COMPLETE, 4, 3, connected(0, 1, 2), origin=StatusOrigin.OWN)
    assert advanced(decide_handover(found)) is HandoverStep.PREPARING
    assert isinstance(decide_handover(replace(found, size=3)), SetPeers)


def test_servers_have_their_time_to_get_ready_once_they_are_waited_for() -> None:
    def awaited_for(after_s: float) -> Action:
        last = step(HandoverStep.PREPARING, -READY_WITHIN_S - 700, -after_s - MARKER_TTL_S)
        return decide_handover(situation(last, 4, 2, (*fresh(3), server(3, ready=None))))

    assert awaited_for(READY_WITHIN_S - 1) == HandoverWait(Awaited.SERVERS, 1, ("s-3",))
    assert isinstance(awaited_for(READY_WITHIN_S), GiveUp)


@pytest.mark.parametrize("text", ["yesterday", "2026-11-28", "0000", ""])
def test_of_a_time_that_another_client_made_unreadable_the_latest_counts(text: str) -> None:
    for last in (HandoverStatus(HandoverStep.PUBLISHED, text, text), HandoverStatus(HandoverStep.PUBLISHED, text)):
        assert decide_handover(situation(last, 3, 3, connected(0, 1, 2))) == Advance(step(last.step, 0, FOR_S))
