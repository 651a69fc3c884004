"""What answers of a server say of what it evicted."""

from __future__ import annotations

import pytest

from memcached_operator.features.memory_scaling.scaling_decision import (
    Grow,
    History,
    Observing,
    Retained,
    Sample,
    decide_memory,
    extended,
    lost_after_s,
    sample,
)
from memcached_operator.servers.stats_answer import StatsAnswer

MIB = 2**20


def answer(uptime: object, *classes: dict[str, object], limit: object = 64 * MIB) -> StatsAnswer:
    """What a server says with these figures of its size classes, which are 1, 2 and so on."""
    whole = {"uptime": uptime, "limit_maxbytes": limit, "curr_items": 100}
    items = {f"items:{number}:{name}": each[name] for number, each in enumerate(classes, 1) for name in each}
    first, second = ({name.encode(): str(value).encode() for name, value in each.items()} for each in (whole, items))
    return StatsAnswer.of(first, second)


def evicts(evicted: int, unfetched: int, idle_s: int, **more: object) -> dict[str, object]:
    return {"evicted": evicted, "evicted_unfetched": unfetched, "evicted_time": idle_s} | more


def test_idle_times_are_weighted_by_the_fetched_items_that_each_class_evicted() -> None:
    before = answer(100, evicts(10, 10, 5), evicts(0, 0, 0), evicts(7, 3, 9))
    now = answer(130, evicts(20, 20, 1), evicts(10, 5, 60), evicts(22, 3, 20), evicts(4, 4, 1))
    found = sample(before, now, 3600)
    assert found is not None
    assert (found.seconds, found.limit_mib, found.evicted, found.fetched, found.items) == (30, 64, 35, 20, 100)
    assert found.idle_s == (5 * 60 + 15 * 20) / 20


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ((100, 64 * MIB), (90, 64 * MIB)),  # it was started again
        ((100, 64 * MIB), (100, 64 * MIB)),
        ((100, 64 * MIB), (130, 80 * MIB)),
        ((100, "x"), (130, "x")),
        (("x", 64 * MIB), (130, 64 * MIB)),
    ],
)
def test_answers_that_have_nothing_between_them_make_no_sample(
    before: tuple[object, object], now: tuple[object, object]
) -> None:
    assert sample(answer(before[0], limit=before[1]), answer(now[0], limit=now[1]), 3600) is None


def test_a_class_that_was_empty_for_a_while_has_evicted_nothing_in_it() -> None:
    found = sample(answer(100), answer(130, evicts(50_000, 0, 60)), 3600)
    assert found is not None
    assert (found.evicted, found.fetched) == (0, 0)


@pytest.mark.parametrize("of_class", [evicts(5, 9, 1), {"evicted": 9}, {"evicted": "x", "evicted_unfetched": 0}])
def test_counts_that_were_reset_or_are_none_count_as_nothing(of_class: dict[str, object]) -> None:
    found = sample(answer(100, evicts(8, 0, 5)), answer(130, of_class), 3600)
    assert found is not None
    assert (found.evicted, found.fetched, found.idle_s) == (0, 0, 0)


@pytest.mark.parametrize(("age_s", "needed_mib"), [(0, 51), (3600, 50), (36_000, 25), (360_000, 4), ("x", 51)])
def test_what_a_server_needs_follows_from_the_age_of_its_oldest_item(age_s: object, needed_mib: int) -> None:
    held = {"evicted": 0, "age": age_s, "mem_requested": 40 * MIB, "number": 1000}
    found = sample(answer(100, held), answer(130, held), 3600)
    assert found is not None
    assert found.needed_mib == needed_mib


@pytest.mark.parametrize(
    "of_class",
    [{"mem_requested": "x"}, {"age": "x"}, {"number": "x"}, {"number": 10**19, "age": "0.000000001"}, {"age": 10**19}],
)
def test_what_a_server_needs_is_a_number_whatever_it_says(of_class: dict[str, object]) -> None:
    held: dict[str, object] = {"evicted": 1, "age": 5, "mem_requested": 10**19, "number": 9}
    found = sample(answer(100, held), answer(130, held | of_class), 3600)
    assert found is not None
    assert 1 <= found.needed_mib <= 64


def test_times_that_no_sum_is_exact_of_are_judged() -> None:
    history = History()
    for uptime in (0, 10**19, *(10**19 + 2048 * number for number in range(1, 40))):
        history = extended(history, answer(uptime, evicts(uptime, 0, 1)), 0, 600, 3600)
    assert decide_memory([history], 1, 64, 512, 3600, 600) == Grow(64, 80, 1.0)


def test_a_history_is_as_long_as_the_window_and_begins_anew_with_another_limit_or_process() -> None:
    history = History()
    for uptime in range(100, 1000, 30):
        history = extended(history, answer(uptime), 0, 600, 3600)
    assert sum(each.seconds for each in history.samples) == 600
    assert extended(history, answer(970), 0, 600, 3600) is history, "it counts whole seconds"
    assert history.covers(600)
    for other in (answer(1000, limit=80 * MIB), answer(5)):
        assert extended(history, other, 0, 600, 3600).samples == ()
    assert extended(history, answer(1000), 1, 600, 3600).samples == ()


def test_answers_that_come_seldom_make_a_longer_window_of_five() -> None:
    history = History()
    for uptime in range(0, 8000, 1000):
        history = extended(history, answer(uptime), 0, 600, 3600)
    assert len(history.samples) == 5


def window(*parts: tuple[float, float, float], items: float = 1000) -> tuple[Sample, ...]:
    """Samples of two minutes: what was evicted, how much of that had been fetched, and for how long it was idle."""
    return tuple(Sample(120, 64, *each, items, 64) for each in parts)


LOST = (100, 50, 60)


@pytest.mark.parametrize(
    ("samples", "idle_s"),
    [
        (window(*[LOST] * 5), 60),
        (window(*[LOST] * 4, (100, 50, 160)), 80),
        (window((0, 0, 0), *[LOST] * 4), None),  # it has begun
        (window(*[LOST] * 4, (0, 0, 0)), None),  # it is over
        (window(*[LOST] * 4, (100, 50, 3600)), None),
        (window(*[LOST] * 4, (1000, 50, 60)), None),  # a batch
        (window(*[(100, 50, 3600)] * 5), None),
        (window(*[(1, 1, 60)] * 5, items=10_000), None),  # a trifle
        (window(*[(2, 2, 60)] * 5, items=10_000), 60),
        (window(*[(1, 1, 60)] * 4, (5000, 5000, 60), items=10_000), None),  # a trifle, and a burst
    ],
)
def test_a_loss_is_what_lasts_for_the_window_and_more_than_a_trifle(
    samples: tuple[Sample, ...], idle_s: float | None
) -> None:
    assert lost_after_s(samples, 3600) == idle_s


def decision(*histories: History, servers: int = 2) -> object:
    return decide_memory(histories, servers, 64, 512, 3600, 600)


def test_one_server_s_loss_grows_all_unless_they_differ_in_their_memory() -> None:
    lost, kept = History(window(*[LOST] * 5)), History(window(*[(0, 0, 0)] * 5))
    begun, larger = History(window(LOST)), History((Sample(600, 80, 0, 0, 0, 1, 1),) * 5)
    assert decision(kept, kept) == Retained()
    assert decision(kept, lost) == decision(begun, lost) == decision(lost) == Grow(64, 80, 60)
    assert decision(larger, lost) == decision(kept) == decision(kept, begun) == decision() == Observing()
    assert decision(kept, kept, servers=0) == Observing()
