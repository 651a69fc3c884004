"""Parts of the operator that run while a test looks at them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

DEADLINE_S = 60.0


class Part(Protocol):
    async def run(self) -> None: ...

    def stop(self) -> None: ...


@asynccontextmanager
async def running(part: Part) -> AsyncIterator[asyncio.Task[None]]:
    """Run it; at the end of the block it is asked to stop, and comes to its end."""
    task = asyncio.create_task(part.run())
    try:
        yield task
    finally:
        part.stop()
        await asyncio.wait_for(task, DEADLINE_S)


async def settle() -> None:
    """Let everything happen that waits for nothing but its turn of the loop."""
    for _ in range(20):
        await asyncio.sleep(0)
