"""The server on loopback, spoken to in bytes."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from aiohttp.web import BaseRequest
from hypothesis import given, strategies as st

from operator_runtime.serving import http_server
from operator_runtime.serving.http_server import PIECE_BYTES, HttpServer
from operator_runtime.serving.listening import ServingError
from operator_runtime.serving.responses import HttpResponse, text_response
from operator_runtime.settings.listen_address import ListenAddress, parse_address
from tests.unit.operator_runtime.http import Client, connected, get_bytes
from tests.unit.operator_runtime.running import DEADLINE_S

ANY_PORT = ListenAddress("127.0.0.1", 0)
Handler = Callable[[BaseRequest], Awaitable[HttpResponse]]


async def echo(request: BaseRequest) -> HttpResponse:
    return text_response(200, request.path)


@asynccontextmanager
async def client_of(handler: Handler = echo) -> AsyncIterator[Client]:
    async with HttpServer("test", "--flag", ANY_PORT, handler) as server, connected(server.url) as client:
        yield client


async def test_a_request_is_answered_and_the_connection_ends() -> None:
    async with client_of() as client:
        for byte in get_bytes("/slow")[:-1]:
            client.writer.write(bytes([byte]))
            await client.writer.drain()
        answer = await client.exchange(b"\n")
        assert answer.endswith(b"/slow"), "a head may come in pieces"
        assert b"Connection: close" in answer
        assert await client.closed()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET http://[::1 HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n: no name\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n folded: line\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\n", b"400"),
        (b"POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n", b"405"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", b"413"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000\r\nExpect: 100-continue\r\n\r\n", b"413"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"413"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000, b"431"),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000, b"431"),
        (b"GET / HTTP/2.0\r\n\r\n", b"505"),
        (b"GET /\r\nHost: a\r\n\r\n", b"505"),
    ],
)
async def test_a_bad_request_is_told_so_and_the_connection_ends(
    sent: bytes, status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with client_of() as client:
        answer = await client.exchange(sent)
        assert answer[:5] + answer[8:12] == b"HTTP/ " + status
        assert await client.closed()
    assert not caplog.records, "any client may send one"


@given(st.binary(max_size=200))
def test_whatever_bytes_come_nothing_fails_and_the_connection_ends(data: bytes) -> None:
    async def sent() -> None:
        failed: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
        async with client_of() as client, asyncio.timeout(DEADLINE_S):
            client.writer.write(data + b"\r\n\r\n")
            client.writer.write_eof()
            with suppress(ConnectionError):
                await client.reader.read()
        assert not failed

    asyncio.run(sent())


async def test_an_answer_has_its_length_forbids_guessing_what_it_is_and_names_no_versions() -> None:
    async def refused(request: BaseRequest) -> HttpResponse:
        return HttpResponse(401, b"no\n", headers={"WWW-Authenticate": "Bearer"})

    async with client_of(refused) as client:
        head, _, body = (await client.exchange(get_bytes("/"))).partition(b"\r\n\r\n")
        first, *lines = head.decode().splitlines()
        assert (first, body) == ("HTTP/1.1 401 Unauthorized", b"no\n")
        assert sorted(line for line in lines if not line.startswith("Date: ")) == [
            "Connection: close",
            "Content-Length: 3",
            "Content-Type: text/plain; charset=utf-8",
            "Server: test",
            "WWW-Authenticate: Bearer",
            "X-Content-Type-Options: nosniff",
        ]


async def test_the_answer_to_a_head_says_how_long_it_would_be_and_ends() -> None:
    async with client_of() as client:
        client.writer.write(get_bytes("/four").replace(b"GET", b"HEAD"))
        assert b"Content-Length: 5\r\n" in await client.reader.readuntil(b"\r\n\r\n")
        assert await client.closed()


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
async def test_a_long_answer_arrives_whole(size: int) -> None:
    body = bytes(number % 251 for number in range(size))

    async def long(request: BaseRequest) -> HttpResponse:
        return HttpResponse(200, body)

    async with client_of(long) as client:
        assert (await client.exchange(get_bytes("/"))).partition(b"\r\n\r\n")[2] == body


async def test_a_handlers_fault_is_answered_and_logged_and_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: BaseRequest) -> HttpResponse:
        raise RuntimeError("secret")

    async with client_of(broken) as client:
        answer = await client.exchange(get_bytes("/x"))
        assert answer.startswith(b"HTTP/1.1 500")
        assert b"secret" not in answer
    assert "test: cannot answer /x" in caplog.text


async def test_a_port_that_is_taken_names_the_flag_and_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServingError) as caught:
            async with HttpServer("probes", "--probes", ListenAddress("127.0.0.1", port), echo):
                raise AssertionError("unreachable")
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1:{port} for probes: address already in use. "
        "Choose another address with --probes, or turn it off with --probes=0."
    )


async def test_a_connection_that_stays_idle_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT_S", 0.01)
    async with client_of() as client:
        client.writer.write(b"GET / HT")
        assert await client.closed()


async def test_it_serves_until_the_end_of_its_block_and_ends_its_connections() -> None:
    async with AsyncExitStack() as kept:
        async with HttpServer("test", "--flag", ANY_PORT, echo) as server:
            client = await kept.enter_async_context(connected(server.url))
            await client.exchange(get_bytes("/"))
        assert await client.closed()
    with pytest.raises(ConnectionError):
        async with connected(server.url):
            pass


async def test_peers_that_vanish_are_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with HttpServer("test", "--flag", ANY_PORT, echo) as server:
        async with connected(server.url) as client:
            client.writer.write(b"GET /")
            await client.writer.drain()
        async with connected(server.url) as client:
            await client.exchange(get_bytes("/"))
    assert not caplog.records


async def test_the_url_can_be_opened_whatever_the_host() -> None:
    async with HttpServer("test", "--flag", ListenAddress(None, 0), echo) as server:
        assert server.url.startswith("http://localhost:")
    try:
        async with HttpServer("test", "--flag", ListenAddress("::1", 0), echo) as server:
            assert server.url.startswith("http://[::1]:")
    except ServingError:
        pytest.skip("no IPv6 here")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0", None),
        (":8080", ListenAddress(None, 8080)),
        ("127.0.0.1:0", ListenAddress("127.0.0.1", 0)),
        ("[::1]:1", ListenAddress("::1", 1)),
        ("localhost:65535", ListenAddress("localhost", 65_535)),
    ],
)
def test_addresses_are_written_as_in_other_operators(text: str, address: ListenAddress | None) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "8080", ":", ":65536", ":-1", "::1:80", "a:b", "[::1:80", ":\u0668"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT or :PORT"):
        parse_address(text)
