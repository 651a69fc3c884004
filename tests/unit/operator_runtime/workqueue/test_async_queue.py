"""Waiting for keys: who is woken, in which order, and that nobody is forgotten."""

from __future__ import annotations

import asyncio

import pytest

from operator_runtime.workqueue.async_queue import AsyncWorkQueue

DEADLINE_S = 60.0


@pytest.fixture
def line() -> AsyncWorkQueue[str]:
    return AsyncWorkQueue()


async def turn_of_the_loop() -> None:
    await asyncio.sleep(0)


async def test_a_delayed_key_wakes_a_waiting_worker(line: AsyncWorkQueue[str]) -> None:
    getter = asyncio.create_task(line.get())
    await turn_of_the_loop()
    line.add("a", after_s=3600.0)
    line.add("b", after_s=0.005)
    assert await asyncio.wait_for(getter, DEADLINE_S) == "b"
    line.stop()


async def test_each_later_deadline_is_armed_in_its_turn(line: AsyncWorkQueue[str]) -> None:
    for number in range(5):
        line.add(f"key-{number}", after_s=0.002 * number)
    keys = [await asyncio.wait_for(line.get(), DEADLINE_S) for _ in range(5)]
    assert keys == [f"key-{number}" for number in range(5)]


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
    line.stop()
    assert await asyncio.wait_for(asyncio.gather(*getters), DEADLINE_S) == [None, None, None]
    assert await line.get() is None


async def test_shutting_down_leaves_ready_keys_and_lets_work_finish(line: AsyncWorkQueue[str]) -> None:
    line.add("a")
    line.add("b")
    await line.get()
    line.stop()
    line.fail("a")
    line.done("a")
    assert await line.get() is None
    assert line.processing == 0
