"""The work queue: which key is next, rule by rule, and what can be read from it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from operator_runtime.testing.clock import FakeClock
from operator_runtime.workqueue.queue import LOW_PRIORITY, WorkQueue
from tests.unit.operator_runtime.workqueue.queue_support import hand_out, held, take_all

# Deduplication and exclusivity


def test_a_key_in_work_is_not_handed_out_again_until_done_and_then_once(queue: WorkQueue[str]) -> None:
    hand_out(queue, "a")
    for _ in range(3):
        queue.add("a")
    assert queue.get_nowait() is None
    assert len(queue) == 0
    queue.done("a")
    assert take_all(queue) == ["a"]


def test_a_delay_that_ends_while_the_key_is_in_work_waits_for_done(queue: WorkQueue[str], clock: FakeClock) -> None:
    hand_out(queue, "a")
    queue.add("a", after_s=1.0)
    clock.advance(2.0)
    assert queue.get_nowait() is None
    queue.done("a")
    assert queue.get_nowait() == "a"


@pytest.mark.parametrize(
    "call",
    [lambda queue: queue.done("a"), lambda queue: queue.fail("a"), lambda queue: queue.requeue("a", after_s=1.0)],
    ids=["done", "fail", "requeue"],
)
def test_a_key_that_was_not_handed_out_is_refused(
    queue: WorkQueue[str], call: Callable[[WorkQueue[str]], object]
) -> None:
    queue.add("a")
    with pytest.raises(KeyError):
        call(queue)


def test_a_queue_at_rest_holds_nothing(queue: WorkQueue[str], clock: FakeClock) -> None:
    for key in ("a", "b", "c"):
        queue.add(key, priority=ord(key), after_s=1.0)
        queue.add(key)
    assert queue.get_nowait() == "c"
    queue.fail("c")
    queue.done("c")
    clock.advance(1.0)
    take_all(queue)
    queue.forget("c")
    assert queue.next_deadline() is None
    assert held(queue) == []


# Order


def test_keys_of_one_priority_come_out_in_the_order_they_came_in(queue: WorkQueue[str]) -> None:
    for key in "cab":
        queue.add(key)
    queue.add("c")
    assert take_all(queue) == ["c", "a", "b"]


def test_a_higher_priority_comes_first(queue: WorkQueue[str]) -> None:
    queue.add("initial", priority=LOW_PRIORITY)
    queue.add("live")
    queue.add("urgent", priority=10)
    assert queue.depth() == {LOW_PRIORITY: 1, 0: 1, 10: 1}
    assert take_all(queue) == ["urgent", "live", "initial"]


def test_a_raised_key_joins_the_end_of_its_new_priority_and_is_not_lowered(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=LOW_PRIORITY)
    queue.add("b")
    queue.add("a")
    queue.add("b", priority=LOW_PRIORITY)
    assert queue.depth() == {0: 2}
    assert take_all(queue) == ["b", "a"]


def test_adds_while_in_work_keep_the_highest_priority(queue: WorkQueue[str]) -> None:
    hand_out(queue, "a")
    queue.add("a", priority=LOW_PRIORITY)
    queue.add("a", priority=5)
    queue.add("a", priority=1)
    queue.done("a")
    assert queue.depth() == {5: 1}


# Delays


def test_a_delayed_key_comes_out_when_its_time_has_come(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.add("a", after_s=2.0)
    assert queue.next_deadline() == 102.0
    clock.advance_to(101.9)
    assert queue.get_nowait() is None
    assert len(queue) == 0
    clock.advance_to(102.0)
    assert len(queue) == 1
    assert queue.get_nowait() == "a"


@pytest.mark.parametrize(("first_s", "second_s"), [(2.0, 5.0), (5.0, 2.0)])
def test_the_earlier_of_two_delays_wins(
    queue: WorkQueue[str], clock: FakeClock, first_s: float, second_s: float
) -> None:
    queue.add("a", after_s=first_s)
    queue.add("a", after_s=second_s)
    assert queue.next_deadline() == 102.0
    clock.advance_to(102.0)
    assert take_all(queue) == ["a"]
    clock.advance_to(110.0)
    assert take_all(queue) == []


@pytest.mark.parametrize("delays_s", [(60.0, 0.0), (0.0, 60.0)])
def test_an_add_without_delay_overtakes_a_waiting_one_and_the_higher_priority_stays(
    queue: WorkQueue[str], delays_s: tuple[float, float]
) -> None:
    for delay_s in delays_s:
        queue.add("a", priority=3 if delay_s else 0, after_s=delay_s)
    assert queue.depth() == {3: 1}
    assert queue.next_deadline() is None


def test_a_waiting_key_takes_its_place_when_it_becomes_ready_not_when_it_was_added(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    queue.add("later", after_s=3.0)
    queue.add("sooner", after_s=1.0)
    queue.add("now")
    clock.advance_to(103.0)
    queue.add("last")
    assert take_all(queue) == ["now", "sooner", "later", "last"]


def test_overtaken_deadlines_do_not_pile_up(queue: WorkQueue[str]) -> None:
    for _ in range(1000):
        queue.add("a", after_s=36_000.0)
        assert len(queue._timers) < 100
        queue.add("a")
        take_all(queue)
    queue.add("b", after_s=7.0)
    assert queue.next_deadline() == 107.0


# Starvation


def test_a_low_priority_key_runs_within_eight_hand_outs_per_key_before_it(queue: WorkQueue[str]) -> None:
    for number in range(3):
        queue.add(f"initial-{number}", priority=LOW_PRIORITY)
    handed_out = []
    for number in range(100):
        queue.add(f"live-{number}")
        queue.add(f"live-{number}-too")
        key = queue.get_nowait()
        assert key is not None
        queue.done(key)
        handed_out.append(key)
    assert [handed_out.index(f"initial-{number}") for number in range(3)] == [7, 15, 23]


def test_the_fair_turn_goes_to_the_key_that_is_ready_longest(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.add("middle-late", priority=-1, after_s=1.0)
    queue.add("low-early", priority=-2)
    clock.advance(1.0)
    for number in range(20):
        queue.add(f"live-{number}")
    order = take_all(queue)
    assert order.index("low-early") == 7
    assert order.index("middle-late") == 15


# Stopping


def test_a_stopped_queue_hands_out_and_accepts_nothing_but_lets_work_finish(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    queue.get_nowait()
    queue.stop()
    queue.add("c")
    assert queue.get_nowait() is None
    assert queue.fail("a") == 1.0
    queue.done("a")
    assert queue.processing == 0
    assert queue.next_deadline() is None


def test_an_observer_hears_of_time_ready_and_time_in_work(clock: FakeClock) -> None:
    waits_s: list[float] = []
    works_s: list[float] = []
    queue: WorkQueue[str] = WorkQueue(clock=clock, queued=waits_s.append, worked=works_s.append)
    queue.add("a", after_s=1.0)
    clock.advance(3.0)
    queue.get_nowait()
    queue.add("a")
    clock.advance(5.0)
    queue.done("a")
    clock.advance(0.5)
    queue.get_nowait()
    assert waits_s == [2.0, 0.5]
    assert works_s == [5.0]


def test_a_raised_key_keeps_the_time_since_when_it_is_ready(clock: FakeClock) -> None:
    waits_s: list[float] = []
    queue: WorkQueue[str] = WorkQueue(clock=clock, queued=waits_s.append)
    queue.add("a", priority=LOW_PRIORITY)
    clock.advance(2.0)
    hand_out(queue, "a")
    assert waits_s == [2.0]


def test_work_in_progress_can_be_read_at_any_time(queue: WorkQueue[str], clock: FakeClock) -> None:
    assert queue.longest_running_s() == 0.0
    for key in "ab":
        queue.add(key)
        queue.get_nowait()
        clock.advance(2.0)
    assert queue.processing == 2
    assert queue.longest_running_s() == 4.0
    assert queue.unfinished_s() == 6.0
    queue.done("a")
    assert queue.longest_running_s() == 2.0


def test_adds_counts_keys_that_became_due_and_no_duplicates(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.add("a")
    queue.add("a")
    queue.add("b", after_s=1.0)
    assert queue.adds == 1
    clock.advance(1.0)
    take_all(queue)
    assert queue.adds == 2
