"""What strangers can make the server hold: connections, handshakes, answers that they do not take.

On both event loops: each accepts and writes in its own way.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from operator_runtime.serving import http_server
from operator_runtime.serving.http_messages import HttpRequest, HttpResponse, text_response
from operator_runtime.serving.http_server import HttpServer, ListenAddress
from operator_runtime.serving.serving_tls import self_signed_context
from tests.unit.operator_runtime.serving.conftest import DEADLINE_S, Run

MIB = 2**20
GET = b"GET / HTTP/1.1\r\n\r\n"


class Clients:
    """Plain sockets, so that nothing is read unless the test does."""

    def __init__(self, ends: ExitStack) -> None:
        self._ends = ends

    def connect(self, server: HttpServer, send: bytes = b"") -> socket.socket:
        """One more connection, made before the event loop turns."""
        client = socket.socket()
        self._ends.callback(client.close)
        client.settimeout(DEADLINE_S)
        client.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        client.setblocking(False)
        client.send(send)
        return client


@pytest.fixture
def clients() -> Iterator[Clients]:
    with ExitStack() as ends:
        yield Clients(ends)


async def rest(client: socket.socket) -> bytes:
    """All that comes until the server ends the connection."""
    received = bytearray()
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(DEADLINE_S):
        try:
            while data := await loop.sock_recv(client, MIB):
                received += data
        except ConnectionError:
            pass
    return bytes(received)


async def begun(client: socket.socket) -> None:
    """Wait until there is something to read, and leave it there."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(client, readable.set)
    try:
        async with asyncio.timeout(DEADLINE_S):
            await readable.wait()
    finally:
        loop.remove_reader(client)


async def answered(client: socket.socket, send: bytes = b"") -> bytes:
    """The whole of the next answer: its body."""
    loop = asyncio.get_running_loop()
    received = bytearray()
    head = ends_at = -1
    async with asyncio.timeout(DEADLINE_S):
        await loop.sock_sendall(client, send)
        while ends_at < 0 or len(received) < ends_at:
            data = await loop.sock_recv(client, MIB)
            assert data, "the connection has ended"
            received += data
            if ends_at < 0 and (head := received.find(b"\r\n\r\n")) != -1:
                length = received.partition(b"Content-Length: ")[2].split(b"\r\n")[0]
                ends_at = head + len(b"\r\n\r\n") + int(length)
    return bytes(received[head + len(b"\r\n\r\n") :])


def server(
    handler: Callable[[HttpRequest], Awaitable[HttpResponse]], context: ssl.SSLContext | None = None
) -> HttpServer:
    return HttpServer("test", "--flag", ListenAddress("127.0.0.1", 0), handler, context)


async def hello(request: HttpRequest) -> HttpResponse:
    return text_response(200, "hello")


def bounded(monkeypatch: pytest.MonkeyPatch, **bounds: float) -> None:
    for name, bound in bounds.items():
        monkeypatch.setattr(http_server, name, bound)


def test_of_a_burst_the_last_ones_stay(run: Run, clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, MAX_CONNECTIONS=3)

    async def scenario() -> None:
        async with server(hello) as serving:
            burst = [clients.connect(serving) for _ in range(12)]
            for each in burst[:-3]:
                assert await rest(each) == b""
            for each in burst[-3:]:
                assert await answered(each, GET) == b"hello"

    run(scenario)


def test_whoever_comes_while_all_are_being_answered_is_not_let_in(
    run: Run, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, MAX_CONNECTIONS=2)

    async def scenario() -> None:
        busy, go_on = asyncio.Semaphore(0), asyncio.Event()

        async def slow(request: HttpRequest) -> HttpResponse:
            busy.release()
            await go_on.wait()
            return text_response(200, "at last")

        async with server(slow) as serving:
            two = [clients.connect(serving, GET) for _ in range(2)]
            for _ in two:
                await busy.acquire()
            assert await rest(clients.connect(serving, GET)) == b""
            go_on.set()
            for each in two:
                assert await answered(each) == b"at last"
            assert await answered(clients.connect(serving, GET)) == b"at last"

    run(scenario)


