"""The demo from its beginning to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack, suppress

from memcached_operator.demo.cluster_state import AuditTail, Observer, follow
from memcached_operator.demo.clusters import DemoCluster, RunningOperator, client_of, operator
from memcached_operator.demo.plain import Plain
from memcached_operator.demo.script import STEPS, TO_PLAY_WITH, DemoStep, StepContext, StepFailedError, install_crd
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
            tail = AuditTail(cluster.audit_log)
            in_background(ends, follow(tail, display.wrote))
            running = await ends.enter_async_context(
                operator(cluster.kubeconfig, display.on_log_line, real_pods=cluster.real_pods)
            )
            if not await running.in_sync(_SYNC_DEADLINE_S):
                raise StepFailedError(f"the operator did not start; its last log line: {running.last_words}")
        except (StepFailedError, KubeError) as error:
            display.failed(0, str(error))
        else:
            came_true = await run_steps(StepContext(client, observer, cluster), display, running)
            for write in tail.writes():  # those of the last moment
                display.wrote(write)
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
