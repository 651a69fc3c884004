"""The rules of the election as tables: what follows from what, and when.

`test_lease_decision_model` has them in any order; here are those from which a reader learns them.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import NamedTuple

import pytest

from operator_runtime.election.lease_decision import (
    Action,
    Candidate,
    Event,
    Failed,
    Fetch,
    Fetched,
    Lead,
    Lease,
    LeaseConflict,
    Lost,
    Phase,
    ReleaseLease,
    Seen,
    State,
    Tick,
    WriteLease,
    Written,
    step,
    wake_at,
)
from operator_runtime.settings.timing import Timing

ME = Candidate("me", Timing(lease_s=15, renew_deadline_s=10.0, retry_s=2.0))
THEIRS = Lease("uid", "7", "them", 20.0, "then", 3)
THEIRS_AGAIN = replace(THEIRS, resource_version="8")
FREE = replace(THEIRS, holder="", resource_version="8")


def mine(version: str) -> Lease:
    return Lease("uid", version, "me", 15.0, "since", 4)


FETCH, DONE, MAKE = Fetch(), Phase.ENDED, WriteLease(None, "me", 15, None, 0)
THEY_HOLD = Lost("the Lease is held by them")
LATE = "it could not be renewed within 10 s"


def take(over: Lease) -> WriteLease:
    return WriteLease(over, "me", 15, None, 4)


def renew(version: str) -> WriteLease:
    return WriteLease(mine(version), "me", 15, "since", 4)


def let_go(version: str) -> WriteLease:
    return WriteLease(mine(version), "", 1, "since", 4)


def after(*events: tuple[float, Event]) -> State:
    """What a candidate knows after these events, each with its time."""
    state = State()
    for now, event in events:
        state, _ = step(ME, state, event, now)
    return state


FETCHING = after((0.0, Tick()))
_STANDBY = ((0.0, Tick()), (0.0, Fetched(THEIRS)))
STANDBY = after(*_STANDBY)
# It has asked for the right when that of the other had ended.
TAKING = after(*_STANDBY, (20.0, Tick()))
_LEADER = ((0.0, Tick()), (0.0, Fetched(FREE)), (0.0, Written(mine("9"))))
LEADER = after(*_LEADER)
RENEWING = after(*_LEADER, (2.0, Tick()))


class At(NamedTuple):
    """An event with its time, its actions, until when writes may go out and when a tick is due, where named."""

    now: float
    event: Event
    actions: tuple[Action | Phase, ...]
    until: float | None
    wake: float | None


def at(now: float, event: Event, *actions: Action | Phase, until: float | None = None, wake: float | None = None) -> At:
    return At(now, event, actions, until, wake)


Story = tuple[State, tuple[At, ...]]
Stories = dict[str, Story]


def story_of(state: State, *story: At) -> Story:
    return state, story


STANDING: Stories = {
    "it reads first": story_of(State(), at(5.0, Tick(), FETCH)),
    "one that is not there is made": story_of(FETCHING, at(1.0, Fetched(None), MAKE)),
    "one that is free is taken and the change counted": story_of(FETCHING, at(1.0, Fetched(FREE), take(FREE))),
    "one that bears its own name, as an answer was lost, is renewed with its time and count": story_of(
        FETCHING, at(1.0, Fetched(mine("9")), renew("9"))
    ),
    "one that is held is left alone until the holder's own length after it was seen": story_of(
        STANDBY, at(19.9, Tick(), wake=20.0), at(20.0, Tick(), take(THEIRS))
    ),
    "the wait begins anew with each change": story_of(STANDBY, at(10.0, Seen(THEIRS_AGAIN), wake=30.0)),
    "but not when the same record is seen again": story_of(STANDBY, at(10.0, Seen(THEIRS), wake=20.0)),
    "a release is acted on at once": story_of(STANDBY, at(0.5, Seen(FREE), take(FREE))),
    "one that is deleted may still be believed in by its holder": story_of(
        STANDBY, at(10.0, Seen(None)), at(29.9, Tick()), at(30.0, Tick(), MAKE)
    ),
    "one that was made and seen to be gone before the answer came is no right": story_of(
        FETCHING,
        at(1.0, Fetched(None), MAKE),
        at(1.1, Seen(None)),
        at(1.2, Written(mine("9")), FETCH, until=-inf),
        at(1.3, Fetched(None), MAKE),
    ),
    "a conflict is lost and read after a while": story_of(
        TAKING, at(20.1, LeaseConflict(), wake=22.0), at(22.0, Tick(), FETCH)
    ),
    "after a conflict what the watch showed meanwhile is believed": story_of(
        TAKING, at(20.1, Seen(replace(THEIRS_AGAIN, holder="third"))), at(20.2, LeaseConflict(), wake=40.1)
    ),
    "an answer that the watch has overtaken is requested again, as the release may be the newer": story_of(
        FETCHING, at(0.1, Seen(FREE)), at(0.2, Fetched(THEIRS), FETCH), at(0.3, Fetched(FREE), take(FREE))
    ),
    "it waits for as long as the server asks": story_of(FETCHING, at(0.5, Failed("429", 30.0), wake=30.5)),
    "a write whose fate is not known is looked into before the next": story_of(
        TAKING, at(25.0, Failed("reset"), FETCH)
    ),
    "tries that fail at once are a while apart": story_of(
        FETCHING, at(0.1, Failed("refused")), at(1.9, Tick()), at(2.0, Tick(), FETCH)
    ),
    "an answer that took longer than the right lasts is no right": story_of(
        FETCHING, at(0.0, Fetched(FREE), take(FREE)), at(10.0, Written(mine("9")), renew("9"), until=-inf)
    ),
    "while a request is under way there is no second": story_of(
        FETCHING, at(3.0, Tick()), at(3.0, Seen(FREE), wake=inf)
    ),
}

LEADING: Stories = {
    "the right to write counts from before the request": story_of(
        FETCHING, at(100.0, Fetched(FREE), take(FREE)), at(104.0, Written(mine("9")), Lead(), until=110.0)
    ),
    "it is renewed each while with its time and count": story_of(
        LEADER,
        at(1.9, Tick(), wake=2.0),
        at(2.0, Tick(), renew("9")),
        at(2.5, Written(mine("10")), until=12.0),
        at(4.0, Tick(), renew("10")),
    ),
    "a renewal that fails is tried again until the right ends": story_of(
        RENEWING,
        at(7.0, Failed("no answer within 5 s"), renew("9"), wake=10.0),
        at(10.0, Tick(), Lost(f"{LATE}: no answer within 5 s"), until=-inf),
    ),
    "there is no time to wait for as long as the server asks": story_of(
        RENEWING, at(2.1, Failed("429", 30.0), wake=4.0)
    ),
    "one that slept past its right has lost": story_of(RENEWING, at(50.0, Tick(), Lost(LATE))),
    "also where the watch comes first": story_of(RENEWING, at(50.0, Seen(THEIRS), Lost(LATE))),
    "also where a failure comes first": story_of(RENEWING, at(50.0, Failed("reset"), Lost(f"{LATE}: reset"))),
    "a conflict is looked into at once, and what is still ours renewed": story_of(
        RENEWING,
        at(2.1, LeaseConflict(), FETCH),
        at(2.2, Fetched(mine("11")), renew("11")),
        at(2.3, Written(mine("12")), until=12.2),
    ),
    "one that is held by another is lost": story_of(
        RENEWING, at(2.1, LeaseConflict(), FETCH), at(2.2, Fetched(THEIRS), THEY_HOLD)
    ),
    "one that is gone is made again, and another may be making it": story_of(
        RENEWING,
        at(2.1, LeaseConflict(), FETCH),
        at(2.2, Fetched(None), MAKE, until=-inf),
        at(2.3, Written(mine("12")), until=12.2),
    ),
    "one that is stored with another holder is lost": story_of(
        RENEWING, at(2.1, Written(THEIRS), Lost("the Lease was stored with another holder"))
    ),
    "one that is seen in other hands is looked into, not written for, and lost": story_of(
        LEADER, at(1.0, Seen(THEIRS), FETCH, until=-inf, wake=10.0), at(1.1, Fetched(THEIRS), THEY_HOLD)
    ),
    "one that was seen to be deleted is made again before anything is written": story_of(
        LEADER,
        at(1.0, Seen(None), FETCH, until=-inf, wake=10.0),
        at(1.1, Fetched(None), MAKE, until=-inf),
        at(1.2, Written(mine("12")), until=11.1),
    ),
    "what the watch shows late costs a read": story_of(
        LEADER, at(1.0, Seen(THEIRS), FETCH), at(1.1, Fetched(mine("9")), renew("9"), until=10.0)
    ),
    "a renewal that was under way, and may have been taken before an edit, does not settle what was seen": story_of(
        RENEWING,
        at(2.1, Seen(FREE), until=-inf),
        at(2.2, Written(mine("10")), FETCH, until=-inf),
        at(2.3, Fetched(mine("10")), renew("10"), until=12.0),
    ),
    "its own renewals are no news": story_of(
        RENEWING, at(2.1, Seen(mine("10")), until=10.0), at(2.2, Written(mine("10")), until=12.0)
    ),
}

_RELEASING = at(1.0, ReleaseLease(), let_go("9"), until=-inf)
RELEASING: Stories = {
    "the right ends before the lease is let go": story_of(
        LEADER, _RELEASING, at(1.1, Written(replace(mine("10"), holder="")), DONE)
    ),
    "a renewal that is under way is waited for": story_of(
        RENEWING, at(2.1, ReleaseLease(), until=-inf), at(2.2, Written(mine("10")), let_go("10"))
    ),
    "a conflict is tried again after a read": story_of(
        LEADER, _RELEASING, at(1.1, LeaseConflict(), FETCH), at(1.2, Fetched(mine("11")), let_go("11"))
    ),
    "what is another's is not let go": story_of(
        LEADER, _RELEASING, at(1.1, LeaseConflict(), FETCH), at(1.2, Fetched(THEIRS), DONE)
    ),
    "a failure is tried again after a read": story_of(
        LEADER, _RELEASING, at(1.1, Failed("reset"), wake=3.0), at(3.0, Tick(), FETCH)
    ),
    "one that stands by has nothing to let go": story_of(STANDBY, at(1.0, ReleaseLease(), DONE)),
    "nor has one that never read": story_of(State(), at(1.0, ReleaseLease(), DONE)),
    "one that was just taking it waits for the answer and lets go": story_of(
        TAKING, at(20.1, ReleaseLease()), at(20.2, Written(mine("9")), let_go("9"), until=-inf)
    ),
    "one that may have taken it reads": story_of(TAKING, at(20.1, Failed("reset")), at(20.2, ReleaseLease(), FETCH)),
    "after the end nothing follows": story_of(
        STANDBY,
        *(
            [at(1.0, ReleaseLease(), DONE)]
            + [
                at(2.0, event, until=-inf, wake=inf)
                for event in (
                    Tick(),
                    Seen(FREE),
                    Fetched(None),
                    Written(mine("9")),
                    LeaseConflict(),
                    Failed("x"),
                    ReleaseLease(),
                )
            ]
        ),
    ),
}


@pytest.mark.parametrize(
    "story", [*STANDING.values(), *LEADING.values(), *RELEASING.values()], ids=[*STANDING, *LEADING, *RELEASING]
)
def test_what_follows(story: Story) -> None:
    state, moments = story
    for each in moments:
        before, (state, actions) = state, step(ME, state, each.event, each.now)
        ended = state.phase is DONE is not before.phase
        assert (actions or (DONE,) * ended) == each.actions, each
        assert each.until in (None, -inf if state.disputed else state.write_until), each
        assert each.wake in (None, wake_at(state)), each
        assert state.phase is Phase.ENDED or not any(isinstance(action, Lost) for action in actions)


def test_the_right_is_over_at_the_moment_at_which_it_ends() -> None:
    assert LEADER.may_write(9.9)
    assert not LEADER.may_write(10.0)
