"""One exchange with a server, over a socket of its own: in plain text, or by TLS of which nothing is verified.

What a server shows as its certificate is read, and not trusted: whether clients trust it is their affair, and one
that has expired is to be seen. All of it can be read by any client that has the address.

What goes wrong is no error here but a result: a caller gets an answer or a `Failure`, never an exception.
Nothing that a server sends can take more memory than `MAX_BYTES` and what TLS holds of one record, or more time than
the caller gives.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, partial
from typing import Final, NamedTuple, Self, TypeVar

from memcached_operator.api.names import PORT

# `stats` of a release with extstore and proxy takes 6 KiB, `stats settings` 3 KiB, and `stats items` 96 with 63 size
# classes and figures as long as they get.
MAX_BYTES: Final = 131_072
TOO_MANY: Final = b"ERROR Too many open connections"
"""With which maxconns_fast, the default, turns a connection away, in plain text also where TLS is spoken; then it is
closed."""

T = TypeVar("T")


class ErrorKind(Enum):
    UNREACHABLE = "no connection was made"
    SILENT = "connected, but no whole answer arrived in time"
    CLOSED = "it closed the connection before its answer was whole"
    MALFORMED = "its answer does not follow the protocol"
    SATURATED = "it turns connections away, as it has reached its limit"
    REFUSED = "it answered with an error of the protocol"
    DENIED = "it requires credentials, or other ones"


class Failure(NamedTuple):
    """Failure to get an answer.

    Attributes:
        why: in a few words for people, with nothing that changes from try to try.
    """

    kind: ErrorKind
    why: str


SATURATED: Final = Failure(ErrorKind.SATURATED, "it has reached its limit of connections and turns others away")
_CLOSED: Final = Failure(ErrorKind.CLOSED, "it closes the connection without an answer")
_NO_TLS: Final = Failure(ErrorKind.MALFORMED, "the port does not speak TLS")
# Of RFC 8446 section 6.2, as OpenSSL names them, with which a server refuses a client for its certificate.
_ABOUT_CERTIFICATES: Final = (
    *("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "UNSUPPORTED_CERTIFICATE", "CERTIFICATE_REVOKED"),
    *("CERTIFICATE_EXPIRED", "CERTIFICATE_UNKNOWN", "UNKNOWN_CA", "DECRYPT_ERROR"),
)


@dataclass(frozen=True, slots=True)
class Login:
    """A user of a server's password file."""

    user: str
    password: str = field(repr=False)

    @classmethod
    def first_of(cls, content: bytes) -> Self | None:
        """The first user of a password file who can log in: the protocol ends a name at its first space."""
        for line in content.splitlines():
            user, colon, rest = line.partition(b":")
            if colon and user and b" " not in user and rest:
                try:
                    return cls(user.decode(), rest.decode())
                except UnicodeDecodeError:
                    continue
        return None


class Endpoint(NamedTuple):
    """Address of a server, and the transport to it.

    Attributes:
        tls: of `client_context`, with a client certificate or without; None where it speaks plain text.
        has_certificate: there is a client certificate in `tls`.
        login: for its queries, None where it requires none or none is known.
        before: a request without an answer, sent before that for its statistics.
    """

    address: str
    tls: ssl.SSLContext | None = None
    has_certificate: bool = False
    login: Login | None = None
    port: int = PORT
    before: bytes = b""


