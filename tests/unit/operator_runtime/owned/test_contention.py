"""When an object counts as contested, and how rarely its owner is reconciled then."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from operator_runtime.cache.store import ObjectKey
from operator_runtime.owned.contention import CONTESTED_EVERY_S, REPAIRS, WINDOW_S, Contention, DesiredDigest, Undone
from operator_runtime.owned.per_key_state import KeyedStates
from operator_runtime.testing.clock import FakeClock

KEY, OTHER = ObjectKey("shop", "sessions"), ObjectKey("shop", "baskets")
IMAGE = Undone("changed", "Deployment", ("spec.template.spec.containers[memcached].image",))
OF = "Deployment"
OVER = "no longer contested: no other client has changed spec.template.spec.containers[memcached].image for 60 s"


class Bench:
    """Contention with a clock of its own, over one Memcached of some generation."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.generation = 1
        self.states = KeyedStates()
        self.contention = Contention(self.states, self.clock)

    def repair(
        self, of: str | None = OF, *, digest: Hashable = None, undone: Undone = IMAGE
    ) -> tuple[int, Sequence[str]]:
        return self.contention.repaired(KEY, self.generation, of, undone, f"{of} is contested", digest=as_wish(digest))

    def contend(self, of: str = OF) -> None:
        """Have this object become contested."""
        for _ in range(REPAIRS):
            self.repair(of)

    def begin_reconcile(self, of: str = OF) -> bool:
        """Wait for the next reconcile: whether it may put that object right."""
        self.clock.advance(self.contention.wait_s(KEY, self.generation))
        self.contention.begin(KEY, self.generation)
        return self.contention.may_repair(KEY, of)

    def repaired_of(self, *objects: str) -> list[str]:
        """Wait for the next reconcile of objects which all need a repair: those that have it."""
        self.clock.advance(self.contention.wait_s(KEY, self.generation))
        self.contention.begin(KEY, self.generation)
        repaired = []
        for of in objects:
            if self.contention.may_repair(KEY, of):
                self.repair(of)
                repaired.append(of)
        return repaired

    def is_last(self, digest: Hashable = None) -> bool:
        return self.contention.is_last(KEY, self.generation, OF, as_wish(digest))

    @property
    def contested(self) -> bool:
        return len(self.contention) == 1


def as_wish(desired: Hashable) -> DesiredDigest | None:
    return None if desired is None else lambda: desired


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_an_object_that_is_put_right_too_often_within_the_window_is_contested_and_told(bench: Bench) -> None:
    reported = [bench.repair() for _ in range(REPAIRS)]
    assert reported == [(0, ())] * (REPAIRS - 1) + [(0, ["Deployment is contested"])]
    assert bench.contested
    assert bench.contention.wait_s(KEY, 1) == CONTESTED_EVERY_S
    assert bench.contention.wait_s(OTHER, 1) == 0.0


@pytest.mark.parametrize(("apart_s", "contested"), [(WINDOW_S / REPAIRS, True), (WINDOW_S / (REPAIRS - 1), False)])
def test_repairs_that_are_far_apart_are_no_contention(bench: Bench, apart_s: float, contested: bool) -> None:
    for _ in range(3 * REPAIRS):
        bench.repair()
        bench.clock.advance(apart_s)
        if bench.contested:
            break
    assert bench.contested == contested


def test_it_is_known_before_the_last_repair_that_it_will_begin_contention(bench: Bench) -> None:
    for _ in range(REPAIRS - 1):
        assert not bench.is_last()
        bench.repair()
    assert bench.is_last()
    assert not bench.is_last(digest="a new one")
    bench.repair()
    assert not bench.is_last(), "it has begun"


def test_what_is_newly_desired_or_of_different_objects_is_no_contention(bench: Bench) -> None:
    for bench.generation in range(1, 3 * REPAIRS):
        bench.repair(digest="this")
    for number in range(2 * REPAIRS):
        bench.repair(digest=number)
        bench.repair(str(number))
    assert not bench.contested


