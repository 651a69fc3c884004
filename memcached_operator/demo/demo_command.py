"""`memcached-operator demo`: which cluster, which display, and the exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from memcached_operator.demo.clusters import DemoCluster, NoClusterError, simulated
from memcached_operator.demo.plain import Plain
from memcached_operator.demo.runner import run_demo
from memcached_operator.demo.script import STEPS

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
# All of the script has come true then.
_PICTURE_AFTER = len(STEPS) - 1


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of the command line."""

    once: bool = False
    """End after the last step, also in a terminal."""
    plain: bool = False
    """A line a step, also in a terminal."""
    cluster: Callable[[], AbstractAsyncContextManager[DemoCluster]] | None = None
    """Where it runs; None for the simulator."""
    memcached: bool = True
    """Whether pods are real memcached processes where the program is there."""
    picture: Path | None = None
    """Where to draw the view as an SVG."""


def run(options: DemoOptions) -> int:
    """Show the demo and return the exit code.

    0 only if every step came true, 130 where it was ended before that was known. A live view that stays is there to
    be left by Ctrl-C: 0 at any time, unless a step had failed.
    """
    try:
        code = asyncio.run(_run(options))
        if _stays(options):
            print("demo: ended; everything is cleaned up")
        elif code == INTERRUPTED:
            print("demo: interrupted; everything is cleaned up")
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except NoClusterError as error:
        print(f"memcached-operator: {error}", file=sys.stderr)
        return WRONG_USAGE
    except BrokenPipeError:  # its reader has left, and with it everything was ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the rest of them would fail at exit again
        return FAILED


async def _run(options: DemoOptions) -> int:
    # What ends a demo ends the API server, the operator and the pods with it.
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    cluster = options.cluster() if options.cluster else simulated(memcached=options.memcached)
    try:
        if not _is_live(options):
            return await _show(cluster, Plain(sys.stdout))
        return await _show_in_terminal(cluster, options)
    except asyncio.CancelledError:
        return DONE if _stays(options) else INTERRUPTED


def _is_live(options: DemoOptions) -> bool:
    return not options.plain and (sys.stdout.isatty() or options.picture is not None)


def _stays(options: DemoOptions) -> bool:
    return _is_live(options) and not options.once and sys.stdout.isatty()


async def _show_in_terminal(cluster: AbstractAsyncContextManager[DemoCluster], options: DemoOptions) -> int:
    try:
        from rich.console import Console

        from memcached_operator.demo.view import View
    except ImportError as error:
        raise NoClusterError(
            f"the live view needs {error.name}, which is not installed: pip install 'memcached-operator[demo]', "
            "or add --plain"
        ) from error
    with View(Console(), stays=_stays(options), picture=options.picture, picture_after=_PICTURE_AFTER) as view:
        return await _show(cluster, view)


async def _show(cluster: AbstractAsyncContextManager[DemoCluster], display: Plain) -> int:
    async with cluster as there:
        return DONE if await run_demo(there, display) else FAILED
