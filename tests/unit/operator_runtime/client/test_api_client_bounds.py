"""Servers and proxies that never come to an end, on real sockets: each call and each watch is over in its time."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.bounded_bodies import ERROR_BODY_S
from operator_runtime.client.errors import AnswerTooLong, ServerError, StreamStalled, Unreachable
from tests.unit.operator_runtime.client.client_support import (
    DEADLINE_S,
    PATH,
    SILENCE_LIMIT_S,
    Peer,
    Request,
    between,
    client_of,
    connection_ended,
    refused_watch,
    saying,
    serving,
)

# By the loop's clock, which `overdue` moves on: nobody waits for it.
LIMIT_S = SILENCE_LIMIT_S
# Of such steps a few are more than the limit, and in each something drips: what begins anew with that never ends.
STEP_S = 0.4 * LIMIT_S
DRIP_S = STEP_S / 2

Act = Callable[[Peer], Awaitable[None]]
Skip = Callable[[float], None]


async def dripped(peer: Peer, beginning: bytes, drop: bytes) -> None:
    """Send something for ever, until the client has gone."""
    await peer.send(beginning)
    while True:
        try:
            await peer.send(drop)
        except ConnectionError:
            return
        await asyncio.sleep(DRIP_S)


async def nothing(peer: Peer) -> None:
    await peer.closed()


async def processing_without_end(peer: Peer) -> None:
    await dripped(peer, b"", b"HTTP/1.1 102 Processing\r\n\r\n")


async def a_head_byte_by_byte(peer: Peer) -> None:
    await dripped(peer, b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x")


async def a_chunks_length_digit_by_digit(peer: Peer) -> None:
    await dripped(peer, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0")


async def a_body_byte_by_byte(peer: Peer) -> None:
    await dripped(peer, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n\n\r\n")


async def a_body_at_full_speed(peer: Peer) -> None:
    await peer.begin_stream()
    await flood(peer)


async def flood(peer: Peer) -> None:
    try:
        while True:
            await peer.chunk(b"\n" * 65_536)
            await asyncio.sleep(0)
    except ConnectionError:
        pass


def named(act: Act) -> str:
    return act.__name__.replace("_", " ")


@asynccontextmanager
async def client_before(
    act: Act, *, proxied: bool = False, expected: asyncio.Event | None = None
) -> AsyncIterator[ApiClient]:
    """A client whose server, or the proxy before it, does this after each head; at the end the connection is closed.

    Args:
        expected: set when a head has come.
    """

    async def handler(peer: Peer, request: Request) -> None:
        assert request.method == ("CONNECT" if proxied else "GET")
        if expected is not None:
            expected.set()
        await act(peer)

    async with serving(handler) as server:
        url, proxy = ("https://10.0.0.1:6443", server.url) if proxied else (server.url, None)
        async with client_of(url, proxy=proxy, timeout_s=LIMIT_S) as client:
            yield client
            await connection_ended(server)


async def read_to_the_end(client: ApiClient, query: dict[str, str], opened: asyncio.Event) -> None:
    async with client.stream(PATH, query, LIMIT_S) as stream:
        opened.set()
        while await stream.read():
            pass


async def overdue(requesting: Coroutine[Any, Any, object], begun: asyncio.Event, skip: Skip) -> None:
    """What comes of a call or a watch when, after it has begun, more than its time passes."""
    task = asyncio.create_task(requesting)
    await asyncio.wait_for(begun.wait(), DEADLINE_S)
    for _ in range(4):
        skip(STEP_S)
        for _ in range(20):  # what dripped comes to the client
            await asyncio.sleep(0)
    await asyncio.wait_for(task, DEADLINE_S)


WITHOUT_AN_ANSWER = [nothing, processing_without_end, a_head_byte_by_byte]


BEFORE_THE_SERVER_OR_ITS_PROXY = pytest.mark.parametrize("proxied", [False, True], ids=["server", "proxy"])


@pytest.fixture
def begun() -> asyncio.Event:
    return asyncio.Event()


@BEFORE_THE_SERVER_OR_ITS_PROXY
@pytest.mark.parametrize("act", WITHOUT_AN_ANSWER, ids=named)
async def test_headers_that_do_not_come_whole_in_time_are_silence(
    act: Act, proxied: bool, begun: asyncio.Event, skip: Skip
) -> None:
    async with client_before(act, proxied=proxied, expected=begun) as client:
        with pytest.raises(StreamStalled, match="no answer for 70 s"):
            await overdue(read_to_the_end(client, {}, asyncio.Event()), begun, skip)
        assert client.requests == {(0, "GET"): 1}


async def test_bytes_of_which_nothing_comes_are_silence(begun: asyncio.Event, skip: Skip) -> None:
    async with client_before(a_chunks_length_digit_by_digit) as client:
        with pytest.raises(StreamStalled, match="no byte for 70 s"):
            await overdue(read_to_the_end(client, {}, begun), begun, skip)


@pytest.mark.parametrize("act", [a_body_byte_by_byte, a_body_at_full_speed], ids=named)
async def test_a_watch_that_the_server_does_not_end_is_ended(act: Act, begun: asyncio.Event, skip: Skip) -> None:
    async with client_before(act) as client:
        with pytest.raises(StreamStalled, match="it goes on after its end"):
            await overdue(read_to_the_end(client, {"timeoutSeconds": "0"}, begun), begun, skip)


@pytest.mark.parametrize("act", [*WITHOUT_AN_ANSWER, a_chunks_length_digit_by_digit, a_body_byte_by_byte], ids=named)
async def test_a_call_is_over_in_its_time(act: Act, begun: asyncio.Event, skip: Skip) -> None:
    async with client_before(act, expected=begun) as client:
        with pytest.raises(Unreachable, match=f"GET {PATH}: "):
            await overdue(client.request("GET", PATH), begun, skip)


@pytest.mark.parametrize("act", WITHOUT_AN_ANSWER, ids=named)
async def test_a_call_by_a_proxy_is_over_in_its_time(act: Act, begun: asyncio.Event, skip: Skip) -> None:
    async with client_before(act, proxied=True, expected=begun) as client:
        with pytest.raises(Unreachable):
            await overdue(client.request("GET", PATH), begun, skip)


# How much is read.


Call = Callable[[ApiClient], Coroutine[Any, Any, None]]


async def call(client: ApiClient) -> None:
    await client.request("GET", PATH)


BOTH = pytest.mark.parametrize("request_once", [call, refused_watch])
BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nTransfer-Encoding: chunked\r\n\r\n"


@BOTH
async def test_of_an_error_without_end_the_beginning_is_enough(request_once: Call) -> None:
    async def act(peer: Peer) -> None:
        await peer.send(BAD_GATEWAY)
        await peer.chunk(b"no server is up ")
        await flood(peer)

    async with client_before(act) as client:
        with pytest.raises(ServerError, match="502 ServerError: no server is up") as caught:
            await asyncio.wait_for(request_once(client), DEADLINE_S)
        assert len(str(caught.value)) < 1000
        assert client.requests == {(502, "GET"): 1}


@BOTH
async def test_an_error_that_does_not_end_in_time_is_told_as_far_as_it_came(request_once: Call, skip: Skip) -> None:
    sent = asyncio.Event()

    async def act(peer: Peer) -> None:
        await peer.send(BAD_GATEWAY)
        await peer.chunk(b"no server is up")
        sent.set()
        await peer.closed()

    async with client_before(act) as client:
        task = asyncio.create_task(request_once(client))
        await asyncio.wait_for(sent.wait(), DEADLINE_S)
        for _ in range(10):  # the client takes it; should it need more turns, the test is only slower
            await asyncio.sleep(0)
        skip(ERROR_BODY_S + 1.0)
        with pytest.raises(ServerError, match="502 ServerError: no server is up"):
            await asyncio.wait_for(task, DEADLINE_S)


@BOTH
async def test_an_error_that_breaks_off_is_told_as_far_as_it_came(request_once: Call) -> None:
    async def act(peer: Peer) -> None:
        await peer.send(BAD_GATEWAY + b"64\r\nno server is up")
        peer.close()

    async with client_before(act) as client:
        with pytest.raises(ServerError, match="502 ServerError: no server is up"):
            await request_once(client)


async def test_an_answer_has_a_bound_in_bytes() -> None:
    async with between(saying(200, b"{%s}" % (b" " * 998))) as (_, client):
        assert len(await client.request("GET", PATH, max_bytes=1000)) == 1000
        with pytest.raises(AnswerTooLong, match=f"GET {PATH}: the answer is longer than 999 bytes"):
            await client.request("GET", PATH, max_bytes=999)


async def eight_mib_packed(peer: Peer) -> None:
    await peer.answer(200, gzip.compress(bytes(8 * 1024 * 1024)), Content_Encoding="gzip")


@pytest.mark.parametrize("act", [a_body_at_full_speed, eight_mib_packed], ids=named)
async def test_an_answer_without_end_is_too_long(act: Act) -> None:
    async with client_before(act) as client:
        with pytest.raises(AnswerTooLong, match="longer than 1048576 bytes"):
            await asyncio.wait_for(client.request("GET", PATH, gzip=True, max_bytes=1024 * 1024), DEADLINE_S)
