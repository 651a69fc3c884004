"""Stalls of the event loop: which are told, and the line that is blamed."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from traceback import FrameSummary

import pytest

from operator_runtime.diagnostics.watchdog import (
    FIRST_PAUSE_S,
    EventLoopWatchdog,
    Places,
    StallDetector,
    blamed,
    stack_of,
)
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.log_support import DEADLINE_S, Log, logged
from tests.unit.operator_runtime.running import running

# Long enough that a loaded machine does not keep the thread back for half of it again and again.
AFTER_S = 0.2
PLACES = Places(Path("/py/site-packages/op/runtime"), (Path("/py/site-packages"),), Path("/py"))
LOOP = ("/py/asyncio/events.py", "/py/site-packages/op/runtime/controller.py")


def shown(*files: str) -> list[str]:
    """The files that are blamed, of a stack that is given outermost first."""
    return [each.filename for each in blamed([FrameSummary(file, 1, "f") for file in files], PLACES)]


HTTP = [f"/py/site-packages/urllib3/{name}.py" for name in "abc"]
SHELL = "/py/site-packages/shell/reconciler.py"


@pytest.mark.parametrize(
    ("stack", "blames"),
    [
        ([*LOOP, "/app/a.py", "/app/b.py", HTTP[0], "/py/socket.py"], ["/app/b.py", "/app/a.py"]),
        (["/app/main.py", *LOOP, *(f"/app/{name}.py" for name in "abcd")], [f"/app/{name}.py" for name in "dcb"]),
        ([*LOOP, SHELL, *HTTP, "/py/socket.py"], [HTTP[2], HTTP[1], SHELL]),
        (["<frozen runpy>", *LOOP], [LOOP[1], LOOP[0], "<frozen runpy>"]),
    ],
    ids=["not what they call", "innermost first", "the package that was called first", "nobody's code"],
)
def test_the_authors_lines_are_blamed(stack: list[str], blames: list[str]) -> None:
    assert shown(*stack) == blames


class World:
    """A loop that is due at a time, and the thread that checks it when the detector says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.due_at = 100.5
        self.detector = StallDetector(1.0, self.now)

    def wake(self, *, late_s: float = 0.0) -> float | None:
        self.now = self.detector.check_at + late_s
        return self.detector.check(self.now, self.due_at)

    def turn(self, after_s: float = 0.0) -> None:
        """The loop runs, and is due half a second later again."""
        self.now += after_s
        self.due_at = self.now + 0.5

    def stall(self) -> float | None:
        """One stall from now on, and what is reported of it."""
        self.turn()
        for _ in range(4):
            if (stall_found := self.wake()) is not None:
                return stall_found
        return None


@pytest.fixture
def world() -> World:
    return World()


def test_a_loop_that_runs_is_left_alone(world: World) -> None:
    wakes = 0
    while world.now < 200.0:
        while world.due_at < world.detector.check_at:
            world.due_at += 0.5
        assert world.wake() is None
        wakes += 1
    assert wakes <= 100


def test_a_stall_is_told_once_when_the_loop_is_a_second_late(world: World) -> None:
    stall_found = [world.wake() for _ in range(20)]
    assert [each for each in stall_found if each is not None] == [1.0]


def test_a_stall_soon_after_another_is_not_told(world: World) -> None:
    assert world.stall() == 1.0
    assert world.stall() is None
    world.turn(FIRST_PAUSE_S)
    assert world.stall() == 1.0


def test_a_process_that_was_stopped_as_a_whole_has_not_stalled_unless_its_loop_goes_on_so(world: World) -> None:
    assert world.wake(late_s=60.0) is None
    world.turn(0.1)
    assert world.wake() is None
    assert world.wake(late_s=60.0) is None
    stall_found = world.wake()
    assert stall_found is not None
    assert stall_found > 60.0


@pytest.fixture
def runtime_log() -> Iterator[Log]:
    with logged() as handler:
        yield handler
    for thread in threading.enumerate():
        if thread.name == "event-loop watchdog":
            thread.join(DEADLINE_S)  # it may still be writing the line that was waited for, which is of no other test


async def test_a_blocking_call_is_told_with_its_line_while_it_blocks_and_that_it_is_over(runtime_log: Log) -> None:
    async with running(EventLoopWatchdog(after_s=AFTER_S)):
        await asyncio.sleep(0)
        runtime_log.wait_for("the event loop has not run for")  # blocks this loop
        (reported,) = runtime_log.lines
        assert "It hangs at " in reported
        assert " in block_until, called at " in reported
        assert " in test_a_blocking_call_is_told_with_its_line_while_it_blocks_and_that_it_is_over" in reported
        await asyncio.to_thread(runtime_log.wait_for, "the event loop runs again, after ")


async def test_a_loop_that_is_held_up_is_observed_with_by_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lags = FakeClock(), list[float]()
    watchdog = EventLoopWatchdog(lags.append, after_s=0.01, clock=clock)
    late_s = [0.0, 3.0]

    def beat() -> None:
        clock.advance(0.005 + late_s.pop(0))
        EventLoopWatchdog._beat(watchdog)
        if not late_s:
            watchdog.stop()

    monkeypatch.setattr(watchdog, "_beat", beat)
    await asyncio.wait_for(watchdog.run(), DEADLINE_S)
    assert lags == pytest.approx([0.0, 3.0])


async def test_it_ends_with_its_thread() -> None:
    others = set(threading.enumerate())  # that of another test may be on its way out
    async with running(EventLoopWatchdog(after_s=AFTER_S)):
        await asyncio.sleep(0)
        named = [each for each in threading.enumerate() if each.name == "event-loop watchdog"]
        (thread,) = [each for each in named if each not in others]
    await asyncio.to_thread(thread.join, DEADLINE_S)
    assert not thread.is_alive()


def test_a_thread_that_is_gone_has_no_stack() -> None:
    # An identifier that no thread has: the next thread may have got that of one which ended.
    assert list(stack_of(max(sys._current_frames()) + 1)) == []
    assert stack_of(threading.get_ident())[-2].name == "test_a_thread_that_is_gone_has_no_stack"


def test_the_stalled_loop_need_not_be_the_main_threads(runtime_log: Log) -> None:
    reported: list[str] = []

    async def blocking() -> None:
        async with running(EventLoopWatchdog(after_s=AFTER_S)):
            await asyncio.sleep(0)
            reported.append(runtime_log.wait_for("It hangs at"))

    thread = threading.Thread(target=lambda: asyncio.run(blocking()))
    thread.start()
    thread.join(DEADLINE_S)
    assert " in blocking" in reported[0]
