"""The endpoint as its clients see it, on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

from memcached_operator.discovery.discovery_protocol import MAX_LINE
from memcached_operator.discovery.endpoint import DiscoveryEndpoint, EndpointOptions

ONE = "1700000000\na.b.svc|10.0.0.1|11211\n"
TWO = "1700000001\na.b.svc|10.0.0.1|11211 c.b.svc|10.0.0.2|11211\n"
ASK = b"config get cluster\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster"
    path.write_text(ONE)
    return path


@pytest.fixture
async def endpoint(file: Path) -> AsyncIterator[DiscoveryEndpoint]:
    stop = asyncio.Event()
    Client.all.clear()
    endpoint = DiscoveryEndpoint(EndpointOptions(file, 0, max_connections=3, idle_s=60.0, look_s=3600.0))
    async with asyncio.TaskGroup() as running:
        running.create_task(endpoint.run(stop))
        async with asyncio.timeout(30):
            await endpoint.listening.wait()
        yield endpoint
        for each in Client.all:
            each.writer.close()
        stop.set()


class Client:
    all: ClassVar[list[Client]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @staticmethod
    async def of(endpoint: DiscoveryEndpoint) -> Client:
        Client.all.append(Client(*await asyncio.open_connection("127.0.0.1", endpoint.port)))
        return Client.all[-1]

    async def ask(self, request: bytes = ASK) -> str:
        """What comes up to the end of an answer, "" where the connection is closed."""
        self.writer.write(request)
        async with asyncio.timeout(30):
            try:
                return (await self.reader.readuntil(b"END\r\n")).decode()
            except (asyncio.IncompleteReadError, ConnectionError):
                self.writer.close()
                return ""


def rewrite(endpoint: DiscoveryEndpoint, file: Path, text: str | None) -> None:
    """The file has another text, or is gone, and the endpoint has looked."""
    file.unlink(missing_ok=True)
    if text is not None:
        file.write_text(text)
    endpoint.look()


async def test_a_request_may_come_in_parts_and_two_may_come_together(endpoint: DiscoveryEndpoint) -> None:
    client = await Client.of(endpoint)
    client.writer.write(b"config get")
    await client.writer.drain()
    assert ONE in await client.ask(b" cluster\r\nconfig get cluster\r\n")
    assert ONE in await client.ask(b"")


async def test_a_connection_follows_the_file(endpoint: DiscoveryEndpoint, file: Path) -> None:
    client = await Client.of(endpoint)
    assert ONE in await client.ask()
    rewrite(endpoint, file, TWO)
    assert TWO in await client.ask()


@pytest.mark.parametrize("later", ["", "no version\n"])
async def test_a_list_stays_where_the_file_has_none(endpoint: DiscoveryEndpoint, file: Path, later: str) -> None:
    client = await Client.of(endpoint)
    for text in (later, None):
        rewrite(endpoint, file, text)
        assert ONE in await client.ask()


@pytest.mark.parametrize("flood", [b"x" * (MAX_LINE + 1), b"\n" * 17, ASK * 17, b"quit\r\n"])
async def test_a_flood_ends_its_connection_and_no_other(endpoint: DiscoveryEndpoint, flood: bytes) -> None:
    other, client = await Client.of(endpoint), await Client.of(endpoint)
    assert await client.ask(flood) == ""
    assert ONE in await other.ask()


async def test_connections_beyond_the_bound_are_closed_until_others_end(endpoint: DiscoveryEndpoint) -> None:
    clients = [await Client.of(endpoint) for _ in range(3)]
    assert all([ONE in await each.ask() for each in clients])
    assert await (await Client.of(endpoint)).ask() == ""
    await clients[0].ask(b"quit\r\n")
    assert ONE in await (await Client.of(endpoint)).ask()


async def test_a_connection_without_requests_is_closed_in_the_end(endpoint: DiscoveryEndpoint) -> None:
    idle, active = await Client.of(endpoint), await Client.of(endpoint)
    await idle.ask()
    since_s = asyncio.get_running_loop().time()
    await active.ask()
    endpoint.close_idle(since_s)
    assert await idle.ask() == ""
    assert ONE in await active.ask()


async def test_without_a_file_a_request_is_not_answered_until_it_comes(endpoint: DiscoveryEndpoint, file: Path) -> None:
    endpoint.servers = b""
    assert await (await Client.of(endpoint)).ask() == ""
    rewrite(endpoint, file, TWO)
    assert TWO in await (await Client.of(endpoint)).ask()


async def test_a_client_of_the_binary_protocol_is_told_at_once_by_the_end_of_its_connection(
    endpoint: DiscoveryEndpoint,
) -> None:
    client = await Client.of(endpoint)
    assert await client.ask(b"\x80\x60\x00\x07" + bytes(20) + b"cluster") == ""
