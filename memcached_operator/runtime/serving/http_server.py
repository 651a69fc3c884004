"""A small HTTP server for probes and scrapes, on the operator's own event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from memcached_operator.runtime.serving.http_messages import (
    MAX_HEAD_BYTES,
    BadRequest,
    HttpRequest,
    HttpResponse,
    encode_response,
    parse_head,
    text_response,
)

logger = logging.getLogger(__name__)

Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]

# kubelet and a few scrapers need a handful; whoever opens more only makes the idlest ones close.
MAX_CONNECTIONS = 64
# Of bodies that peers have yet to take; one may be of any size. What is one answer to several counts once.
MAX_UNTAKEN_BYTES = 33_554_432
# What the kernel keeps of an answer for a peer that does not take it (Linux doubles it); by itself it goes up to 4 MiB.
SEND_BUFFER_BYTES = 131_072
# Prometheus comes back each 15 to 60 s and would rather find its connection open.
IDLE_S = 120.0
# For an answer to be taken, and for a TLS handshake: a slow peer does not hold a connection for ever.
WRITE_TIMEOUT_S = 30.0
HANDSHAKE_TIMEOUT_S = 5.0
# As asyncio's own servers do when descriptors or memory are short.
ACCEPT_PAUSE_S = 1.0


class ServingError(Exception):
    """Something cannot be served as the settings ask; the message names the flag and the remedy."""


class ListenError(ServingError):
    """An address cannot be listened on."""


class ListenAddress(NamedTuple):
    """Where to listen; `host` None means on all addresses of the machine, port 0 one that is free."""

    host: str | None
    port: int


def parse_address(text: str) -> ListenAddress | None:
    """`HOST:PORT`, `:PORT` or `[IPv6]:PORT`; None for "0", which turns a server off.

    Raises:
        ValueError: it is none of these; the message says what is allowed.
    """
    if text == "0":
        return None
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535 or (":" in host and not bracketed):
        raise ValueError("it must be HOST:PORT or :PORT with a port of at most 65535, or 0 for off")
    return ListenAddress((host[1:-1] if bracketed else host) or None, int(port))


class HttpServer:
    """Answers GETs at one address; a service of the manager, opened before it runs so that a taken port is found first.

    Anybody may connect, so everything that a connection takes is bounded: their number, from before a TLS handshake
    on, and the bytes of the answers that they do not take.

    Invariants:
        `_connections` holds the task of each open connection, and at most `MAX_CONNECTIONS`. Of these, `_idle` has
        those that wait for a handshake or a request, and `_writing` those whose peer is taking an answer, with its
        body; both longest first. The others are being answered. `_ending` were told to make room and do so.
    """

    def __init__(
        self, name: str, flag: str, address: ListenAddress, handler: Handler, context: ssl.SSLContext | None = None
    ) -> None:
        """
        Args:
            name: what it serves, for the log.
            flag: the flag that sets the address, for messages.
            address: where to listen.
            handler: answers a request; whatever it raises is answered 500 and logged.
            context: for TLS, None for plain HTTP.
        """
        self.name = name
        self._flag = flag
        self._address = address
        self._handler = handler
        self._context = context
        self._listening: list[socket.socket] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._idle: dict[asyncio.Task[None], None] = {}
        self._writing: dict[asyncio.Task[None], bytes] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._short = False
        self._stopping = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> HttpServer:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Listen. Requests are answered from now on; `url` says where.

        Raises:
            ListenError: the address is taken, not this machine's, or not ours to take.
        """
        self._listening = await listen(self.name, self._flag, self._address)
        for each in self._listening:
            self._resume(each)
        self.url = url_of(self._address, self._listening, secure=self._context is not None)

    async def run(self) -> None:
        """Serve until `stop`."""
        try:
            await self._stopping.wait()
        finally:
            await self.close()

    def stop(self) -> None:
        """Make `run` return."""
        self._stopping.set()

    async def close(self) -> None:
        """Listen no more, and end all connections."""
        for each in self._listening:
            asyncio.get_running_loop().remove_reader(each)
            each.close()
        self._listening.clear()
        # A task that is cancelled before it began would not close its connection.
        await asyncio.sleep(0)
        tasks = [*self._connections, *self._ending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _resume(self, listening: socket.socket) -> None:
        # asyncio's own servers tell of a connection with TLS only after its handshake: too late to bound them.
        if listening.fileno() != -1:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection, _ = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # it has gone again
        except OSError as error:
            loop.remove_reader(listening)
            loop.call_later(ACCEPT_PAUSE_S, self._resume, listening)
            if not self._short:
                self._short = True
                logger.warning("%s: cannot accept connections: %s", self.name, (error.strerror or str(error)).lower())
            return
        self._short = False
        if len(self._connections) >= MAX_CONNECTIONS and not self._make_room():
            connection.close()
            return
        connection.setblocking(False)
        task = loop.create_task(self._converse(connection))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    def _make_room(self) -> bool:
        """End the connection that has waited longest for its peer; False if none waits."""
        for waiting in (self._idle, self._writing):
            if waiting:
                self._end(next(iter(waiting)))
                return True
        return False

    def _drop_bodies(self) -> None:
        """End the connections that have been writing longest, while there are too many bytes to be taken."""
        while True:
            sizes = {id(body): len(body) for body in self._writing.values()}
            if len(sizes) <= 1 or sum(sizes.values()) <= MAX_UNTAKEN_BYTES:
                return
            oldest = next(iter(self._writing.values()))
            for task in [task for task, body in self._writing.items() if body is oldest]:
                self._end(task)

    def _end(self, task: asyncio.Task[None]) -> None:
        # Before it is cancelled: it does not run at once, and another must not be found to end in its place.
        self._idle.pop(task, None)
        self._writing.pop(task, None)
        self._connections.discard(task)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        task.cancel()

    async def _converse(self, connection: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(MAX_HEAD_BYTES, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport: asyncio.Transport | None = None
        handshake_s = None if self._context is None else HANDSHAKE_TIMEOUT_S
        self._idle[task] = None
        try:
            # Peers that go away, stay silent or are too slow are no news.
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
                transport, _ = await loop.connect_accepted_socket(
                    lambda: protocol, connection, ssl=self._context, ssl_handshake_timeout=handshake_s
                )
                writer = asyncio.StreamWriter(transport, protocol, reader, loop)
                while await self._serve(reader, writer, task):
                    pass
        finally:
            self._idle.pop(task, None)
            if transport is not None:
                transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> bool:
        """One request and its answer; whether another may follow. Nothing of them is held while that is waited for."""
        keep_alive, method = False, "GET"
        self._idle[task] = None
        try:
            async with asyncio.timeout(IDLE_S):
                head = await reader.readuntil(b"\r\n\r\n")
            self._idle.pop(task, None)
            request = parse_head(head)
            method, keep_alive = request.method, request.keep_alive
            response = await self._answer(request)
        except asyncio.LimitOverrunError:
            response, keep_alive = text_response(431, "the head is too long\n"), False
        except BadRequest as error:
            response, keep_alive = text_response(error.status, f"{error}\n"), False
        self._idle.pop(task, None)
        self._writing[task] = response.body
        self._drop_bodies()
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                for piece in encode_response(response, keep_alive=keep_alive, body=method != "HEAD"):
                    writer.write(piece)
                    await writer.drain()
                if not keep_alive:
                    writer.close()
                    await writer.wait_closed()
        finally:
            self._writing.pop(task, None)
        return keep_alive

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            return await self._handler(request)
        except Exception:
            logger.exception("%s: cannot answer %s", self.name, request.path)
            return text_response(500, "internal server error; see the operator's log\n")


async def listen(name: str, flag: str, address: ListenAddress) -> list[socket.socket]:
    """Sockets that listen at an address; the caller closes them.

    Args:
        name: what is served there, for messages.
        flag: the flag that sets the address, likewise.
        address: where.

    Raises:
        ListenError: it is taken, not this machine's, or not ours to take.
    """
    host, port = address
    try:
        return await _listen(address)
    except OSError as error:
        where = f"{host or ''}:{port}"
        # The socket module's own words repeat the address.
        why = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
        raise ListenError(
            f"cannot listen on {where} for {name}: {why}. "
            f"Choose another address with {flag}, or turn it off with {flag}=0."
        ) from error


def url_of(address: ListenAddress, listening: Sequence[socket.socket], *, secure: bool) -> str:
    """Where one finds what these sockets listen for."""
    host = address.host
    shown = f"[{host}]" if host and ":" in host else host or "localhost"
    return f"{'https' if secure else 'http'}://{shown}:{listening[0].getsockname()[1]}"


async def _listen(address: ListenAddress) -> list[socket.socket]:
    """Sockets that listen there: one for all addresses of the machine, else one for each that the host's name has.

    Raises:
        OSError: it is no address, taken, not this machine's, or not ours to take.
    """
    host, port = address
    both = host is None and socket.has_dualstack_ipv6()
    places: list[tuple[int, tuple[object, ...]]]
    if host is None:
        places = [(socket.AF_INET6 if both else socket.AF_INET, ("", port))]
    else:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        places = list(dict.fromkeys((family, where) for family, _, _, _, where in found))
    listening: list[socket.socket] = []
    try:
        for family, where in places:
            each = socket.create_server(where, family=family, dualstack_ipv6=both)
            listening.append(each)
            each.setblocking(False)
            # Connections inherit it.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    except OSError:
        for each in listening:
            each.close()
        raise
    return listening
