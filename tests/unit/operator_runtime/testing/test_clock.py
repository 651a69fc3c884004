"""The clock that tests move: what wakes when, and in which order."""

from __future__ import annotations

import asyncio

import pytest

from operator_runtime.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


class Sleepers:
    """Tasks that sleep on the clock: which have woken, and when."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.woken: list[tuple[str, float]] = []
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, *pauses_s: float) -> asyncio.Task[None]:
        async def sleep() -> None:
            for pause_s in pauses_s:
                await self.clock.sleep(pause_s)
                self.woken.append((name, self.clock()))

        self.tasks.append(asyncio.create_task(sleep()))
        return self.tasks[-1]

    async def take_woken(self) -> list[tuple[str, float]]:
        """Which have woken since the last call."""
        for _ in range(5):
            await asyncio.sleep(0)
        woken, self.woken = self.woken, []
        return woken


@pytest.fixture
def sleepers(clock: FakeClock) -> Sleepers:
    return Sleepers(clock)


def test_it_stands_still_until_it_is_moved(clock: FakeClock) -> None:
    began = clock()
    assert clock() == began == clock.now
    clock.advance(2.5)
    assert clock() - began == 2.5
    clock.advance_to(2000.0)
    assert clock() == 2000.0
    assert FakeClock(7.0)() == 7.0


def test_it_never_goes_back(clock: FakeClock) -> None:
    with pytest.raises(ValueError, match="0 seconds or more, and was given -1"):
        clock.advance(-1)
    with pytest.raises(ValueError, match="it is 1000, and advance_to was given 999"):
        clock.advance_to(999.0)
    assert clock() == FakeClock()()


async def test_sleepers_wake_in_the_order_of_their_ends(clock: FakeClock, sleepers: Sleepers) -> None:
    for name, pause_s in (("late", 3.0), ("early", 1.0), ("also early", 1.0), ("too late", 30.0)):
        sleepers.start(name, pause_s)
    await clock.asleep(4)
    clock.advance(5.0)
    assert await sleepers.take_woken() == [("early", 1005.0), ("also early", 1005.0), ("late", 1005.0)]
    sleepers.tasks[-1].cancel()


async def test_a_sleeper_sleeps_again_from_the_new_time_and_not_when_cancelled(
    clock: FakeClock, sleepers: Sleepers
) -> None:
    sleepers.start("loop", 1.0, 1.0)
    task = sleepers.start("a", 5.0)
    await clock.asleep(2)
    with pytest.raises(AssertionError, match="3 asleep; 2 are"):
        await clock.asleep(3, deadline_s=0)
    task.cancel()
    assert await sleepers.take_woken() == []
    assert clock.sleeping == 1
    clock.advance(10.0)
    assert await sleepers.take_woken() == [("loop", 1010.0)]
    clock.advance(1.0)
    assert await sleepers.take_woken() == [("loop", 1011.0)]
    assert clock.slept_s == [1.0, 5.0, 1.0]
