"""The demo from its beginning to its end, before an audience that may be a terminal or a file."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Protocol

from memcached_operator.demo import writes
from memcached_operator.demo.script import STEPS, TO_PLAY_WITH, Play, Step, StepFailedError, install_crd
from memcached_operator.demo.stage import LogLine, OperatorProcess, Stage, client_of, operator
from memcached_operator.demo.world import LookOut
from operator_runtime.client.errors import KubeError

# The operator lists three kinds; the rest is the start of Python on a busy machine.
_SYNC_DEADLINE_S = 60.0


class Audience(Protocol):
    """Whom the demo is shown to."""

    @property
    def stays(self) -> bool:
        """Whether `closes` waits for somebody's word, so that there must be something to play with until then."""

    def opens(self, stage: Stage, look_out: LookOut, steps: Sequence[Step]) -> None:
        """The API server runs; nothing has happened yet."""

    def begins(self, number: int) -> None:
        """A step, counted from 0, is being played."""

    def came_true(self, number: int, took_s: float, seen: str) -> None:
        """It came true; `seen` may say how."""

    def failed(self, number: int, why: str) -> None:
        """It did not, and the rest is not played."""

    def heard(self, line: LogLine) -> None:
        """The operator logged a line."""

    def wrote(self, write: writes.Write) -> None:
        """The operator changed something."""

    async def takes_in(self) -> None:
        """A step came true and another is to come: return when it has been seen."""

    async def closes(self, came_true: int) -> None:
        """All is over; may stay for as long as it likes, with the stage still there."""


def steps_for(audience: Audience) -> Sequence[Step]:
    """What is played before it."""
    return (*STEPS, TO_PLAY_WITH) if audience.stays else STEPS


async def perform(stage: Stage, audience: Audience) -> bool:
    """Play all steps; whether each came true."""
    async with AsyncExitStack() as ends:
        client = await ends.enter_async_context(client_of(stage.kubeconfig))
        look_out = LookOut(client)
        in_background(ends, look_out.run())
        steps = steps_for(audience)
        audience.opens(stage, look_out, steps)
        came_true = 0
        try:
            await install_crd(client)
            await stage.kind_installed()
            in_background(ends, writes.follow(stage.audit_log, audience.wrote))
            process = await ends.enter_async_context(operator(stage.kubeconfig, audience.heard))
            if not await process.in_sync(_SYNC_DEADLINE_S):
                raise StepFailedError(f"the operator did not start; its last words: {process.last_words}")
        except (StepFailedError, KubeError) as error:
            audience.failed(0, str(error))
        else:
            came_true = await play_all(Play(client, look_out, stage), audience, process)
        look_out.rest()
        await audience.closes(came_true)
        return came_true == len(steps)


async def play_all(play: Play, audience: Audience, process: OperatorProcess | None = None) -> int:
    """Play one step after the other; how many came true before one did not, or before the operator's process ended."""
    steps = steps_for(audience)
    for number, step in enumerate(steps):
        audience.begins(number)
        started = time.monotonic()
        try:
            seen = await _played(step, play, process)
        except (StepFailedError, KubeError) as error:
            audience.failed(number, str(error))
            return number
        audience.came_true(number, time.monotonic() - started, seen)
        if step is not steps[-1]:
            await audience.takes_in()
    return len(steps)


async def _played(step: Step, play: Play, process: OperatorProcess | None) -> str:
    """What the step saw.

    Raises:
        StepFailedError: it did not come true, or the operator ended before it did.
        KubeError: the API server refused what the step does.
    """
    playing = asyncio.ensure_future(step.play(play))
    awaited: set[asyncio.Future[str] | asyncio.Future[int]] = {playing}
    if process is not None:
        awaited.add(process.ended)
    try:
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if process is not None and not playing.done():
            code = process.ended.result()
            raise StepFailedError(f"the operator ended with {_in_words(code)}; its last words: {process.last_words}")
        return playing.result()
    finally:
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)


def _in_words(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def in_background(ends: AsyncExitStack, work: Coroutine[None, None, None]) -> None:
    """Work beside the play until the stack ends it."""
    task = asyncio.create_task(work)

    async def end() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):  # a fault of its own is not hidden
            await task

    ends.push_async_callback(end)
