"""Servers for probes and scrapes, on the operator's own event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast

from aiohttp import HttpVersion10, HttpVersion11, web

from operator_runtime.serving.listening import ServingError, sockets, url_of
from operator_runtime.serving.responses import HttpResponse, text_response
from operator_runtime.settings.listen_address import ListenAddress

logger = logging.getLogger(__name__)

# kubelet and a few scrapers need a handful; a client that opens more only makes the idlest ones close.
MAX_CONNECTIONS = 64
# Of bodies that peers have yet to take; one may be of any size. What is one answer to several counts once.
MAX_UNTAKEN_BYTES = 33_554_432
# A slow peer does not hold a connection for ever.
HANDSHAKE_TIMEOUT_S = 5.0
# As asyncio's own servers do when descriptors or memory are short.
ACCEPT_PAUSE_S = 1.0


class HttpServer:
    """Answers GETs at one address, from the beginning of an `async with` block to its end.

    Any client may connect, so their number is bounded, from before a TLS handshake on, and the bytes of the answers
    that they do not take (`Connections`).
    """

    def __init__(
        self, name: str, flag: str, address: ListenAddress, handler: Handler, context: ssl.SSLContext | None = None
    ) -> None:
        self.name = name
        self._flag = flag
        self._address = address
        self._handler = handler
        self._context = context
        self._connections = Connections(most=MAX_CONNECTIONS, most_bytes=MAX_UNTAKEN_BYTES)
        self._listening: dict[socket.socket, asyncio.Task[None]] = {}
        self.url = ""

    async def __aenter__(self) -> HttpServer:
        """Listen, and answer at `url` from now on; ServingError where the address is taken, or not ours to bind."""
        try:
            listening = await sockets(self._address)
        except OSError as error:
            host, port = self._address
            # The socket module's own words repeat the address.
            why = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
            raise ServingError(
                f"cannot listen on {host or ''}:{port} for {self.name}: {why}. "
                f"Choose another address with {self._flag}, or turn it off with {self._flag}=0."
            ) from error
        self._listening = {each: asyncio.create_task(self._accept(each)) for each in listening}
        self.url = url_of(self._address, listening, secure=self._context is not None)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Listen no more, and end all connections."""
        for accepting in self._listening.values():
            accepting.cancel()
        await asyncio.gather(*self._listening.values(), return_exceptions=True)
        for each in self._listening:
            each.close()
        await self._connections.end_all()

    async def _accept(self, listening: socket.socket) -> None:
        # asyncio's own servers report a connection with TLS only after its handshake: too late to bound them.
        loop = asyncio.get_running_loop()
        short = False
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except ConnectionAbortedError:
                continue  # it has gone again
            except OSError as error:
                if not short:
                    short = True
                    why = (error.strerror or str(error)).lower()
                    logger.warning("%s: cannot accept connections: %s", self.name, why)
                await asyncio.sleep(ACCEPT_PAUSE_S)
                continue
            short = False
            if self._connections.make_room():
                self._connections.add(loop.create_task(self._converse(connection)))
            else:
                connection.close()
            # Those that wait to be accepted do not keep all else from its turn.
            await asyncio.sleep(0)

    async def _converse(self, connection: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None
        conversation = Conversation(self.name, self._handler, self._connections, task)
        handshake_s = None if self._context is None else HANDSHAKE_TIMEOUT_S
        transport: asyncio.Transport | None = None
        try:
            # Peers that go away, stay silent or are too slow are no news.
            with suppress(OSError, TimeoutError, asyncio.CancelledError):
                transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: conversation, connection, ssl=self._context, ssl_handshake_timeout=handshake_s
                )
                await conversation.ended()
                transport = None  # asyncio's own has no loop any more by which it could be aborted
        finally:
            conversation.give_up()
            if transport is not None:
                transport.abort()


Handler = Callable[[web.BaseRequest], Awaitable[HttpResponse]]

# Room for a scraper's Accept header and a long bearer token; servers commonly take 8 to 64 KiB.
MAX_HEAD_BYTES = 16_384
# For the head to be there: probes and scrapers send it at once.
HEAD_TIMEOUT_S = 10.0
# For an answer to be taken: a slow peer does not hold a connection for ever.
WRITE_TIMEOUT_S = 30.0
# asyncio begins to hold a writer back when its peer has left so much untaken (the high-water mark of a transport).
PIECE_BYTES = 65_536

_END_OF_HEAD = b"\r\n\r\n"
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
# aiohttp would log a traceback of each request that it cannot read, and any client may send those.
_unheard = logging.Logger("aiohttp", logging.CRITICAL + 1)


