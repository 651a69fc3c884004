"""One request and the head of its answer, over a connection of aiohttp's pool.

aiohttp makes the connections (addresses, TLS, proxies), keeps the pool and parses what comes back. Its session is left
out: its URLs, header maps, cookies, redirects, and a task for the body of each write are half of what a request costs.
Here a request is bytes that are put together once, and handed over in one piece.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from operator_runtime.client.aiohttp_internals import (
    EMPTY_PAYLOAD,
    Connection,
    HttpProcessingError,
    StreamReader,
    request_template,
)
from operator_runtime.client.wire import ConnectionCut, Wire

_NOTHING_CAME = 408

# Characters that would end a line of the head, or the target before its end.
_BREAKS = frozenset("\r\n\0")


class Origin:
    """Destination of all requests of a client, as each names it: the beginning of its target, and the Host.

    `server` may have a path. Its certificate is checked against `tls_server_name`, where that is None against its host.
    """

    __slots__ = ("host", "prefix", "proxy", "tls_server_name", "url")

    def __init__(self, server: str, proxy: str | None, tls_server_name: str | None) -> None:
        self.url = URL(server, encoded=True)
        self.proxy = None if proxy is None else URL(proxy)
        self.tls_server_name = tls_server_name
        self.prefix = self.url.raw_path.rstrip("/")
        lines = {"Host": self.template().headers["Host"]}
        if self.proxy is not None and self.url.scheme == "http":
            # Without TLS there is no tunnel: each request is the proxy's own, and names its server in full.
            self.prefix = str(self.url.origin()) + self.prefix
            if self.proxy.user is not None:
                login = f"{self.proxy.user}:{self.proxy.password or ''}".encode("latin-1")
                lines["Proxy-Authorization"] = f"Basic {base64.b64encode(login).decode()}"
        self.host = header_lines(lines)

    def template(self) -> aiohttp.ClientRequest:
        return request_template(self.url, self.proxy, self.tls_server_name)


class Answer:
    """The head of an answer, and its body (`content`) as it comes.

    The body ends with TimeoutError when the time of the whole exchange is over.
    Invariant: its holder either reads it to its end and calls `release`, or calls `abort`.
    """

    __slots__ = ("_connection", "_deadline", "_late", "content", "headers", "status")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._deadline: asyncio.TimerHandle | None = None
        self._late = False
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.content: StreamReader = EMPTY_PAYLOAD

    @property
    def transport(self) -> asyncio.Transport | None:
        """The connection, as long as it is there."""
        return self._connection.transport

    def release(self) -> None:
        """Give the connection back to its pool, which closes it if it cannot serve again."""
        self._ends()
        if isinstance(wire := self._connection.protocol, Wire):
            wire.rest()
        self._connection.release()

    def abort(self) -> None:
        """Close the connection at once, in the middle of the answer.

        TLS's own farewell waits for the server, which nothing else waits for: it may outlast the event loop. aiohttp
        wakes no reader of a connection that is closed here.
        """
        self._ends()
        if self._connection.protocol is not None and not self.content.is_eof() and self.content.exception() is None:
            self.content.set_exception(aiohttp.ClientConnectionError("closed here"))
        if self._connection.protocol is not None:
            self._connection.protocol.abort()
        self._connection.close()

    async def begin(self, request: bytes, ends_at: float | None) -> None:
        """Send a request, and wait for the head of its answer; `ends_at`, on the loop's clock, bounds the exchange.

        Raises:
            aiohttp.ClientError, OSError, TimeoutError: there is no answer.
        """
        protocol = self._connection.protocol
        assert isinstance(protocol, Wire)
        transport = protocol.transport
        if transport is None or transport.is_closing():
            raise ConnectionCut("the connection ended before the request", idle=False)
        if received := protocol.unsolicited():
            raise ConnectionCut(f"the server sent data before a request: {received}", idle=False)
        protocol.set_response_params(read_until_eof=True)
        transport.write(request)
        if ends_at is not None:
            # A timer of the whole exchange, where asyncio.timeout would cost as much as all of the sending.
            self._deadline = asyncio.get_running_loop().call_at(ends_at, self._give_up)
        while True:
            try:
                message, content = await protocol.read()
            except HttpProcessingError as error:
                reason = " ".join(error.message.split()).removesuffix(" ^")  # in one line
                raise aiohttp.ClientPayloadError(f"the answer is no HTTP: {reason}") from error
            if not 100 <= message.code < 200 or message.code == 101:
                break
        if self._late and not content.is_eof():
            raise TimeoutError
        if message.code == _NOTHING_CAME and protocol.requests > 1:
            # It waited for a request as long as it does, and closed just as this one was sent.
            raise ConnectionCut("the server had closed the connection (408)", idle=True)
        self.status, self.headers, self.content = message.code, message.headers, content

    def _give_up(self) -> None:
        # After this process itself was stopped, its timers are due in the same moment as what has come meanwhile: what
        # is whole counts, and what is not yet taken from the connection is checked by `begin`.
        if self.status and self.content.is_eof():
            return
        self._late = True
        if self._connection.protocol is not None:
            self._connection.protocol.set_exception(TimeoutError())
        self.content.set_exception(TimeoutError())

    def _ends(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


@lru_cache(maxsize=64)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)


def target_of(path: str, query: Mapping[str, str] | None) -> str:
    """Path and query as a request names them; ValueError where the path cannot stand in a request."""
    if not path.isascii() or not path.isprintable() or " " in path:
        raise ValueError(f"{path!r} is no path of a URL")
    return f"{path}?{_encoded(tuple(query.items()))}" if query else path


def header_lines(headers: Mapping[str, Any]) -> bytes:
    """Headers as they stand in a request; ValueError, without the value, where one would begin another line."""
    for name, value in headers.items():
        if not _BREAKS.isdisjoint(name + value):
            raise ValueError(f"the header {name!r} holds more than one line")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
