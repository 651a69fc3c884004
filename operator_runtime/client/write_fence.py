"""The write fence: the last place at which one that may no longer be made can be stopped.

A write may wait for a connection, a handshake or an event loop for longer than its right lasts. So the right is asked
for when the connection is there, and again when the bytes are about to be handed to it: `aiohttp` keeps the headers of
a request with a body back until the body's first byte, and writes both from `ClientRequest.write_bytes`. What comes
after that is the rest of the event loop's turn, at whose end uvloop gives the bytes to the kernel, then the kernel and
the network: a write may arrive a moment after the right to it has ended, which the lengths of a lease leave time for
(`election.leader`). A process that ends when its right does, as a leader that has lost its Lease, sends none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import aiohttp

from operator_runtime.client.errors import WriteRefused

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.connector import Connection

WriteFence = Callable[[], None]
"""Returns if a write may go out at this moment, else raises `WriteRefused`. It is called on the client's event loop."""

READS = frozenset({"GET", "HEAD"})


def fenced_request(fence: WriteFence) -> type[aiohttp.ClientRequest]:
    """The class of requests that ask the fence, unless they only read."""

    class FencedRequest(aiohttp.ClientRequest):
        async def send(self, conn: Connection) -> aiohttp.ClientResponse:
            if self.method not in READS:
                fence()
            return await super().send(conn)

        async def write_bytes(
            self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
        ) -> None:
            if self.method not in READS:
                try:
                    fence()
                except WriteRefused as refusal:
                    # This runs as a task of its own: the caller, which waits for the answer, learns of it by the
                    # protocol, and closes the connection.
                    if conn.protocol is not None:
                        conn.protocol.set_exception(refusal)
                    return
            await super().write_bytes(writer, conn, content_length)

    return FencedRequest
