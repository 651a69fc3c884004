"""API calls on real sockets: compression, silence, and what happens when a connection is cut."""

from __future__ import annotations

import pytest

from operator_runtime.client.errors import Conflict, TooManyRequests
from operator_runtime.client.resources import DEPLOYMENTS
from tests.unit.operator_runtime.client.client_support import (
    GZIP_MEMBERS,
    PATH,
    Peer,
    Request,
    between,
    saying,
)


async def test_a_list_in_several_gzip_members_is_whole() -> None:
    async with between(saying(200, b"".join(GZIP_MEMBERS), Content_Encoding="gzip")) as (server, client):
        assert await client.request("GET", PATH, gzip=True) == b'{"first":"second","third":1}'
    assert server.requests[0].headers["accept-encoding"] == "gzip"


async def test_a_429_that_closes_the_connection_tells_how_long_to_wait() -> None:
    async with between(saying(429, b"too many", Retry_After="2", Connection="close")) as (server, client):
        for _ in range(2):
            with pytest.raises(TooManyRequests) as caught:
                await client.request("GET", PATH)
            assert caught.value.retry_after_s == 2.0
        assert server.connections == 2


# What is counted


async def test_requests_are_counted_by_code_and_writes_by_what_they_wrote() -> None:
    async def sometimes(peer: Peer, request: Request) -> None:
        await peer.answer(409 if "refused" in request.target else 200, request.deployment)

    async with between(sometimes) as (_, client):
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
