"""What the tests of the client share: credentials that do as they are told, and a server that speaks raw bytes."""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from operator_runtime.client.access.credentials import ClusterAccess, Credentials
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.stream import Stream

PATH = "/apis/apps/v1/deployments"
SILENCE_LIMIT_S = 70.0
DEADLINE_S = 60.0
# Less than aiohttp keeps an idle connection (15 s): what ends by itself then was not closed by us.
CLOSED_WITHIN_S = 10.0
# One object in three members, as a server that flushes sends it.
GZIP_MEMBERS = [gzip.compress(b'{"first":'), gzip.compress(b'"second",'), gzip.compress(b'"third":1}')]

USER_AGENT = "memcached-operator/test"


@dataclass
class FakeCredentials(Credentials):
    """Bearer tokens and trust by the test's word; `refreshes` and `ca_reloads` note what the client asked for."""

    token: str = "first"
    next_token: str | None = None
    context: ssl.SSLContext | None = None
    refreshes: list[float] = field(default_factory=list)
    ca_reloads: list[float] = field(default_factory=list)

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def refresh(self, failed_since: float) -> bool:
        self.refreshes.append(failed_since)
        if self.next_token is None:
            return False
        self.token, self.next_token = self.next_token, None
        return True

    async def reload_ca(self, failed_since: float) -> None:
        self.ca_reloads.append(failed_since)

    def ssl_context(self) -> ssl.SSLContext | None:
        return self.context


def client_of(
    server: str,
    credentials: FakeCredentials | None = None,
    proxy: str | None = None,
    clock: Callable[[], float] = time.monotonic,
    timeout_s: float = 20.0,
) -> ApiClient:
    access = ClusterAccess(server, None, "a test", credentials or FakeCredentials(), proxy=proxy)
    return ApiClient(access, user_agent=USER_AGENT, timeout_s=timeout_s, clock=clock)


def deployment(namespace: str, name: str, uid: str = "u") -> bytes:
    """A Deployment as the API server begins it."""
    metadata = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": "1"}
    return orjson.dumps({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": metadata})


@dataclass(frozen=True)
class Request:
    """One request as it came over the wire."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def deployment(self) -> bytes:
        """The Deployment that is asked for; b"{}" where it is none."""
        found = re.search(r"/namespaces/([^/]+)/deployments(?:/([^/?]+))?", self.target)
        if found is None:
            return b"{}"
        return deployment(found[1], found[2] or orjson.loads(self.body).get("metadata", {}).get("name") or "new")


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def request(self) -> Request | None:
        """The next request, None when the client closed the connection."""
        try:
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("ascii")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        return Request(method, target, headers, body)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self, status: int = 200, body: bytes = b"{}", **headers: str) -> None:
        """A whole answer; a header's name is written with _ for -."""
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = (
            f"HTTP/1.1 {status} Whatever\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        )
        await self.send(head.encode() + body)

    async def begin_stream(self, **headers: str) -> None:
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        await self.send(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{more}\r\n".encode())

    async def chunk(self, data: bytes) -> None:
        """One chunk of a stream; an empty one ends it."""
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def closed(self) -> None:
        """Wait until the client has closed the connection."""
        try:
            while await self._reader.read(1024):
                pass
        except ConnectionError:
            pass

    def close(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        """Send RST in place of a farewell."""
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Handler = Callable[[Peer, Request], Awaitable[None]]


@dataclass
class Loopback:
    """A server on loopback: each request is handed to the handler; `gone` counts connections that have ended."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    gone: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[Loopback]:
    loopback = Loopback()
    writers: list[asyncio.StreamWriter] = []
    tasks: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loopback.connections += 1
        writers.append(writer)
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        peer = Peer(reader, writer)
        while (request := await peer.request()) is not None:
            loopback.requests.append(request)
            await handler(peer, request)
        loopback.gone.release()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    loopback.url = f"{'https' if context else 'http'}://127.0.0.1:{port}"
    try:
        yield loopback
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def every(peer: Peer, request: Request) -> None:
    await peer.answer(body=request.deployment)


async def for_the_second_token(peer: Peer, request: Request) -> None:
    known = request.headers["authorization"] == "Bearer second"
    await peer.answer(200 if known else 401, request.deployment)


def saying(status: int = 200, body: bytes = b"{}", **headers: str) -> Handler:
    """The same answer to each request."""

    async def handler(peer: Peer, request: Request) -> None:
        await peer.answer(status, body, **headers)

    return handler


@asynccontextmanager
async def between(
    handler: Handler, credentials: FakeCredentials | None = None, **options: Any
) -> AsyncIterator[tuple[Loopback, ApiClient]]:
    """A server of this handler, and a client of it."""
    async with serving(handler) as server, client_of(server.url, credentials, **options) as client:
        yield server, client


@asynccontextmanager
async def streamed(handler: Handler) -> AsyncIterator[Stream]:
    """A watch of a server of this handler."""
    async with between(handler) as (_, client), client.stream(PATH, {}, SILENCE_LIMIT_S) as stream:
        yield stream


async def refused_watch(client: ApiClient) -> None:
    async with client.stream(PATH, {}, SILENCE_LIMIT_S):
        raise AssertionError("a refused watch has no body")


async def three_lines_and_silence(peer: Peer, request: Request) -> None:
    await peer.begin_stream()
    await peer.chunk(b"1\n2\n3\n")
    await peer.closed()


async def connection_ended(loopback: Loopback) -> None:
    await asyncio.wait_for(loopback.gone.acquire(), CLOSED_WITHIN_S)
