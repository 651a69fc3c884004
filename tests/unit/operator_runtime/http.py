"""Requests to what is served: without a connection, and over one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp.test_utils import make_mocked_request
from aiohttp.web import BaseRequest

from tests.unit.operator_runtime.running import DEADLINE_S


def get(path: str, *, peer: str = "", **headers: str) -> BaseRequest:
    """A GET of a path and its query, from that address."""
    return make_mocked_request("GET", path, headers).clone(remote=peer)


def get_bytes(path: str, *headers: str) -> bytes:
    """The same as it is sent, with these lines besides."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: here", *headers, "", ""]).encode()


@dataclass(slots=True)
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def exchange(self, data: bytes) -> bytes:
        """Send bytes; the head and the body of the answer."""
        self.writer.write(data)
        async with asyncio.timeout(DEADLINE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            return head + await self.reader.readexactly(length)

    async def closed(self) -> bool:
        """Whether the server ends the connection."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                return await self.reader.read() == b""
            except ConnectionError:
                return True


@asynccontextmanager
async def connected(url: str, context: ssl.SSLContext | None = None) -> AsyncIterator[Client]:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port, ssl=context)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


async def fetched(url: str) -> tuple[int, str]:
    """The status and the body that a URL is answered with."""
    async with connected(url) as client:
        head, _, body = (await client.exchange(get_bytes(urlsplit(url).path or "/"))).partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()
