"""Memcacheds take turns at reads that cost the API server much: first come, first served, whoever else waits."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import pytest

from memcached_operator.core.rollout.diagnosis.bounded_reads import (
    READ_AFTER_S,
    READ_EVERY_S,
    REREAD_AFTER_S,
    BoundedReads,
)
from operator_runtime import KeyedStates, ObjectKey
from operator_runtime.testing.clock import FakeClock


class Operator:
    """Reconciles each Memcached when it asked to be, and records who read when."""

    def __init__(self) -> None:
        self.clock = FakeClock(0.0)
        self.states = KeyedStates()
        self.reads = BoundedReads(self.states, self.clock, 0)
        self.read_at: list[tuple[ObjectKey, float]] = []
        self.reconciles = 0
        self.due: list[tuple[float, ObjectKey]] = []

    def add(self, *keys: ObjectKey, of: str = "pod") -> None:
        for key in keys:
            self.reads.expect(key, of, READ_AFTER_S)
            heapq.heappush(self.due, (self.clock.now, key))

    def remove(self, *keys: ObjectKey) -> None:
        self.due = [each for each in self.due if each[1] not in keys]
        heapq.heapify(self.due)

    async def reconcile(self, key: ObjectKey) -> float:
        async def read(before: int) -> int:
            self.read_at.append((key, self.clock.now))
            return before + 1

        self.reconciles += 1
        _, left_s = await self.reads.read(key, read)
        return left_s

    async def run(self, until_s: float) -> None:
        while self.due and self.due[0][0] <= until_s:
            at_s, key = heapq.heappop(self.due)
            self.clock.advance(at_s - self.clock.now)
            heapq.heappush(self.due, (at_s + await self.reconcile(key), key))

    def first_reads(self) -> list[tuple[ObjectKey, float]]:
        return list({key: (key, at_s) for key, at_s in reversed(self.read_at)}.values())[::-1]


def memcacheds(number: int, namespace: str = "a") -> Sequence[ObjectKey]:
    return [ObjectKey(namespace, f"{each:03}") for each in range(number)]


@pytest.mark.parametrize("number", [1, 12, 500])
async def test_of_so_many_at_once_each_is_read_one_after_the_other_in_the_order_in_which_they_came(number: int) -> None:
    operator, keys = Operator(), memcacheds(number)
    operator.add(*keys)
    await operator.run(READ_AFTER_S + number * READ_EVERY_S)
    first = operator.read_at[:number]
    assert [key for key, _ in first] == keys
    assert [at_s for _, at_s in first] == pytest.approx([READ_AFTER_S + each * READ_EVERY_S for each in range(number)])
    assert operator.reconciles <= number * (3 + number * READ_EVERY_S / REREAD_AFTER_S), "seldom in vain"


async def test_one_is_read_again_after_a_while_and_has_its_last_result_meanwhile() -> None:
    operator, (key,) = Operator(), memcacheds(1)
    operator.add(key)
    await operator.run(READ_AFTER_S + 2 * REREAD_AFTER_S)
    assert [at_s for _, at_s in operator.read_at] == [READ_AFTER_S + each * REREAD_AFTER_S for each in range(3)]

    async def never(_: int) -> int:
        raise AssertionError

    assert await operator.reads.read(key, never) == (3, REREAD_AFTER_S)
    operator.reads.expect(key, "pod", 0.0)
    assert await operator.reads.read(key, never) == (3, REREAD_AFTER_S)
    operator.reads.expect(key, "another pod", READ_AFTER_S)
    assert await operator.reads.read(key, never) == (0, READ_AFTER_S), "of that nothing is known"


async def test_who_comes_later_waits_for_those_before_and_who_was_read_comes_after_it() -> None:
    operator, keys = Operator(), memcacheds(60)
    operator.add(*keys)
    await operator.run(40.0)
    (late,) = memcacheds(1, "z")
    operator.add(late)
    await operator.run(120.0)
    (at_s,) = [at_s for key, at_s in operator.first_reads() if key == late]
    # Of the first, 11 are due a second time before it.
    assert at_s == pytest.approx(READ_AFTER_S + 60 + 11, abs=1)


async def test_one_that_is_about_something_else_meanwhile_keeps_its_place() -> None:
    operator, keys = Operator(), memcacheds(20)
    operator.add(*keys)
    await operator.run(READ_AFTER_S + 5)
    operator.reads.expect(keys[15], "another pod", READ_AFTER_S)
    await operator.run(READ_AFTER_S + 20)
    assert [key for key, _ in operator.read_at[:20]] == keys


async def test_those_that_leave_or_do_not_come_keep_nobody_waiting_for_long() -> None:
    operator, keys = Operator(), memcacheds(100)
    operator.add(*keys)
    await operator.run(READ_AFTER_S)
    gone, deleted, hung = keys[1:50], keys[50:98], keys[98]
    operator.remove(*gone, *deleted, hung)
    for key in gone:
        operator.reads.drop(key)
    for key in deleted:
        operator.states.forget(key)
    await operator.run(READ_AFTER_S + REREAD_AFTER_S + 2)
    assert keys[99] in [key for key, _ in operator.read_at]
