"""Server of the list: every client of a Memcached's endpoint has a connection to it, and asks now and then.

It follows a file, which the kubelet brings from the ConfigMap with the list.
"""

from __future__ import annotations

import asyncio
import math
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from memcached_operator.discovery.discovery_protocol import MAX_LINE, answer, version_of
from operator_runtime.serving.listening import sockets
from operator_runtime.settings.listen_address import ListenAddress

# Requests that come together; clients wait for each answer.
_AT_ONCE: Final = 16
# The first byte of a request in memcached's binary protocol.
_BINARY: Final = b"\x80"


class EndpointOptions(NamedTuple):
    """Options of the command line.

    Attributes:
        file: the list, as `discovery_protocol.answer` takes it; it need not be there yet.
        port: on all addresses; 0 is any.
        max_connections: further ones are closed at once.
        idle_s: time without a request after which a connection is closed.
        look_s: time between two looks at the file.
    """

    file: Path
    port: int
    # Some 4 KiB each: with as many the process stays below its limit of memory.
    max_connections: int = 4096
    # Three times as long as clients wait between two requests.
    idle_s: float = 180.0
    look_s: float = 1.0


class DiscoveryEndpoint:
    """Answers clients by the list in a file.

    Attributes:
        servers: the last list that was in the file, b"" for none yet.
        listening: set once clients can connect, on `port`.
    """

    def __init__(self, options: EndpointOptions) -> None:
        self.options = options
        self.port = options.port
        self.servers = b""
        self.listening = asyncio.Event()
        self.connections = set[_Connection]()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop`.

        Raises:
            OSError: the port is taken.
        """
        self.look()
        loop = asyncio.get_running_loop()
        (listening,) = await sockets(ListenAddress(None, self.port))
        self.port = listening.getsockname()[1]
        server = await loop.create_server(lambda: _Connection(self), sock=listening, backlog=1024)
        self.listening.set()
        while not stop.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self.options.look_s)
            self.look()
            self.close_idle(loop.time() - self.options.idle_s)
        server.close()
        self.close_idle(math.inf)

    def look(self) -> None:
        """Take the list that is in the file now, if there is one; the operator sees to its version."""
        with suppress(OSError):
            found = self.options.file.read_bytes()
            if version_of(found):
                self.servers = found

    def close_idle(self, since_s: float) -> None:
        """Close the connections on which no request came since then, by the event loop's clock."""
        for each in [*self.connections]:
            if each.last_s < since_s:
                each.transport.abort()


class _Connection(asyncio.Protocol):
    """Connection of one client. It is read no further while the client does not take its answers.

    Attributes:
        last_s: of the last request, by the event loop's clock.
    """

    __slots__ = ("_endpoint", "_received", "last_s", "transport")
    transport: asyncio.Transport

    def __init__(self, endpoint: DiscoveryEndpoint) -> None:
        self._endpoint = endpoint
        self._received = b""
        self.last_s = asyncio.get_running_loop().time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if len(self._endpoint.connections) >= self._endpoint.options.max_connections:
            transport.abort()
        else:
            self._endpoint.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._endpoint.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        if not self._received and data.startswith(_BINARY):
            self.transport.close()  # as memcached's text ports do; such a request has no end that is known here
            return
        *requests, self._received = (self._received + data).split(b"\n")
        if len(requests) > _AT_ONCE or len(max(*requests, self._received, b"", key=len)) > MAX_LINE:
            self.transport.close()
            return
        for request in requests:
            self.last_s = asyncio.get_running_loop().time()
            if (answered := answer(request.removesuffix(b"\r"), self._endpoint.servers)) is None:
                self.transport.close()
                return
            self.transport.write(answered)

    def pause_writing(self) -> None:
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self.transport.resume_reading()


def run(options: EndpointOptions) -> int:
    """Serve until SIGTERM or SIGINT; the process's exit code."""

    async def serve() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await DiscoveryEndpoint(options).run(stop)

    asyncio.run(serve())
    return 0
