"""What is remembered of keys, and when it is forgotten."""

from __future__ import annotations

from array import array

import pytest

from operator_runtime.cache.store import ObjectKey
from operator_runtime.owned.contention import WINDOW_S
from operator_runtime.owned.memory import Memory
from operator_runtime.owned.repairs import _Written
from operator_runtime.testing.clock import FakeClock

KEY, OTHER = ObjectKey("shop", "a"), ObjectKey("shop", "b")


def test_what_is_gone_is_forgotten_by_all_slots_and_nothing_else() -> None:
    memory = Memory()
    texts, lists = memory.slot(str), memory.slot(list[int])
    texts.set(KEY, "one")
    lists.of(KEY).append(1)
    lists.of(OTHER).append(2)
    memory.forget(KEY)
    assert (texts.find(KEY), lists.find(KEY), lists.find(OTHER)) == (None, None, [2])
    assert len(memory) == 1


def test_a_slot_begins_a_thing_once_and_drops_it() -> None:
    memory = Memory()
    lists = memory.slot(list[int])
    lists.of(KEY).append(1)
    assert (lists.of(KEY), lists.items()) == ([1], [(KEY, [1])])
    lists.drop(KEY)
    assert (lists.find(KEY), len(memory)) == (None, 0)


@pytest.mark.parametrize("first_s", [0.0, 0.5 * WINDOW_S, 0.99 * WINDOW_S])
def test_what_was_written_of_a_status_is_known_for_the_window_whatever_else_is_written(first_s: float) -> None:
    clock = FakeClock()
    written = _Written(clock)
    clock.advance(first_s)
    written.set("ours", array("q", [1]))
    for _ in range(9):
        clock.advance(WINDOW_S / 10)
        written.set("another", array("q", [2]))
        assert 1 in written.of("ours")


@pytest.mark.parametrize("steps", [2, 20])
def test_what_was_written_of_a_status_goes_with_the_writes_of_two_windows(steps: int) -> None:
    clock = FakeClock()
    written = _Written(clock)
    written.set("ours", array("q", [1]))
    for _ in range(steps):
        clock.advance(2 * WINDOW_S / steps)
        written.set("another", array("q", [2]))
    clock.advance(WINDOW_S)
    written.set("another", array("q", [2]))
    assert 1 not in written.of("ours")
