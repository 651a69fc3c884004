"""When a field counts as contested, and how rarely it is looked at then."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from operator_runtime.cache.store import ObjectKey
from operator_runtime.reconciling.contention import LOOK_S, QUIET_S, REPAIRS, WINDOW_S, FieldContention
from operator_runtime.reconciling.memory import Memory
from operator_runtime.testing.clock import FakeClock

KEY, OTHER = ObjectKey("shop", "sessions"), ObjectKey("shop", "baskets")
IMAGE, SIZE = "spec.template.spec.containers[memcached].image", "spec.replicas"


class Ring:
    """FieldContention with a clock of their own, over one Memcached of some generation."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.generation = 1
        self.memory = Memory()
        self.fights: FieldContention[str] = FieldContention(self.memory, self.clock)

    def repair(self, *fields: str, asked: bool = False) -> bool:
        return self.fights.repaired(KEY, self.generation, fields or (IMAGE,), asked=asked)

    def fight(self, *fields: str) -> None:
        """Have these fields become contested."""
        for _ in range(REPAIRS):
            self.repair(*fields)

    def look(self) -> bool:
        """Wait for the next look: whether it may repair."""
        self.clock.advance(self.fights.wait_s(KEY, self.generation))
        return self.fights.look(KEY, self.generation)

    @property
    def contested(self) -> tuple[str, ...]:
        return self.fights.contested(KEY)


@pytest.fixture
def ring() -> Ring:
    return Ring()


def test_the_first_repairs_are_made_at_once(ring: Ring) -> None:
    for _ in range(REPAIRS - 1):
        assert ring.fights.wait_s(KEY, 1) == 0.0
        assert ring.fights.look(KEY, 1)
        ring.repair()
    assert ring.contested == ()
    assert ring.fights.next_look_s(KEY) is None
    assert not ring.fights.damped(KEY)


def test_a_field_that_is_put_right_too_often_within_the_window_is_contested(ring: Ring) -> None:
    ring.fight()
    assert (ring.contested, len(ring.fights)) == ((IMAGE,), 1)
    assert ring.fights.wait_s(KEY, 1) == LOOK_S
    assert ring.fights.wait_s(OTHER, 1) == 0.0


@pytest.mark.parametrize(("apart_s", "contested"), [(WINDOW_S / REPAIRS, True), (WINDOW_S / (REPAIRS - 1), False)])
def test_repairs_that_are_far_apart_are_no_fight(ring: Ring, apart_s: float, contested: bool) -> None:
    for _ in range(3 * REPAIRS):
        ring.repair()
        ring.clock.advance(apart_s)
        if ring.contested:
            break
    assert bool(ring.contested) == contested


def test_repairs_of_different_fields_are_no_fight(ring: Ring) -> None:
    for number in range(3 * REPAIRS):
        ring.repair(f"metadata.labels[{number}]")
    assert ring.contested == ()


def test_it_is_known_before_the_last_repair_that_it_will_begin_a_fight(ring: Ring) -> None:
    for _ in range(REPAIRS - 1):
        assert ring.fights.would_begin(KEY, [IMAGE, SIZE]) == ()
        ring.repair()
    assert ring.fights.would_begin(KEY, [IMAGE, SIZE]) == (IMAGE,)
    ring.repair()
    assert ring.fights.would_begin(KEY, [IMAGE, SIZE]) == (), "it has begun"


def test_what_the_user_asked_for_is_no_repair(ring: Ring) -> None:
    for ring.generation in range(1, 3 * REPAIRS):
        ring.repair(SIZE, asked=True)
    assert ring.contested == ()


def test_what_the_user_asked_for_is_believed_once(ring: Ring) -> None:
    """The status may be kept from saying that the change was made."""
    for _ in range(REPAIRS + 1):
        ring.repair(SIZE, asked=True)
    assert ring.contested == (SIZE,)


