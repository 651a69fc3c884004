"""A clock and a sleep that a test moves.

For code that takes its clock and its sleep as arguments, `clock: Callable[[], float] = time.monotonic` and
`sleep: Callable[[float], Awaitable[None]] = asyncio.sleep`::

    clock = FakeClock()
    task = asyncio.create_task(poll_forever(clock=clock, sleep=clock.sleep))
    await clock.asleep()          # it has come to its first sleep
    clock.advance(30.0)           # and this wakes it
"""

from __future__ import annotations

import asyncio
import heapq
from itertools import count
from typing import Final

# Only a test whose task never sleeps runs into it.
_ASLEEP_DEADLINE_S = 10.0
START_S: Final = 1000.0
"""Where a clock starts by default: not at 0, with which code might take a time for none."""


class FakeClock:
    """A clock in seconds that stands still until `advance`; `clock()` is its time, like `time.monotonic()`.

    For one event loop. Invariant: a sleeper wakes at a time that is later than now.
    """

    def __init__(self, now: float = START_S) -> None:
        self.slept_s: list[float] = []
        """Length of each sleep, in the order in which they began."""
        self._now = now
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()
        self._changed = asyncio.Event()

    def __call__(self) -> float:
        return self._now

    @property
    def now(self) -> float:
        return self._now

    @property
    def sleeping(self) -> int:
        return sum(not woken.done() for _, _, woken in self._sleepers)

    def advance(self, seconds: float) -> None:
        """Move on, and wake those whose sleep has ended by then, the earliest first.

        The woken go on when the event loop runs next, and all of them at the new time: one who then sleeps again sleeps
        from there. Advance in steps where each sleep of a loop counts.

        Raises:
            ValueError: `seconds` is negative; what takes a clock may rely on it never going back.
        """
        if seconds < 0:
            raise ValueError(f"a clock does not go back: advance takes 0 seconds or more, and was given {seconds:g}")
        self.advance_to(self._now + seconds)

    def advance_to(self, time_s: float) -> None:
        """Advance to a time of the clock's own; ValueError where that is past."""
        if time_s < self._now:
            raise ValueError(f"a clock does not go back: it is {self._now:g}, and advance_to was given {time_s:g}")
        self._now = time_s
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():  # else the sleeper was cancelled
                woken.set_result(None)

    async def sleep(self, seconds: float) -> None:
        """Sleep until the clock has been moved on by so much; 0 or less lets others run, as `asyncio.sleep` does."""
        self.slept_s.append(seconds)
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        self._changed.set()
        await woken

    async def asleep(self, sleepers: int = 1, *, deadline_s: float = _ASLEEP_DEADLINE_S) -> None:
        """Wait until so many sleep, or more: an `advance` before would wake none. AssertionError after the deadline."""
        try:
            async with asyncio.timeout(deadline_s):
                while self.sleeping < sleepers:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not within {deadline_s:g} s: {sleepers} asleep; {self.sleeping} are") from None
