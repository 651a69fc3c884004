"""The work queue: rules one by one, then all of them together against a naive model."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from memcached_operator.kube.retry import Backoff
from memcached_operator.runtime.queue import LOW_PRIORITY, RETRY_BACKOFF, AsyncWorkQueue, WorkQueue

DEADLINE_S = 5.0


class FakeClock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def steady_backoff() -> Backoff:
    return Backoff(first_s=1.0, longest_s=16.0, uniform=max)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(clock=clock, backoff=steady_backoff())


def take_all(queue: WorkQueue[str]) -> list[str]:
    """Every key that is handed out now, each finished before the next."""
    taken = []
    while (key := queue.get_nowait()) is not None:
        taken.append(key)
        queue.done(key)
    return taken


def held(queue: WorkQueue[str]) -> list[object]:
    return [part for name, part in vars(queue).items() if isinstance(part, dict | list) and part and name != "_backoff"]


# Deduplication and exclusivity


def test_a_key_added_twice_is_handed_out_once(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("a")
    assert take_all(queue) == ["a"]


def test_an_empty_queue_hands_out_nothing(queue: WorkQueue[str]) -> None:
    assert queue.get_nowait() is None
    assert len(queue) == 0
    assert queue.next_deadline() is None


def test_a_key_in_work_is_not_handed_out_again_until_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert queue.get_nowait() == "a"
    queue.add("a")
    assert queue.get_nowait() is None
    assert len(queue) == 0
    queue.done("a")
    assert queue.get_nowait() == "a"


def test_several_adds_while_in_work_run_the_key_once_more(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.get_nowait()
    for _ in range(3):
        queue.add("a")
    queue.done("a")
    assert take_all(queue) == ["a"]


def test_a_delay_that_ends_while_the_key_is_in_work_waits_for_done(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.add("a")
    queue.get_nowait()
    queue.add("a", after_s=1.0)
    clock.now += 2.0
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
    with pytest.raises(ValueError, match="'a' is not being worked on"):
        call(queue)


def test_a_queue_at_rest_holds_nothing(queue: WorkQueue[str], clock: FakeClock) -> None:
    for key in ("a", "b", "c"):
        queue.add(key, priority=ord(key), after_s=1.0)
        queue.add(key)
    assert queue.get_nowait() == "c"
    queue.fail("c")
    queue.done("c")
    clock.now += 1.0
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


def test_a_raised_key_joins_the_end_of_its_new_priority(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=LOW_PRIORITY)
    queue.add("b")
    queue.add("a")
    assert queue.depth() == {0: 2}
    assert take_all(queue) == ["b", "a"]


def test_a_later_add_with_a_lower_priority_changes_nothing(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("a", priority=LOW_PRIORITY)
    assert queue.depth() == {0: 1}


def test_adds_while_in_work_keep_the_highest_priority(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.get_nowait()
    queue.add("a", priority=LOW_PRIORITY)
    queue.add("a", priority=5)
    queue.add("a", priority=1)
    queue.done("a")
    assert queue.depth() == {5: 1}


# Delays


def test_a_delayed_key_comes_out_when_its_time_has_come(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.add("a", after_s=2.0)
    assert queue.next_deadline() == 102.0
    clock.now = 101.9
    assert queue.get_nowait() is None
    assert len(queue) == 0
    clock.now = 102.0
    assert len(queue) == 1
    assert queue.get_nowait() == "a"


@pytest.mark.parametrize(("first_s", "second_s"), [(2.0, 5.0), (5.0, 2.0)])
def test_the_earlier_of_two_delays_wins(
    queue: WorkQueue[str], clock: FakeClock, first_s: float, second_s: float
) -> None:
    queue.add("a", after_s=first_s)
    queue.add("a", after_s=second_s)
    assert queue.next_deadline() == 102.0
    clock.now = 102.0
    assert take_all(queue) == ["a"]
    clock.now = 110.0
    assert take_all(queue) == []


def test_an_add_without_delay_overtakes_a_waiting_one_and_keeps_its_higher_priority(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=3, after_s=60.0)
    queue.add("a")
    assert queue.depth() == {3: 1}
    assert queue.next_deadline() is None


def test_a_delayed_add_of_a_ready_key_only_raises_its_priority(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("a", priority=1, after_s=60.0)
    assert queue.depth() == {1: 1}
    assert queue.next_deadline() is None


def test_a_waiting_key_takes_its_place_when_it_becomes_ready_not_when_it_was_added(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    queue.add("later", after_s=2.0)
    queue.add("sooner", after_s=1.0)
    queue.add("now")
    clock.now = 103.0
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
    clock.now += 1.0
    for number in range(20):
        queue.add(f"live-{number}")
    order = take_all(queue)
    assert order.index("low-early") == 7
    assert order.index("middle-late") == 15


# Failures


def test_the_backoff_doubles_from_fifty_milliseconds_to_five_minutes() -> None:
    backoff = dataclasses.replace(RETRY_BACKOFF, uniform=max)
    assert [backoff.delay_s(n) for n in (1, 2, 3, 13, 14, 10_000)] == [0.05, 0.1, 0.2, 204.8, 300.0, 300.0]


def test_chance_shortens_a_backoff_by_a_fifth_at_most() -> None:
    assert dataclasses.replace(RETRY_BACKOFF, uniform=min).delay_s(1) == pytest.approx(0.04)


def test_a_failed_key_comes_back_after_a_growing_backoff_with_its_priority(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    queue.add("a", priority=LOW_PRIORITY)
    for failures, delay_s in ((1, 1.0), (2, 2.0), (3, 4.0)):
        assert queue.get_nowait() == "a"
        assert queue.fail("a") == delay_s
        queue.done("a")
        assert queue.failures("a") == failures
        assert queue.get_nowait() is None
        clock.now += delay_s
        assert queue.depth() == {LOW_PRIORITY: 1}
    assert queue.retries == 3


def test_forget_makes_the_next_failure_a_first_one(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.get_nowait()
    queue.fail("a")
    queue.forget("a")
    assert queue.failures("a") == 0
    assert queue.fail("a") == 1.0


def test_an_event_during_a_backoff_runs_the_key_at_once(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.get_nowait()
    queue.fail("a")
    queue.done("a")
    queue.add("a")
    assert queue.get_nowait() == "a"


def test_early_attempts_that_fail_neither_count_nor_move_the_scheduled_retry(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    queue.add("a")
    queue.get_nowait()
    queue.fail("a")
    queue.done("a")
    for passed_s in (0.25, 0.5, 0.75):
        clock.now = 100.0 + passed_s
        queue.add("a")
        queue.get_nowait()
        assert queue.fail("a") == 1.0 - passed_s
        queue.done("a")
        assert queue.failures("a") == 1
    clock.now = 101.0
    assert queue.get_nowait() == "a"
    assert queue.fail("a") == 2.0
    assert queue.failures("a") == 2


def test_an_early_attempt_that_ends_after_the_scheduled_time_stands_for_it(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    queue.add("a")
    queue.get_nowait()
    queue.fail("a")
    queue.done("a")
    clock.now = 100.5
    queue.add("a")
    queue.get_nowait()
    clock.now = 130.0
    assert queue.fail("a") == 2.0
    assert queue.failures("a") == 2


def test_an_event_during_a_failing_attempt_runs_the_key_again_at_once(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.get_nowait()
    queue.add("a")
    queue.fail("a")
    queue.done("a")
    assert queue.get_nowait() == "a"


@pytest.mark.parametrize(("asked_s", "delay_s"), [(0.5, 1.0), (30.0, 30.0)])
def test_the_wait_that_a_server_asks_for_is_a_minimum(queue: WorkQueue[str], asked_s: float, delay_s: float) -> None:
    queue.add("a")
    queue.get_nowait()
    assert queue.fail("a", at_least_s=asked_s) == delay_s


def test_a_requeue_keeps_the_priority_unless_another_is_given(queue: WorkQueue[str], clock: FakeClock) -> None:
    for key in "ab":
        queue.add(key, priority=LOW_PRIORITY)
        assert queue.get_nowait() == key
    queue.requeue("a", after_s=1.0)
    queue.requeue("b", after_s=1.0, priority=4)
    queue.done("a")
    queue.done("b")
    clock.now += 1.0
    assert queue.depth() == {LOW_PRIORITY: 1, 4: 1}
    assert queue.failures("a") == 0
    assert queue.retries == 0


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


# Figures


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
    clock.now += 3.0
    queue.get_nowait()
    queue.add("a")
    clock.now += 5.0
    queue.done("a")
    clock.now += 0.5
    queue.get_nowait()
    assert durations.waits_s == [2.0, 0.5]
    assert durations.works_s == [5.0]


def test_a_raised_key_keeps_the_time_since_when_it_is_ready(clock: FakeClock) -> None:
    durations = Durations()
    queue: WorkQueue[str] = WorkQueue(clock=clock, observer=durations)
    queue.add("a", priority=LOW_PRIORITY)
    clock.now += 2.0
    queue.add("a")
    queue.get_nowait()
    assert durations.waits_s == [2.0]


def test_work_in_progress_can_be_read_at_any_time(queue: WorkQueue[str], clock: FakeClock) -> None:
    assert queue.longest_running_s() == 0.0
    for key in "ab":
        queue.add(key)
        queue.get_nowait()
        clock.now += 2.0
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
    clock.now += 1.0
    take_all(queue)
    assert queue.adds == 2


# Everything at once

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
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock, backoff=steady_backoff())
    event_times = [0.25 * sum(quarters_between_events[: n + 1]) for n in range(len(quarters_between_events))]
    # Without events the key fails at once and then after 1, 2, 4, 8, 16, 16… seconds.
    due_times = [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 47.0, 63.0, 79.0, 95.0, 111.0, 127.0]
    queue.add("a")
    for time_s in sorted({*due_times, *event_times}):
        clock.now = 100.0 + time_s
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
        self.failures: dict[str, tuple[int, float]] = {}
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
        self.clock.now += seconds

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

    @rule(key=consumes(in_work), asked_s=st.sampled_from([0.0, 0.0, 2.0]))
    def fail(self, key: str, asked_s: float) -> None:
        now = self.clock.now
        counted, retry_at = self.failures.get(key, (0, now))
        if now >= retry_at:
            counted += 1
            retry_at = now + min(2.0 ** (counted - 1), 16.0)
        retry_at = max(retry_at, now + asked_s)
        self.failures[key] = (counted, retry_at)
        assert self.queue.fail(key, at_least_s=asked_s) == retry_at - now
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
        self.clock.now += 1000.0
        wanted = set(self.asks)
        assert set(take_all(self.queue)) == wanted
        self.asks.clear()
        self.highest_in_a_row = TURNS

    @invariant()
    def figures_agree(self) -> None:
        self.settle()
        assert self.queue.depth() == dict(Counter(a.priority for a in self.ready().values()))
        assert self.queue.processing == len(self.working)
        assert all(self.queue.failures(key) == self.failures.get(key, (0, 0.0))[0] for key in "abcdef")
        future = [a.due_at for a in self.asks.values() if a.due_at > self.clock.now]
        assert self.queue.next_deadline() == min(future, default=None)
        if not self.asks and not self.working and not self.failures:
            assert held(self.queue) == []


QueueAgainstModel.TestCase.settings = settings(max_examples=120, stateful_step_count=50, deadline=None)
TestQueueAgainstModel = QueueAgainstModel.TestCase


# Waiting for keys


@pytest.fixture
def line() -> AsyncWorkQueue[str]:
    return AsyncWorkQueue()


async def turn_of_the_loop() -> None:
    await asyncio.sleep(0)


async def test_get_waits_for_a_key(line: AsyncWorkQueue[str]) -> None:
    getter = asyncio.create_task(line.get())
    await turn_of_the_loop()
    assert not getter.done()
    line.add("a")
    assert await asyncio.wait_for(getter, DEADLINE_S) == "a"


async def test_a_delayed_key_wakes_a_waiting_worker(line: AsyncWorkQueue[str]) -> None:
    getter = asyncio.create_task(line.get())
    await turn_of_the_loop()
    line.add("a", after_s=3600.0)
    line.add("b", after_s=0.005)
    assert await asyncio.wait_for(getter, DEADLINE_S) == "b"
    line.shut_down()


async def test_each_later_deadline_is_armed_in_its_turn(line: AsyncWorkQueue[str]) -> None:
    for number in range(5):
        line.add(f"key-{number}", after_s=0.002 * number)
    keys = [await asyncio.wait_for(line.get(), DEADLINE_S) for _ in range(5)]
    assert keys == [f"key-{number}" for number in range(5)]


async def test_a_failed_and_a_requeued_key_come_back(line: AsyncWorkQueue[str]) -> None:
    line = AsyncWorkQueue(WorkQueue(backoff=Backoff(first_s=0.001, longest_s=0.002)))
    for key in "ab":
        line.add(key)
        await line.get()
    line.fail("a")
    line.requeue("b", after_s=0.001)
    line.done("a")
    line.done("b")
    assert {await asyncio.wait_for(line.get(), DEADLINE_S) for _ in range(2)} == {"a", "b"}
    assert line.core.failures("a") == 1
    line.forget("a")
    assert line.core.failures("a") == 0


async def test_waiting_workers_are_served_in_the_order_they_came(line: AsyncWorkQueue[str]) -> None:
    served: list[tuple[int, str | None]] = []

    async def work(number: int) -> None:
        served.append((number, await line.get()))

    workers = [asyncio.create_task(work(number)) for number in range(3)]
    await turn_of_the_loop()
    for key in "abc":
        line.add(key)
    await asyncio.wait_for(asyncio.gather(*workers), DEADLINE_S)
    assert served == [(0, "a"), (1, "b"), (2, "c")]


async def test_done_wakes_a_worker_when_the_key_was_added_meanwhile(line: AsyncWorkQueue[str]) -> None:
    line.add("a")
    await line.get()
    getter = asyncio.create_task(line.get())
    await turn_of_the_loop()
    line.add("a")
    await turn_of_the_loop()
    assert not getter.done()
    line.done("a")
    assert await asyncio.wait_for(getter, DEADLINE_S) == "a"


@pytest.mark.parametrize("add_first", [True, False])
async def test_a_cancelled_worker_loses_no_key(line: AsyncWorkQueue[str], add_first: bool) -> None:
    getters = [asyncio.create_task(line.get()) for _ in range(2)]
    await turn_of_the_loop()
    if add_first:
        line.add("a")
        getters[0].cancel()
    else:
        getters[0].cancel()
        line.add("a")
    assert await asyncio.wait_for(getters[1], DEADLINE_S) == "a"
    assert getters[0].cancelled()


async def test_shutting_down_sends_waiting_workers_home(line: AsyncWorkQueue[str]) -> None:
    getters = [asyncio.create_task(line.get()) for _ in range(3)]
    await turn_of_the_loop()
    line.add("later", after_s=3600.0)
    line.shut_down()
    assert await asyncio.wait_for(asyncio.gather(*getters), DEADLINE_S) == [None, None, None]
    assert await line.get() is None


async def test_shutting_down_leaves_ready_keys_and_lets_work_finish(line: AsyncWorkQueue[str]) -> None:
    line.add("a")
    line.add("b")
    await line.get()
    line.shut_down()
    line.fail("a")
    line.done("a")
    assert await line.get() is None
    assert line.core.processing == 0
