"""The write fence, on real sockets: what it refuses never reaches the server."""

from __future__ import annotations

import asyncio

import pytest

from operator_runtime.client import connection_pools as connections
from operator_runtime.client.access.credentials import ClusterAccess
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import WriteRefused
from operator_runtime.client.resources import DEPLOYMENTS
from tests.unit.operator_runtime.client.client_support import (
    PATH,
    SILENCE_LIMIT_S,
    USER_AGENT,
    FakeCredentials,
    Loopback,
    Peer,
    Request,
    every,
    serving,
    three_lines_and_silence,
)


class Fence:
    """Lets so many checks pass; `checks` counts them."""

    def __init__(self, passes: float = float("inf")) -> None:
        self.passes = passes
        self.checks = 0

    def __call__(self) -> None:
        self.checks += 1
        if self.checks > self.passes:
            raise WriteRefused("the lease has run out")


def fenced(server: Loopback, fence: Fence) -> ApiClient:
    access = ClusterAccess(server.url, None, "a test", FakeCredentials())
    return ApiClient(access, user_agent=USER_AGENT, timeout_s=20.0, write_fence=fence)


async def create(client: ApiClient) -> bytes:
    return await client.create(DEPLOYMENTS, "shop", {"kind": "Deployment"}, field_manager="us")


async def test_a_refused_write_sends_not_a_byte() -> None:
    fence = Fence(0)
    received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.set_result(await reader.read())
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with fenced(Loopback(url), fence) as client:
            with pytest.raises(WriteRefused, match="the lease has run out"):
                await create(client)
            assert await received == b"", "the connection was there, and closed unused"
    assert fence.checks == 1


async def test_reads_and_watches_are_not_asked_about_and_a_write_without_a_body_is() -> None:
    async def handler(peer: Peer, request: Request) -> None:
        await (three_lines_and_silence if "watch" in request.target else every)(peer, request)

    fence = Fence(0)
    async with serving(handler) as server, fenced(server, fence) as client:
        assert await client.request("GET", PATH) == b"{}"
        async with client.stream(PATH, {"watch": "1"}, SILENCE_LIMIT_S) as stream:
            assert await stream.read()
        assert fence.checks == 0
        with pytest.raises(WriteRefused):
            await client.request("DELETE", f"{PATH}/web")
        assert [request.method for request in server.requests] == ["GET", "GET"]


async def test_a_write_that_waits_for_a_connection_is_refused_when_the_right_ends_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 1)
    busy, go_on = asyncio.Event(), asyncio.Event()

    async def handler(peer: Peer, request: Request) -> None:
        busy.set()
        await go_on.wait()
        await peer.answer()

    fence = Fence()
    async with serving(handler) as server, fenced(server, fence) as client:
        slow_read = asyncio.create_task(client.request("GET", PATH))
        await busy.wait()
        write = asyncio.create_task(create(client))
        pool = (await client._connections.current()).calls.connector
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(pool._waiters) == 1
        assert fence.checks == 0, "it has no connection yet"
        fence.passes = 0
        go_on.set()
        await slow_read
        with pytest.raises(WriteRefused):
            await write
        assert [request.method for request in server.requests] == ["GET"]
