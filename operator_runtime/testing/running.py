"""An operator on the test's own event loop: started, in sync when the test goes on, and shut down gracefully."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from operator_runtime.identity import Program
from operator_runtime.operator import Operator, serve
from operator_runtime.settings.runtime_settings import S
from operator_runtime.settings.schema import Schema
from operator_runtime.testing.cache_guard import CacheGuard
from operator_runtime.testing.waiting import DEADLINE_S, async_until

# Defaults of a test: everything is watched, no port is taken, and an end is no long wait.
_FOR_TESTS: Final[Mapping[str, object]] = {
    "watch_namespaces": (),
    "health_probe_bind_address": "0",
    "metrics_bind_address": "0",
    "shutdown_timeout_s": 5.0,
}


class OperatorEndedError(AssertionError):
    """The operator ended although the test had not ended it; its own error, where it has one, is the cause."""


def settings_of(program: Program, settings: type[S], values: Mapping[str, object]) -> S:
    """The settings that an operator is started with: the test's, else what suits tests, else the defaults.

    No environment variable counts: a developer's own would make a test of something else. Raises as `Schema` does.
    """
    return Schema(settings, program).load({**_FOR_TESTS, **values}, environ={})


@asynccontextmanager
async def running_operator(
    set_up: Callable[[Operator, S], None], program: Program, settings: S, *, deadline_s: float = DEADLINE_S
) -> AsyncIterator[Operator]:
    """Run an operator until the end of the block; see `testing.cluster.SimulatedCluster.operator`.

    The block begins when its caches are in sync and its servers listen.
    """
    stop = asyncio.Event()
    made: list[Operator] = []
    guard = CacheGuard()

    def keeping(operator: Operator, settings: S) -> None:
        made.append(operator)
        set_up(operator, settings)
        # A store has a reflector for each namespace.
        for reflector in {id(each.store): each for each in operator.manager.reflectors}.values():
            guard.watch(reflector.resource.kind, reflector.store)

    def in_sync() -> bool:
        # An operator without watches is in sync before it listens.
        return bool(made) and made[0].manager.settled

    test = asyncio.current_task()
    assert test is not None
    ended_by_itself = began = False

    def ended(_: object) -> None:
        nonlocal ended_by_itself
        if not stop.is_set():
            ended_by_itself = True
            test.cancel()

    running = asyncio.create_task(serve(settings, program, keeping, stop=stop), name=program.name)
    running.add_done_callback(ended)
    try:
        await async_until("the first lists of its watches have not come", in_sync, deadline_s=deadline_s)
        began = True
        yield made[0]
    except asyncio.CancelledError:
        # As in asyncio.timeout: a cancellation that another task requested, too, goes on.
        if not ended_by_itself or test.uncancel() > 0:
            raise
    finally:
        stop.set()
        done, _ = await asyncio.wait({running}, timeout=deadline_s)
        if not done:
            running.cancel()
            await asyncio.wait({running})
    if not done:
        raise AssertionError(f"{program.name} did not end within {deadline_s:g} s after it was stopped")
    if ended_by_itself:
        error = running.exception()
        if error is not None and not began:
            raise error
        words = "without an error" if error is None else f"{type(error).__name__}: {error}"
        raise OperatorEndedError(f"{program.name} ended before the test did: {words}") from error
    running.result()
    guard.check()