class Conversation(asyncio.Protocol):
    """Hands aiohttp one head, and ends when that is answered.

    So that the head is bounded as a whole and in time, and nothing that follows it is read. Probes come on a connection
    of their own anyway, and a scrape each 15 s has the time for one. `task` is the connection's: it is cancelled when
    the peer is too slow.
    """

    def __init__(self, name: str, handler: Handler, connections: Connections, task: ConnectionTask) -> None:
        self._lost = asyncio.Event()
        self._name = name
        self._handler = handler
        self._connections = connections
        self._task = task
        self._http = web.Server(
            self._answer,
            access_log=None,
            logger=_unheard,
            max_line_size=MAX_HEAD_BYTES,
            max_field_size=MAX_HEAD_BYTES,
            auto_decompress=False,
            lingering_time=0,
        )()
        self._head = bytearray()
        self._is_answering = False
        self._work: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def ended(self) -> None:
        """Wait for the end of the connection, and of the answer to a peer that has gone meanwhile.

        Work that has begun cannot all be stopped, so it counts among the connections until it is done.
        """
        await self._lost.wait()
        if self._work is not None:
            await asyncio.wait([self._work])

    def give_up(self) -> None:
        if self._work is not None:
            self._work.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not registered as one
        self._http.connection_made(transport)
        self._within(HEAD_TIMEOUT_S)
        self._connections.sends(self._task, b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self._within(None)
        self._http.connection_lost(exc)
        self._lost.set()

    def pause_writing(self) -> None:
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._http.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Read, and answer if it was the end of the head."""
        if self._is_answering:
            self._transport.pause_reading()
            return
        self._head += data
        end = self._head.find(_END_OF_HEAD, 0, MAX_HEAD_BYTES)
        if end >= 0:
            self._is_answering = True
            self._http.data_received(bytes(self._head[: end + len(_END_OF_HEAD)]))
        elif len(self._head) >= MAX_HEAD_BYTES:
            self._transport.write(_TOO_LONG)
            self._transport.close()

    def _within(self, seconds: float | None) -> None:
        """Give the peer so long for what it is to do next, and end the connection otherwise."""
        if self._timer is not None:
            self._timer.cancel()
        loop, end = asyncio.get_running_loop(), self._connections.end
        self._timer = None if seconds is None else loop.call_later(seconds, end, self._task)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self._within(None)
        self._connections.answers(self._task)
        self._work = asyncio.current_task()
        response = await self._response(request)
        body = response.body
        sent = web.StreamResponse(status=response.status, headers=response.headers)
        sent.content_length = len(body)
        own = {"Content-Type": response.content_type, "Server": self._name, "X-Content-Type-Options": "nosniff"}
        sent.headers.update(own)
        sent.force_close()
        self._within(WRITE_TIMEOUT_S)
        self._connections.sends(self._task, body)
        await sent.prepare(request)
        if request.method != "HEAD":
            # Views of the body, which many share.
            for begin in range(0, len(body), PIECE_BYTES):
                await sent.write(memoryview(body)[begin : begin + PIECE_BYTES])
        await sent.write_eof()
        return sent

    async def _response(self, request: web.BaseRequest) -> HttpResponse:
        if request.body_exists:
            return text_response(413, "no body is taken here\n")
        if request.method not in ("GET", "HEAD"):
            return text_response(405, "only GET and HEAD are answered here\n")
        if request.version not in (HttpVersion10, HttpVersion11):
            return text_response(505, "only HTTP/1.0 and HTTP/1.1 are spoken here\n")
        try:
            return await self._handler(request)
        except Exception:
            logger.exception("%s: cannot answer %s", self._name, request.path)
            return text_response(500, "internal server error; see the operator's log\n")


ConnectionTask = asyncio.Task[None]
"""A connection's task, from its accept to its end. To cancel it ends the connection at once."""


class Connections:
    """The open connections of a server, which holds `most_bytes` of answers, all together, at most.

    One connection more ends the one that has waited longest for its peer. What is held for several counts once, and one
    may hold more where nothing else is held.

    Invariants:
        `_tasks` has each of them until its end: at most `most`, and those that were cancelled. Of these `_waiting` has
        those that wait for their peer to shake hands, to send a request or to take an answer, with what is held of it,
        longest first; the others are being answered, or were cancelled.
    """

    def __init__(self, *, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._tasks: set[ConnectionTask] = set()
        self._waiting: dict[ConnectionTask, bytes] = {}

    def make_room(self) -> bool:
        """Report whether there is room for one more. May end the one that has waited longest for its peer."""
        if sum(not each.cancelling() for each in self._tasks) < self._most:
            return True
        if not self._waiting:
            return False
        self.end(next(iter(self._waiting)))
        return True

    def add(self, task: ConnectionTask) -> None:
        """Count one more, which waits for its peer."""
        self._tasks.add(task)
        self.sends(task, b"")
        task.add_done_callback(self._forget)

    def answers(self, task: ConnectionTask) -> None:
        """Record that a request is being answered: its peer waits and not we."""
        self._waiting.pop(task, None)

    def sends(self, task: ConnectionTask, held: bytes) -> None:
        """Record what a peer is to take; with nothing, that it is to send. May end other connections, or it."""
        if task.cancelling():
            return
        self._waiting.pop(task, None)  # from now on it waits for something else
        self._waiting[task] = held
        if held:
            self._drop()

    def end(self, task: ConnectionTask) -> None:
        """End a connection. Its task does not run at once, and is not to be found again in the meantime."""
        self._waiting.pop(task, None)
        task.cancel()

    async def end_all(self) -> None:
        # A task that is cancelled before it began would not close its connection.
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _forget(self, task: ConnectionTask) -> None:
        self._tasks.discard(task)
        self._waiting.pop(task, None)

    def _drop(self) -> None:
        """End the connections whose bytes have been on their way longest, while too many are held."""
        while (oldest := next((held for held in self._waiting.values() if held), None)) is not None:
            sizes = {id(held): len(held) for held in self._waiting.values() if held}
            if len(sizes) <= 1 or sum(sizes.values()) <= self._most_bytes:
                return
            for task in [task for task, held in self._waiting.items() if held is oldest]:
                self.end(task)
