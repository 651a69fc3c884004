"""Where memory settles under loads of which is known what they need; see `cache_model`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from memcached_operator.features.memory_scaling.scaling_decision import AtMaximum, Retained, recommended_mib
from tests.unit.memcached_operator.features.memory_scaling.cache_model import ITEMS_OF_MIB, WINDOW_S, Cache, Load

DAY_S = 86_400
# 150 MiB on each of two servers.
KEYS = 300 * ITEMS_OF_MIB
NEEDED_MIB = 150


def working_set(keys: int = KEYS, per_s: int = 4) -> Load:
    """Each key as likely as another."""

    def load(_: float, random: random.Random) -> Iterator[int]:
        return (random.randrange(keys) for _ in range(per_s))

    return load


def skewed(keys: int = 4 * KEYS, per_s: int = 4) -> Load:
    """Few keys often, many seldom."""

    def load(_: float, random: random.Random) -> Iterator[int]:
        return (int(keys * random.random() ** 4) for _ in range(per_s))

    return load


def with_batch(load: Load, per_s: int, begins_s: float, ends_s: float) -> Load:
    """A load, and a batch that reads keys of its own once."""

    def both(now_s: float, random: random.Random) -> Iterator[int]:
        yield from load(now_s, random)
        if begins_s <= now_s < ends_s:
            yield from range(10**6 + int(now_s) * per_s, 10**6 + int(now_s + 1) * per_s)

    return both


def rising(now_s: float, random: random.Random) -> Iterator[int]:
    """A working set that grows without end."""
    keys = int(KEYS * (0.2 + now_s / (4 * 3600)))
    return (random.randrange(keys) for _ in range(8))


def test_a_working_set_settles_at_what_it_needs_and_nothing_of_it_is_lost_from_then_on() -> None:
    cache = Cache(working_set())
    cache.run(DAY_S / 4)
    assert NEEDED_MIB <= cache.mib <= 1.6 * NEEDED_MIB
    assert isinstance(cache.decision, Retained)
    before, steps = cache.lost_young, len(cache.steps)
    cache.run(DAY_S / 4)
    assert (cache.lost_young, len(cache.steps)) == (before, steps)
    assert cache.hits[0] < 0.5
    assert cache.hits[-1] == 1.0


def test_each_step_is_a_quarter_and_at_least_a_window_after_the_one_before() -> None:
    cache = Cache(working_set())
    cache.run(DAY_S / 4)
    assert [mib for _, mib in cache.steps] == [80, 100, 125, 157]
    assert cache.steps[0][0] >= WINDOW_S
    assert all(after - before >= WINDOW_S for (before, _), (after, _) in pairwise(cache.steps))


def test_a_load_with_a_long_tail_grows_until_what_is_asked_for_stays_so_long() -> None:
    cache = Cache(skewed(), retention_s=900)
    cache.run(DAY_S / 2)
    steps, lost = list(cache.steps), cache.lost_young
    cache.run(DAY_S / 2)
    assert cache.steps == steps
    assert 64 < cache.mib < 512
    assert cache.lost_young == lost


@pytest.mark.parametrize("hours", [0.1, 0.2, 3])
def test_a_batch_that_reads_all_once_does_not_grow_a_cache_that_was_large_enough(hours: float) -> None:
    begins_s = 1800
    cache = Cache(with_batch(working_set(), 40, begins_s, begins_s + hours * 3600), mib=200)
    cache.run(begins_s + (hours + 1) * 3600)
    assert sum(each.unfetched for each in cache.running) > 4 * KEYS
    assert cache.steps == []


def test_a_rising_load_reaches_the_maximum_and_stays_there() -> None:
    cache = Cache(rising, max_mib=160)
    cache.run(DAY_S / 2)
    sizes = [mib for _, mib in cache.steps]
    assert sizes == [80, 100, 125, 157, 160]
    assert isinstance(cache.decision, AtMaximum)


@pytest.mark.parametrize("seed", range(2))
def test_whatever_the_load_memory_never_shrinks_nor_grows_past_what_ends_the_loss(seed: int) -> None:
    chance = random.Random(seed)
    loads = [working_set(chance.randrange(100, 2 * KEYS)) for _ in range(6)]

    def load(now_s: float, random: random.Random) -> Iterator[int]:
        return loads[int(now_s // 7200) % len(loads)](now_s, random)

    cache = Cache(load)
    cache.run(DAY_S / 2)
    steps = list(cache.steps)
    cache.run(DAY_S / 2)
    assert cache.steps == steps, "the same loads again need no more"
    assert all(before < after for (_, before), (_, after) in pairwise(steps))


@pytest.mark.parametrize(("keys", "least"), [(KEYS // 8, 19), (KEYS // 2, 75), (2 * KEYS, 300)])
def test_what_is_recommended_would_hold_the_working_set(keys: int, least: int) -> None:
    cache = Cache(working_set(keys), mib=512)
    cache.run(3 * 3600)
    found = recommended_mib(cache.histories, cache.mib, 8, cache.retention_s)
    assert found is not None
    assert least <= found <= 2 * least
    kept = Cache(working_set(keys), mib=found)
    kept.run(6 * 3600)
    assert kept.steps == []
