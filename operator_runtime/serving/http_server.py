"""Servers for probes and scrapes, on the operator's own event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from contextlib import suppress

from operator_runtime.serving.connections import Connections
from operator_runtime.serving.conversation import Conversation, Handler
from operator_runtime.serving.listening import ListenAddress, ServingError, sockets, url_of

logger = logging.getLogger(__name__)

# kubelet and a few scrapers need a handful; a client that opens more only makes the idlest ones close.
MAX_CONNECTIONS = 64
# Of bodies that peers have yet to take; one may be of any size. What is one answer to several counts once.
MAX_UNTAKEN_BYTES = 33_554_432
# A slow peer does not hold a connection for ever.
HANDSHAKE_TIMEOUT_S = 5.0
# As asyncio's own servers do when descriptors or memory are short.
ACCEPT_PAUSE_S = 1.0


class HttpServer:
    """Answers GETs at one address; a service of the manager, opened before it runs so that a taken port is found first.

    Any client may connect, so everything that a connection takes is bounded: their number, from before a TLS handshake
    on, and the bytes of the answers that they do not take (`Connections`).
    """

    def __init__(
        self, name: str, flag: str, address: ListenAddress, handler: Handler, context: ssl.SSLContext | None = None
    ) -> None:
        self.name = name
        self._flag = flag
        self._address = address
        self._handler = handler
        self._context = context
        self._connections = Connections(most=MAX_CONNECTIONS, most_bytes=MAX_UNTAKEN_BYTES)
        self._listening: dict[socket.socket, asyncio.Task[None]] = {}
        self._stopping = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> HttpServer:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Listen. Requests are answered from now on, at `url`.

        Raises ServingError where the address is taken, not this machine's, or not this process's to bind.
        """
        try:
            listening = await sockets(self._address)
        except OSError as error:
            host, port = self._address
            # The socket module's own words repeat the address.
            why = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
            raise ServingError(
                f"cannot listen on {host or ''}:{port} for {self.name}: {why}. "
                f"Choose another address with {self._flag}, or turn it off with {self._flag}=0."
            ) from error
        self._listening = {each: asyncio.create_task(self._accept(each)) for each in listening}
        self.url = url_of(self._address, listening, secure=self._context is not None)

    async def run(self) -> None:
        try:
            await self._stopping.wait()
        finally:
            await self.close()

    def stop(self) -> None:
        self._stopping.set()

    async def close(self) -> None:
        """Listen no more, and end all connections."""
        for accepting in self._listening.values():
            accepting.cancel()
        await asyncio.gather(*self._listening.values(), return_exceptions=True)
        for each in self._listening:
            each.close()
        await self._connections.end_all()

    async def _accept(self, listening: socket.socket) -> None:
        # asyncio's own servers report a connection with TLS only after its handshake: too late to bound them.
        loop = asyncio.get_running_loop()
        short = False
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except ConnectionAbortedError:
                continue  # it has gone again
            except OSError as error:
                if not short:
                    short = True
                    why = (error.strerror or str(error)).lower()
                    logger.warning("%s: cannot accept connections: %s", self.name, why)
                await asyncio.sleep(ACCEPT_PAUSE_S)
                continue
            short = False
            if self._connections.make_room():
                self._connections.add(loop.create_task(self._converse(connection)))
            else:
                connection.close()
            # Those that wait to be accepted do not keep all else from its turn.
            await asyncio.sleep(0)

    async def _converse(self, connection: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None
        conversation = Conversation(self.name, self._handler, self._connections, task)
        handshake_s = None if self._context is None else HANDSHAKE_TIMEOUT_S
        transport: asyncio.Transport | None = None
        try:
            # Peers that go away, stay silent or are too slow are no news.
            with suppress(OSError, TimeoutError, asyncio.CancelledError):
                transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: conversation, connection, ssl=self._context, ssl_handshake_timeout=handshake_s
                )
                await conversation.ended()
        finally:
            conversation.give_up()
            if transport is not None:
                transport.abort()
