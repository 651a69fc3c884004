"""When a field counts as contested, and how rarely it is looked at then."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from operator_runtime.cache.store import ObjectKey
from operator_runtime.owned.contention import LOOK_S, QUIET_S, REPAIRS, WINDOW_S, FieldContention
from operator_runtime.owned.memory import Memory
from operator_runtime.testing.clock import FakeClock

KEY, OTHER = ObjectKey("shop", "sessions"), ObjectKey("shop", "baskets")
IMAGE, SIZE = "spec.template.spec.containers[memcached].image", "spec.replicas"


class Bench:
    """FieldContention with a clock of their own, over one Memcached of some generation."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.generation = 1
        self.memory = Memory()
        self.contention: FieldContention[str] = FieldContention(self.memory, self.clock)

    def repair(self, *fields: str, asked: bool = False) -> bool:
        return self.contention.repaired(KEY, self.generation, fields or (IMAGE,), asked=asked)

    def contend(self, *fields: str) -> None:
        """Have these fields become contested."""
        for _ in range(REPAIRS):
            self.repair(*fields)

    def look(self) -> bool:
        """Wait for the next look: whether it may repair."""
        self.clock.advance(self.contention.wait_s(KEY, self.generation))
        return self.contention.look(KEY, self.generation)

    @property
    def contested(self) -> tuple[str, ...]:
        return self.contention.contested(KEY)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_first_repairs_are_made_at_once(bench: Bench) -> None:
    for _ in range(REPAIRS - 1):
        assert bench.contention.wait_s(KEY, 1) == 0.0
        assert bench.contention.look(KEY, 1)
        bench.repair()
    assert bench.contested == ()
    assert bench.contention.next_look_s(KEY) is None
    assert not bench.contention.damped(KEY)


def test_a_field_that_is_put_right_too_often_within_the_window_is_contested(bench: Bench) -> None:
    bench.contend()
    assert (bench.contested, len(bench.contention)) == ((IMAGE,), 1)
    assert bench.contention.wait_s(KEY, 1) == LOOK_S
    assert bench.contention.wait_s(OTHER, 1) == 0.0


@pytest.mark.parametrize(("apart_s", "contested"), [(WINDOW_S / REPAIRS, True), (WINDOW_S / (REPAIRS - 1), False)])
def test_repairs_that_are_far_apart_are_no_contention(bench: Bench, apart_s: float, contested: bool) -> None:
    for _ in range(3 * REPAIRS):
        bench.repair()
        bench.clock.advance(apart_s)
        if bench.contested:
            break
    assert bool(bench.contested) == contested


def test_repairs_of_different_fields_are_no_contention(bench: Bench) -> None:
    for number in range(3 * REPAIRS):
        bench.repair(f"metadata.labels[{number}]")
    assert bench.contested == ()


def test_it_is_known_before_the_last_repair_that_it_will_begin_contention(bench: Bench) -> None:
    for _ in range(REPAIRS - 1):
        assert bench.contention.would_begin(KEY, [IMAGE, SIZE]) == ()
        bench.repair()
    assert bench.contention.would_begin(KEY, [IMAGE, SIZE]) == (IMAGE,)
    bench.repair()
    assert bench.contention.would_begin(KEY, [IMAGE, SIZE]) == (), "it has begun"


def test_what_the_user_asked_for_is_no_repair(bench: Bench) -> None:
    for bench.generation in range(1, 3 * REPAIRS):
        bench.repair(SIZE, asked=True)
    assert bench.contested == ()


def test_what_the_user_asked_for_is_believed_once(bench: Bench) -> None:
    """The status may be kept from saying that the change was made."""
    for _ in range(REPAIRS + 1):
        bench.repair(SIZE, asked=True)
    assert bench.contested == (SIZE,)


def test_what_is_wanted_of_each_object_and_each_other_wish_is_believed_once(bench: Bench) -> None:
    def repair(of: str, wish: int) -> None:
        bench.contention.repaired(KEY, bench.generation, [f"data of {of}"], asked=True, of=of, wish=wish)

    for wish in range(2 * REPAIRS):
        repair("a", wish)
        repair("b", wish)
    assert not bench.contested
    for _ in range(REPAIRS):
        repair("a", 2 * REPAIRS - 1)
    assert list(bench.contested) == ["data of a"]


