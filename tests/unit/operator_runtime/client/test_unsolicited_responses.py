"""Answers that nobody asked for, on real sockets: none is taken for that to another request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from operator_runtime.client.api_client import APPLY_PATCH, ApiClient
from operator_runtime.client.errors import ApiError, MalformedAnswer, Unreachable
from operator_runtime.client.exchange import Wire
from operator_runtime.client.resources import DEPLOYMENTS
from operator_runtime.client.response_identity import ExpectedList
from tests.unit.operator_runtime.client.client_support import (
    CLOSED_WITHIN_S,
    PATH,
    Peer,
    Request,
    client_of,
    deployment,
    serving,
)

Call = Callable[[ApiClient], Awaitable[bytes]]
UNRELATED = deployment("shop", "stranger")
LIST = b'{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"1"},"items":[]}'


def http(status: int, body: bytes = b"", more: str = "") -> bytes:
    return f"HTTP/1.1 {status} Whatever\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


CALLS: dict[str, Call] = {
    "get": lambda client: client.get(DEPLOYMENTS, "shop", "b"),
    "patch": lambda client: client.patch(DEPLOYMENTS, "shop", "b", {}, field_manager="m"),
    "apply": lambda client: client.patch(DEPLOYMENTS, "shop", "b", {}, field_manager="m", content_type=APPLY_PATCH),
    "create": lambda client: client.create(DEPLOYMENTS, "shop", {"metadata": {"name": "b"}}, field_manager="m"),
    "delete": lambda client: client.delete(DEPLOYMENTS, "shop", "b"),
    "list": lambda client: client.request("GET", PATH, expected=ExpectedList(DEPLOYMENTS)),
}


def answer_to(request: Request) -> bytes:
    return LIST if request.target == PATH else request.deployment


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    "surplus",
    [
        http(200, UNRELATED),
        http(200, UNRELATED) * 2,
        http(408, b"", "Connection: close\r\n"),
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"\r\n",
        b"\x15\x03\x03\x00\x02",
    ],
    ids=["an answer", "two answers", "a late 408", "half an answer", "an empty line", "no HTTP"],
)
async def test_bytes_on_an_idle_connection_close_it_and_are_no_answer_to_the_next_request(
    surplus: bytes, call: Call
) -> None:
    peers: list[Peer] = []

    async def handler(peer: Peer, request: Request) -> None:
        peers.append(peer)
        await peer.answer(body=answer_to(request))

    async with serving(handler) as server, client_of(server.url) as client:
        assert await client.get(DEPLOYMENTS, "shop", "a") == deployment("shop", "a")
        await peers[0].send(surplus)
        async with asyncio.timeout(CLOSED_WITHIN_S):
            await server.gone.acquire()
        assert await call(client) in (deployment("shop", "b"), LIST)
        assert server.connections == 2
        assert peers[0] is not peers[1]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_an_answer_to_something_else_is_told_counts_for_nothing_and_ends_its_connection(call: Call) -> None:
    served: list[Peer] = []

    async def handler(peer: Peer, request: Request) -> None:
        served.append(peer)
        if len(served) == 2:  # it came together with the request, too late for the pool to see
            await peer.send(http(200, UNRELATED))
        await peer.answer(body=answer_to(request))

    async with serving(handler) as server, client_of(server.url) as client:
        await client.get(DEPLOYMENTS, "shop", "a")
        came = r"Deployment( shop/stranger of uid u| of apps/v1)"
        with pytest.raises(MalformedAnswer, match=rf"^[A-Z]+ /apis/apps/v1/.*: requested .*, received {came}$"):
            await call(client)
        assert not client.writes
        assert await call(client) in (deployment("shop", "b"), LIST)
        assert server.connections == 2


def late(served: int) -> Callable[[Peer, Request], Awaitable[None]]:
    """Each connection answers so many requests, and then says that it had waited for long enough."""
    counts: dict[Peer, int] = {}

    async def handler(peer: Peer, request: Request) -> None:
        counts[peer] = counts.get(peer, 0) + 1
        if counts[peer] <= served:
            await peer.answer(body=request.deployment)
        else:
            await peer.send(http(408, b"", "Connection: close\r\n"))
            peer.close()

    return handler


async def test_a_408_that_crosses_a_request_is_no_answer_to_it() -> None:
    async with serving(late(1)) as server, client_of(server.url) as client:
        await client.get(DEPLOYMENTS, "shop", "a")
        assert await client.get(DEPLOYMENTS, "shop", "b") == deployment("shop", "b")
        with pytest.raises(Unreachable, match=r"the server had closed the connection \(408\)"):
            await client.patch(DEPLOYMENTS, "shop", "b", {}, field_manager="m")
        patch = {"metadata": {"uid": "u"}}
        await client.get(DEPLOYMENTS, "shop", "a")
        await client.patch(DEPLOYMENTS, "shop", "b", patch, field_manager="m")
        assert [request.method for request in server.requests] == ["GET"] * 3 + ["PATCH"] + ["GET"] + ["PATCH"] * 2


async def test_a_408_to_the_first_request_of_a_connection_is_its_answer_and_what_comes_unasked_is_none() -> None:
    async with serving(late(0)) as server, client_of(server.url) as client:
        with pytest.raises(ApiError, match="408"):
            await client.get(DEPLOYMENTS, "shop", "a")
        assert server.connections == 1
    wire = Wire(asyncio.get_running_loop())
    assert wire.unsolicited() == ""
    wire.data_received(b"SSH-2.0-OpenSSH_9.2\r\n")
    assert wire.unsolicited() == repr(b"SSH-2.0-OpenSSH_9.2\r\n")
