"""Two candidates, one Lease, and a world that does its worst: never do two of them write at the same time.

The candidates are `lease_decision.step` itself. What the world may do: run their clocks at rates that differ by up to
10 %, stop one of them for as long as it likes and let it go on, lose a request, its answer or an event of the watch,
deliver a request long after its sender has given it up, show an old record late, end a process and start its
successor.

Where a person edits the Lease as well, two may write for as long as the watch takes to show it. Then it is searched for
one that writes although it was shown that the Lease is not its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase as HypothesisPhase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from operator_runtime.election.lease_decision import (
    Candidate,
    Event,
    Failed,
    Fetch,
    Fetched,
    Lease,
    LeaseConflict,
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

SAFE = Timing(lease_s=15, renew_deadline_s=10.0, retry_s=2.0)
TIGHT = Timing(lease_s=12, renew_deadline_s=10.0, retry_s=5.0)  # the least that is allowed
WITHOUT_MARGIN = Timing(lease_s=10, renew_deadline_s=10.0, retry_s=2.0)

WHO = st.integers(0, 1)


def _version(lease: Lease) -> tuple[str, str]:
    return lease.uid, lease.resource_version


@dataclass
class Server:
    """The API server's part: one Lease, guarded by its uid and version."""

    lease: Lease | None = None
    history: list[Lease | None] = field(default_factory=lambda: [None])
    versions: count[int] = field(default_factory=lambda: count(1))

    def take(self, write: WriteLease) -> Lease | None:
        """The Lease as stored, None for a conflict."""
        over, held = write.over, self.lease
        if (over is None) != (held is None):
            return None
        if over is not None and held is not None and _version(over) != _version(held):
            return None
        uid = held.uid if held is not None else f"uid-{next(self.versions)}"
        version, since = str(next(self.versions)), write.acquire_time or "now"
        self.store(Lease(uid, version, write.holder, write.duration_s, since, write.transitions))
        return self.lease

    def store(self, lease: Lease | None) -> None:
        self.lease = lease
        self.history.append(lease)

    @property
    def newest(self) -> int:
        """The place in the history of the record as it is now."""
        return len(self.history) - 1


@dataclass
class Process:
    """One candidate with its clock; `request` is what it has sent and not heard of.

    Attributes:
        answered_at: the place in the history of the record that the answer tells of.
        shown: the place of the newest record that it was told of.
    """

    me: Candidate
    rate: float
    clock: float
    state: State = field(default_factory=State)
    request: Fetch | WriteLease | None = None
    arrived: bool = False
    answer: Event | None = None
    answered_at: int = 0
    shown: int = 0

    def may_write(self) -> bool:
        return self.state.may_write(self.clock)

    def give(self, event: Event, place: int = 0) -> None:
        """
        Args:
            place: in the history, of the record that the event tells of.
        """
        self.shown = max(self.shown, place)
        self.state, actions = step(self.me, self.state, event, self.clock)
        for action in actions:
            if isinstance(action, Fetch | WriteLease):
                assert self.request is None, "one request at a time"
                self.request, self.arrived, self.answer = action, False, None


