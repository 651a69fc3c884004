"""Another client of the API server, a process of its own: how long its small requests take beside the load.

An ordinary user, whom API priority and fairness treats as such. Called as `python -m benchmarks.bystander
'<JSON of Bystander>'`; says `ready` on a line once the first request is answered, goes on until its standard input
ends, and then prints the JSON of what it waited for.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec
import orjson
import uvloop

from benchmarks.endpoint import Endpoint
from operator_runtime.client.resources import CONFIG_MAPS

USER, NAMESPACE = "bystander", "bystander"
_ROOT = Path(__file__).resolve().parent.parent

_READ = "read"
# Rare enough to cost the API server little, often enough for a p99 of a load of a minute.
_EVERY_S = 0.2
_CONNECTIONS = 16


class Waits(msgspec.Struct, kw_only=True):
    """How long requests took, in milliseconds each."""

    get_ms: list[float] = []
    create_ms: list[float] = []


class BystanderFailed(Exception):
    """The API server refused the bystander, or its process ended."""


@dataclass(slots=True)
class Watched:
    """What a bystander waited for; there once its block has ended."""

    waits: Waits = field(default_factory=Waits)


@asynccontextmanager
async def alongside(endpoint: Endpoint) -> AsyncIterator[Watched]:
    """A bystander for as long as the block runs. Raises BystanderFailed: it could not do its requests."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.bystander", msgspec.json.encode(endpoint).decode()),
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        limit=1 << 26,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    watched = Watched()
    try:
        if await process.stdout.readline() != b"ready\n":
            raise BystanderFailed("the bystander ended, see above")
        yield watched
        process.stdin.close()
        printed, _ = await process.communicate()
        if process.returncode != 0:
            raise BystanderFailed(f"the bystander ended with code {process.returncode}, see above")
        watched.waits = msgspec.json.decode(printed, type=Waits)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _measure(endpoint: Endpoint, ended: Coroutine[None, None, object]) -> Waits:
    waits = Waits()
    ending = asyncio.ensure_future(ended)
    async with endpoint.session(_CONNECTIONS) as session:
        client = _Client(session)
        await client.create(_READ)
        print("ready", flush=True)
        async with asyncio.TaskGroup() as group:
            number = 0
            while not ending.done():
                # Sent when they are due, whatever has become of those before: one that waits does not hide the next.
                group.create_task(_timed(client.get(_READ), waits.get_ms.append))
                await asyncio.wait([ending], timeout=_EVERY_S / 2)
                group.create_task(_timed(client.create(f"written-{number}"), waits.create_ms.append))
                await asyncio.wait([ending], timeout=_EVERY_S / 2)
                number += 1
    return waits


async def _timed(request: Coroutine[None, None, None], took_ms: Callable[[float], object]) -> None:
    sent_s = time.monotonic()
    await request
    took_ms((time.monotonic() - sent_s) * 1000)


class _Client:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def get(self, name: str) -> None:
        async with self._session.get(CONFIG_MAPS.path(NAMESPACE, name), raise_for_status=True) as answer:
            await answer.read()

    async def create(self, name: str) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"said": name}}
        async with self._session.post(
            CONFIG_MAPS.path(NAMESPACE),
            data=orjson.dumps(body),
            headers={"Content-Type": "application/json"},
            raise_for_status=True,
        ) as answer:
            await answer.read()


def main() -> None:
    """The process."""

    async def measured() -> Waits:
        stdin = asyncio.StreamReader()
        # No thread that reads it, for which the process would wait where a request fails.
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
        return await _measure(msgspec.json.decode(sys.argv[1], type=Endpoint), stdin.read())

    print(msgspec.json.encode(uvloop.run(measured())).decode())


if __name__ == "__main__":
    main()
