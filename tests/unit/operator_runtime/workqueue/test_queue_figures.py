"""The work queue: what can be read from it, and what an observer is told."""

from __future__ import annotations

from dataclasses import dataclass, field

from operator_runtime.testing.clock import FakeClock
from operator_runtime.workqueue.queue import LOW_PRIORITY, WorkQueue
from tests.unit.operator_runtime.workqueue.queue_support import hand_out, take_all


@dataclass
class Durations:
    waits_s: list[float] = field(default_factory=list)
    works_s: list[float] = field(default_factory=list)

    def queued(self, seconds: float) -> None:
        self.waits_s.append(seconds)

    def worked(self, seconds: float) -> None:
        self.works_s.append(seconds)


def test_an_observer_hears_of_time_ready_and_time_in_work(clock: FakeClock) -> None:
    durations = Durations()
    queue: WorkQueue[str] = WorkQueue(clock=clock, observer=durations)
    queue.add("a", after_s=1.0)
    clock.advance(3.0)
    queue.get_nowait()
    queue.add("a")
    clock.advance(5.0)
    queue.done("a")
    clock.advance(0.5)
    queue.get_nowait()
    assert durations.waits_s == [2.0, 0.5]
    assert durations.works_s == [5.0]


def test_a_raised_key_keeps_the_time_since_when_it_is_ready(clock: FakeClock) -> None:
    durations = Durations()
    queue: WorkQueue[str] = WorkQueue(clock=clock, observer=durations)
    queue.add("a", priority=LOW_PRIORITY)
    clock.advance(2.0)
    hand_out(queue, "a")
    assert durations.waits_s == [2.0]


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
