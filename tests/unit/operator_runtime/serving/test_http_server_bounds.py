"""What strangers can make the server hold: connections, handshakes, answers that they do not take.

On both event loops: each accepts and writes in its own way.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import socket
import ssl
import tracemalloc
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import uvloop
from aiohttp.web import BaseRequest

from operator_runtime.serving import http_server, listening
from operator_runtime.serving.http_server import Connections, HttpServer
from operator_runtime.serving.responses import HttpResponse, text_response
from operator_runtime.serving.serving_tls import self_signed_context
from operator_runtime.settings.listen_address import ListenAddress
from tests.unit.operator_runtime.serving.test_serving_tls import trusting

DEADLINE_S = 60.0

MIB = 2**20
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Clients:
    """Plain sockets, so that nothing is read unless the test does."""

    def __init__(self, ends: ExitStack) -> None:
        self._ends = ends

    def connect(self, server: HttpServer, send: bytes = b"", *, receive_buffer: int = 0) -> socket.socket:
        """One more connection, made before the event loop turns."""
        client = socket.socket()
        self._ends.callback(client.close)
        client.settimeout(DEADLINE_S)
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        client.setblocking(False)
        client.send(send)
        return client


@pytest.fixture
def clients() -> Iterator[Clients]:
    with ExitStack() as ends:
        yield Clients(ends)


def on_both_loops(scenario: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Have a scenario run on each of the event loops."""

    def test(loop_factory: Callable[[], asyncio.AbstractEventLoop], **fixtures: Any) -> None:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(scenario(**fixtures))

    own = inspect.signature(scenario)
    more = inspect.Parameter("loop_factory", inspect.Parameter.KEYWORD_ONLY)
    test.__signature__ = own.replace(parameters=[*own.parameters.values(), more])  # type: ignore[attr-defined]
    factories = [asyncio.new_event_loop, uvloop.new_event_loop]
    both: Callable[..., None] = pytest.mark.parametrize("loop_factory", factories, ids=["asyncio", "uvloop"])(test)
    return both


async def rest(client: socket.socket) -> bytes:
    """All that comes until the server ends the connection."""
    received = bytearray()
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(DEADLINE_S):
        with suppress(ConnectionError):
            while data := await loop.sock_recv(client, MIB):
                received += data
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
    async with asyncio.timeout(DEADLINE_S):
        await loop.sock_sendall(client, send)
        while True:
            data = await loop.sock_recv(client, MIB)
            assert data, "the connection has ended"
            received += data
            head, end, _ = received[:4096].partition(b"\r\n\r\n")
            length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0] or 0)
            if end and len(received) >= len(head + end) + length:
                return bytes(received[len(head + end) :])


def server(
    handler: Callable[[BaseRequest], Awaitable[HttpResponse]], context: ssl.SSLContext | None = None
) -> HttpServer:
    return HttpServer("test", "--flag", ListenAddress("127.0.0.1", 0), handler, context)


async def hello(request: BaseRequest) -> HttpResponse:
    return text_response(200, "hello")


def always(body: bytes) -> Callable[[BaseRequest], Awaitable[HttpResponse]]:
    async def answer(request: BaseRequest) -> HttpResponse:
        return HttpResponse(200, body)

    return answer


def bounded(monkeypatch: pytest.MonkeyPatch, **bounds: float) -> None:
    for name, bound in bounds.items():
        monkeypatch.setattr(http_server, name, bound)


@on_both_loops
async def test_of_a_burst_the_last_ones_stay(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, MAX_CONNECTIONS=3)
    async with server(hello) as serving:
        burst = [clients.connect(serving) for _ in range(12)]
        for each in burst[:-3]:
            assert await rest(each) == b""
        for each in burst[-3:]:
            assert await answered(each, GET) == b"hello"


