"""API calls on real sockets: compression, silence, and what happens when a connection is cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from operator_runtime.client.errors import Conflict, TooManyRequests, Unreachable
from operator_runtime.client.resources import DEPLOYMENTS
from tests.unit.operator_runtime.client.client_support import (
    DEADLINE_S,
    GZIP_MEMBERS,
    PATH,
    Peer,
    Request,
    client_of,
    serving,
)


async def test_a_list_in_several_gzip_members_is_whole() -> None:
    async def compressed(peer: Peer, request: Request) -> None:
        assert request.headers["accept-encoding"] == "gzip"
        await peer.answer(200, b"".join(GZIP_MEMBERS), Content_Encoding="gzip")

    async with serving(compressed) as server, client_of(server.url) as client:
        assert await client.request("GET", PATH, gzip=True) == b'{"first":"second","third":1}'


async def test_an_api_call_without_an_answer_is_unreachable_in_time(skip: Callable[[float], None]) -> None:
    asked = asyncio.Event()

    async def never(peer: Peer, request: Request) -> None:
        asked.set()
        await peer.closed()

    async with serving(never) as server, client_of(server.url) as client:
        task = asyncio.create_task(client.request("GET", PATH, timeout_s=5.0))
        await asyncio.wait_for(asked.wait(), DEADLINE_S)
        skip(6.0)
        with pytest.raises(Unreachable, match="no answer in time"):
            await task


async def test_a_429_that_closes_the_connection_tells_how_long_to_wait() -> None:
    async def busy(peer: Peer, request: Request) -> None:
        await peer.answer(429, b"too many", Retry_After="2", Connection="close")

    async with serving(busy) as server, client_of(server.url) as client:
        for _ in range(2):
            with pytest.raises(TooManyRequests) as caught:
                await client.request("GET", PATH)
            assert caught.value.retry_after_s == 2.0
        assert server.connections == 2


# What is counted


async def test_requests_are_counted_by_code_and_writes_by_what_they_wrote() -> None:
    async def sometimes(peer: Peer, request: Request) -> None:
        await peer.answer(409 if "refused" in request.target else 200, request.deployment)

    async with serving(sometimes) as server, client_of(server.url) as client:
        await client.get(DEPLOYMENTS, "shop", "a")
        await client.create(DEPLOYMENTS, "shop", {}, field_manager="m")
        await client.apply(DEPLOYMENTS, "shop", "a", {}, field_manager="m", force=True)
        for _ in range(2):
            await client.merge_patch(DEPLOYMENTS, "shop", "a", {}, field_manager="m", subresource="status")
        with pytest.raises(Conflict):
            await client.apply(DEPLOYMENTS, "shop", "refused", {}, field_manager="m", force=True)
        assert client.requests == {(200, "GET"): 1, (200, "POST"): 1, (200, "PATCH"): 3, (409, "PATCH"): 1}
        assert client.writes == {
            ("deployments.apps", "create"): 1,
            ("deployments.apps", "apply"): 1,
            ("deployments.apps/status", "patch"): 2,
        }
