"""Bounded counts of many keys, held against exact ones."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, strategies as st

from kubectl_memcached.sketch import SpaceSaving

_STREAMS = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=300)


@given(_STREAMS, st.integers(1, 8))
def test_no_estimate_is_too_small_or_too_great_by_more_than_it_says(
    stream: list[tuple[int, int]], capacity: int
) -> None:
    sketch: SpaceSaving[int] = SpaceSaving(capacity)
    exact: Counter[int] = Counter()
    for key, weight in stream:
        sketch.add(key, weight, (1,))
        exact[key] += weight
    found = sketch.heaviest(capacity)
    assert len(found) <= capacity
    assert sketch.total == exact.total()
    for each in found:
        assert each.weight - each.error <= exact[each.key] <= each.weight
        assert each.error <= sketch.total / capacity
    assert sum(each.weight for each in found) == sketch.total
    kept = {each.key for each in found}
    assert all(weight <= sketch.total / capacity for key, weight in exact.items() if key not in kept)


@given(_STREAMS)
def test_counts_are_exact_while_all_keys_fit(stream: list[tuple[int, int]]) -> None:
    sketch: SpaceSaving[int] = SpaceSaving(21)
    for key, weight in stream:
        sketch.add(key, weight, (1,))
    assert {each.key: each.seen[0] for each in sketch.heaviest(21)} == Counter(key for key, _ in stream)
    assert all(each.error == 0 for each in sketch.heaviest(21))
