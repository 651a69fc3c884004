"""Connections of a client: which pools there are, when new ones take over, and what it means when one fails.

Two pools. Each watch owns a connection for minutes (HTTP/1.1 has no multiplexing), so watches have a connector without
a limit; API calls share a bounded pool of warm ones. The credential goes on each request, never into a session: tokens
rotate, and closing a session under running requests to log in again is how other clients died.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any

import aiohttp

from operator_runtime.client.access.credentials import ClusterAccess
from operator_runtime.client.aiohttp_internals import INCOMPLETE_BODY, Connector
from operator_runtime.client.exchange import Answer, Origin, Wire, reason_of

CONNECT_TIMEOUT_S = 10.0
# As many API calls at once as a generous number of workers and the event recorder make; more wait for a connection.
MAX_CONNECTIONS = 64
# The server closes idle connections after 90 s; let go well before it, so that a request seldom meets a closing one.
IDLE_CONNECTION_S = 60.0
# A dead peer is found by the kernel after 30 + 3 * 10 s where no byte is to be sent, and load balancers that forget
# idle connections after minutes (4 on one cloud) are kept awake. The silence limit of a watch does not depend on it.
KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES = 30, 10, 3

WriteFence = Callable[[], None]
"""Last check of a write: returns if it may go out at this moment, else raises `WriteRefused`.

It is made when the connection is there, in the turn of the event loop in which the bytes are handed to it. What the
rest of the way takes, the lengths of a lease leave time for (`election.lease_decision`).
"""


class Pool:
    """Connections to the API server that are kept, or each used once."""

    def __init__(self, origin: Origin, context: ssl.SSLContext | None, *, once: bool = False, **pooling: Any) -> None:
        self._origin = origin
        self._template = origin.template()
        self._head = origin.host + (b"Connection: close\r\n" if once else b"")
        self.connector = Connector(
            Wire,
            ssl=context if context is not None else True,
            socket_factory=_socket_with_keepalive,
            force_close=once,
            **pooling,
        )

    async def send(
        self,
        method: str,
        target: str,
        lines: bytes,
        body: bytes = b"",
        *,
        timeout_s: float | None = None,
        fence: WriteFence | None = None,
    ) -> Answer:
        """Send a request over a pooled connection, or over a new one; return its answer, of which the head is there.

        Args:
            target: see `target_of`.
            lines: of its head, after those of the origin.
            timeout_s: bound on the exchange from waiting for a connection to the last byte; None: the caller holds it.

        Raises:
            aiohttp.ClientError, OSError, TimeoutError: there is no answer.
            WriteRefused: the fence's word; not a byte was sent.
        """
        first = f"{method} {self._origin.prefix}{target} HTTP/1.1\r\n".encode("ascii")
        request = b"".join((first, self._head, lines, b"\r\n", body))
        ends_at = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        connecting = aiohttp.ClientTimeout(total=None, connect=timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        answer = Answer(await self.connector.connect(self._template, [], connecting))
        try:
            if fence is not None:
                fence()
            await answer.begin(request, ends_at)
        except BaseException:
            answer.abort()
            raise
        return answer


class Pools:
    """Connections of one trust: a pool for API calls, and connections of their own for watches.

    Invariant: `watching` holds the answers of the watches that run. aiohttp wakes no reader of a connection of
    a pool that is closed: they are aborted one by one before it.
    """

    def __init__(self, origin: Origin, context: ssl.SSLContext | None) -> None:
        self.context = context
        self.calls = Pool(origin, context, limit=MAX_CONNECTIONS, keepalive_timeout=IDLE_CONNECTION_S)
        # A connection for each watch anew: behind a load balancer this alone moves watches to an API server that joins.
        self.watches = Pool(origin, context, limit=0, once=True)
        self.watching: set[Answer] = set()

    async def close(self) -> None:
        for answer in tuple(self.watching):
            answer.abort()
        await self.calls.connector.close()
        await self.watches.connector.close()


class ConnectionPools:
    """The pools of the trust and the client certificate that hold now, and for a while those that held before."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._pools: list[Pools] = []

    async def current(self) -> Pools:
        """The pools for the next request; call it after `Credentials.headers`, which notices a rotation."""
        access, context = self._access, self._access.credentials.ssl_context()
        if self._pools and self._pools[-1].context is context:
            return self._pools[-1]
        current = Pools(Origin(access.server, access.proxy, access.tls_server_name), context)
        self._pools.append(current)
        # What runs on the old pools runs to its end there; they close at the next rotation, or with the client.
        if len(self._pools) > 2:
            await self._pools.pop(0).close()
        return current

    async def close(self) -> None:
        while self._pools:
            await self._pools.pop().close()


def describe(error: BaseException) -> str:
    """A connection's failure in words: aiohttp's and asyncio's are often empty, or speak of their own settings."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"the server's certificate is not trusted: {error.certificate_error}"
        case aiohttp.ClientHttpProxyError():
            # Its own words hold the proxy's URL and password.
            return f"the proxy answers {error.status} {error.message}"
        case aiohttp.ClientConnectorError():
            proxy = "the proxy " if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
            return f"{proxy}{error.host}:{error.port}: {reason_of(error.os_error)}"
        case aiohttp.ClientPayloadError() if error.__cause__ is not None and str(error).startswith(INCOMPLETE_BODY):
            return "the connection ended within the answer"
        case TimeoutError():
            return str(error) or "no answer in time"
        case OSError() if not isinstance(error, aiohttp.ClientError):
            return reason_of(error)
        case _:
            return str(error) or type(error).__name__


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
