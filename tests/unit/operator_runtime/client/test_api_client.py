"""What the client sends, how it takes answers and what it counts; what goes wrong with a connection is beside it."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from typing import Any
from unittest.mock import AsyncMock
from urllib.parse import parse_qsl

import pytest

from operator_runtime.client.api_client import APPLY_PATCH, ApiClient
from operator_runtime.client.errors import (
    AuthenticationUnavailable,
    Conflict,
    MalformedAnswer,
    TooManyRequests,
    Unauthorized,
)
from operator_runtime.client.resources import DEPLOYMENTS, PODS
from tests.unit.operator_runtime.client.client_support import (
    GZIP_MEMBERS,
    PATH,
    USER_AGENT,
    FakeCredentials,
    Peer,
    Request,
    between,
    client_of,
    deployment,
    every,
    for_the_second_token,
    saying,
    serving,
)

COLLECTION = "/apis/apps/v1/namespaces/ns/deployments"
ONE_DEPLOYMENT = f"{COLLECTION}/a"
DEPLOYMENT = deployment("ns", "a")


async def get(client: ApiClient) -> bytes:
    return await client.get(DEPLOYMENTS, "ns", "a")


async def test_a_request_names_who_asks_and_what_for() -> None:
    async with between(every) as (server, client):
        assert await get(client) == DEPLOYMENT
    (request,) = server.requests
    assert (request.method, request.target) == ("GET", ONE_DEPLOYMENT)
    assert request.headers == {
        "host": server.url.removeprefix("http://"),
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": USER_AGENT,
        "authorization": "Bearer first",
    }


async def test_a_query_is_encoded_once_and_goes_behind_a_path_of_the_servers_own() -> None:
    query = {"continue": "a+b/c==&d", "labelSelector": "app=memcached,memcached_cr"}
    async with serving(every) as server, client_of(f"{server.url}/k8s/clusters/c-1/") as client:
        await client.request("DELETE", PODS.path(), query=query)
    (request,) = server.requests
    path, _, sent = request.target.partition("?")
    assert (path, dict(parse_qsl(sent))) == ("/k8s/clusters/c-1/api/v1/pods", query)
    assert request.headers["content-length"] == "0"
    assert "content-type" not in request.headers


@pytest.mark.parametrize("path", ["/api/v1/a b", "/api/v1/a\r\nX-Remote-User: root", "/api/v1/ü", "/api/v1/\0"])
async def test_a_path_or_credential_that_would_begin_another_line_is_not_sent(path: str) -> None:
    credentials = FakeCredentials()
    async with between(every, credentials) as (server, client):
        with pytest.raises(ValueError, match="is no path of a URL"):
            await client.request("GET", path)
        credentials.token = "secret\r\nX-Remote-User: root"
        with pytest.raises(ValueError, match="holds more than one line") as caught:
            await get(client)
    assert "secret" not in str(caught.value)
    assert server.requests == []


async def test_a_server_without_tls_behind_a_proxy_is_named_in_full() -> None:
    async with serving(every) as proxy:
        url = proxy.url.replace("http://", "http://jane:hunter2@")
        async with client_of("http://api.test:8080", proxy=url) as client:
            assert await get(client) == DEPLOYMENT
    (request,) = proxy.requests
    assert request.target == f"http://api.test:8080{ONE_DEPLOYMENT}"
    assert request.headers["host"] == "api.test:8080"
    assert request.headers["proxy-authorization"] == f"Basic {b64encode(b'jane:hunter2').decode()}"


DELETION = {"preconditions": {"uid": "u", "resourceVersion": "7"}, "propagationPolicy": "Foreground"}


@pytest.mark.parametrize(
    ("call", "method", "target", "content_type", "sent"),
    [
        (
            lambda client: client.patch(
                DEPLOYMENTS, "ns", "a", {"x": "ü"}, field_manager="me", content_type=APPLY_PATCH, force=True
            ),
            "PATCH",
            f"{ONE_DEPLOYMENT}?fieldManager=me&force=true",
            "application/apply-patch+yaml",
            {"x": "ü"},
        ),
        (
            lambda client: client.create(DEPLOYMENTS, "ns", {"x": "ü"}, field_manager="me"),
            "POST",
            f"{COLLECTION}?fieldManager=me",
            "application/json",
            {"x": "ü"},
        ),
        (
            lambda client: client.delete(
                DEPLOYMENTS, "ns", "a", uid="u", resource_version="7", propagation="Foreground"
            ),
            "DELETE",
            ONE_DEPLOYMENT,
            "application/json",
            DELETION,
        ),
    ],
    ids=["apply", "create", "delete"],
)
async def test_a_write_has_its_method_target_body_and_content_type(
    call: Any, method: str, target: str, content_type: str, sent: object
) -> None:
    async with between(saying(body=DEPLOYMENT)) as (server, client):
        assert await call(client) == DEPLOYMENT
    (request,) = server.requests
    assert (request.method, request.target, json.loads(request.body)) == (method, target, sent)
    assert request.headers["content-type"] == content_type


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, b"<html>Please log in</html>", "something that is not an API object: b'<html>Please log in"),
        (200, b"", "HTTP 200 with something that is not an API object"),
        (302, b"", "HTTP 302, which no API server returns: a proxy"),
        (304, b"", "HTTP 304"),
    ],
)
async def test_what_no_api_server_answers_is_malformed(status: int, body: bytes, words: str) -> None:
    async with between(saying(status, body, Location="http://elsewhere.test/")) as (server, client):
        with pytest.raises(MalformedAnswer) as caught:
            await get(client)
    assert words in str(caught.value)
    assert len(server.requests) == 1


async def test_a_401_is_tried_once_more_with_a_newer_credential() -> None:
    credentials, before = FakeCredentials(next_token="second"), time.monotonic()
    async with between(for_the_second_token, credentials) as (server, client):
        assert await get(client) == DEPLOYMENT
    assert [each.headers["authorization"] for each in server.requests] == ["Bearer first", "Bearer second"]
    ((failed_since),) = credentials.refreshes
    assert before <= failed_since <= time.monotonic()


@pytest.mark.parametrize(("newer", "calls"), [(None, 1), ("another", 2)])
async def test_a_401_without_a_newer_credential_or_to_that_too_is_final(newer: str | None, calls: int) -> None:
    credentials = FakeCredentials(next_token=newer)
    async with between(for_the_second_token, credentials) as (server, client):
        with pytest.raises(Unauthorized):
            await get(client)
    assert (len(credentials.refreshes), len(server.requests)) == (1, calls)


async def test_a_credential_that_cannot_be_had_is_no_transport_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    unavailable = AsyncMock(side_effect=AuthenticationUnavailable("log in again"))
    monkeypatch.setattr(FakeCredentials, "headers", unavailable)
    async with between(every) as (server, client):
        with pytest.raises(AuthenticationUnavailable):
            await get(client)
    assert server.requests == []


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
        await client.patch(DEPLOYMENTS, "shop", "a", {}, field_manager="m", content_type=APPLY_PATCH)
        for _ in range(2):
            await client.patch(DEPLOYMENTS, "shop", "a", {}, field_manager="m", subresource="status")
        await client.delete(DEPLOYMENTS, "shop", "a")
        with pytest.raises(Conflict):
            await client.patch(DEPLOYMENTS, "shop", "refused", {}, field_manager="m", content_type=APPLY_PATCH)
        answered = {(200, "GET"): 1, (200, "POST"): 1, (200, "PATCH"): 3, (200, "DELETE"): 1, (409, "PATCH"): 1}
        assert client.requests == answered
        assert client.writes == {
            ("deployments.apps", "create"): 1,
            ("deployments.apps", "apply"): 1,
            ("deployments.apps/status", "patch"): 2,
            ("deployments.apps", "delete"): 1,
        }
