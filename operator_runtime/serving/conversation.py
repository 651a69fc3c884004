"""One connection of a client: aiohttp's server reads its request, in the bounds that are set here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import cast

from aiohttp import HttpVersion10, HttpVersion11, web

from operator_runtime.serving.connections import Connections, ConnectionTask
from operator_runtime.serving.responses import HttpResponse, text_response

logger = logging.getLogger(__name__)

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
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self._task.cancel)

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