@on_both_loops
async def test_whoever_comes_while_all_are_being_answered_is_not_let_in(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, MAX_CONNECTIONS=2)
    busy, go_on = asyncio.Semaphore(0), asyncio.Event()

    async def slow(request: BaseRequest) -> HttpResponse:
        busy.release()
        await go_on.wait()
        return text_response(200, "at last")

    async with server(slow) as serving, asyncio.timeout(DEADLINE_S):
        two = [clients.connect(serving, GET) for _ in range(2)]
        for _ in two:
            await busy.acquire()
        assert await rest(clients.connect(serving, GET)) == b""
        go_on.set()
        for each in two:
            assert await answered(each) == b"at last"
        assert await answered(clients.connect(serving, GET)) == b"at last"


async def test_a_connection_that_was_told_to_end_has_no_place_any_more() -> None:
    async def lasts() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    connections = Connections(most=1, most_bytes=MIB)
    first, second = asyncio.create_task(lasts()), asyncio.create_task(lasts())
    connections.add(first)
    assert connections.make_room()
    assert first.cancelling()
    assert connections.make_room(), "there is room already"
    connections.add(second)
    connections.sends(first, b"late")
    assert connections.make_room()
    assert second.cancelling()
    await connections.end_all()


@on_both_loops
async def test_whoever_does_not_take_an_answer_makes_room(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, MAX_CONNECTIONS=2)
    body = bytes(4 * MIB)
    async with server(always(body)) as serving:
        stuck = [clients.connect(serving, GET) for _ in range(2)]
        for each in stuck:
            await begun(each)
        assert await answered(clients.connect(serving, GET)) == body
        assert len(await rest(stuck[0])) < len(body)
        assert await answered(stuck[1]) == body


@pytest.mark.parametrize("tls", [False, True])
@on_both_loops
async def test_answers_that_nobody_takes_are_not_copied_for_each(clients: Clients, tls: bool) -> None:
    body = bytes(8 * MIB)
    async with server(always(body), await self_signed_context("--cert-dir") if tls else None) as serving:
        stuck = [clients.connect(serving) for _ in range(6)]
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            kept = []
            for each in stuck:
                if tls:
                    kept.append(await _request_by_tls(each))
                else:
                    each.send(GET)
                    await begun(each)
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert after - before < len(body), "bytes for six connections"
        for writer in kept:
            writer.transport.abort()


async def _request_by_tls(client: socket.socket) -> asyncio.StreamWriter:
    """Shake hands, ask, and take no more of the answer than a buffer or two."""
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(
            sock=client, ssl=trusting(), server_hostname="localhost", limit=1
        )
        writer.write(GET)
        await reader.read(1)
    return writer


@on_both_loops
async def test_of_different_answers_that_nobody_takes_the_newest_are_kept(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, MAX_UNTAKEN_BYTES=5 * MIB)

    async def fresh(request: BaseRequest) -> HttpResponse:
        return HttpResponse(200, request.path[1:].encode() * (2 * MIB))

    async with server(fresh) as serving:
        stuck = []
        for number in range(4):
            stuck.append(clients.connect(serving, f"GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n".encode()))
            await begun(stuck[-1])
        for each in stuck[:2]:
            assert len(await rest(each)) < 2 * MIB
        for number, each in enumerate(stuck[2:], 2):
            assert await answered(each) == str(number).encode() * (2 * MIB)