def client_context() -> ssl.SSLContext:
    """Make the context for TLS with any server whose certificate is to be seen, however weak or old it is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    return context


@cache
def without_certificate() -> ssl.SSLContext:
    return client_context()


async def exchange(
    endpoint: Endpoint, request: bytes, read: Callable[[bytes], T | Failure | None], timeout_s: float
) -> tuple[T | Failure, bytes]:
    """Connect, send, and read until `read` makes something of all that came.

    On sockets alone, which takes half the time of streams. Each try has a connection of its own: that a client can have
    one is a part of the question.

    Args:
        read: what came, to what it means; None while it is not whole.

    Returns:
        What `read` made of it, or what went wrong; and the certificate that the server showed, DER, b"" for none.
    """
    loop = asyncio.get_running_loop()
    connected, tls = False, None
    result: T | Failure
    try:
        with socket.socket(
            socket.AF_INET6 if ":" in endpoint.address else socket.AF_INET, socket.SOCK_STREAM
        ) as connection:
            connection.setblocking(False)
            async with asyncio.timeout(timeout_s):
                await loop.sock_connect(connection, (endpoint.address, endpoint.port))
                connected = True
                if endpoint.tls is None:
                    # A server that turns others away has reported it and closed the connection.
                    with suppress(ConnectionError):
                        await loop.sock_sendall(connection, request)
                    return await _answer(partial(loop.sock_recv, connection, MAX_BYTES), read), b""
                tls = _Tls(connection, endpoint.tls)
                result = await tls.answer(request, read)
    except TimeoutError:
        if connected:
            result = Failure(ErrorKind.SILENT, f"no answer within {timeout_s:g} s")
        else:
            result = Failure(ErrorKind.UNREACHABLE, f"no connection within {timeout_s:g} s")
    except ssl.SSLError as error:
        result = _refusal(error, endpoint, tls)
    except OSError as error:
        result = _CLOSED if connected else Failure(ErrorKind.UNREACHABLE, os.strerror(error.errno or 0).lower())
    return result, tls.certificate if tls is not None else b""


async def _answer(receive: Callable[[], Awaitable[bytes]], read: Callable[[bytes], T | Failure | None]) -> T | Failure:
    received = b""
    while more := await receive():
        received += more
        if (found := read(received)) is not None:
            return found
    return _CLOSED


class _Tls:
    """TLS on a socket, by OpenSSL in memory.

    Attributes:
        first: what came first, while there is no session.
        certificate: what the server showed, DER; b"" where it did not come so far.
    """

    def __init__(self, connection: socket.socket, context: ssl.SSLContext) -> None:
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing)
        self.first = b""
        self.certificate = b""
        self._begun = False

    async def answer(self, request: bytes, read: Callable[[bytes], T | Failure | None]) -> T | Failure:
        """Exchange a request for an answer.

        Raises:
            ssl.SSLError: the server does not speak TLS, or refuses to go on.
        """
        await self._finish(self._session.do_handshake)
        self._begun = True
        # Once the server has refused to go on, nothing of the session can be seen.
        self.certificate = self._session.getpeercert(binary_form=True) or b""
        self._session.write(request)  # into memory
        return await _answer(lambda: self._finish(partial(self._session.read, MAX_BYTES)), read)

    async def _finish(self, step: Callable[[], T]) -> T:
        """Do a step of the session, and send and receive whatever that takes."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                with suppress(ssl.SSLWantReadError):
                    return step()
            finally:
                # A server that refuses the client's certificate has reported it and closed the connection.
                with suppress(ConnectionError):
                    await loop.sock_sendall(self._connection, self._outgoing.read())
            more = await loop.sock_recv(self._connection, MAX_BYTES)
            if not self._begun:
                self.first = self.first or more[: len(TOO_MANY)]
            if more:
                self._incoming.write(more)
            else:
                self._incoming.write_eof()


def _refusal(error: ssl.SSLError, endpoint: Endpoint, tls: _Tls | None) -> Failure:
    """Return the failure of the server that an error of OpenSSL's shows."""
    if tls is not None and tls.first == TOO_MANY:
        return SATURATED
    if isinstance(error, ssl.SSLEOFError):
        return _CLOSED
    reason = error.reason or ""
    _, alert, name = reason.partition("_ALERT_")
    if not alert:
        return _NO_TLS
    words = name.replace("_", " ").lower()
    if name not in _ABOUT_CERTIFICATES:
        return Failure(ErrorKind.REFUSED, f"it refuses TLS with {words}")
    if endpoint.has_certificate:
        return Failure(ErrorKind.DENIED, f"it refuses the client certificate with {words}")
    return Failure(ErrorKind.DENIED, "it requires a client certificate")
