"""The connections of a client: which pools there are, when new ones take over, and what it means when one fails.

Two pools. Each watch owns a connection for minutes (HTTP/1.1 has no multiplexing), so watches have a connector without
a limit; API calls share a bounded pool of warm ones. The credential goes on each request, never into a session: tokens
rotate, and closing a session under running requests to log in again is how other clients died. Apart from
`kube.client`, which knows of requests and answers alone.
"""

from __future__ import annotations

import os
import socket
import ssl
from typing import Any

import aiohttp
from aiohttp.abc import AbstractCookieJar

from memcached_operator.kube.credentials import Credentials
from memcached_operator.kube.writes import WriteGate, gated_request

# As many API calls at once as a generous number of workers and the event recorder make; more wait for a connection.
MAX_CONNECTIONS = 64
# The server closes idle connections after 90 s; let go well before it, so that a request seldom meets a closing one.
IDLE_CONNECTION_S = 60.0
# A dead peer is found by the kernel after 30 + 3 * 10 s where no byte is to be sent, and load balancers that forget
# idle connections after minutes (4 on one cloud) are kept awake. The silence limit of a watch does not depend on it.
KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES = 30, 10, 3


class Pools:
    """The connections of one trust: a pool for API calls, and connections of their own for watches.

    Invariant: `watching` holds the answers of the watches that run. aiohttp wakes nobody who reads from a session that
    is closed, and stops his timers: they are closed one by one before it.
    """

    __slots__ = ("calls", "watches", "watching")

    def __init__(self, context: ssl.SSLContext | None, gate: WriteGate | None = None) -> None:
        request = aiohttp.ClientRequest if gate is None else gated_request(gate)
        self.calls = _session(context, request, limit=MAX_CONNECTIONS, keepalive_timeout=IDLE_CONNECTION_S)
        # A connection for each watch anew: behind a load balancer this alone moves watches to an API server that joins.
        self.watches = _session(context, aiohttp.ClientRequest, limit=0, force_close=True)
        self.watching: set[aiohttp.ClientResponse] = set()

    async def close(self) -> None:
        """Close all of them; running watches fail."""
        for response in tuple(self.watching):
            cut(response)
        await self.calls.close()
        await self.watches.close()


class Connections:
    """The pools of the trust and the client certificate that hold now, and for a while those that held before."""

    def __init__(self, credentials: Credentials, gate: WriteGate | None = None) -> None:
        self._credentials = credentials
        self._gate = gate
        self._pools: Pools | None = None
        self._retired: Pools | None = None
        self._tls_generation = -1

    async def current(self) -> Pools:
        """The pools for the next request; ask after `Credentials.headers`, which notices a rotation."""
        context = self._credentials.ssl_context()
        generation = self._credentials.ssl_generation
        if self._pools is not None and generation == self._tls_generation:
            return self._pools
        # What runs on the old pools runs to its end there; they close at the next rotation, or with the client.
        stale, self._retired = self._retired, self._pools
        current = self._pools = Pools(context, self._gate)
        self._tls_generation = generation
        if stale is not None:
            await stale.close()
        return current

    async def close(self) -> None:
        """Close all connections; running watches fail."""
        pools, self._pools, self._retired = (self._pools, self._retired), None, None
        for each in pools:
            if each is not None:
                await each.close()


def cut(response: aiohttp.ClientResponse) -> None:
    """Close an answer's connection at once, in the middle of it.

    TLS's own farewell waits for the server, which nobody else waits for: it may outlast the event loop.
    """
    connection = response.connection
    if connection is not None and connection.protocol is not None:
        connection.protocol.abort()
    response.close()


def was_cut(error: Exception) -> bool:
    """Whether an existing connection was closed or reset, as happens to one that was idle for long."""
    lost = isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError))
    return lost and not isinstance(error, aiohttp.ClientConnectorError)


def describe(error: BaseException) -> str:
    """A connection's failure in words: aiohttp's and asyncio's are often empty, or speak of their own settings."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"the server's certificate is not trusted: {error.certificate_error}"
        case aiohttp.ClientHttpProxyError():
            return (
                f"the proxy answers {error.status} {error.message}"  # its own words hold the proxy's URL and password
            )
        case aiohttp.ClientConnectorError():
            proxy = "the proxy " if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
            return f"{proxy}{error.host}:{error.port}: {_reason(error.os_error)}"
        case TimeoutError():
            return str(error) or "no answer in time"
        case _:
            return str(error) or type(error).__name__


def _reason(error: OSError) -> str:
    if isinstance(error, (socket.gaierror, ssl.SSLError)) or not error.errno:
        return error.strerror or str(error)
    # asyncio's own words repeat the address, those for several addresses a list of all.
    return os.strerror(error.errno).lower()


def _session(
    context: ssl.SSLContext | None, request_class: type[aiohttp.ClientRequest], **pooling: Any
) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        ssl=context if context is not None else True, socket_factory=_socket_with_keepalive, **pooling
    )
    return aiohttp.ClientSession(
        connector=connector,
        request_class=request_class,
        cookie_jar=_no_cookies(),
        auto_decompress=True,
        trust_env=False,  # which proxy is used is decided with the credentials, and ~/.netrc has no say
    )


def _no_cookies() -> AbstractCookieJar:
    return aiohttp.DummyCookieJar()


def _socket_with_keepalive(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, *_ = address
    connection = socket.socket(family=family, type=kind, proto=protocol)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_S),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
    ):
        if hasattr(socket, option):  # not on every platform that a laptop may run
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return connection