@on_both_loops
async def test_whoever_does_not_shake_hands_makes_room(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded(monkeypatch, MAX_CONNECTIONS=2, HANDSHAKE_TIMEOUT_S=600.0)
    async with server(hello, await self_signed_context("--cert-dir")) as serving:
        silent = [clients.connect(serving) for _ in range(2)]
        for each in silent:
            writer = await _request_by_tls(clients.connect(serving))
            assert await rest(each) == b""
            writer.transport.abort()


@on_both_loops
async def test_whoever_does_not_shake_hands_in_time_is_let_go(
    clients: Clients, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bounded(monkeypatch, HANDSHAKE_TIMEOUT_S=0.01)
    async with server(hello, await self_signed_context("--cert-dir")) as serving:
        assert await rest(clients.connect(serving)) == b""
    assert not caplog.records


@pytest.mark.parametrize("size", [8 * MIB, 60_000], ids=["in the middle", "with the rest in the transport"])
@on_both_loops
async def test_whoever_does_not_take_an_answer_in_time_is_let_go(
    clients: Clients, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, size: int
) -> None:
    monkeypatch.setattr(listening, "SEND_BUFFER_BYTES", 1)
    monkeypatch.setattr(http_server, "WRITE_TIMEOUT_S", 0.01)
    async with server(always(bytes(size))) as serving, asyncio.timeout(DEADLINE_S):
        client = clients.connect(serving, GET, receive_buffer=1)
        await begun(client)
        await asyncio.gather(*serving._connections._tasks)
        assert len(await rest(client)) < size
    assert not caplog.records


@on_both_loops
async def test_whoever_takes_an_answer_slowly_gets_it_whole(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "SEND_BUFFER_BYTES", 1)
    async with server(always(bytes(60_000))) as serving, asyncio.timeout(DEADLINE_S):
        client = clients.connect(serving, GET, receive_buffer=1)
        await begun(client)
        connections = [*serving._connections._tasks]
        assert len(await rest(client)) > 60_000
        await asyncio.gather(*connections)


@on_both_loops
async def test_of_what_is_sent_while_a_request_is_answered_little_is_held(clients: Clients) -> None:
    answering, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: BaseRequest) -> HttpResponse:
        answering.set()
        await go_on.wait()
        return text_response(200, "at last")

    async with server(slow) as serving, asyncio.timeout(DEADLINE_S):
        client = clients.connect(serving, GET)
        await answering.wait()
        flood = memoryview(GET * (16 * MIB // len(GET)))
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            refused = 0
            while refused < 100:
                assert flood, "all of it was taken"
                try:
                    flood, refused = flood[client.send(flood) :], 0
                except BlockingIOError:
                    refused += 1
                await asyncio.sleep(0)
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert after - before < MIB
        go_on.set()
        await rest(client)


@on_both_loops
async def test_whoever_goes_before_the_answer_makes_no_room_for_another_question(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, MAX_CONNECTIONS=2)
    busy, go_on, given_up = asyncio.Semaphore(0), asyncio.Event(), asyncio.Semaphore(0)

    async def slow(request: BaseRequest) -> HttpResponse:
        busy.release()
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            given_up.release()
            raise
        return text_response(200, "at last")

    async with asyncio.timeout(DEADLINE_S):
        async with server(slow) as serving:
            for _ in range(2):
                gone = clients.connect(serving, GET)
                await busy.acquire()
                gone.close()
            for _ in range(3):
                assert await rest(clients.connect(serving, GET)) == b""
            go_on.set()
            while (connections := serving._connections._tasks) and given_up.locked():
                await asyncio.wait(connections)
            assert await answered(clients.connect(serving, GET)) == b"at last"
            go_on.clear()
            await busy.acquire()
            clients.connect(serving, GET)
            await busy.acquire()
        await given_up.acquire()


class Short(socket.socket):
    """A listening socket for which there are no descriptors for some time."""

    failures = 3

    def accept(self) -> tuple[socket.socket, Any]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


@on_both_loops
async def test_a_shortage_of_descriptors_is_told_once_and_got_over(
    clients: Clients, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bounded(monkeypatch, ACCEPT_PAUSE_S=0.01)
    create_server = socket.create_server
    short = lambda *args, **how: Short(fileno=create_server(*args, **how).detach())  # noqa: E731
    monkeypatch.setattr(socket, "create_server", short)
    async with server(hello) as serving:
        assert await answered(clients.connect(serving), GET) == b"hello"
    assert caplog.messages == ["test: cannot accept connections: too many open files"]
