"""The work queue: all of its rules together, against a naive model and as promises that hold whatever comes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from hypothesis import example, given, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from operator_runtime.testing.clock import FakeClock
from operator_runtime.workqueue.queue import LOW_PRIORITY, WorkQueue
from tests.unit.operator_runtime.workqueue.queue_support import held, steady_backoff, take_all

KEYS = st.sampled_from("abcdef")
PRIORITIES = st.sampled_from([LOW_PRIORITY, -1, 0, 0, 5])
# Binary fractions, so that sums are exact and two deadlines can meet.
DELAYS_S = st.sampled_from([0.0, 0.0, 0.0, 0.25, 0.5, 1.0, 3.0])
TURNS = 8

ARRIVALS = st.lists(st.sampled_from([LOW_PRIORITY, -1, 0, 0, 0, 5]), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@given(backlog=st.lists(st.sampled_from([LOW_PRIORITY, -1]), max_size=6), arrivals=st.lists(ARRIVALS, max_size=80))
# The turn of the key that is ready longest comes when its priority has just become the highest.
@example(backlog=[], arrivals=[[-1, LOW_PRIORITY, 0], [0, 0, 0], [0, 0, 0]])
def test_no_key_starves_and_the_highest_priority_gets_seven_turns_of_eight(
    backlog: list[int], arrivals: list[list[int]]
) -> None:
    queue: WorkQueue[int] = WorkQueue(clock=FakeClock())
    priority_of: dict[int, int] = {}
    latest: dict[int, int] = {}
    hand_outs = 0
    highest_in_a_row = TURNS
    for added in [backlog, *arrivals, *([[]] * 300)]:
        for priority in added:
            key = len(latest)
            latest[key] = hand_outs + TURNS * (len(queue) + 1)
            priority_of[key] = priority
            queue.add(key, priority=priority)
        bands = queue.depth()
        taken = queue.get_nowait()
        if taken is None:
            continue
        queue.done(taken)
        hand_outs += 1
        assert hand_outs <= latest[taken]
        if len(bands) > 1:
            fair_turn = priority_of[taken] < max(bands)
            assert not fair_turn or highest_in_a_row >= TURNS - 1
            highest_in_a_row = 0 if fair_turn else highest_in_a_row + 1
    assert hand_outs == len(latest)


@settings(max_examples=60, deadline=None)
@given(quarters_between_events=st.lists(st.integers(1, 12), max_size=40))
def test_events_change_neither_the_count_of_failures_nor_the_times_of_the_retries(
    quarters_between_events: list[int],
) -> None:
    clock = FakeClock(100.0)
    queue: WorkQueue[str] = WorkQueue(clock=clock, backoff=steady_backoff())
    event_times = [0.25 * sum(quarters_between_events[: n + 1]) for n in range(len(quarters_between_events))]
    # Without events the key fails at once and then after 1, 2, 4, 8, 16, 16… seconds.
    due_times = [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 47.0, 63.0, 79.0, 95.0, 111.0, 127.0]
    queue.add("a")
    for time_s in sorted({*due_times, *event_times}):
        clock.advance_to(100.0 + time_s)
        if time_s in event_times:
            queue.add("a")
        assert queue.get_nowait() == "a"
        queue.fail("a")
        queue.done("a")
        assert queue.failures("a") == sum(due <= time_s for due in due_times)


@dataclass
class Ask:
    """What the model knows of one key that is asked for."""

    due_at: float
    priority: int
    order: int
    joined: int | None = None
    keys_before: int = 0
    hand_outs_since: int = 0


class QueueAgainstModel(RuleBasedStateMachine):
    """The model: a dict of asks and a set of keys in work, searched from end to end each time."""

    in_work = Bundle("in_work")

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.queue: WorkQueue[str] = WorkQueue(clock=self.clock, backoff=steady_backoff())
        self.asks: dict[str, Ask] = {}
        self.working: dict[str, int] = {}
        self.failures: dict[str, tuple[Counter[float], float]] = {}
        self.order = 0
        self.highest_in_a_row = TURNS
        self.promised: Counter[str] = Counter()

    def next_order(self) -> int:
        self.order += 1
        return self.order

    def ready(self) -> dict[str, Ask]:
        return {key: ask for key, ask in self.asks.items() if ask.joined is not None}

    def settle(self) -> None:
        """Let the asks whose time has come join the line, in the order of their times."""
        due = [(a.due_at, a.order, key) for key, a in self.asks.items() if a.due_at <= self.clock.now]
        for _, _, key in sorted(due):
            if self.asks[key].joined is None and key not in self.working:
                self.join(key)

    def join(self, key: str) -> None:
        ask = self.asks[key]
        ask.keys_before = len(self.ready()) - (ask.joined is not None)
        ask.hand_outs_since = 0
        ask.joined = self.next_order()

    def ask(self, key: str, priority: int, due_at: float) -> None:
        self.settle()
        ask = self.asks.get(key)
        if ask is None:
            self.asks[key] = Ask(due_at, priority, self.next_order())
        else:
            if due_at < ask.due_at:
                ask.due_at, ask.order = due_at, self.next_order()
            if priority > ask.priority:
                ask.priority = priority
                if ask.joined is not None:
                    self.join(key)
        self.settle()

    @rule(key=KEYS, priority=PRIORITIES, delay_s=DELAYS_S)
    def add(self, key: str, priority: int, delay_s: float) -> None:
        self.queue.add(key, priority=priority, after_s=delay_s)
        self.ask(key, priority, self.clock.now + delay_s)

    @rule(seconds=st.sampled_from([0.25, 0.5, 1.0, 4.0, 20.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(target=in_work)
    def get(self) -> object:
        self.settle()
        ready = self.ready()
        key = self.queue.get_nowait()
        if key is None:
            assert not ready
            return multiple()
        assert key not in self.working, "one key in two workers"
        assert key in ready
        chosen = self.asks.pop(key)
        assert chosen.due_at <= self.clock.now
        first_of_its_priority = min(
            (a for a in ready.values() if a.priority == chosen.priority), key=lambda a: a.joined or 0
        )
        assert chosen is first_of_its_priority
        if len({a.priority for a in ready.values()}) > 1:
            if chosen.priority == max(a.priority for a in ready.values()):
                self.highest_in_a_row += 1
            else:
                assert self.highest_in_a_row >= TURNS - 1, "a lower priority had more than its turn"
                self.highest_in_a_row = 0
        for other in self.ready().values():
            other.hand_outs_since += 1
            assert other.hand_outs_since < TURNS * (other.keys_before + 1), "starved"
        self.working[key] = chosen.priority
        return key

    @rule(key=consumes(in_work))
    def succeed(self, key: str) -> None:
        self.queue.forget(key)
        self.failures.pop(key, None)
        self.finish(key)

    @rule(
        key=consumes(in_work),
        asked_s=st.sampled_from([0.0, 0.0, 2.0]),
        at_most_s=st.sampled_from([math.inf, math.inf, 3.0]),
    )
    def fail(self, key: str, asked_s: float, at_most_s: float) -> None:
        now = self.clock.now
        counted, retry_at = self.failures.get(key, (Counter(), now))
        if now >= retry_at:
            counted[at_most_s] += 1
            retry_at = now + min(2.0 ** (counted[at_most_s] - 1), 16.0)
        retry_at = max(min(retry_at, now + at_most_s), now + asked_s * 1.25)
        self.failures[key] = (counted, retry_at)
        assert self.queue.fail(key, at_least_s=asked_s, at_most_s=at_most_s) == retry_at - now
        self.ask(key, self.working[key], retry_at)
        self.finish(key)

    @rule(key=consumes(in_work), delay_s=DELAYS_S)
    def requeue(self, key: str, delay_s: float) -> None:
        self.queue.requeue(key, after_s=delay_s)
        self.ask(key, self.working[key], self.clock.now + delay_s)
        self.finish(key)

    def finish(self, key: str) -> None:
        self.settle()
        self.queue.done(key)
        del self.working[key]
        self.settle()

    @precondition(lambda self: not self.working)
    @rule()
    def drain(self) -> None:
        """No add is lost: with time and workers enough, every key that was asked for is handed out."""
        self.clock.advance(1000.0)
        wanted = set(self.asks)
        assert set(take_all(self.queue)) == wanted
        self.asks.clear()
        self.highest_in_a_row = TURNS

    @invariant()
    def figures_agree(self) -> None:
        self.settle()
        assert self.queue.depth() == dict(Counter(a.priority for a in self.ready().values()))
        assert self.queue.processing == len(self.working)
        counted = {key: counts.total() for key, (counts, _) in self.failures.items()}
        assert all(self.queue.failures(key) == counted.get(key, 0) for key in "abcdef")
        future = [a.due_at for a in self.asks.values() if a.due_at > self.clock.now]
        assert self.queue.next_deadline() == min(future, default=None)
        if not self.asks and not self.working and not self.failures:
            assert held(self.queue) == []


QueueAgainstModel.TestCase.settings = settings(max_examples=120, stateful_step_count=50, deadline=None)
TestQueueAgainstModel = QueueAgainstModel.TestCase
