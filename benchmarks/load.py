"""The load generator, a process of its own: creates Memcacheds by many writers at once.

Called as `python -m benchmarks.load '<JSON of Load>'`; prints when the first was sent, once all are there.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator

import aiohttp
import msgspec
import orjson
import uvloop

from benchmarks.endpoint import MEMCACHEDS, NAMESPACE, Endpoint, memcached, memcached_name

_TRIES = 5
_PAUSE_S = 0.5


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What to create: `count` Memcacheds of `size`, by `writers` connections that each send one after another.

    With `extras` each has what stands beside servers by default.
    """

    endpoint: Endpoint
    count: int
    size: int
    writers: int
    extras: bool


async def create_all(load: Load) -> float:
    """Create everything; when the first was sent, on the clock that all processes of a machine share.

    Raises:
        aiohttp.ClientError: the API server goes on refusing one.
    """
    bodies = (
        orjson.dumps(memcached(memcached_name(index), load.size, extras=load.extras)) for index in range(load.count)
    )
    async with load.endpoint.session(load.writers) as session:
        first_sent_s = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for _ in range(load.writers):
                group.create_task(_write(session, bodies))
    return first_sent_s


async def _write(session: aiohttp.ClientSession, bodies: Iterator[bytes]) -> None:
    path = MEMCACHEDS.path(NAMESPACE)
    for body in bodies:
        for left in reversed(range(_TRIES)):
            async with session.post(path, data=body, headers={"Content-Type": "application/json"}) as answer:
                text = await answer.text()
                if answer.status == 201:
                    break
                if left == 0 or answer.status < 429:
                    raise aiohttp.ClientError(f"POST {path}: {answer.status}: {text}")
            await asyncio.sleep(_PAUSE_S)


def main() -> None:
    """The process."""
    print(uvloop.run(create_all(msgspec.json.decode(sys.argv[1], type=Load))))


if __name__ == "__main__":
    main()
