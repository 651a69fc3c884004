"""Which calls are sent again, on real sockets: only what a pooled connection lost, and what may arrive twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from operator_runtime.client.api_client import APPLY_PATCH, STRATEGIC_MERGE_PATCH, ApiClient
from operator_runtime.client.errors import Unreachable
from operator_runtime.client.resources import DEPLOYMENTS
from tests.unit.operator_runtime.client.client_support import (
    DEADLINE_S,
    PATH,
    Handler,
    Peer,
    Request,
    between,
    client_of,
    serving,
)

Cut = Callable[[Peer], Awaitable[None]]


async def closed(peer: Peer) -> None:
    peer.close()


async def reset(peer: Peer) -> None:
    peer.reset()


async def half_a_head_then_closed(peer: Peer) -> None:
    await peer.send(b"HTTP/1.1 200 OK\r\nContent-Le")
    peer.close()


async def half_a_body_then_closed(peer: Peer) -> None:
    await peer.send(b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"half":')
    peer.close()


async def continue_then_closed(peer: Peer) -> None:
    await peer.send(b"HTTP/1.1 102 Processing\r\n\r\n")
    peer.close()


def named(cut: Cut) -> str:
    return cut.__name__.replace("_", " ")


def answering(times: int, cut: Cut) -> Handler:
    """Each connection answers so many requests, and is cut under the next one, which it has taken."""
    served: dict[Peer, int] = {}

    async def handler(peer: Peer, request: Request) -> None:
        served[peer] = served.get(peer, 0) + 1
        if served[peer] > times:
            await cut(peer)
        else:
            await peer.answer(body=request.deployment)

    return handler


@pytest.mark.parametrize("cut", [closed, reset, half_a_head_then_closed, continue_then_closed], ids=named)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_what_a_fresh_connection_lost_is_sent_once(method: str, cut: Cut) -> None:
    async with serving(answering(0, cut)) as server, client_of(server.url) as client:
        with pytest.raises(Unreachable, match=f"{method} {PATH}: "):
            await client.request(method, PATH, body=b"{}", guarded=method != "GET")
        assert [request.method for request in server.requests] == [method]


@pytest.mark.parametrize("cut", [closed, reset], ids=named)
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_what_a_pooled_connection_lost_is_sent_again(method: str, cut: Cut) -> None:
    async with serving(answering(1, cut)) as server, client_of(server.url) as client:
        await client.request("GET", PATH)
        assert await client.request(method, PATH, body=b'{"x":1}', guarded=method != "GET") == b"{}"
        assert [request.method for request in server.requests] == ["GET", method, method]
        assert server.requests[1].body == server.requests[2].body == b'{"x":1}'
        assert server.connections == 2


@pytest.mark.parametrize("cut", [half_a_head_then_closed, half_a_body_then_closed, continue_then_closed], ids=named)
@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_what_was_answered_in_part_is_sent_once(method: str, cut: Cut) -> None:
    async with serving(answering(1, cut)) as server, client_of(server.url) as client:
        await client.request("GET", PATH)
        with pytest.raises(Unreachable):
            await client.request(method, PATH, body=b"{}", guarded=True)
        assert [request.method for request in server.requests] == ["GET", method]


async def test_a_pool_full_of_dead_connections_costs_nobody_a_call() -> None:
    together, count = asyncio.Event(), 3
    dead: set[Peer] = set()

    async def handler(peer: Peer, request: Request) -> None:
        if peer in dead:
            peer.reset()
            return
        if len(dead) < count:
            dead.add(peer)
            if len(dead) == count:
                together.set()
            await asyncio.wait_for(together.wait(), DEADLINE_S)
        await peer.answer()

    async with serving(handler) as server, client_of(server.url) as client:
        await asyncio.gather(*(client.request("GET", PATH) for _ in range(count)))
        assert await client.request("PATCH", PATH, body=b"{}", guarded=True) == b"{}"
        assert [request.method for request in server.requests] == ["GET"] * count + ["PATCH"] * (count + 1)


async def test_the_time_of_a_call_is_not_begun_anew_when_it_is_sent_again() -> None:
    now_s = 100.0

    async def slow(peer: Peer) -> None:
        nonlocal now_s
        now_s += 21.0
        peer.close()

    async with serving(answering(1, slow)) as server, client_of(server.url, clock=lambda: now_s) as client:
        await client.request("GET", PATH)
        with pytest.raises(Unreachable):
            await client.request("GET", PATH)
        assert len(server.requests) == 2


# What the methods for writes take for a precondition.

Write = Callable[[ApiClient], Awaitable[bytes]]


def written(body: object, **options: Any) -> Write:
    return lambda client: client.patch(DEPLOYMENTS, "shop", "a", body, field_manager="m", **options)


def created(*, guarded: bool = False) -> Write:
    return lambda client: client.create(DEPLOYMENTS, "shop", OF_ANY, field_manager="m", guarded=guarded)


def deleted(**preconditions: str) -> Write:
    return lambda client: client.delete(DEPLOYMENTS, "shop", "a", **preconditions)  # type: ignore[arg-type]


OF_ONE_UID = {"metadata": {"uid": "u"}}
OF_ONE_VERSION = {"metadata": {"resourceVersion": "1"}}
OF_ANY = {"metadata": {"name": "a", "uid": None}, "spec": {"replicas": 1}}


@pytest.mark.parametrize(
    ("write", "arrivals"),
    [
        (written(OF_ONE_UID), 2),
        (written(OF_ONE_VERSION), 2),
        (written(OF_ANY), 1),
        (written({}), 1),
        (written(OF_ONE_UID, content_type=APPLY_PATCH), 2),
        (written(OF_ANY, content_type=APPLY_PATCH), 1),
        (written(OF_ONE_UID, content_type=STRATEGIC_MERGE_PATCH), 2),
        (written(OF_ANY, content_type=STRATEGIC_MERGE_PATCH), 1),
        (created(), 1),
        (created(guarded=True), 2),
        (deleted(uid="u"), 2),
        (deleted(resource_version="1"), 2),
        (deleted(), 1),
        (deleted(propagation="Foreground"), 1),
    ],
)
async def test_a_write_may_arrive_twice_if_it_names_the_object_or_the_version(write: Write, arrivals: int) -> None:
    async with between(answering(1, closed)) as (server, client):
        await client.get(DEPLOYMENTS, "shop", "a")
        if arrivals == 2:
            assert orjson.loads(await write(client))["metadata"]["name"] == "a"
        else:
            with pytest.raises(Unreachable):
                await write(client)
        assert len(server.requests) == 1 + arrivals
