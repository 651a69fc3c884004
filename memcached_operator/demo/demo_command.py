"""`memcached-operator demo`: which cluster, which display, the steps one after the other, and the exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from memcached_operator.demo.caching import StepFailedError
from memcached_operator.demo.cluster_state import Observer
from memcached_operator.demo.clusters import DemoCluster, NoClusterError, RunningOperator, client_of, simulated
from memcached_operator.demo.plain import Plain
from memcached_operator.demo.script import STEPS, TO_PLAY_WITH, DemoStep, StepContext, install_crd
from operator_runtime.client.errors import KubeError

# The operator lists three kinds; the rest is the start of Python on a busy machine.
_SYNC_DEADLINE_S = 60.0


def steps_for(display: Plain) -> Sequence[DemoStep]:
    """Choose the steps for a display."""
    return (*STEPS, TO_PLAY_WITH) if display.stays else STEPS


async def run_demo(cluster: DemoCluster, display: Plain) -> bool:
    async with AsyncExitStack() as ends:
        client = await ends.enter_async_context(client_of(cluster.kubeconfig))
        observer = Observer(client)
        in_background(ends, observer.run())
        steps = steps_for(display)
        display.opens(cluster, observer, steps)
        came_true = 0
        try:
            await install_crd(client)
            await cluster.kind_installed()
            running = RunningOperator(cluster.kubeconfig, display.on_log_line, real_pods=cluster.real_pods)
            ends.push_async_callback(running.end)
            if not await running.in_sync(_SYNC_DEADLINE_S):
                raise StepFailedError(f"the operator did not start; its last log line: {running.last_words}")
            display.writes = running.writes
        except (StepFailedError, KubeError) as error:
            display.failed(0, str(error))
        else:
            came_true = await run_steps(StepContext(client, observer, cluster), display, running)
        observer.rest()
        await display.closes(came_true)
        return came_true == len(steps)


async def run_steps(context: StepContext, display: Plain, running: RunningOperator | None = None) -> int:
    """Run one step after the other; how many came true before one did not, or before the operator ended."""
    steps = steps_for(display)
    for number, step in enumerate(steps):
        display.begins(number)
        started = time.monotonic()
        try:
            seen = await _run_step(step, context, running)
        except (StepFailedError, KubeError) as error:
            display.failed(number, str(error))
            return number
        display.came_true(number, time.monotonic() - started, seen)
        if step is not steps[-1]:
            await display.takes_in()
    return len(steps)


async def _run_step(step: DemoStep, context: StepContext, running: RunningOperator | None) -> str:
    """Run a step and return what it saw.

    Raises:
        StepFailedError: it did not come true, or the operator ended before it did.
        KubeError: the API server refused what the step does.
    """
    running_step = asyncio.ensure_future(step.run(context))
    awaited: set[asyncio.Future[str] | asyncio.Future[int]] = {running_step}
    if running is not None:
        awaited.add(running.ended)
    try:
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if running is not None and not running_step.done():
            why = running.ended.exception() or "without an error"
            raise StepFailedError(f"the operator ended ({why}); its last log line: {running.last_words}")
        return running_step.result()
    finally:
        running_step.cancel()
        await asyncio.gather(running_step, return_exceptions=True)


def in_background(ends: AsyncExitStack, work: Coroutine[None, None, None]) -> None:
    """Work next to the steps until the stack ends it."""
    task = asyncio.create_task(work)

    async def end() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):  # a fault of its own is not hidden
            await task

    ends.push_async_callback(end)


DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


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
    with View(Console(), stays=_stays(options), picture=options.picture) as view:
        return await _show(cluster, view)


async def _show(cluster: AbstractAsyncContextManager[DemoCluster], display: Plain) -> int:
    async with cluster as there:
        return DONE if await run_demo(there, display) else FAILED
