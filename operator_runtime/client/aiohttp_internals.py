"""Parts of aiohttp that it does not document, each with what is relied on; no other module imports from within it.

Any minor release may change them, so that pyproject.toml allows those alone that were tested. A test names each
(`test_aiohttp_internals.py`), and is to be run first when the bound moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from yarl import URL

__all__ = [
    "EMPTY_PAYLOAD",
    "INCOMPLETE_BODY",
    "Connection",
    "Connector",
    "HttpProcessingError",
    "ResponseHandler",
    "StreamReader",
    "request_template",
    "unparsed",
]

# How the message of a ClientPayloadError begins where the body ended too early; what follows are aiohttp's own classes.
INCOMPLETE_BODY = "Response payload is not completed"


class Connector(aiohttp.TCPConnector):
    """Pool of connections whose ends are of our own class; `connect` takes a `request_template`."""

    def __init__(self, protocol: Callable[..., ResponseHandler], **pooling: Any) -> None:
        """`protocol` makes the end of a connection from the keyword `loop`; the rest is `aiohttp.TCPConnector`'s."""
        super().__init__(**pooling)
        self._factory = partial(protocol, loop=self._loop)


def request_template(url: URL, proxy: URL | None, server_hostname: str | None) -> aiohttp.ClientRequest:
    """Request without a session, which has a connector's destination, and the header Host."""
    return aiohttp.ClientRequest(
        "GET", url, proxy=proxy, server_hostname=server_hostname, loop=asyncio.get_running_loop()
    )


def unparsed(handler: ResponseHandler) -> bytes:
    """Bytes that came before the first request, when there was no parser for them."""
    return handler._tail
