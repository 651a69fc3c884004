"""One request and the head of its answer, over a connection of aiohttp's pool, and what it means when one fails.

aiohttp makes the connections (addresses, TLS, proxies), keeps the pool and parses what comes back. Its session is left
out: its URLs, header maps, cookies, redirects, and a task for the body of each write are half of what a request costs.
Here a request is bytes that are put together once, and handed over in one piece.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import socket
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from operator_runtime.client.aiohttp_internals import (
    EMPTY_PAYLOAD,
    Connection,
    HttpProcessingError,
    ResponseHandler,
    StreamReader,
    request_template,
    unparsed,
)

logger = logging.getLogger(__name__)

_NOTHING_CAME = 408
_QUOTED_BYTES = 80

# Characters that would end a line of the head, or the target before its end.
_BREAKS = frozenset("\r\n\0")


class Origin:
    """Destination of all requests of a client, as each names it: the beginning of its target, and the Host.

    `server` may have a path. Its certificate is checked against `tls_server_name`, where that is None against its host.
    """

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


def target_of(path: str, query: Mapping[str, str] | None) -> str:
    """Path and query as a request names them; ValueError where the path cannot stand in a request."""
    if not path.isascii() or not path.isprintable() or " " in path:
        raise ValueError(f"{path!r} is no path of a URL")
    return f"{path}?{urlencode(query)}" if query else path


def header_lines(headers: Mapping[str, Any]) -> bytes:
    """Headers as they stand in a request; ValueError, without the value, where one would begin another line."""
    for name, value in headers.items():
        if not _BREAKS.isdisjoint(name + value):
            raise ValueError(f"the header {name!r} holds more than one line")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


class ConnectionCut(aiohttp.ClientConnectionError):
    """Connection that was closed or reset during a request.

    Attributes:
        idle: it had served before and brought no byte of an answer, as happens to one that its server closes just as
            it is taken from the pool. That the request did not arrive is likely then, and not certain.
    """

    def __init__(self, why: str, *, idle: bool) -> None:
        super().__init__(why)
        self.idle = idle


class Wire(ResponseHandler):
    """A connection that knows besides how often it was used, whether its peer has spoken, and whether it rests.

    HTTP/1.1 relates an answer to its request by their order alone: one that was not requested would be taken for that
    to the next request, and so on. aiohttp looks for left-over bytes when a connection goes back to its pool, and not
    while it rests there.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.requests = 0
        self._received = False
        self._rests = False

    def rest(self) -> None:
        """Rest after a whole answer, while no other is requested: bytes that come now close the connection."""
        self._rests = True

    def unsolicited(self) -> str:
        """Return what the server sent before the first request, as of one that speaks no HTTP; "" for nothing."""
        return "" if self.requests or not unparsed(self) else repr(unparsed(self)[:_QUOTED_BYTES])

    def set_response_params(self, **params: Any) -> None:
        # Called for each request, when it has got its connection.
        self.requests += 1
        self._received = self._rests = False
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if self._rests:
            logger.debug("closed an idle connection that received data without a request: %r", data[:_QUOTED_BYTES])
            self.abort()
            return
        self._received = True
        super().data_received(data)

    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        cause = exc if exc_cause is None else exc_cause
        if isinstance(exc, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)):
            exc = ConnectionCut(self._why(exc, cause), idle=self.requests > 1 and not self._received)
        super().set_exception(exc, cause)

    def _why(self, exc: BaseException, cause: BaseException) -> str:
        if self._received:
            return "the connection ended within the answer's headers"
        if isinstance(cause, OSError):
            return reason_of(cause)
        if isinstance(exc, aiohttp.ClientOSError):
            return str(exc) or "the connection broke"
        closed = "the server closed the connection without an answer"
        if self.requests > 1:
            return closed
        tls = self.transport is not None and self.transport.get_extra_info("ssl_object") is not None
        return f"{closed}: {_MAY_BE} {_MAY_REQUIRE if tls else 'speaks TLS'}?"


def reason_of(error: OSError) -> str:
    """Explain why a connection failed, in words; never empty."""
    if isinstance(error, ssl.SSLError):
        text = error.strerror or str(error) or "no TLS"
        for sign, words in _OF_TLS.items():
            if sign in text.upper().replace(" ", "_"):
                return f"{words} ({text})"
        return text
    if isinstance(error, socket.gaierror) or not error.errno:
        # asyncio gives none where the other end closes a connection within the handshake of TLS.
        return error.strerror or str(error) or _OF_HANDSHAKE
    # asyncio's own words repeat the address, those for several addresses a list of all.
    return os.strerror(error.errno).lower()


_MAY_BE = "a load balancer that has no server behind it, or a server that"
_MAY_REQUIRE = "requires a client certificate"
_OF_HANDSHAKE = f"the connection was closed within the handshake of TLS: {_MAY_BE} {_MAY_REQUIRE}?"
# OpenSSL's message, to what it means to who set up the client.
_OF_TLS = {
    "CERTIFICATE_REQUIRED": "the server requires a client certificate",
    "ALERT_BAD_CERTIFICATE": "the server does not take the client certificate, or requires a client certificate",
    "ALERT_HANDSHAKE_FAILURE": "the server refuses the handshake, as one does that requires a client certificate",
    "ALERT_UNKNOWN_CA": "the server does not trust the authority of the client certificate",
    "ALERT_CERTIFICATE_EXPIRED": "the client certificate has expired",
    "WRONG_VERSION_NUMBER": "what answers there speaks no TLS",
}
