"""aiohttp's end of a connection, and what it means when one fails or sends before a request."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from typing import Any

import aiohttp

from operator_runtime.client.aiohttp_internals import ResponseHandler, unparsed

logger = logging.getLogger(__name__)

_QUOTED_BYTES = 80


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
