"""Watches on real sockets: closed on every way out, ended by silence, never compressed by our wish."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Forbidden, MalformedAnswer, StreamStalled, Unauthorized, Unreachable
from operator_runtime.testing.waiting import async_until
from tests.unit.operator_runtime.client.client_support import (
    PATH,
    SILENCE_LIMIT_S,
    FakeCredentials,
    Handler,
    Peer,
    Request,
    between,
    client_of,
    connection_ended,
    for_the_second_token,
    refused_watch,
    saying,
    serving,
    streamed,
    three_lines_and_silence,
)

# A watch's connection is closed on every way out.


async def test_a_watch_that_is_left_unread_is_closed() -> None:
    async with between(three_lines_and_silence) as (server, client):
        async with client.stream(PATH, {"watch": "1"}, SILENCE_LIMIT_S) as stream:
            assert await stream.read() == b"1\n2\n3\n"
        await connection_ended(server)
        assert server.requests[0].target == f"{PATH}?watch=1"
        assert server.requests[0].headers["accept-encoding"] == "identity"


async def silent(peer: Peer, request: Request) -> None:
    await peer.closed()


@pytest.mark.parametrize("handler", [three_lines_and_silence, silent], ids=["while it reads", "before its headers"])
async def test_a_watch_that_is_cancelled_is_closed(handler: Handler) -> None:
    reading = asyncio.Event()

    async def read(client: ApiClient) -> None:
        async with client.stream(PATH, {}, SILENCE_LIMIT_S) as stream:
            await stream.read()
            reading.set()
            await stream.read()

    async with between(handler) as (server, client):
        task = asyncio.create_task(read(client))
        await async_until(
            "it has not begun", lambda: reading.is_set() if handler is not silent else bool(server.requests)
        )
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await connection_ended(server)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (saying(403, b'{"kind":"Status","code":403,"message":"no"}'), Forbidden, "403 Forbidden: no"),
        (saying(302, b"<html>", Location="http://127.0.0.1:9/"), MalformedAnswer, "HTTP 302"),
    ],
    ids=["refused", "sent elsewhere"],
)
async def test_a_watch_that_is_refused_is_closed_and_says_why(
    answer: Handler, error: type[Exception], message: str
) -> None:
    async with between(answer) as (server, client):
        with pytest.raises(error, match=message):
            await refused_watch(client)
        await connection_ended(server)


async def test_a_stream_that_breaks_in_a_chunk_is_unreachable_after_its_bytes() -> None:
    async def break_off(peer: Peer, request: Request) -> None:
        await peer.begin_stream()
        await peer.send(b"64\r\nhalf")
        peer.close()

    async with streamed(break_off) as stream:
        assert await stream.read() == b"half"
        with pytest.raises(Unreachable):
            await stream.read()


async def test_a_401_to_a_watch_fetches_a_newer_credential_for_the_next_one() -> None:
    credentials = FakeCredentials(next_token="second")
    async with between(for_the_second_token, credentials) as (_, client):
        with pytest.raises(Unauthorized):
            await refused_watch(client)
        assert len(credentials.refreshes) == 1
        async with client.stream(PATH, {}, SILENCE_LIMIT_S) as stream:
            assert await stream.read() == b"{}"


# Silence.


async def test_each_byte_begins_the_silence_anew_and_silence_ends_the_stream(skip: Callable[[float], None]) -> None:
    more = asyncio.Event()

    async def drip(peer: Peer, request: Request) -> None:
        await peer.begin_stream()
        for _ in range(3):
            await more.wait()
            more.clear()
            await peer.chunk(b".")
        await peer.closed()

    async with serving(drip) as server, client_of(server.url) as client:
        async with client.stream(PATH, {}, SILENCE_LIMIT_S) as stream:
            for _ in range(3):
                skip(SILENCE_LIMIT_S - 10.0)
                more.set()
                assert await stream.read() == b"."
            silent = asyncio.create_task(stream.read())
            await asyncio.sleep(0)
            skip(SILENCE_LIMIT_S + 1.0)
            with pytest.raises(StreamStalled, match="no byte for 70 s"):
                await silent
        await connection_ended(server)
