"""The work queue: when a key that failed is tried again, and with what priority."""

from __future__ import annotations

import dataclasses
import math

import pytest

from operator_runtime.testing.clock import FakeClock
from operator_runtime.workqueue.queue import LOW_PRIORITY, OUTAGE_LONGEST_S, RETRY_BACKOFF, WorkQueue
from tests.unit.operator_runtime.workqueue.queue_support import failures_of, hand_out


def fail_once(queue: WorkQueue[str]) -> None:
    hand_out(queue, "a")
    queue.fail("a")
    queue.done("a")


def test_the_backoff_doubles_from_fifty_milliseconds_to_five_minutes() -> None:
    backoff = dataclasses.replace(RETRY_BACKOFF, uniform=max)
    assert [backoff.delay_s(n) for n in (1, 2, 3, 13, 14, 10_000)] == [0.05, 0.1, 0.2, 204.8, 300.0, 300.0]


def test_a_failed_key_comes_back_after_a_growing_backoff_with_its_priority(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    queue.add("a", priority=LOW_PRIORITY)
    for failures, delay_s in ((1, 1.0), (2, 2.0), (3, 4.0)):
        assert queue.get_nowait() == "a"
        assert queue.fail("a") == delay_s
        queue.done("a")
        assert failures_of(queue, "a") == failures
        assert queue.get_nowait() is None
        clock.advance(delay_s)
        assert queue.depth() == {LOW_PRIORITY: 1}
    assert queue.retries == 3


def test_forget_makes_the_next_failure_a_first_one(queue: WorkQueue[str]) -> None:
    hand_out(queue, "a")
    queue.fail("a")
    queue.forget("a")
    assert failures_of(queue, "a") == 0
    assert queue.fail("a") == 1.0


def test_early_attempts_that_fail_neither_count_nor_move_the_scheduled_retry(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    fail_once(queue)
    for passed_s in (0.25, 0.5, 0.75):
        clock.advance_to(100.0 + passed_s)
        hand_out(queue, "a")
        assert queue.fail("a") == 1.0 - passed_s
        queue.done("a")
        assert failures_of(queue, "a") == 1
    clock.advance_to(101.0)
    assert queue.get_nowait() == "a"
    assert queue.fail("a") == 2.0
    assert failures_of(queue, "a") == 2


def test_an_early_attempt_that_ends_after_the_scheduled_time_stands_for_it(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    fail_once(queue)
    clock.advance_to(100.5)
    hand_out(queue, "a")
    clock.advance_to(130.0)
    assert queue.fail("a") == 2.0
    assert failures_of(queue, "a") == 2


@pytest.mark.parametrize("during_the_attempt", [True, False])
def test_an_event_during_a_failing_attempt_or_a_backoff_runs_the_key_at_once(
    queue: WorkQueue[str], during_the_attempt: bool
) -> None:
    hand_out(queue, "a")
    if during_the_attempt:
        queue.add("a")
    queue.fail("a")
    queue.done("a")
    if not during_the_attempt:
        queue.add("a")
    assert queue.get_nowait() == "a"


def fail_when_due(queue: WorkQueue[str], clock: FakeClock, at_most_s: float) -> float:
    hand_out(queue, "a")
    delay_s = queue.fail("a", at_most_s=at_most_s)
    queue.done("a")
    clock.advance(delay_s)
    return delay_s


def test_a_bound_keeps_the_backoff_short_and_its_jitter() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock, backoff=dataclasses.replace(RETRY_BACKOFF, uniform=min))
    delays_s = [fail_when_due(queue, clock, OUTAGE_LONGEST_S) for _ in range(30)]
    assert delays_s[:2] == pytest.approx([0.04, 0.08])
    assert delays_s[-1] == pytest.approx(8.0)


def test_bounded_failures_leave_no_patience_behind_for_the_others(queue: WorkQueue[str], clock: FakeClock) -> None:
    for _ in range(5):
        fail_when_due(queue, clock, 4.0)
    assert [fail_when_due(queue, clock, math.inf) for _ in range(3)] == [1.0, 2.0, 4.0]
    assert fail_when_due(queue, clock, 4.0) == 4.0
    assert fail_when_due(queue, clock, math.inf) == 8.0
    assert failures_of(queue, "a") == 10


def test_a_bounded_failure_moves_up_a_retry_that_was_far_away(queue: WorkQueue[str], clock: FakeClock) -> None:
    for _ in range(4):
        fail_when_due(queue, clock, math.inf)
    hand_out(queue, "a")
    assert queue.fail("a") == 16.0
    queue.done("a")
    clock.advance(1.0)
    hand_out(queue, "a")
    assert queue.fail("a", at_most_s=4.0) == 4.0
    queue.done("a")
    assert queue.next_deadline() == clock.now + 4.0


def test_chance_lengthens_the_wait_that_a_server_asks_for_by_a_quarter_at_most(clock: FakeClock) -> None:
    drawn = []

    def middle(low: float, high: float) -> float:
        drawn.append((low, high))
        return (low + high) / 2

    queue: WorkQueue[str] = WorkQueue(clock=clock, backoff=dataclasses.replace(RETRY_BACKOFF, uniform=middle))
    hand_out(queue, "a")
    assert queue.fail("a", at_least_s=16.0) == 18.0
    assert drawn[-1] == (0.0, 4.0)


@pytest.mark.parametrize(
    ("requested_s", "at_most_s", "delay_s"), [(0.5, math.inf, 1.0), (32.0, math.inf, 40.0), (40.0, 10.0, 50.0)]
)
def test_the_wait_that_a_server_asks_for_is_a_minimum_and_wins_over_a_bound(
    queue: WorkQueue[str], requested_s: float, at_most_s: float, delay_s: float
) -> None:
    hand_out(queue, "a")
    assert queue.fail("a", at_least_s=requested_s, at_most_s=at_most_s) == delay_s


def test_a_requeue_keeps_the_priority_unless_another_is_given(queue: WorkQueue[str], clock: FakeClock) -> None:
    for key in "ab":
        queue.add(key, priority=LOW_PRIORITY)
        assert queue.get_nowait() == key
    queue.requeue("a", after_s=1.0)
    queue.requeue("b", after_s=1.0, priority=4)
    queue.done("a")
    queue.done("b")
    clock.advance(1.0)
    assert queue.depth() == {LOW_PRIORITY: 1, 4: 1}
    assert failures_of(queue, "a") == 0
    assert queue.retries == 0