class World(RuleBasedStateMachine):
    """See the module's docstring."""

    timing = SAFE

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.late: list[WriteLease] = []
        self.names = count(1)
        self.processes: list[Process] = []

    @initialize(rates=st.tuples(st.sampled_from([1.0, 1.05, 1.1]), st.sampled_from([1.0, 1.05, 1.1])))
    def begin(self, rates: tuple[float, float]) -> None:
        # Clocks begin anywhere: no two of them are ever compared.
        self.processes = [self._process(rate, 1000.0 * number) for number, rate in enumerate(rates)]

    def _process(self, rate: float, clock: float) -> Process:
        return Process(Candidate(f"candidate-{next(self.names)}", self.timing), rate, clock)

    # Time.

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 1.9, 4.0, 9.5, 14.0]))
    def time_passes(self, seconds: float) -> None:
        for each in self.processes:
            each.clock += seconds * each.rate

    @rule(who=WHO)
    def time_passes_until_a_timer(self, who: int) -> None:
        waits_s = (wake_at(self.processes[who].state) - self.processes[who].clock) / self.processes[who].rate
        if 0 < waits_s < 1000:
            self.time_passes(waits_s + 1e-6)

    @rule(who=WHO)
    def a_timer_goes_off_in_time_or_late(self, who: int) -> None:
        process = self.processes[who]
        if process.clock >= wake_at(process.state):
            process.give(Tick())

    # Messages.

    @rule(who=WHO)
    def a_request_arrives(self, who: int) -> None:
        process = self.processes[who]
        if process.request is not None and not process.arrived:
            process.arrived = True
            process.answer = self._serve(process.request)
            process.answered_at = 0 if isinstance(process.answer, LeaseConflict) else self.server.newest

    def _serve(self, request: Fetch | WriteLease) -> Event:
        if isinstance(request, Fetch):
            return Fetched(self.server.lease)
        stored = self.server.take(request)
        return LeaseConflict() if stored is None else Written(stored)

    @rule(who=WHO)
    def an_answer_arrives(self, who: int) -> None:
        process = self.processes[who]
        if process.answer is not None:
            answer, process.request, process.answer = process.answer, None, None
            process.give(answer, process.answered_at)

    @rule(who=WHO)
    def all_is_well_for_a_moment(self, who: int) -> None:
        self.a_timer_goes_off_in_time_or_late(who)
        for _ in range(4):
            self.a_request_arrives(who)
            self.an_answer_arrives(who)

    @rule(who=WHO, seconds=st.sampled_from([0.5, 2.5, 4.5]))
    def an_answer_is_slow_and_the_other_sees_what_happened_first(self, who: int, seconds: float) -> None:
        self.a_timer_goes_off_in_time_or_late(who)
        self.a_request_arrives(who)
        self.processes[1 - who].give(Seen(self.server.lease), self.server.newest)
        self.time_passes(seconds)
        self.an_answer_arrives(who)

    @rule(who=WHO)
    def one_hangs_while_the_other_waits_for_its_turn(self, who: int) -> None:
        self.time_passes_until_a_timer(who)
        self.all_is_well_for_a_moment(who)

    @rule(who=WHO)
    def a_request_is_given_up(self, who: int) -> None:
        """By its time limit or a broken connection, before or after it was served; it may still arrive some day."""
        process = self.processes[who]
        if process.request is None:
            return
        if isinstance(process.request, WriteLease) and not process.arrived:
            self.late.append(process.request)
        process.request = process.answer = None
        process.give(Failed("no answer in time"))

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def a_late_write_arrives(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.late) - 1))
        self.server.take(self.late.pop(index))

    @rule(who=WHO, age=st.integers(1, 2))
    def the_watch_shows_a_record(self, who: int, age: int) -> None:
        """The newest, or one that comes late."""
        if len(self.server.history) >= age:
            self.processes[who].give(Seen(self.server.history[-age]), len(self.server.history) - age)

    # Processes.

    @rule(who=WHO)
    def one_is_stopped(self, who: int) -> None:
        self.processes[who].give(ReleaseLease())

    @rule(who=WHO)
    def one_is_killed_or_has_ended_and_another_starts(self, who: int) -> None:
        old = self.processes[who]
        if isinstance(old.request, WriteLease) and not old.arrived:
            self.late.append(old.request)
        self.processes[who] = self._process(old.rate, old.clock)

    @rule(who=WHO)
    def one_starts(self, who: int) -> None:
        self.processes[who].give(Tick())

    # A right to write begins with an event and ends by the clock, so to look after each event is to look always.

    @invariant()
    def who_writes_leads(self) -> None:
        assert all(each.state.phase is Phase.LEADING for each in self.processes if each.may_write())

    @invariant()
    def nobody_writes_who_was_shown_that_the_lease_is_not_theirs(self) -> None:
        for each in self.processes:
            shown = self.server.history[each.shown]
            assert not each.may_write() or (shown is not None and shown.holder == each.me.identity), (
                f"{each} and {shown}"
            )


class Undisturbed(World):
    """Candidates alone write the Lease."""

    @invariant()
    def never_do_two_write(self) -> None:
        writing = [each.me.identity for each in self.processes if each.may_write()]
        assert len(writing) < 2, f"{' and '.join(writing)} may write at the same time"


class Disturbed(World):
    """A person edits the Lease, or deletes it."""

    @precondition(lambda self: self.server.lease is not None)
    @rule(holder=st.sampled_from(["", "somebody"]))
    def a_person_writes_a_holder(self, holder: str) -> None:
        assert self.server.lease is not None
        version = str(next(self.server.versions))
        self.server.store(replace(self.server.lease, holder=holder, resource_version=version))

    @rule(who=WHO)
    def a_person_gives_it_away_and_all_see_that(self, who: int) -> None:
        if self.server.lease is not None:
            self.a_person_writes_a_holder(self.processes[who].me.identity)
            for each in self.processes:
                each.give(Seen(self.server.lease), self.server.newest)

    @precondition(lambda self: self.server.lease is not None)
    @rule()
    def a_person_deletes_it(self) -> None:
        self.server.store(None)


def machine(timing: Timing) -> type[World]:
    return type("Undisturbed", (Undisturbed,), {"timing": timing})


# A loaded machine is no reason to fail.
THOROUGH = settings(
    max_examples=200, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.parametrize("timing", [SAFE, TIGHT], ids=["defaults", "least margin"])
def test_never_do_two_candidates_write_at_the_same_time(timing: Timing) -> None:
    assert timing.problems() == ()
    run_state_machine_as_test(machine(timing), settings=THOROUGH)


def test_nobody_writes_beside_a_new_leader_once_the_watch_has_shown_that_a_person_edited_the_lease() -> None:
    run_state_machine_as_test(Disturbed, settings=settings(THOROUGH, max_examples=100))


def test_without_the_margin_the_model_finds_two_that_write() -> None:
    assert WITHOUT_MARGIN.problems() != ()
    # The same search each time, and no time spent on making the story short.
    searching = settings(
        THOROUGH, max_examples=3000, derandomize=True, phases=[HypothesisPhase.generate], print_blob=False
    )
    with pytest.raises(AssertionError, match="may write at the same time"):
        run_state_machine_as_test(machine(WITHOUT_MARGIN), settings=searching)
