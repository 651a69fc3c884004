"""`memcached-operator demo`: which stage, which audience, and the exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from memcached_operator.demo.performance import Audience, perform
from memcached_operator.demo.plain import Plain
from memcached_operator.demo.script import STEPS
from memcached_operator.demo.stage import NoStageError, Stage, real, simulated

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
# The stranger's Deployment is in the way then: the picture that says most.
_PICTURE_AFTER = len(STEPS) - 2


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the command line asks for."""

    once: bool = False
    """End after the last step, also in a terminal."""
    plain: bool = False
    """A line a step, also in a terminal."""
    real: bool = False
    """On the lab's control plane."""
    memcached: bool = True
    """Whether pods are real memcached processes where the program is there."""
    picture: Path | None = None
    """Where to draw the view as an SVG."""


def run(options: DemoOptions) -> int:
    """Show the demo; 0 only if every step came true, 130 where it was ended before that could be said."""
    try:
        return asyncio.run(_run(options))
    except KeyboardInterrupt:
        return INTERRUPTED
    except NoStageError as error:
        print(f"memcached-operator: {error}", file=sys.stderr)
        return WRONG_USAGE
    except BrokenPipeError:  # whoever read the lines has left, and with them everything was ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the rest of them would fail at exit again
        return FAILED


async def _run(options: DemoOptions) -> int:
    # What ends a demo ends the API server, the operator and the pods with it.
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    stage = real() if options.real else simulated(memcached=options.memcached)
    try:
        if options.plain or (not sys.stdout.isatty() and options.picture is None):
            return await _show(stage, Plain(sys.stdout))
        return await _show_in_terminal(stage, options)
    except asyncio.CancelledError:
        return INTERRUPTED


async def _show_in_terminal(stage: AbstractAsyncContextManager[Stage], options: DemoOptions) -> int:
    try:
        from rich.console import Console

        from memcached_operator.demo.view import View
    except ImportError as error:
        raise NoStageError(
            f"the live view needs {error.name}, which is not installed: pip install 'memcached-operator[demo]', "
            "or add --plain"
        ) from error
    stays = not options.once and sys.stdout.isatty()
    with View(Console(), stays=stays, picture=options.picture, picture_after=_PICTURE_AFTER) as view:
        return await _show(stage, view)


async def _show(stage: AbstractAsyncContextManager[Stage], audience: Audience) -> int:
    async with stage as there:
        return DONE if await perform(there, audience) else FAILED
