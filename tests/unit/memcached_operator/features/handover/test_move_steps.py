"""Steps of a move, as a table: what is seen of the server, of its holder and of the template, and what comes next."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from memcached_operator.api.status import MoveStep
from memcached_operator.core.objects.holder import HELD_NAME_MAX_LENGTH
from memcached_operator.core.observed.pod_status import NO_PROBLEM
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.features.handover.move.move_steps import (
    BEGUN_S,
    CLOSED_WITHIN_S,
    HOLDER_WITHIN_S,
    LAST_S,
    LEAST_S,
    REPLACED_WITHIN_S,
    UNANSWERED_S,
    decide_move,
    dismissed,
    unserved,
)
from memcached_operator.features.handover.move.situation import (
    FEW,
    AbandonMove,
    Await,
    Copied,
    Copy,
    End,
    Ending,
    Holder,
    MoveAction,
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
from memcached_operator.features.handover.situation import READY_WITHIN_S, Peers
from memcached_operator.servers.transport import Transport

HANDS_OVER = Transport(peers_port=True)


def made(name: str, uid: str, address: str, **fields: Any) -> PodRecord:
    pod = PodRecord(
        namespace="shop", name=name, uid=uid, resource_version="1", memcached="shop", revision="r", active=True,
        ready=True, problem=NO_PROBLEM, ordinal=1, address=address,
    )  # fmt: skip
    return msgspec.structs.replace(pod, transport=HANDS_OVER, placed=True, **fields)


OLD, NEW = made("a-1", "old", "10.0.0.1"), made("a-1", "new", "10.0.0.2", holder="h")
HELD = made("h-0", "h", "10.9.0.1")
HIDDEN, BORN, HOLDS = Peers(4), Peers(1, (HELD.address,)), Peers(1, (OLD.address,))
OTHER = MovingServer(made("a-0", "other", "10.0.0.0"), Peers(7), 5.0)
FRESH, WHOLE, FAR = Copied(), Copied((500, 0), 900), Copied((5000,), 9000)


def old(peers: Peers | None = HIDDEN, confirmed_s: float | None = 5.0, **fields: Any) -> MovingServer:
    return MovingServer(msgspec.structs.replace(OLD, **fields), peers, confirmed_s)


def new(peers: Peers | None = BORN, confirmed_s: float | None = 5.0, **fields: Any) -> MovingServer:
    return MovingServer(msgspec.structs.replace(NEW, **fields), peers, confirmed_s)


def holder(peers: Peers = HOLDS, confirmed_s: float | None = 5.0, **fields: Any) -> Holder:
    silent_s = fields.pop("silent_s", 0.0)
    return Holder(
        "a-1", "old", server=MovingServer(msgspec.structs.replace(HELD, **fields), peers, confirmed_s, silent_s)
    )


ALONE = Holder("a-1", "old")
FORGOT = holder(Peers(2))
HAS, CLOSED = Peers(6, (HELD.address,)), Peers(7, (HELD.address,), is_closed=True)


def seen(server: MovingServer | None, held: Holder | None, made_with: str = "h", **fields: Any) -> MoveSituation:
    servers = (OTHER,) if server is None else (OTHER, server)
    begun = MoveSituation(True, 0.0, "old", servers, frozenset(("old", "other")), held, made_with)
    return replace(begun, **fields)


def copied(step: MoveStep, passes: Copied) -> dict[str, Any]:
    return {"copied": {step: passes}}


COPYING, CLOSING, RESTORING = MoveStep.COPYING, MoveStep.CLOSING, MoveStep.RESTORING
GIVEN_UP: dict[str, Any] = {"given_up": frozenset(("old",))}
RUNNING = replace(FAR, is_running=True)
THERE, LEFT = holder().server or OTHER, FORGOT.server or OTHER
CLOSES = Peers(7, (HELD.address,), is_closed=True)


def copying(passes: Copied, **fields: Any) -> MoveSituation:
    """An old server that has the holder as a peer."""
    return seen(old(HAS), holder(), **copied(COPYING, passes), **fields)


def closing(passes: Copied, confirmed_s: float = 1.0, **fields: Any) -> MoveSituation:
    """One that takes no writes any more."""
    return seen(old(CLOSED, confirmed_s), holder(), **copied(CLOSING, passes), **fields)


def restoring(passes: Copied) -> MoveSituation:
    return seen(new(), FORGOT, **copied(RESTORING, passes))


NEXT: list[tuple[str, MoveSituation, Any]] = [
    ("nothing is to be replaced", seen(old(), None, "", next_uid=""), NoMove()),
    ("nobody knows yet", seen(old(), None, "", next_uid=None), NoMove()),
    ("moves are not desired", seen(old(), None, "", wanted=False), NoMove()),
    ("it was given up", seen(old(), None, "", **GIVEN_UP), NoMove()),
    ("it is not ready", seen(old(ready=False), None, ""), NoMove()),
    ("a hand-over is under way", seen(old(), None, "", begins_in_s=None), NoMove()),
    ("a former list has clients", seen(old(), None, "", begins_in_s=9.0), Await(MoveAwaited.FORMER_CLIENTS, 9.0)),
    ("it has no proxy", seen(old(transport=Transport()), None, ""), AbandonMove(NotMoved.UNSUPPORTED)),
    ("it is to be purged", seen(old(), None, ""), PurgeServer(old())),
    ("it was purged", seen(old(), None, "", purged=frozenset(("old",))), Await(MoveAwaited.HOLDER)),
    ("the holder has no pod", seen(old(), ALONE, ""), Await(MoveAwaited.HOLDER)),
    ("the holder is not ready", seen(old(), holder(ready=False), ""), Await(MoveAwaited.HOLDER)),
    ("the holder does not confirm", seen(old(), holder(confirmed_s=None), ""), Await(MoveAwaited.HOLDER)),
    ("the server has no file", seen(old(None, None), holder(), ""), Tell(old(None, None), Peers(1))),
    ("it hides", seen(old(confirmed_s=None), holder(), ""), Await(MoveAwaited.CONFIRMATION)),
    ("it has hidden", seen(old(), holder(), ""), Tell(old(), Peers(5, (HELD.address,)))),
    ("it connects", seen(old(HAS, None), holder(), ""), Await(MoveAwaited.CONFIRMATION)),
    ("what began before goes on", seen(old(HAS, BEGUN_S - 0.5), holder(), ""), Await(MoveAwaited.BEGUN, 0.5)),
    ("the template comes before a copy", seen(old(HAS), holder(), ""), Await(MoveAwaited.TEMPLATE)),
    ("nothing is copied", seen(old(HAS), holder()), Copy(old(HAS), THERE)),
    ("a pass is under way", copying(RUNNING), Await(MoveAwaited.COPY)),
    ("much lacks", copying(FAR), Copy(old(HAS), THERE)),
    ("little lacks", copying(Copied((FEW - 1,), 9)), Tell(old(HAS), CLOSES)),
    ("as much lacks as is written", copying(Copied((9000, 900, 800), 9)), Tell(old(HAS), CLOSES)),
    ("another is next", copying(WHOLE, next_uid=""), Await(MoveAwaited.TURN)),
    ("passes fail", copying(Copied(failures=3)), AbandonMove(NotMoved.NOT_COPIED)),
    ("it closes", seen(old(CLOSED, None), holder()), Await(MoveAwaited.CONFIRMATION)),
    ("it has closed", seen(old(CLOSED, 1.0), holder()), Copy(old(CLOSED, 1.0), THERE)),
    ("nothing lacks", closing(WHOLE), Release()),
    ("it is closed for long", closing(FAR, CLOSED_WITHIN_S + 1), Release()),
    ("it is not replaced", closing(WHOLE, REPLACED_WITHIN_S + 1), AbandonMove(NotMoved.NOT_REPLACED)),
    (
        "its turn is over",
        seen(old(CLOSED), holder(), next_uid="", **copied(CLOSING, WHOLE)),
        Tell(old(CLOSED), Peers(8, (HELD.address,))),
    ),
    (
        "it is not to be replaced any more",
        seen(old(HAS), holder(), stale=frozenset(), next_uid=""),
        AbandonMove(NotMoved.UNNEEDED),
    ),
    ("moves are not desired any more", seen(old(HAS), holder(), wanted=False), AbandonMove(NotMoved.UNNEEDED)),
    (
        "the holder is silent",
        seen(old(HAS), holder(confirmed_s=None, silent_s=2.0)),
        AbandonMove(NotMoved.HOLDER_FAILED),
    ),
    ("the holder is gone", seen(old(HAS), ALONE), AbandonMove(NotMoved.HOLDER_FAILED)),
    ("a holder that is given up is marked", seen(old(HAS), holder(), **GIVEN_UP), Tell(THERE, Peers(2))),
    ("then the template forgets it", seen(old(HAS), FORGOT), Await(MoveAwaited.TEMPLATE)),
    ("then the server", seen(old(HAS), FORGOT, ""), Tell(old(HAS), Peers(7))),
    ("the server confirms that", seen(old(Peers(7), None), FORGOT, ""), Await(MoveAwaited.CONFIRMATION)),
    ("or does not", seen(old(Peers(7), None), FORGOT, "", unconfirmed=frozenset(("old",))), End()),
    ("then the holder goes", seen(old(Peers(7)), FORGOT, ""), End()),
    ("the holder is going", seen(old(), replace(ALONE, is_deleting=True), ""), Await(MoveAwaited.HOLDER_GONE)),
    ("a template that another holder left", seen(old(), None), Await(MoveAwaited.TEMPLATE)),
    ("the server is gone", seen(None, holder()), Tell(THERE, Peers(2))),
    ("the new one is awaited", seen(None, FORGOT), Await(MoveAwaited.SUCCESSOR)),
    ("the new one is not made", seen(None, FORGOT, **GIVEN_UP), Await(MoveAwaited.TEMPLATE)),
    ("so the holder goes", seen(None, FORGOT, "", **GIVEN_UP), End()),
    ("the new one starts", seen(new(ready=False), FORGOT), Await(MoveAwaited.SUCCESSOR)),
    ("the new one does not confirm", seen(new(confirmed_s=None), FORGOT), Await(MoveAwaited.CONFIRMATION)),
    ("nothing is copied back", seen(new(), FORGOT), Copy(LEFT, new())),
    ("much lacks there", restoring(FAR), Copy(LEFT, new())),
    ("nothing lacks there", restoring(WHOLE), Await(MoveAwaited.TEMPLATE)),
    ("it is full", restoring(Copied((9, 5, 5), 9)), Await(MoveAwaited.TEMPLATE)),
    ("its controller is behind", seen(new(), FORGOT, "", is_observed=False), Await(MoveAwaited.TEMPLATE)),
    ("new servers are made without the holder", seen(new(), FORGOT, ""), Tell(new(), Peers(2))),
    ("it forgets the holder", seen(new(Peers(2), None), FORGOT, ""), Await(MoveAwaited.CONFIRMATION)),
    ("it has forgotten", seen(new(Peers(2)), FORGOT, ""), End(has_moved=True)),
    ("it was not born with the holder", seen(new(Peers(1), holder=""), FORGOT, ""), End(not_moved=NotMoved.ENDED)),
    ("nor is the next", seen(new(Peers(1), holder=""), FORGOT), Await(MoveAwaited.TEMPLATE)),
    ("the holder fails then", seen(new(), holder(Peers(2), silent_s=2.0)), AbandonMove(NotMoved.HOLDER_FAILED)),
    ("the holder is gone then", seen(new(), ALONE), Await(MoveAwaited.TEMPLATE)),
    (
        "another has it as a peer",
        seen(new(Peers(2)), FORGOT, "", servers=(new(Peers(2)), replace(OTHER, peers=HAS))),
        Tell(replace(OTHER, peers=HAS), Peers(7)),
    ),
]


def ends(server: MovingServer, left_s: float = 200.0, grace_s: float = 300.0) -> MovingServer:
    return replace(server, ending=Ending(left_s, grace_s))


def told_to_end(server: MovingServer | None, held: Holder | None, made_with: str = "h", **fields: Any) -> MoveSituation:
    """What the rollout says is of no matter, as where its pod was made from the present template."""
    return seen(server, held, made_with, **{"next_uid": "", "stale": frozenset(), "wanted": False} | fields)


def silent(server: MovingServer) -> MovingServer:
    return replace(ends(server), silent_s=UNANSWERED_S + 1.0)


UNTIMELY = LAST_S - 1.0
ENDS, CONNECTED, LATE = ends(old()), ends(old(HAS)), ends(old(HAS), UNTIMELY)
ENDING: list[tuple[str, MoveSituation, Any]] = [
    ("it is purged", told_to_end(ENDS, None, ""), PurgeServer(ENDS)),
    (
        "it goes before the one of the rollout",
        told_to_end(ENDS, None, "", next_uid="other", wanted=True),
        PurgeServer(ENDS),
    ),
    (
        "it goes before one that moves for the rollout",
        seen(old(HAS), holder(), servers=(old(HAS), ends(OTHER))),
        AbandonMove(NotMoved.UNNEEDED),
    ),
    ("its holder starts", told_to_end(ENDS, ALONE, ""), Await(MoveAwaited.HOLDER)),
    ("it has hidden", told_to_end(ENDS, holder(), ""), Tell(ENDS, Peers(5, (HELD.address,)))),
    ("what was used lately is copied first", told_to_end(CONNECTED, holder()), Copy(CONNECTED, THERE, is_hot=True)),
    ("then all", told_to_end(CONNECTED, holder(), **copied(COPYING, Copied(has_hot=True))), Copy(CONNECTED, THERE)),
    ("little lacks", told_to_end(CONNECTED, holder(), **copied(COPYING, WHOLE)), Tell(CONNECTED, CLOSES)),
    ("nothing lacks", told_to_end(ends(old(CLOSED, 1.0)), holder(), **copied(CLOSING, WHOLE)), Release()),
    ("it has no address", told_to_end(ends(old(address="")), None, ""), AbandonMove(NotMoved.NOT_READY)),
    (
        "it answers, and another of its containers has ended before it",
        told_to_end(ends(old(ready=False)), None, ""),
        PurgeServer(ends(old(ready=False))),
    ),
    ("it ended before its pod, after all was copied", told_to_end(silent(old(CLOSED, None)), holder()), Release()),
    (
        "it ended before new servers were made with the holder",
        told_to_end(silent(old(HAS, None)), holder(), ""),
        Await(MoveAwaited.CONFIRMATION),
    ),
    (
        "others changed what it has",
        told_to_end(ends(old(outdated_items=True)), None, ""),
        AbandonMove(NotMoved.NOT_READY),
    ),
    ("it does not answer", told_to_end(silent(old()), None, ""), AbandonMove(NotMoved.UNANSWERED)),
    ("a hand-over is under way", told_to_end(ENDS, None, "", begins_in_s=None), AbandonMove(NotMoved.HANDOVER)),
    (
        "a former list has clients for longer",
        told_to_end(ENDS, None, "", begins_in_s=190.0),
        AbandonMove(NotMoved.HANDOVER),
    ),
    (
        "a former list has clients for a moment",
        told_to_end(ENDS, None, "", begins_in_s=100.0),
        Await(MoveAwaited.FORMER_CLIENTS, 100.0),
    ),
    ("it has no time", told_to_end(ends(old(), LEAST_S - 1.0), None, ""), AbandonMove(NotMoved.NO_TIME)),
    ("it was given up", told_to_end(ENDS, None, "", **GIVEN_UP), NoMove()),
    (
        "its time is over before it is purged",
        told_to_end(ends(old(), UNTIMELY), ALONE, ""),
        AbandonMove(NotMoved.NO_TIME),
    ),
    (
        "its time is over before the template has the holder",
        told_to_end(LATE, holder(), ""),
        AbandonMove(NotMoved.NO_TIME),
    ),
    ("its time is over while it is copied", told_to_end(LATE, holder(), **copied(COPYING, RUNNING)), Release()),
    ("its time is over while it is closed", told_to_end(ends(old(CLOSED, 1.0), UNTIMELY), holder()), Release()),
    (
        "its time is over, and the holder does not answer for a moment",
        told_to_end(LATE, holder(confirmed_s=None)),
        Release(),
    ),
    (
        "its time is over, and the holder is silent",
        told_to_end(LATE, holder(confirmed_s=None, silent_s=9.0)),
        AbandonMove(NotMoved.HOLDER_FAILED),
    ),
    ("its time is over, and the holder is given up", told_to_end(LATE, FORGOT), Await(MoveAwaited.TEMPLATE)),
    (
        "the former holder is going",
        told_to_end(ENDS, Holder("a-0", "x", is_deleting=True), ""),
        Await(MoveAwaited.HOLDER_GONE),
    ),
]


@pytest.mark.parametrize(("situation", "action"), [each[1:] for each in ENDING], ids=[each[0] for each in ENDING])
def test_a_server_whose_pod_waits_goes_through_the_same_steps(situation: MoveSituation, action: MoveAction) -> None:
    assert decide_move(situation).action == action


@pytest.mark.parametrize(("grace_s", "limit_s"), [(300.0, 60.0), (60.0, 15.0), (3600.0, 60.0)])
def test_a_pod_that_waits_gives_a_holder_a_quarter_of_its_time(grace_s: float, limit_s: float) -> None:
    server = ends(old(), grace_s=grace_s)
    for held in (None, ALONE):
        waits = decide_move(told_to_end(server, held, "", purged=frozenset(("old",))))
        assert (waits.limit_s, waits.late) == (limit_s, NotMoved.HOLDER_NOT_READY)
    assert decide_move(seen(old(), ALONE, "")).limit_s == HOLDER_WITHIN_S


def test_a_pod_that_waits_is_purged_in_half_of_its_time() -> None:
    assert decide_move(told_to_end(ends(old(), grace_s=60.0), None, "")).limit_s == 30.0
    assert decide_move(seen(old(), None, "")).limit_s == READY_WITHIN_S


@pytest.mark.parametrize(
    ("server", "held", "expected"),
    [
        (ends(OTHER, UNTIMELY), holder(), ["a-0"]),
        (ends(OTHER, LAST_S + 1.0), holder(), []),
        (OTHER, holder(), []),
        (ends(OTHER, UNTIMELY), None, []),
    ],
)
def test_a_pod_whose_turn_did_not_come_in_time(server: MovingServer, held: Holder | None, expected: list[str]) -> None:
    situation = told_to_end(LATE, held, servers=(LATE, server))
    assert [each.pod.name for each in unserved(situation)] == expected
    assert not unserved(replace(situation, given_up=frozenset(("other",))))


@pytest.mark.parametrize(
    ("situation", "may_end"),
    [
        (told_to_end(ENDS, None, ""), False),
        (told_to_end(ENDS, None, "", **GIVEN_UP), True),
        (told_to_end(CONNECTED, holder(), **GIVEN_UP), False),
        (told_to_end(CONNECTED, FORGOT, **GIVEN_UP), False),
        (told_to_end(CONNECTED, FORGOT, "", is_observed=False, **GIVEN_UP), False),
        (told_to_end(CONNECTED, FORGOT, "", **GIVEN_UP), True),
        (told_to_end(CONNECTED, Holder("a-0", "x"), **GIVEN_UP), True),
        (told_to_end(ends(old(CLOSED, 1.0)), holder(), **copied(CLOSING, WHOLE)), True),
        (told_to_end(ends(old(CLOSED, 1.0)), holder(), **copied(CLOSING, FAR)), False),
        (seen(old(CLOSED, 1.0), holder(), **copied(CLOSING, WHOLE)), False),
    ],
)
def test_a_pod_ends_once_its_items_are_with_the_holder_or_nobody_is_made_with_one_that_was_given_up(
    situation: MoveSituation, may_end: bool
) -> None:
    found = dismissed(situation, decide_move(situation))
    assert [each.pod.uid for each in found] == ["old"] * may_end


def test_a_name_that_leaves_no_room_for_the_holders_moves_nothing() -> None:
    long = "a" * (HELD_NAME_MAX_LENGTH + 1)
    for server in (old(memcached=long), ends(old(memcached=long))):
        assert decide_move(seen(server, None, "")).action == AbandonMove(NotMoved.NAME_TOO_LONG)
    assert decide_move(seen(old(memcached=long[1:]), None, "")).action == PurgeServer(old(memcached=long[1:]))


@pytest.mark.parametrize(("situation", "action"), [each[1:] for each in NEXT], ids=[each[0] for each in NEXT])
def test_each_step_follows_from_what_is_seen(situation: MoveSituation, action: MoveAction) -> None:
    assert decide_move(situation).action == action


def test_a_new_server_that_finds_no_node_beside_the_holder_gets_its_room() -> None:
    waits = decide_move(seen(new(ready=False, placed=False), FORGOT))
    assert (waits.limit_s, waits.late) == (60.0, NotMoved.NO_SUCCESSOR)
    assert decide_move(seen(new(ready=False), FORGOT)).limit_s is None
    for held in (FORGOT, ALONE):
        waits = decide_move(seen(None, held))
        assert (waits.uid, waits.limit_s, waits.late) == ("old", 60.0, NotMoved.NO_SUCCESSOR)


def _any_server(chance: random.Random, build: Any, *peers: Peers | None) -> MovingServer:
    found: MovingServer = build(chance.choice(peers), chance.choice((None, 0.0, 5.0, 15.0, 60.0)))
    is_ready = chance.random() < 0.8
    return replace(found, pod=msgspec.structs.replace(found.pod, ready=is_ready, placed=chance.random() < 0.8))


def _any(chance: random.Random) -> MoveSituation:
    servers = [OTHER]
    kind = chance.randrange(3)
    if kind == 0:
        server = _any_server(chance, old, None, Peers(4), HAS, CLOSED, Peers(9, ("10.7.7.7",)))
        servers.append(ends(server, chance.choice((1.0, 20.0, 200.0))) if chance.random() < 0.4 else server)
    elif kind == 1:
        servers.append(_any_server(chance, new, None, Peers(1, (HELD.address,)), Peers(2)))
    held = chance.choice((None, ALONE, replace(ALONE, is_deleting=True), holder(), FORGOT, holder(confirmed_s=None)))
    passes = {
        step: chance.choice((FRESH, WHOLE, FAR, replace(FAR, is_running=True), Copied(failures=9))) for step in MoveStep
    }
    uids = frozenset(chance.sample(("old", "new", "other"), chance.randrange(3)))
    return MoveSituation(
        chance.choice((True, False, None)),
        chance.choice((None, 0.0, 9.0)),
        chance.choice((None, "", "old", "other")),
        servers,
        frozenset(("old",)) if chance.random() < 0.8 else frozenset(),
        held,
        chance.choice(("", "h", "another")),
        chance.random() < 0.8,
        uids if chance.random() < 0.5 else frozenset(),
        uids if chance.random() < 0.3 else frozenset(),
        frozenset(),
        passes,
    )


def _names_the_holder(situation: MoveSituation) -> bool:
    return any(HELD.address in (each.peers.addresses if each.peers else ()) for each in situation.servers)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_seen_no_step_leaves_out_what_makes_it_safe(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(500):
        situation = _any(chance)
        found = decide_move(situation)
        _check(situation, found)
        for each in dismissed(situation, found):
            is_released = isinstance(found.action, Release) and found.uid == each.pod.uid
            assert is_released or each.pod.uid in situation.given_up


def _check(situation: MoveSituation, found: MoveDecision) -> None:
    match found.action:
        case Copy(source, target):
            assert situation.made_with == HELD.uid, "new servers would be made without what is copied"
            told = target if target.pod.uid == "new" else source
            assert told.confirmed_s is not None, "a thread may not know the holder"
            assert told.is_connected
        case Tell(server, Peers(is_closed=True)):
            assert situation.made_with == HELD.uid
            assert server.is_connected
        case Release():
            server = next(each for each in situation.servers if each.pod.uid == "old")
            assert server.is_connected
            assert situation.made_with == HELD.uid
            is_closed = server.peers is not None and server.peers.is_closed
            assert is_closed or (server.ending is not None and server.ending.left_s < LAST_S)
        case Tell(server, Peers(addresses=())) if server.is_connected and server.pod.uid != HELD.uid:
            is_other = server.peers is not None and HELD.address not in server.peers.addresses
            is_made_without = situation.is_observed and not situation.made_with
            assert is_other or is_made_without, "a pod that is made now would ask what was forgotten"
        case Tell(server, Peers(addresses=addresses)) if addresses and not server.is_connected:
            assert server.pod.uid == "old", "a pod that was not born with a holder never gets it"
            assert server.confirmed_s is not None
            assert situation.holder is not None
            assert situation.holder.server is not None
            assert situation.holder.server.is_connected, "it was given up"
        case End():
            assert situation.is_observed
            assert not situation.made_with
            assert not _names_the_holder(situation)