def test_whoever_does_not_take_an_answer_makes_room(
    run: Run, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, MAX_CONNECTIONS=2)
    body = bytes(4 * MIB)

    async def big(request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, body)

    async def scenario() -> None:
        async with server(big) as serving:
            stuck = [clients.connect(serving, GET) for _ in range(2)]
            for each in stuck:
                await begun(each)
            assert await answered(clients.connect(serving, GET)) == body
            assert len(await rest(stuck[0])) < len(body)
            assert await answered(stuck[1]) == body

    run(scenario)


@pytest.mark.parametrize("tls", [False, True])
def test_answers_that_nobody_takes_are_not_copied_for_each(run: Run, clients: Clients, tls: bool) -> None:
    body = bytes(8 * MIB)

    async def big(request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, body)

    async def scenario() -> None:
        context = await self_signed_context("--cert-dir") if tls else None
        async with server(big, context) as serving:
            stuck = [clients.connect(serving) for _ in range(6)]
            tracemalloc.start()
            try:
                before, _ = tracemalloc.get_traced_memory()
                for each in stuck:
                    if context is None:
                        each.send(GET)
                        await begun(each)
                    else:
                        await _ask_by_tls(each)
                after, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert after - before < len(body), "bytes for six connections"

    run(scenario)


async def _ask_by_tls(client: socket.socket) -> None:
    """Shake hands, ask, and take no more of the answer than a record or two."""
    loop = asyncio.get_running_loop()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    peer = trusting().wrap_bio(incoming, outgoing)

    async def step(do: Callable[[], Any]) -> None:
        while True:
            try:
                do()
                await loop.sock_sendall(client, outgoing.read())
                return
            except ssl.SSLWantReadError:
                await loop.sock_sendall(client, outgoing.read())
                incoming.write(await loop.sock_recv(client, 4096))

    async with asyncio.timeout(DEADLINE_S):
        await step(peer.do_handshake)
        await step(lambda: peer.write(GET))
        await step(lambda: peer.read(1))


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def test_of_different_answers_that_nobody_takes_the_newest_are_kept(
    run: Run, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, MAX_UNTAKEN_BYTES=5 * MIB)

    async def fresh(request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, request.path[1:].encode() * (2 * MIB))

    async def scenario() -> None:
        async with server(fresh) as serving:
            stuck = []
            for number in range(4):
                stuck.append(clients.connect(serving, f"GET /{number} HTTP/1.1\r\n\r\n".encode()))
                await begun(stuck[-1])
            for each in stuck[:2]:
                assert len(await rest(each)) < 2 * MIB
            for number, each in enumerate(stuck[2:], 2):
                assert await answered(each) == str(number).encode() * (2 * MIB)

    run(scenario)


def test_whoever_does_not_shake_hands_makes_room(run: Run, clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, MAX_CONNECTIONS=2, HANDSHAKE_TIMEOUT_S=600.0)

    async def scenario() -> None:
        async with server(hello, await self_signed_context("--cert-dir")) as serving:
            silent = [clients.connect(serving) for _ in range(2)]
            for each in silent:
                await _ask_by_tls(clients.connect(serving))
                assert await rest(each) == b""

    run(scenario)


def test_whoever_does_not_shake_hands_in_time_is_let_go(
    run: Run, clients: Clients, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bounded(monkeypatch, HANDSHAKE_TIMEOUT_S=0.01)

    async def scenario() -> None:
        async with server(hello, await self_signed_context("--cert-dir")) as serving:
            assert await rest(clients.connect(serving)) == b""

    run(scenario)
    assert not caplog.records


class Short(socket.socket):
    """A listening socket for which there are no descriptors for some time."""

    failures = 3

    def accept(self) -> tuple[socket.socket, Any]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_a_shortage_of_descriptors_is_told_once_and_got_over(
    run: Run, clients: Clients, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bounded(monkeypatch, ACCEPT_PAUSE_S=0.01)
    create_server = socket.create_server
    monkeypatch.setattr(
        socket, "create_server", lambda *args, **how: Short(fileno=create_server(*args, **how).detach())
    )

    async def scenario() -> None:
        async with server(hello) as serving:
            assert await answered(clients.connect(serving), GET) == b"hello"

    with caplog.at_level(logging.WARNING):
        run(scenario)
    assert caplog.messages == ["test: cannot accept connections: too many open files"]