def test_that_something_is_newly_desired_is_believed_once_for_each_object(bench: Bench) -> None:
    """The status may be kept from saying that the change was made."""
    for _ in range(REPAIRS):
        bench.repair("a", digest="this")
        bench.repair("b", digest="this")
    assert not bench.contested
    bench.repair("a", digest="this")
    assert bench.contested


def test_a_new_generation_is_reconciled_at_once_and_once(bench: Bench) -> None:
    bench.contend()
    bench.generation = 2
    assert bench.contention.wait_s(KEY, 2) == 0.0
    assert bench.begin_reconcile()
    bench.repair(digest="another size")
    assert not bench.contention.is_budget_used(KEY), "this reconcile may report too"
    assert not bench.contention.is_throttled(KEY), "and is told of as usual"
    assert bench.contention.wait_s(KEY, 2) == CONTESTED_EVERY_S


def test_after_a_repair_the_next_reconcile_leaves_room_for_the_status(bench: Bench) -> None:
    bench.contend()
    turns = []
    for _ in range(6):
        turns.append(may_repair := bench.begin_reconcile())
        assert not bench.contention.is_budget_used(KEY)
        if may_repair:
            bench.repair()
            assert bench.contention.is_budget_used(KEY)
        else:
            bench.repair(None, digest=f"status {len(turns)}")
            assert not bench.contention.is_budget_used(KEY)
        assert bench.contention.requeue_after_s(KEY) == CONTESTED_EVERY_S
    assert turns == [False, True] * 3


def test_of_several_objects_a_reconcile_repairs_one_and_each_has_its_turn(bench: Bench) -> None:
    bench.contend()
    repaired_each = [bench.repaired_of("Deployment", "Service", "Budget") for _ in range(8)]
    assert repaired_each == [[], ["Deployment"], [], ["Service"], [], ["Budget"], [], ["Deployment"]]


def test_what_is_made_in_place_of_a_deleted_object_is_the_write_of_its_reconcile(bench: Bench) -> None:
    bench.contend()
    bench.repaired_of()
    assert bench.begin_reconcile("Service")
    bench.contention.wrote(KEY)
    assert not bench.contention.may_repair(KEY, "Deployment")
    assert bench.repaired_of("Deployment") == []
    assert bench.repaired_of("Deployment") == ["Deployment"]


def test_contention_is_over_when_nobody_has_touched_the_object_for_a_while(bench: Bench) -> None:
    bench.contend()
    assert not bench.begin_reconcile()
    assert bench.begin_reconcile()
    left_s = bench.contention.requeue_after_s(KEY)
    assert left_s == WINDOW_S - 2 * CONTESTED_EVERY_S
    bench.clock.advance(left_s - 0.001)
    assert bench.contention.begin(KEY, 1) == ""
    bench.clock.advance(0.001)
    assert bench.contention.begin(KEY, 1) == OVER
    assert bench.contention.begin(KEY, 1) == ""
    assert not bench.contested
    bench.repair()
    assert not bench.contested, "the next one begins with a full bucket"


def test_contention_over_two_objects_is_over_with_the_second(bench: Bench) -> None:
    bench.contend()
    bench.clock.advance(WINDOW_S / 2)
    for _ in range(REPAIRS):
        bench.repair("Service", undone=Undone("deleted", "Service"))
    bench.clock.advance(WINDOW_S / 2)
    assert bench.contention.begin(KEY, 1) == ""
    bench.clock.advance(WINDOW_S / 2)
    assert bench.contention.begin(KEY, 1) == OVER.replace(" for", " or deleted the Service for")


def test_contention_that_goes_on_is_told_again_at_growing_intervals(bench: Bench) -> None:
    bench.contend()
    began, reported, last = bench.clock.now, [], 0
    while bench.clock.now < began + 10_000:
        bench.clock.advance(2 * CONTESTED_EVERY_S)
        times, notes = bench.repair()
        if notes:
            reported.append(round(bench.clock.now - began))
            last = times
    assert reported == [60, 180, 420, 900, 1860, 3780, 7380]
    assert last == 3690


