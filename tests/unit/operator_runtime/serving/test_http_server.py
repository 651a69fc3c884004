"""The server on loopback, spoken to in bytes."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from operator_runtime.serving import http_server
from operator_runtime.serving.http_messages import HttpRequest, HttpResponse, text_response
from operator_runtime.serving.http_server import HttpServer, ListenAddress, ServingError, parse_address

DEADLINE_S = 60.0
ANY_PORT = ListenAddress("127.0.0.1", 0)
Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]


@dataclass(slots=True)
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def exchange(self, data: bytes) -> bytes:
        """Send bytes; the head and the body of the answer."""
        self.writer.write(data)
        async with asyncio.timeout(DEADLINE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            return head + await self.reader.readexactly(length)

    async def closed(self) -> bool:
        """Whether the server ends the connection."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                return await self.reader.read() == b""
            except ConnectionError:
                return True


@asynccontextmanager
async def connected(server: HttpServer) -> AsyncIterator[Client]:
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


async def echo(request: HttpRequest) -> HttpResponse:
    return text_response(200, request.path)


@asynccontextmanager
async def client_of(handler: Handler = echo) -> AsyncIterator[Client]:
    async with HttpServer("test", "--flag", ANY_PORT, handler) as server, connected(server) as client:
        yield client


def get(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: here", *headers, "", ""]).encode()


async def test_requests_on_one_connection_are_answered_one_after_the_other() -> None:
    async with client_of() as client:
        assert (await client.exchange(get("/one"))).endswith(b"\r\n\r\n/one")
        client.writer.write(get("/two") + get("/three"))
        assert (await client.exchange(b"")).endswith(b"/two")
        assert (await client.exchange(b"")).endswith(b"/three")
        for byte in get("/slow")[:-1]:
            client.writer.write(bytes([byte]))
            await client.writer.drain()
        assert (await client.exchange(b"\n")).endswith(b"/slow"), "a head may come in pieces"


async def test_the_connection_ends_when_the_client_asks_for_it() -> None:
    async with client_of() as client:
        assert b"Connection: close" in await client.exchange(get("/", "Connection: close"))
        assert await client.closed()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"413"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000, b"431"),
    ],
)
async def test_a_bad_request_is_told_so_and_the_connection_ends(sent: bytes, status: bytes) -> None:
    async with client_of() as client:
        assert (await client.exchange(sent)).startswith(b"HTTP/1.1 " + status)
        assert await client.closed()


async def test_a_handlers_fault_is_answered_and_logged_and_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: HttpRequest) -> HttpResponse:
        raise RuntimeError("secret")

    async with client_of(broken) as client:
        answer = await client.exchange(get("/x"))
        assert answer.startswith(b"HTTP/1.1 500")
        assert b"secret" not in answer
        assert (await client.exchange(get("/x"))).startswith(b"HTTP/1.1 500"), "the connection goes on"
    assert "test: cannot answer /x" in caplog.text


async def test_a_port_that_is_taken_names_the_flag_and_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServingError) as caught:
            await HttpServer("probes", "--probes", ListenAddress("127.0.0.1", port), echo).open()
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1:{port} for probes: address already in use. "
        "Choose another address with --probes, or turn it off with --probes=0."
    )


async def test_a_connection_that_stays_idle_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "IDLE_S", 0.01)
    async with client_of() as client:
        client.writer.write(b"GET / HT")
        assert await client.closed()


async def test_it_serves_until_it_is_stopped_and_ends_its_connections() -> None:
    server = HttpServer("test", "--flag", ANY_PORT, echo)
    await server.open()
    running = asyncio.create_task(server.run())
    async with connected(server) as client:
        await client.exchange(get("/"))
        server.stop()
        await asyncio.wait_for(running, DEADLINE_S)
        assert await client.closed()
    with pytest.raises(ConnectionError):
        async with connected(server):
            pass


async def test_peers_that_vanish_are_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with HttpServer("test", "--flag", ANY_PORT, echo) as server:
        async with connected(server) as client:
            client.writer.write(b"GET /")
            await client.writer.drain()
        async with connected(server) as client:
            await client.exchange(get("/"))
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