def test_a_new_generation_is_looked_at_at_once_and_once(ring: Ring) -> None:
    ring.fight()
    ring.generation = 2
    assert ring.fights.wait_s(KEY, 2) == 0.0
    assert ring.look()
    ring.repair(SIZE, asked=True)
    assert not ring.fights.wrote(KEY), "this look may report too"
    assert not ring.fights.damped(KEY), "and is told of as usual"
    assert ring.fights.wait_s(KEY, 2) == LOOK_S


def test_after_a_repair_the_next_look_leaves_room_for_the_status(ring: Ring) -> None:
    ring.fight()
    turns = []
    for _ in range(6):
        turns.append(may_repair := ring.look())
        assert not ring.fights.wrote(KEY)
        if may_repair:
            ring.repair()
            assert ring.fights.wrote(KEY)
        assert ring.fights.next_look_s(KEY) == LOOK_S
    assert turns == [False, True] * 3


def test_a_fight_is_over_when_nobody_has_touched_the_field_for_a_while(ring: Ring) -> None:
    ring.fight()
    assert not ring.look()
    assert ring.look()
    left_s = ring.fights.next_look_s(KEY)
    assert left_s == QUIET_S - 2 * LOOK_S
    ring.clock.advance(left_s - 0.001)
    assert ring.fights.over(KEY) == ()
    ring.clock.advance(0.001)
    assert ring.fights.over(KEY) == (IMAGE,)
    assert ring.fights.over(KEY) == ()
    assert (ring.contested, len(ring.fights)) == ((), 0)
    ring.repair()
    assert ring.contested == (), "the next one begins at nought"


def test_a_fight_that_goes_on_is_told_again_at_growing_intervals(ring: Ring) -> None:
    ring.fight()
    began, told = ring.clock.now, []
    while ring.clock.now < began + 10_000:
        ring.clock.advance(2 * LOOK_S)
        if ring.repair():
            told.append(round(ring.clock.now - began))
    assert told == [60, 180, 420, 900, 1860, 3780, 7380]
    assert ring.fights.repairs(KEY) == 5000


def test_a_memcached_that_is_gone_is_forgotten(ring: Ring) -> None:
    ring.fight()
    ring.memory.forget(KEY)
    ring.memory.forget(OTHER)
    assert ring.fights.wait_s(KEY, 1) == 0.0


def test_what_happened_once_does_not_stay_for_ever_and_fights_do(ring: Ring) -> None:
    ring.fight()
    for number in range(10_000):
        ring.clock.advance(1.0)
        ring.fights.repaired(ObjectKey("shop", str(number)), 1, [IMAGE], asked=False)
    assert len(ring.memory) < 4 * WINDOW_S
    assert ring.contested == (IMAGE,)


@given(
    st.lists(st.tuples(st.floats(0.0, 3.0), st.sampled_from(["rival", "rival", "rival", "user"])), min_size=30),
)
def test_once_contested_one_write_a_second_and_each_wish_of_the_user_at_once(steps: list[tuple[float, str]]) -> None:
    """A rival and a user write whenever they like; the operator looks whenever it may."""
    ring = Ring()
    drift, writes = False, []
    for wait_s, who in steps:
        until = ring.clock.now + wait_s
        while drift and (next_s := ring.clock.now + ring.fights.wait_s(KEY, ring.generation)) <= until:
            ring.clock.advance_to(next_s)
            contested = bool(ring.contested)
            if ring.look():
                ring.repair()
                drift = False
                if contested:
                    writes.append(ring.clock.now)
        ring.clock.advance_to(until)
        if who == "user":
            ring.generation += 1
            assert ring.fights.wait_s(KEY, ring.generation) == 0.0
            assert ring.look(), "what the user asks for is done now"
            ring.repair(SIZE, asked=True)
            drift = False
        else:
            drift = True
    assert all(later - earlier >= LOOK_S - 1e-6 for earlier, later in pairwise(writes))
