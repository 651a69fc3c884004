"""Setting and getting a key, against servers that do and do not keep it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from memcached_operator.demo import caching
from tests.unit.memcached_operator.demo.support import running


@asynccontextmanager
async def server(monkeypatch: pytest.MonkeyPatch, *, keeps: bool = True, answers: bool = True) -> AsyncIterator[str]:
    """A server of memcached's text protocol on a port of its own; its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answers:
            head = (await reader.readline()).split()
            value = (await reader.readline()).strip()
            assert (await reader.readline()) == b"get %b\r\n" % head[1]
            found = b"VALUE %b 0 %d\r\n%b\r\n" % (head[1], len(value), value) if keeps else b""
            writer.write(b"STORED\r\n" + found + b"END\r\n")
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    monkeypatch.setattr(caching, "PORT", listening.sockets[0].getsockname()[1])
    async with listening:
        yield "127.0.0.1"


async def test_a_key_is_set_and_read_through_each_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(monkeypatch) as address:
        assert await caching.through_each_pod(running("shop", 3, address=address), "shop") == 3


async def test_a_server_that_forgets_is_told_of_with_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(monkeypatch, keeps=False) as address:
        with pytest.raises(caching.NoAnswerError, match=r"127.0.0.1:\d+ answered b'STORED"):
            await caching.set_and_get(address, "k", b"v")


async def test_a_server_that_hangs_up_or_is_not_there_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(monkeypatch, answers=False) as address:
        with pytest.raises(caching.NoAnswerError, match="does not answer"):
            await caching.set_and_get(address, "k", b"v")
    with pytest.raises(caching.NoAnswerError, match="does not answer"):
        await caching.set_and_get("127.0.0.1", "k", b"v")
