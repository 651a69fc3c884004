"""A small HTTP server for probes and scrapes, on the operator's own event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from memcached_operator.runtime.http_messages import (
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
# Prometheus comes back each 15 to 60 s and would rather find its connection open.
IDLE_S = 120.0
# For an answer to be taken, and for a TLS handshake: a slow peer does not hold a connection for ever.
WRITE_TIMEOUT_S = 30.0
HANDSHAKE_TIMEOUT_S = 10.0


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

    Invariants:
        `_connections` holds the task of each open connection; `_idle` those that wait for a request, longest first.
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
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._idle: dict[asyncio.Task[None], None] = {}
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
        (host, port), context = self._address, self._context
        handshake_s = None if context is None else HANDSHAKE_TIMEOUT_S
        try:
            self._server = await asyncio.start_server(
                self._accept, host, port, limit=MAX_HEAD_BYTES, ssl=context, ssl_handshake_timeout=handshake_s
            )
        except OSError as error:
            where = f"{host or ''}:{port}"
            # asyncio's own words repeat the address, and uvloop has others.
            why = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
            raise ListenError(
                f"cannot listen on {where} for {self.name}: {why}. "
                f"Choose another address with {self._flag}, or turn it off with {self._flag}=0."
            ) from error
        port = self._server.sockets[0].getsockname()[1]
        shown = f"[{host}]" if host and ":" in host else host or "localhost"
        self.url = f"{'https' if context is not None else 'http'}://{shown}:{port}"

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
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        if len(self._connections) > MAX_CONNECTIONS and self._idle:
            next(iter(self._idle)).cancel()
        try:
            # Peers that go away, stay silent or are too slow are no news.
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._serve(reader, writer, task)
        finally:
            self._idle.pop(task, None)
            self._connections.discard(task)
            writer.transport.abort()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> None:
        keep_alive = True
        while keep_alive:
            self._idle[task] = None
            method = "GET"
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
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                writer.write(encode_response(response, keep_alive=keep_alive, body=method != "HEAD"))
                await writer.drain()
                if not keep_alive:
                    writer.close()
                    await writer.wait_closed()

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            return await self._handler(request)
        except Exception:
            logger.exception("%s: cannot answer %s", self.name, request.path)
            return text_response(500, "internal server error; see the operator's log\n")
