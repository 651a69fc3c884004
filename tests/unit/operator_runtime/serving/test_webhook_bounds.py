"""What strangers can make the server of webhooks hold: connections in any state, bodies, and answers not taken."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from operator_runtime.serving import webhook_server
from operator_runtime.serving.http_messages import Gone, HttpResponse, TooLong, text_response
from operator_runtime.serving.http_server import ListenAddress, listen
from operator_runtime.serving.serving_tls import self_signed_context
from operator_runtime.serving.webhook_server import TakeBody, WebhookServer
from tests.unit.operator_runtime.serving.conftest import DEADLINE_S, Run

if TYPE_CHECKING:
    from aiohttp import web

MIB = 2**20
Answer = Callable[["web.BaseRequest", TakeBody], Awaitable[HttpResponse]]


async def length(request: web.BaseRequest, take: TakeBody) -> HttpResponse:
    try:
        return text_response(200, f"{len(await take(10 * MIB))}")
    except (TooLong, Gone):
        return text_response(400, "no")


def bounded(monkeypatch: pytest.MonkeyPatch, **bounds: float) -> None:
    for name, bound in bounds.items():
        monkeypatch.setattr(webhook_server, name, bound)


class Peer:
    """One connection, of which nothing is read unless the test does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def rest(self) -> bytes:
        """All that comes until the server ends the connection."""
        received = bytearray()
        async with asyncio.timeout(DEADLINE_S):
            try:
                while data := await self._reader.read(MIB):
                    received += data
            except (OSError, ssl.SSLError):
                pass
        self._writer.transport.abort()
        return bytes(received)

    async def begun(self) -> None:
        """Wait for the first byte of an answer."""
        async with asyncio.timeout(DEADLINE_S):
            assert await self._reader.read(1)

    def leave(self) -> None:
        self._writer.transport.abort()


class Port:
    """Where the server listens."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._trusting = ssl.create_default_context()
        self._trusting.check_hostname = False
        self._trusting.verify_mode = ssl.CERT_NONE
        self.peers: list[Peer] = []
        self.taking = asyncio.Semaphore(0)

    async def connect(self, send: bytes = b"", *, tls: bool = True) -> Peer:
        context = self._trusting if tls else None
        peer = Peer(*await asyncio.open_connection("127.0.0.1", self._port, ssl=context, limit=65_536))
        self.peers.append(peer)
        await peer.send(send)
        return peer

    async def asked(self) -> bytes:
        """The answer to somebody who does everything right."""
        return await (await self.connect(posted(b"{}") + b"{}")).rest()


def posted(body: bytes, length_bytes: int | None = None) -> bytes:
    size = len(body) if length_bytes is None else length_bytes
    return f"POST / HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n".encode()


@asynccontextmanager
async def serving(answer: Answer = length) -> AsyncIterator[Port]:
    """A server; `taking` counts the requests whose body it has begun to take."""

    async def counted(request: web.BaseRequest, take: TakeBody) -> HttpResponse:
        port.taking.release()
        return await answer(request, take)

    listening = await listen("test", "--flag", ListenAddress("127.0.0.1", 0))
    port = Port(listening[0].getsockname()[1])
    server = WebhookServer(counted, await self_signed_context("--flag"))
    server.listen(listening)
    try:
        yield port
    finally:
        await server.close(0.1)
        for peer in port.peers:
            peer.leave()


async def silent(port: Port) -> Peer:
    return await port.connect(tls=False)


async def shaken_hands(port: Port) -> Peer:
    return await port.connect()


async def half_a_head(port: Port) -> Peer:
    return await port.connect(b"POST / HTTP/1.1\r\nHo")


async def half_a_body(port: Port) -> Peer:
    peer = await port.connect(posted(b"", 1000) + b"x" * 500)
    await port.taking.acquire()
    return peer


@pytest.mark.parametrize("wait", [silent, shaken_hands, half_a_head, half_a_body], ids=lambda each: each.__name__)
def test_whoever_keeps_the_server_waiting_makes_room(
    run: Run, monkeypatch: pytest.MonkeyPatch, wait: Callable[[Port], Awaitable[Peer]]
) -> None:
    bounded(monkeypatch, MAX_CONNECTIONS=3)

    async def scenario() -> None:
        async with serving() as port:
            waiting = [await wait(port) for _ in range(4)]
            assert await waiting[0].rest() == b""
            for _ in range(2):
                assert (await port.asked()).endswith(b"\r\n\r\n2")

    run(scenario)


def test_whoever_comes_while_all_are_being_answered_is_not_let_in(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, MAX_CONNECTIONS=2)

    async def scenario() -> None:
        busy, go_on = asyncio.Semaphore(0), asyncio.Event()

        async def slow(request: web.BaseRequest, take: TakeBody) -> HttpResponse:
            await take(MIB)
            busy.release()
            await go_on.wait()
            return text_response(200, "at last")

        async with serving(slow) as port, asyncio.timeout(DEADLINE_S):
            two = [await port.connect(posted(b"{}") + b"{}") for _ in range(2)]
            for _ in two:
                await busy.acquire()
            assert await (await port.connect(tls=False)).rest() == b""
            go_on.set()
            for each in two:
                assert (await each.rest()).endswith(b"at last")
            assert (await port.asked()).endswith(b"at last")

    run(scenario)


def test_of_bodies_that_do_not_come_to_an_end_the_newest_are_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, MAX_HELD_BYTES=5 * MIB)

    async def scenario() -> None:
        async with serving() as port, asyncio.timeout(DEADLINE_S):
            slow = []
            for _ in range(4):
                slow.append(await port.connect(posted(b"", 2 * MIB + 1)))
                await port.taking.acquire()
            for each in slow:
                with suppress(OSError):
                    await each.send(b"x" * (2 * MIB))
            for each in slow[:2]:
                assert await each.rest() == b""
            for each in slow[2:]:
                await each.send(b"x")
                assert (await each.rest()).endswith(b"%d" % (2 * MIB + 1))

    run(scenario)


def test_of_answers_that_nobody_takes_the_newest_are_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 16 * MIB
    bounded(monkeypatch, MAX_HELD_BYTES=2 * size + MIB)

    async def big(request: web.BaseRequest, take: TakeBody) -> HttpResponse:
        return HttpResponse(200, bytes(size))

    async def scenario() -> None:
        async with serving(big) as port:
            stuck = []
            for _ in range(3):
                stuck.append(await port.connect(posted(b"")))
                await stuck[-1].begun()
            assert len(await stuck[0].rest()) < size
            for each in stuck[1:]:
                assert len(await each.rest()) > size

    run(scenario)


def test_an_answer_that_is_not_taken_in_time_ends_its_connection(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 16 * MIB
    bounded(monkeypatch, WRITE_TIMEOUT_S=0.1)

    async def big(request: web.BaseRequest, take: TakeBody) -> HttpResponse:
        return HttpResponse(200, bytes(size))

    async def scenario() -> None:
        async with serving(big) as port:
            stuck = await port.connect(posted(b""))
            await stuck.begun()
            assert (await (await port.connect(posted(b""))).rest())[:12] == b"HTTP/1.1 200"
            assert len(await stuck.rest()) < size

    run(scenario)


def test_peers_that_leave_are_no_news(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving() as port, asyncio.timeout(DEADLINE_S):
            for wait in (silent, shaken_hands, half_a_head, half_a_body):
                (await wait(port)).leave()
            assert (await port.asked()).endswith(b"\r\n\r\n2")

    with caplog.at_level(logging.INFO):
        run(scenario)
    assert caplog.messages == []
