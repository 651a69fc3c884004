"""Both event loops that a server runs on: each accepts, reads and writes in its own way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvloop

DEADLINE_S = 60.0

Run = Callable[[Callable[[], Awaitable[None]]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a scenario on one of the event loops."""

    def run(scenario: Callable[[], Awaitable[None]]) -> None:
        async def in_time() -> None:
            async with asyncio.timeout(1.5 * DEADLINE_S):
                await scenario()

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(in_time())

    return run
