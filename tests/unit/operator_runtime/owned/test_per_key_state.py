"""What is remembered of keys, and when it is forgotten."""

from __future__ import annotations

from operator_runtime.cache.store import ObjectKey
from operator_runtime.owned.per_key_state import KeyedStates

KEY, OTHER = ObjectKey("shop", "a"), ObjectKey("shop", "b")


def test_what_is_gone_is_forgotten_by_all_slots_and_nothing_else() -> None:
    states = KeyedStates()
    texts, lists = states.keyed(str), states.keyed(list[int])
    texts[KEY] = "one"
    lists[KEY].append(1)
    lists[OTHER].append(2)
    states.forget(KEY)
    assert (texts.get(KEY), lists.get(KEY), lists.get(OTHER)) == (None, None, [2])
    assert len(states) == 1


def test_a_slot_begins_a_thing_once_and_drops_it() -> None:
    states = KeyedStates()
    lists = states.keyed(list[int])
    lists[KEY].append(1)
    assert (lists[KEY], lists) == ([1], {KEY: [1]})
    lists.pop(KEY, None)
    assert (lists.get(KEY), len(states)) == (None, 0)