def test_a_new_generation_is_looked_at_at_once_and_once(bench: Bench) -> None:
    bench.contend()
    bench.generation = 2
    assert bench.contention.wait_s(KEY, 2) == 0.0
    assert bench.look()
    bench.repair(SIZE, asked=True)
    assert not bench.contention.wrote(KEY), "this look may report too"
    assert not bench.contention.damped(KEY), "and is told of as usual"
    assert bench.contention.wait_s(KEY, 2) == LOOK_S


def test_after_a_repair_the_next_look_leaves_room_for_the_status(bench: Bench) -> None:
    bench.contend()
    turns = []
    for _ in range(6):
        turns.append(may_repair := bench.look())
        assert not bench.contention.wrote(KEY)
        if may_repair:
            bench.repair()
            assert bench.contention.wrote(KEY)
        assert bench.contention.next_look_s(KEY) == LOOK_S
    assert turns == [False, True] * 3


def test_contention_is_over_when_nobody_has_touched_the_field_for_a_while(bench: Bench) -> None:
    bench.contend()
    assert not bench.look()
    assert bench.look()
    left_s = bench.contention.next_look_s(KEY)
    assert left_s == QUIET_S - 2 * LOOK_S
    bench.clock.advance(left_s - 0.001)
    assert bench.contention.over(KEY) == ()
    bench.clock.advance(0.001)
    assert bench.contention.over(KEY) == (IMAGE,)
    assert bench.contention.over(KEY) == ()
    assert (bench.contested, len(bench.contention)) == ((), 0)
    bench.repair()
    assert bench.contested == (), "the next one begins at nought"


def test_contention_that_goes_on_is_told_again_at_growing_intervals(bench: Bench) -> None:
    bench.contend()
    began, told = bench.clock.now, []
    while bench.clock.now < began + 10_000:
        bench.clock.advance(2 * LOOK_S)
        if bench.repair():
            told.append(round(bench.clock.now - began))
    assert told == [60, 180, 420, 900, 1860, 3780, 7380]
    assert bench.contention.repairs(KEY) == 5000


def test_a_memcached_that_is_gone_is_forgotten(bench: Bench) -> None:
    bench.contend()
    bench.memory.forget(KEY)
    bench.memory.forget(OTHER)
    assert bench.contention.wait_s(KEY, 1) == 0.0


def test_what_happened_once_does_not_stay_for_ever_and_contention_does(bench: Bench) -> None:
    bench.contend()
    for number in range(10_000):
        bench.clock.advance(1.0)
        bench.contention.repaired(ObjectKey("shop", str(number)), 1, [IMAGE], asked=False)
    assert len(bench.memory) < 4 * WINDOW_S
    assert bench.contested == (IMAGE,)


@given(
    st.lists(st.tuples(st.floats(0.0, 3.0), st.sampled_from(["other", "other", "other", "user"])), min_size=30),
)
def test_once_contested_one_write_a_second_and_each_wish_of_the_user_at_once(steps: list[tuple[float, str]]) -> None:
    """Another manager and a user write whenever they like; the operator looks whenever it may."""
    bench = Bench()
    drift, writes = False, []
    for wait_s, who in steps:
        until = bench.clock.now + wait_s
        while drift and (next_s := bench.clock.now + bench.contention.wait_s(KEY, bench.generation)) <= until:
            bench.clock.advance_to(next_s)
            contested = bool(bench.contested)
            if bench.look():
                bench.repair()
                drift = False
                if contested:
                    writes.append(bench.clock.now)
        bench.clock.advance_to(until)
        if who == "user":
            bench.generation += 1
            assert bench.contention.wait_s(KEY, bench.generation) == 0.0
            assert bench.look(), "what the user asks for is done now"
            bench.repair(SIZE, asked=True)
            drift = False
        else:
            drift = True
    assert all(later - earlier >= LOOK_S - 1e-6 for earlier, later in pairwise(writes))
