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

from operator_runtime.serving.connections import ACCEPT_PAUSE_S, Connections
from operator_runtime.serving.http_messages import (
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

# kubelet and a few scrapers need a handful; a client that opens more only makes the idlest ones close.
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


class ServingError(Exception):
    """Failure to serve by the settings; the message names the flag and the remedy."""


class ListenAddress(NamedTuple):
    """Address to listen on; `host` None means all addresses of the machine, port 0 one that is free."""

    host: str | None
    port: int


def parse_address(text: str) -> ListenAddress | None:
    """`HOST:PORT`, `:PORT` or `[IPv6]:PORT`; None for "0", which turns a server off.

    Raises:
        ValueError: it is none of these; the message has what is allowed.
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

    Any client may connect, so everything that a connection takes is bounded: their number, from before a TLS handshake
    on, and the bytes of the answers that they do not take (`Connections`).
    """

    def __init__(
        self, name: str, flag: str, address: ListenAddress, handler: Handler, context: ssl.SSLContext | None = None
    ) -> None:
        self.name = name
        self._flag = flag
        self._address = address
        self._handler = handler
        self._context = context
        self._connections = Connections(
            name, self._converse, most=MAX_CONNECTIONS, most_bytes=MAX_UNTAKEN_BYTES, pause_s=ACCEPT_PAUSE_S
        )
        self._stopping = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> HttpServer:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Listen. Requests are answered from now on, at `url`.

        Raises:
            ServingError: the address is taken, not this machine's, or not this process's to bind.
        """
        try:
            listening = await _sockets(self._address)
        except OSError as error:
            host, port = self._address
            # The socket module's own words repeat the address.
            why = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
            raise ServingError(
                f"cannot listen on {host or ''}:{port} for {self.name}: {why}. "
                f"Choose another address with {self._flag}, or turn it off with {self._flag}=0."
            ) from error
        self._connections.listen(listening)
        self.url = _url_of(self._address, listening, secure=self._context is not None)

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
        await self._connections.close()

    async def _converse(self, connection: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(MAX_HEAD_BYTES, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport: asyncio.Transport | None = None
        handshake_s = None if self._context is None else HANDSHAKE_TIMEOUT_S
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
            if transport is not None:
                transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> bool:
        """One request and its answer; whether another may follow. Nothing of them is held while that is waited for."""
        keep_alive, method = False, "GET"
        self._connections.waits(task)
        try:
            async with asyncio.timeout(IDLE_S):
                head = await reader.readuntil(b"\r\n\r\n")
            self._connections.answers(task)
            request = parse_head(head, _address_of(writer))
            method, keep_alive = request.method, request.keep_alive
            response = await self._answer(request)
        except asyncio.LimitOverrunError:
            response, keep_alive = text_response(431, "the head is too long\n"), False
        except BadRequest as error:
            response, keep_alive = text_response(error.status, f"{error}\n"), False
        self._connections.sends(task, response.body)
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            for piece in encode_response(response, keep_alive=keep_alive, body=method != "HEAD"):
                writer.write(piece)
                await writer.drain()
            if not keep_alive:
                writer.close()
                await writer.wait_closed()
        return keep_alive

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            return await self._handler(request)
        except Exception:
            logger.exception("%s: cannot answer %s", self.name, request.path)
            return text_response(500, "internal server error; see the operator's log\n")


def _address_of(writer: asyncio.StreamWriter) -> str:
    peer = writer.get_extra_info("peername")
    return str(peer[0]) if peer else ""


def _url_of(address: ListenAddress, listening: Sequence[socket.socket], *, secure: bool) -> str:
    """Return the URL at which these sockets are reached."""
    host = address.host
    shown = f"[{host}]" if host and ":" in host else host or "localhost"
    return f"{'https' if secure else 'http'}://{shown}:{listening[0].getsockname()[1]}"


async def _sockets(address: ListenAddress) -> list[socket.socket]:
    """Sockets that listen there: one for all addresses of the machine, else one for each that the host's name has.

    Raises:
        OSError: it is no address, taken, not this machine's, or not this process's to bind.
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
