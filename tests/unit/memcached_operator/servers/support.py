"""Servers to be asked: real memcacheds, and some that misbehave, each on a loopback address of its own."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

import msgspec
import pytest

from kube_simulator.controllers import memcached
from memcached_operator.core.objects.labels import PORT
from memcached_operator.core.observed.pod_status import NO_PROBLEM
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.servers.server_connection import Endpoint, Failure
from memcached_operator.servers.stats_answer import StatsAnswer
from memcached_operator.servers.stats_cache import AnswerVerdict
from memcached_operator.servers.text_protocol import query
from operator_runtime.testing.waiting import async_until

# Of what answers, far above what it takes; and of what never does.
TIMEOUT_S, SOON_S = 20.0, 0.2
ONE_THREAD = ("-t", "1")
# In tables: answering, failing, exhausted, out of reach, unknown, denied.
A, F, E, O, U, D = (  # noqa: E741
    *(AnswerVerdict.ANSWERING, AnswerVerdict.FAILING, AnswerVerdict.EXHAUSTED),
    *(AnswerVerdict.OUT_OF_REACH, AnswerVerdict.UNKNOWN, AnswerVerdict.DENIED),
)


async def queried(where: str, timeout_s: float) -> StatsAnswer | Failure:
    """What a server says of itself that speaks plain text at this IP address."""
    return (await query(Endpoint(where), timeout_s))[0]


def address() -> str:
    """An IP address on which nobody listens."""
    return memcached.free_address(PORT, lambda _: False, random.Random())


def answer_of(stats: Mapping[str, object]) -> bytes:
    """What memcached writes of one kind of statistics."""
    return b"".join(f"STAT {name} {value}\r\n".encode() for name, value in stats.items()) + b"END\r\n"


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[str]:
    """A real memcached with these arguments; its IP address."""
    program = memcached.find_program()
    if program is None and not os.environ.get("CI"):
        pytest.skip("no memcached on the PATH, or not on Linux")
    assert program is not None
    where = address()
    process = await memcached.launch(program, memcached.Command("memcached", arguments, PORT), where)
    ended = asyncio.create_task(process.wait())
    try:
        if {"-Z", "-Y"} & {*arguments}:
            await async_until("it does not listen", partial(_listens, where))
        else:
            assert await memcached._answers(where, PORT, ended)
        yield where
    finally:
        if process.returncode is None:
            process.kill()
        await ended


async def _listens(where: str) -> bool:
    with suppress(OSError):
        _, writer = await asyncio.open_connection(where, PORT)
        writer.close()
        return True
    return False


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def talking(talk: Talk) -> AsyncIterator[str]:
    """A server of the test's own, which talks so on each connection; its IP address."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.CancelledError):
            await talk(reader, writer)
        writer.close()

    where = address()
    server = await asyncio.start_server(connected, where, PORT)
    try:
        yield where
    finally:
        server.close()


def saying(sent: bytes) -> Talk:
    """Answers so to whatever is asked, and waits."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(sent)
        await reader.read()

    return talk


@asynccontextmanager
async def saturated(*arguments: str) -> AsyncIterator[tuple[str, list[asyncio.StreamWriter]]]:
    """A real memcached that turns connections away, its IP address and the connections that it has."""
    async with running("-c", "24", *ONE_THREAD, *arguments) as where:
        held: list[asyncio.StreamWriter] = []
        while True:
            reader, writer = await asyncio.open_connection(where, PORT)
            writer.write(b"version\r\n")
            with suppress(ConnectionError):
                if not (await reader.readline()).startswith(b"VERSION"):
                    writer.close()
                    break
            held.append(writer)
        try:
            yield where, held
        finally:
            for each in held:
                each.close()


def answer(**figures: object) -> StatsAnswer:
    """A good answer of a server with 1,024 connections and four threads, with these figures."""
    usual = {"version": "1.6.45", "max_connections": 1_024, "curr_connections": 1, "rejected_connections": 0}
    stats = usual | {"reserved_fds": 20} | figures
    return StatsAnswer.of({name.encode(): str(value).encode() for name, value in stats.items()})


def server_pod(name: str = "cache-0", *, of: str = "cache", namespace: str = "shop", **changes: object) -> PodRecord:
    """A ready pod of a StatefulSet."""
    pod = PodRecord(
        namespace=namespace, name=name, uid=f"uid of {namespace}/{name}", resource_version="1", memcached=of, ordinal=0,
        revision="a", active=True, ready=True, problem=NO_PROBLEM, address="127.64.0.1",
    )  # fmt: skip
    return msgspec.structs.replace(pod, **changes)
