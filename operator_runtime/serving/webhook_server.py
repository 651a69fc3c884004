"""aiohttp's server for webhooks, behind the bounds that hold for whoever may connect.

It accepts by itself, so that connections are counted before their TLS handshake, and it tells how it is with each:
whether it waits for its peer, takes a body, is being answered, or brings an answer away. Loaded only by an operator
that has webhooks, as aiohttp's server takes some MiB.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from aiohttp import web

from operator_runtime.serving.connections import Connections, Conversation
from operator_runtime.serving.http_messages import PIECE_BYTES, Gone, HttpResponse, TooLong
from operator_runtime.serving.http_server import HANDSHAKE_TIMEOUT_S, WRITE_TIMEOUT_S

# An API server has a connection for each request that waits for us: by default it lets 200 writes in at once
# (--max-mutating-requests-inflight), each of which asks one webhook at a time.
MAX_CONNECTIONS = 256
# Of bodies and answers, together: a conversion of the largest size both ways, or some twenty of the largest reviews.
MAX_HELD_BYTES = 128 * 1024 * 1024
# The API server closes its idle connections after 90 s (Go's default). It must be the first to do so: a request that
# meets a connection that we have just closed fails.
KEEPALIVE_S = 120.0


TakeBody = Callable[[int], Awaitable[bytes]]
"""Gives the body of a request; see `WebhookServer.body`."""


class WebhookServer:
    """Answers requests, one at a time on each connection."""

    def __init__(
        self, answer: Callable[[web.BaseRequest, TakeBody], Awaitable[HttpResponse]], context: ssl.SSLContext
    ) -> None:
        """
        Args:
            answer: a request's answer; it raises nothing.
            context: for TLS.
        """
        self._answer = answer
        self._context = context
        self._server = web.Server(self._handle, access_log=None, keepalive_timeout=KEEPALIVE_S)
        self._connections = Connections("webhooks", self._converse, most=MAX_CONNECTIONS, most_bytes=MAX_HELD_BYTES)
        self._conversations: dict[web.RequestHandler, Conversation] = {}

    def listen(self, listening: Sequence[socket.socket]) -> None:
        """Answer what comes to these sockets, until `close`."""
        self._connections.listen(listening)

    async def close(self, drain_s: float) -> None:
        """Listen no more, finish what is being answered, for so many seconds at most, and end all connections."""
        self._connections.deafen()
        await asyncio.sleep(0)  # what has come already begins to be answered
        self._server.pre_shutdown()
        await self._server.shutdown(drain_s)
        # TLS's own farewell waits for the API server, which nobody waits for: it may outlast the event loop.
        await self._connections.close()

    async def body(self, request: web.BaseRequest, max_bytes: int) -> bytes:
        """The body of a request.

        Raises:
            TooLong: it has more bytes than that.
            Gone: the connection ended before it was whole.
        """
        if (request.content_length or 0) > max_bytes:
            raise TooLong
        task = self._conversations.get(request.protocol)
        if task is None:
            raise Gone
        read = bytearray()
        self._connections.moves(task, read)
        try:
            async for piece in request.content.iter_any():
                read += piece
                if len(read) > max_bytes:
                    raise TooLong
                self._connections.moves(task, read)
        except OSError:
            raise Gone from None
        whole = bytes(read)
        self._connections.answers(task, whole)
        return whole

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        task = self._conversations.get(request.protocol)
        if task is not None:
            self._connections.answers(task)
        try:
            answer = await self._answer(request, partial(self.body, request))
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.content_type, **answer.headers}
            )
            response.content_length = len(answer.body)
            if task is not None:
                self._connections.moves(task, answer.body)
            try:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await self._send(request, response, answer.body)
            except (OSError, TimeoutError):
                # Peers that go away or are too slow are no news; aiohttp finds the connection closed.
                if request.transport is not None:
                    request.transport.abort()
            return response
        finally:
            if task is not None:
                self._connections.waits(task)

    async def _send(self, request: web.BaseRequest, response: web.StreamResponse, content: bytes) -> None:
        await response.prepare(request)
        view = memoryview(content)
        for start in range(0, len(content), PIECE_BYTES):
            await response.write(view[start : start + PIECE_BYTES])
        await response.write_eof()

    async def _converse(self, connection: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None
        handler = self._server()
        relay = _Relay(handler)
        self._conversations[handler] = task
        transport: asyncio.Transport | None = None
        try:
            with suppress(OSError, TimeoutError, asyncio.CancelledError):
                transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: relay, connection, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S
                )
                await relay.ended.wait()
        finally:
            del self._conversations[handler]
            if transport is not None:
                transport.abort()


class _Relay(asyncio.Protocol):
    """Hands all on to aiohttp, and tells when the connection has ended."""

    def __init__(self, handler: web.RequestHandler) -> None:
        self._handler = handler
        self.ended = asyncio.Event()
        self.data_received = handler.data_received  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._handler.connection_made(transport)

    def eof_received(self) -> None:
        self._handler.eof_received()

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._handler.connection_lost(exc)
        self.ended.set()
