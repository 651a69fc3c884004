"""The rules of the election as tables: what follows from what, and when."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from operator_runtime.election.leader import (
    Action,
    Candidate,
    Done,
    Event,
    Failed,
    Lead,
    Lease,
    Look,
    Looked,
    Lost,
    Phase,
    Refused,
    Release,
    Seen,
    State,
    Tick,
    Write,
    Written,
    step,
    wake_at,
)
from operator_runtime.election.timing import Timing

ME = Candidate("me", Timing(lease_s=15, renew_deadline_s=10.0, retry_s=2.0))
THEIRS = Lease("uid", "7", "them", 20.0, "then", 3)
FREE = replace(THEIRS, holder="", resource_version="8")


def mine(version: str, **changes: object) -> Lease:
    return replace(Lease("uid", version, "me", 15.0, "since", 4), **changes)  # type: ignore[arg-type]


class Scenario:
    """One candidate: each event is told with its time, and what it asks for is noted."""

    def __init__(self) -> None:
        self.state = State()
        self.actions: tuple[Action, ...] = ()

    def tell(self, now: float, event: Event) -> tuple[Action, ...]:
        self.state, self.actions = step(ME, self.state, event, now)
        return self.actions

    def stands_by(self, now: float = 0.0) -> Scenario:
        """It has seen that somebody else leads."""
        assert self.tell(now, Tick()) == (Look(),)
        assert self.tell(now, Looked(THEIRS)) == ()
        return self

    def leads(self, now: float = 0.0) -> Scenario:
        """It has taken a Lease that was free, by a request that was sent at `now` and answered at once."""
        self.tell(now, Tick())
        self.tell(now, Looked(FREE))
        assert self.tell(now, Written(mine("9"))) == (Lead(),)
        return self


@pytest.fixture
def looking() -> Scenario:
    """It has asked for the Lease at 0 s, for the first time."""
    scenario = Scenario()
    scenario.tell(0.0, Tick())
    return scenario


@pytest.fixture
def standby() -> Scenario:
    return Scenario().stands_by(100.0)


@pytest.fixture
def taking() -> Scenario:
    """It stood by from 0 s on, and has asked for the right at 20 s, when that of the other had ended."""
    scenario = Scenario().stands_by(0.0)
    scenario.tell(20.0, Tick())
    return scenario


@pytest.fixture
def leader() -> Scenario:
    return Scenario().leads(0.0)


@pytest.fixture
def renewing(leader: Scenario) -> Scenario:
    """It has led since 0 s, and has asked at 2 s to go on."""
    leader.tell(2.0, Tick())
    return leader


class TestTaking:
    def test_it_looks_first(self) -> None:
        assert Scenario().tell(5.0, Tick()) == (Look(),)

    def test_a_lease_that_is_not_there_is_made(self, looking: Scenario) -> None:
        assert looking.tell(1.0, Looked(None)) == (Write(None, "me", 15, None, 0),)

    def test_one_that_is_free_is_taken_and_the_change_counted(self, looking: Scenario) -> None:
        assert looking.tell(1.0, Looked(FREE)) == (Write(FREE, "me", 15, None, 4),)

    def test_one_that_bears_ones_own_name_is_renewed_with_its_time_and_count(self, looking: Scenario) -> None:
        """An earlier write of ours arrived, and its answer did not."""
        assert looking.tell(1.0, Looked(mine("9"))) == (Write(mine("9"), "me", 15, "since", 4),)

    def test_one_that_is_held_is_left_alone_until_the_holders_own_length_after_it_was_seen(
        self, standby: Scenario
    ) -> None:
        assert wake_at(standby.state) == 120.0
        assert standby.tell(119.9, Tick()) == ()
        assert standby.tell(120.0, Tick()) == (Write(THEIRS, "me", 15, None, 4),)

    def test_the_wait_begins_anew_with_each_change(self, standby: Scenario) -> None:
        assert standby.tell(110.0, Seen(replace(THEIRS, resource_version="8"))) == ()
        assert wake_at(standby.state) == 130.0

    def test_the_wait_does_not_begin_anew_when_the_same_record_is_seen_again(self, standby: Scenario) -> None:
        standby.tell(110.0, Seen(THEIRS))
        assert wake_at(standby.state) == 120.0

    def test_a_release_is_acted_on_at_once(self, standby: Scenario) -> None:
        assert standby.tell(100.5, Seen(FREE)) == (Write(FREE, "me", 15, None, 4),)

    def test_a_lease_that_is_deleted_may_still_be_believed_in_by_its_holder(self, standby: Scenario) -> None:
        assert standby.tell(110.0, Seen(None)) == ()
        assert standby.tell(129.9, Tick()) == ()
        assert standby.tell(130.0, Tick()) == (Write(None, "me", 15, None, 0),)

    def test_one_that_was_made_and_seen_to_be_gone_before_the_answer_came_is_no_right(self, looking: Scenario) -> None:
        looking.tell(1.0, Looked(None))
        looking.tell(1.1, Seen(None))
        assert looking.tell(1.2, Written(mine("9"))) == (Look(),)
        assert not looking.state.may_write(1.2)
        assert looking.tell(1.3, Looked(None)) == (Write(None, "me", 15, None, 0),)

    def test_a_conflict_is_lost_and_looked_at_after_a_while(self, taking: Scenario) -> None:
        assert taking.tell(20.1, Refused()) == ()
        assert wake_at(taking.state) == 22.0
        assert taking.tell(22.0, Tick()) == (Look(),)

    def test_after_a_conflict_what_the_watch_showed_meanwhile_is_believed(self, taking: Scenario) -> None:
        taking.tell(20.1, Seen(replace(THEIRS, resource_version="8", holder="third")))
        assert taking.tell(20.2, Refused()) == ()
        assert wake_at(taking.state) == 40.1

    def test_an_answer_that_the_watch_has_overtaken_is_asked_for_again(self, looking: Scenario) -> None:
        looking.tell(0.1, Seen(FREE))
        assert looking.tell(0.2, Looked(THEIRS)) == (Look(),), "the release may be the newer of the two"
        assert looking.tell(0.3, Looked(FREE)) == (Write(FREE, "me", 15, None, 4),)

    def test_an_answer_that_says_what_the_watch_said_is_good(self, looking: Scenario) -> None:
        looking.tell(0.1, Seen(FREE))
        assert looking.tell(0.2, Looked(FREE)) == (Write(FREE, "me", 15, None, 4),)

    def test_who_stands_by_waits_for_as_long_as_the_server_asks(self, looking: Scenario) -> None:
        assert looking.tell(0.5, Failed("429", 30.0)) == ()
        assert wake_at(looking.state) == 30.5

    def test_a_write_whose_fate_is_not_known_is_looked_into_before_the_next(self, taking: Scenario) -> None:
        assert taking.tell(25.0, Failed("no answer")) == (Look(),)

    def test_tries_that_fail_at_once_are_a_while_apart(self, looking: Scenario) -> None:
        assert looking.tell(0.1, Failed("refused")) == ()
        assert looking.tell(1.9, Tick()) == ()
        assert looking.tell(2.0, Tick()) == (Look(),)

    def test_an_answer_that_took_longer_than_the_right_lasts_is_no_right(self, looking: Scenario) -> None:
        looking.tell(0.0, Looked(FREE))
        assert looking.tell(10.0, Written(mine("9"))) == (Write(mine("9"), "me", 15, "since", 4),)
        assert not looking.state.may_write(10.0)

    def test_while_a_request_is_under_way_there_is_no_second(self, looking: Scenario) -> None:
        assert looking.tell(3.0, Tick()) == ()
        assert looking.tell(3.0, Seen(FREE)) == ()
        assert wake_at(looking.state) == inf


class TestLeading:
    def test_the_right_to_write_counts_from_before_the_request(self, looking: Scenario) -> None:
        looking.tell(100.0, Looked(FREE))
        looking.tell(104.0, Written(mine("9")))
        assert looking.state.may_write(109.9)
        assert not looking.state.may_write(110.0)

    def test_it_is_renewed_each_while_with_its_time_and_count(self) -> None:
        scenario = Scenario().leads(100.0)
        assert wake_at(scenario.state) == 102.0
        assert scenario.tell(102.0, Tick()) == (Write(mine("9"), "me", 15, "since", 4),)
        scenario.tell(102.5, Written(mine("10")))
        assert scenario.state.write_until == 112.0
        assert scenario.tell(104.0, Tick()) == (Write(mine("10"), "me", 15, "since", 4),)

    def test_a_renewal_that_fails_is_tried_again_until_the_right_ends(self, leader: Scenario) -> None:
        assert leader.tell(2.0, Tick()) != ()
        assert leader.tell(7.0, Failed("no answer within 5 s")) == (Write(mine("9"), "me", 15, "since", 4),)
        assert wake_at(leader.state) == 10.0
        (lost,) = leader.tell(10.0, Tick())
        assert lost == Lost("it could not be renewed within 10 s: no answer within 5 s")
        assert not leader.state.may_write(0.0)

    def test_a_leader_has_no_time_to_wait_for_as_long_as_the_server_asks(self, renewing: Scenario) -> None:
        renewing.tell(2.1, Failed("429", 30.0))
        assert wake_at(renewing.state) == 4.0

    def test_one_that_slept_past_its_right_has_lost_whatever_comes_first(self) -> None:
        for event in (Tick(), Seen(THEIRS), Failed("reset")):
            scenario = Scenario().leads(0.0)
            scenario.tell(2.0, Tick())
            (lost,) = scenario.tell(50.0, event)
            assert isinstance(lost, Lost)

    def test_a_conflict_is_looked_into_at_once(self, renewing: Scenario) -> None:
        assert renewing.tell(2.1, Refused()) == (Look(),)

    def test_a_lease_that_others_touched_and_left_to_us_is_renewed_at_once(self, renewing: Scenario) -> None:
        renewing.tell(2.1, Refused())
        assert renewing.tell(2.2, Looked(mine("11"))) == (Write(mine("11"), "me", 15, "since", 4),)
        renewing.tell(2.3, Written(mine("12")))
        assert renewing.state.write_until == 12.2

    @pytest.mark.parametrize(
        ("found", "why"), [(THEIRS, "the Lease is held by them"), (FREE, "the Lease was released")]
    )
    def test_one_that_is_no_longer_ours_is_lost(self, renewing: Scenario, found: Lease, why: str) -> None:
        renewing.tell(2.1, Refused())
        assert renewing.tell(2.2, Looked(found)) == (Lost(why),)
        assert renewing.state.phase is Phase.ENDED

    def test_one_that_is_gone_is_made_again(self, renewing: Scenario) -> None:
        renewing.tell(2.1, Refused())
        assert renewing.tell(2.2, Looked(None)) == (Write(None, "me", 15, None, 0),)
        assert not renewing.state.may_write(2.2), "somebody else may be making it"
        renewing.tell(2.3, Written(mine("12")))
        assert renewing.state.may_write(2.3)

    def test_one_that_is_stored_with_another_holder_is_lost(self, renewing: Scenario) -> None:
        assert renewing.tell(2.1, Written(THEIRS)) == (Lost("the Lease was stored with another holder"),)

    @pytest.mark.parametrize("found", [THEIRS, FREE, None])
    def test_one_that_is_seen_in_other_hands_is_looked_into_and_not_written_for(
        self, leader: Scenario, found: Lease | None
    ) -> None:
        assert leader.tell(1.0, Seen(found)) == (Look(),)
        assert not leader.state.may_write(1.0)
        assert wake_at(leader.state) == 10.0

    @pytest.mark.parametrize(
        ("found", "why"), [(THEIRS, "the Lease is held by them"), (FREE, "the Lease was released")]
    )
    def test_one_that_was_seen_in_other_hands_and_is_there_is_lost(
        self, leader: Scenario, found: Lease, why: str
    ) -> None:
        leader.tell(1.0, Seen(found))
        assert leader.tell(1.1, Looked(found)) == (Lost(why),)

    def test_one_that_was_seen_to_be_deleted_is_made_again_before_anything_is_written(self, leader: Scenario) -> None:
        leader.tell(1.0, Seen(None))
        assert leader.tell(1.1, Looked(None)) == (Write(None, "me", 15, None, 0),)
        assert not leader.state.may_write(1.1)
        leader.tell(1.2, Written(mine("12")))
        assert leader.state.may_write(1.2)
        assert leader.state.write_until == 11.1

    def test_what_the_watch_shows_late_costs_a_look(self, leader: Scenario) -> None:
        leader.tell(1.0, Seen(THEIRS))
        assert leader.tell(1.1, Looked(mine("9"))) == (Write(mine("9"), "me", 15, "since", 4),)
        assert leader.state.may_write(1.1)

    def test_a_look_that_fails_is_tried_again_until_the_right_ends(self, leader: Scenario) -> None:
        leader.tell(1.0, Seen(THEIRS))
        leader.tell(6.0, Failed("no answer within 5 s"))
        assert leader.actions == (Look(),)
        assert not leader.state.may_write(6.0)
        assert leader.tell(10.0, Tick()) == (Lost("it could not be renewed within 10 s: no answer within 5 s"),)

    def test_a_renewal_that_was_under_way_does_not_settle_what_was_seen(self, renewing: Scenario) -> None:
        """It may have been taken before somebody edited the Lease."""
        assert renewing.tell(2.1, Seen(FREE)) == ()
        assert not renewing.state.may_write(2.1)
        assert renewing.tell(2.2, Written(mine("10"))) == (Look(),)
        assert not renewing.state.may_write(2.2)
        renewing.tell(2.3, Looked(mine("10")))
        assert renewing.state.may_write(2.3)

    def test_a_look_that_was_under_way_does_not_settle_what_was_seen(self, leader: Scenario) -> None:
        leader.tell(1.0, Seen(THEIRS))
        leader.tell(1.1, Seen(FREE))
        assert leader.tell(1.2, Looked(mine("9"))) == (Look(),)
        assert not leader.state.may_write(1.2)

    def test_ones_own_renewals_are_no_news(self, renewing: Scenario) -> None:
        assert renewing.tell(2.1, Seen(mine("10"))) == ()
        assert renewing.state.may_write(2.1)
        assert renewing.tell(2.2, Written(mine("10"))) == ()

    def test_one_that_is_seen_in_other_hands_while_it_is_taken_is_looked_into_first(self, taking: Scenario) -> None:
        taking.tell(20.1, Seen(replace(FREE, resource_version="11")))
        assert taking.tell(20.2, Written(mine("10"))) == (Look(),)
        assert not taking.state.may_write(20.2)
        assert taking.tell(20.3, Looked(mine("10"))) == (Write(mine("10"), "me", 15, "since", 4),)
        assert taking.tell(20.4, Written(mine("12"))) == (Lead(),)


class TestReleasing:
    def test_the_right_ends_before_the_lease_is_let_go(self, leader: Scenario) -> None:
        assert leader.tell(1.0, Release()) == (Write(mine("9"), "", 1, "since", 4),)
        assert not leader.state.may_write(1.0)
        assert leader.tell(1.1, Written(mine("10", holder=""))) == (Done(),)
        assert leader.state.phase is Phase.ENDED

    def test_a_renewal_that_is_under_way_is_waited_for(self, renewing: Scenario) -> None:
        assert renewing.tell(2.1, Release()) == ()
        assert not renewing.state.may_write(2.1)
        assert renewing.tell(2.2, Written(mine("10"))) == (Write(mine("10"), "", 1, "since", 4),)

    def test_a_conflict_is_tried_again_after_a_look(self, leader: Scenario) -> None:
        leader.tell(1.0, Release())
        assert leader.tell(1.1, Refused()) == (Look(),)
        assert leader.tell(1.2, Looked(mine("11"))) == (Write(mine("11"), "", 1, "since", 4),)

    @pytest.mark.parametrize("found", [THEIRS, FREE, None])
    def test_what_is_not_ours_is_not_let_go(self, leader: Scenario, found: Lease | None) -> None:
        leader.tell(1.0, Release())
        leader.tell(1.1, Refused())
        assert leader.tell(1.2, Looked(found)) == (Done(),)

    def test_a_failure_is_tried_again_after_a_look(self, leader: Scenario) -> None:
        leader.tell(1.0, Release())
        leader.tell(1.1, Failed("reset"))
        assert wake_at(leader.state) == 3.0
        assert leader.tell(3.0, Tick()) == (Look(),)

    def test_one_that_stands_by_has_nothing_to_let_go(self) -> None:
        assert Scenario().stands_by().tell(1.0, Release()) == (Done(),)
        assert Scenario().tell(1.0, Release()) == (Done(),)

    def test_one_that_was_just_taking_it_waits_for_the_answer_and_lets_go(self, taking: Scenario) -> None:
        assert taking.tell(20.1, Release()) == ()
        assert taking.tell(20.2, Written(mine("9"))) == (Write(mine("9"), "", 1, "since", 4),)
        assert not taking.state.may_write(20.2)

    def test_one_that_may_have_taken_it_looks(self, taking: Scenario) -> None:
        taking.tell(20.1, Failed("reset"))
        assert taking.tell(20.2, Release()) == (Look(),)

    def test_one_that_has_taken_it_and_looks_whether_it_still_has_it_lets_go(self, taking: Scenario) -> None:
        taking.tell(20.1, Seen(replace(FREE, resource_version="11")))
        taking.tell(20.2, Written(mine("10")))
        assert taking.tell(20.3, Release()) == ()
        assert taking.tell(20.4, Looked(mine("10"))) == (Write(mine("10"), "", 1, "since", 4),)

    def test_after_the_end_nothing_follows(self) -> None:
        scenario = Scenario().stands_by()
        scenario.tell(1.0, Release())
        for event in (Tick(), Seen(FREE), Looked(None), Written(mine("9")), Refused(), Failed("x"), Release()):
            assert scenario.tell(2.0, event) == ()
        assert wake_at(scenario.state) == inf