def test_what_happened_once_does_not_stay_for_ever_and_contention_does(bench: Bench) -> None:
    bench.contend()
    for number in range(10_000):
        bench.clock.advance(1.0)
        bench.repair()
        bench.contention.repaired(ObjectKey("shop", str(number)), 1, OF, IMAGE, "", digest=as_wish(number))
    assert len(bench.states) < 4 * WINDOW_S
    assert bench.contested
    bench.states.forget(KEY)
    assert bench.contention.wait_s(KEY, 1) == 0.0


def test_a_change_by_the_user_takes_no_objects_turn() -> None:
    bench = Bench()
    bench.contend()
    assert bench.repaired_of(OF, "Service", "Budget") == []  # it has just had its write
    assert bench.repaired_of(OF, "Service", "Budget") == [OF]
    bench.generation += 1
    assert bench.repaired_of() == []  # it fails before it comes to the objects
    assert bench.repaired_of("Service", "Budget") == ["Service"]
    bench.generation += 1
    assert bench.repaired_of("Budget") == ["Budget"]
    assert bench.repaired_of(OF) == []
    assert bench.repaired_of(OF) == [OF], "no turn is kept for an object that was put right meanwhile"


STEPS = st.lists(
    st.tuples(
        st.floats(0.0, 30.0) | st.floats(0.0, 2.0),
        st.sampled_from(["Deployment", "Service", "Budget", "Deployment", "Service", "user"]),
    ),
    min_size=30,
    max_size=120,
)


@given(STEPS)
def test_at_most_five_writes_in_a_minute_are_free_and_then_one_a_second_and_each_wish_at_once(
    steps: list[tuple[float, str]],
) -> None:
    """Other managers and a user write whenever they like; the operator reconciles whenever it may."""
    bench = Bench()
    drifted: dict[str, float] = {}
    free: dict[str, list[float]] = {}
    throttled: list[float] = []

    def begin_reconcile(now: float) -> None:
        contested, desired_changed = bench.contested, bench.contention.wait_s(KEY, bench.generation) == 0.0
        bench.contention.begin(KEY, bench.generation)
        contested = contested and bench.contested
        for of in [each for each in ("Deployment", "Service", "Budget") if each in drifted]:
            if bench.contention.may_repair(KEY, of):
                assert desired_changed
                bench.repair(of)
                del drifted[of]
                if contested:
                    throttled.append(now)
                else:
                    free.setdefault(of, []).append(now)
                    contested = bench.contested

    for wait_s, who in steps:
        until = bench.clock.now + wait_s
        while drifted and (now := bench.clock.now + bench.contention.wait_s(KEY, bench.generation)) <= until:
            bench.clock.advance_to(now)
            begin_reconcile(now)
            if not bench.contested:
                assert not drifted, "what is not contested is put right at once"
        assert all(until - since < 10 * CONTESTED_EVERY_S for since in drifted.values()), "each has its turn"
        bench.clock.advance_to(until)
        if who == "user":
            bench.generation += 1
            assert bench.contention.wait_s(KEY, bench.generation) == 0.0
            bench.contention.begin(KEY, bench.generation)
            assert all(bench.contention.may_repair(KEY, of) for of in ("Deployment", "Service"))
            for of in drifted:  # such a reconcile is as any other: it puts right all that it finds
                bench.repair(of)
            drifted.clear()
            bench.repair(digest=bench.generation)
        else:
            drifted.setdefault(who, bench.clock.now)
    assert all(later - earlier >= CONTESTED_EVERY_S - 1e-6 for earlier, later in pairwise(throttled))
    for times in free.values():
        assert all(times[at + REPAIRS] - times[at] >= WINDOW_S for at in range(len(times) - REPAIRS))
