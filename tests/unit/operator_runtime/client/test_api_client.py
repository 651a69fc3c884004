"""What the client sends, how it takes answers and what it counts; what goes wrong with a connection is beside it."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from typing import Any
from unittest.mock import AsyncMock
from urllib.parse import parse_qsl, urlencode

import aiohttp
import orjson
import pytest

from operator_runtime.client.api_client import APPLY_PATCH, STRATEGIC_MERGE_PATCH, ApiClient
from operator_runtime.client.errors import (
    ApiError,
    AuthenticationUnavailable,
    Conflict,
    MalformedAnswer,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from operator_runtime.client.resources import DEPLOYMENTS, PODS, Resource
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
    saying,
    serving,
)

MEMCACHEDS = Resource("cache.example.com", "v1alpha1", "memcacheds", "Memcached")
ONE_DEPLOYMENT = "/apis/apps/v1/namespaces/ns/deployments/a"
DEPLOYMENT = deployment("ns", "a")


class Api:
    """Answers for some requests, each given once, and the requests that came."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], list[tuple[int, bytes, Mapping[str, str]]]] = {}
        self.url = ""
        self.calls: list[Request] = []

    def answer(self, method: str, target: str, body: bytes = b"", status: int = 200, **headers: str) -> None:
        self._answers.setdefault((method, target), []).append((status, body, headers))

    async def handle(self, peer: Peer, request: Request) -> None:
        self.calls.append(request)
        status, body, headers = self._answers[request.method, request.target].pop(0)
        await peer.answer(status, body, **headers)

    @property
    def only(self) -> Request:
        """The one request that was made."""
        (request,) = self.calls
        return request


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    api = Api()
    async with serving(api.handle) as server:
        api.url = server.url
        yield api


@pytest.fixture
def credentials() -> FakeCredentials:
    return FakeCredentials()


@pytest.fixture
async def client(api: Api, credentials: FakeCredentials) -> AsyncIterator[ApiClient]:
    async with client_of(api.url + "/", credentials) as client:
        yield client


async def test_a_request_names_who_asks_and_what_for(api: Api, client: ApiClient) -> None:
    api.answer("GET", ONE_DEPLOYMENT, body=DEPLOYMENT)
    assert await client.get(DEPLOYMENTS, "ns", "a") == DEPLOYMENT
    assert api.only.headers == {
        "host": api.url.removeprefix("http://"),
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": USER_AGENT,
        "authorization": "Bearer first",
    }


async def test_a_query_is_encoded_once_and_goes_behind_a_path_of_the_servers_own(api: Api) -> None:
    query = {"continue": "a+b/c==&d", "labelSelector": "app=memcached,memcached_cr"}
    api.answer("DELETE", f"/k8s/clusters/c-1/api/v1/pods?{urlencode(query)}", body=b"{}")
    async with client_of(f"{api.url}/k8s/clusters/c-1/") as client:
        await client.request("DELETE", PODS.path(), query=query)
    assert dict(parse_qsl(api.only.target.partition("?")[2])) == query
    assert api.only.headers["content-length"] == "0"
    assert "content-type" not in api.only.headers


@pytest.mark.parametrize("path", ["/api/v1/a b", "/api/v1/a\r\nX-Remote-User: root", "/api/v1/ü", "/api/v1/\0"])
async def test_a_path_or_credential_that_would_begin_another_line_is_not_sent(
    api: Api, client: ApiClient, credentials: FakeCredentials, path: str
) -> None:
    with pytest.raises(ValueError, match="is no path of a URL"):
        await client.request("GET", path)
    credentials.token = "secret\r\nX-Remote-User: root"
    with pytest.raises(ValueError, match="holds more than one line") as caught:
        await client.get(DEPLOYMENTS, "ns", "a")
    assert "secret" not in str(caught.value)
    assert api.calls == []


async def test_a_server_without_tls_behind_a_proxy_is_named_in_full() -> None:
    api = Api()
    target = f"http://api.test:8080{ONE_DEPLOYMENT}"
    api.answer("GET", target, body=DEPLOYMENT)
    async with serving(api.handle) as proxy:
        url = proxy.url.replace("http://", "http://jane:hunter2@")
        async with client_of("http://api.test:8080", proxy=url) as client:
            assert await client.get(DEPLOYMENTS, "ns", "a") == DEPLOYMENT
    assert api.only.headers["host"] == "api.test:8080"
    assert api.only.headers["proxy-authorization"] == f"Basic {b64encode(b'jane:hunter2').decode()}"


def write(resource: Resource = DEPLOYMENTS, **options: Any) -> Any:
    return lambda client: client.patch(resource, "ns", "a", {"x": "ü"}, field_manager="me", **options)


STATUS = "/apis/cache.example.com/v1alpha1/namespaces/ns/memcacheds/a/status"


@pytest.mark.parametrize(
    ("call", "url", "content_type"),
    [
        (write(content_type=APPLY_PATCH), f"{ONE_DEPLOYMENT}?fieldManager=me", "application/apply-patch+yaml"),
        (
            write(content_type=APPLY_PATCH, force=True),
            f"{ONE_DEPLOYMENT}?fieldManager=me&force=true",
            "application/apply-patch+yaml",
        ),
        (write(), f"{ONE_DEPLOYMENT}?fieldManager=me", "application/merge-patch+json"),
        (
            write(MEMCACHEDS, subresource="status"),
            f"{STATUS}?fieldManager=me",
            "application/merge-patch+json",
        ),
        (
            write(content_type=STRATEGIC_MERGE_PATCH),
            f"{ONE_DEPLOYMENT}?fieldManager=me",
            "application/strategic-merge-patch+json",
        ),
    ],
    ids=["apply", "forced apply", "merge patch", "status", "strategic merge patch"],
)
async def test_each_patch_has_its_path_and_content_type(
    api: Api, client: ApiClient, call: Any, url: str, content_type: str
) -> None:
    body = orjson.dumps(orjson.loads(DEPLOYMENT) | {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind})
    body = body if MEMCACHEDS.plural in url else DEPLOYMENT
    api.answer("PATCH", url, body=body)
    assert await call(client) == body
    assert json.loads(api.only.body) == {"x": "ü"}
    assert api.only.headers["content-type"] == content_type


async def test_a_create_has_its_method_path_and_content_type(api: Api, client: ApiClient) -> None:
    api.answer("POST", "/apis/apps/v1/namespaces/ns/deployments?fieldManager=me", body=DEPLOYMENT)
    assert await client.create(DEPLOYMENTS, "ns", {"x": "ü"}, field_manager="me") == DEPLOYMENT
    assert json.loads(api.only.body) == {"x": "ü"}
    assert api.only.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, {}),
        ({"uid": "u"}, {"preconditions": {"uid": "u"}}),
        (
            {"uid": "u", "resource_version": "7", "propagation": "Foreground"},
            {"preconditions": {"uid": "u", "resourceVersion": "7"}, "propagationPolicy": "Foreground"},
        ),
    ],
    ids=["whatever it is", "that one", "in that version, after its dependents"],
)
async def test_a_deletion_says_of_which_object_and_what_becomes_of_its_dependents(
    api: Api, client: ApiClient, given: dict[str, Any], sent: dict[str, Any]
) -> None:
    api.answer("DELETE", ONE_DEPLOYMENT, body=b'{"kind":"Status"}')
    assert await client.delete(DEPLOYMENTS, "ns", "a", **given) == b'{"kind":"Status"}'
    assert (api.only.method, api.only.target) == ("DELETE", ONE_DEPLOYMENT)
    assert json.loads(api.only.body) == sent
    assert client.writes == {("deployments.apps", "delete"): 1}


@pytest.mark.parametrize(("status", "reason", "kind"), [(409, "AlreadyExists", Conflict), (418, "", ApiError)])
async def test_an_answer_that_says_no_is_an_error_of_the_closed_set(
    api: Api, client: ApiClient, status: int, reason: str, kind: type[ApiError]
) -> None:
    body = json.dumps({"kind": "Status", "code": status, "reason": reason, "message": "because"}).encode()
    api.answer("GET", ONE_DEPLOYMENT, status=status, body=body)
    with pytest.raises(ApiError) as caught:
        await client.get(DEPLOYMENTS, "ns", "a")
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.reason, caught.value.message) == (status, reason, "because")
    assert len(api.calls) == 1


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, b"<html>Please log in</html>", "something that is not an API object: b'<html>Please log in"),
        (200, b"", "HTTP 200 with something that is not an API object"),
        (302, b"", "HTTP 302, which no API server returns: a proxy"),
        (304, b"", "HTTP 304"),
    ],
)
async def test_what_no_api_server_answers_is_malformed(
    api: Api, client: ApiClient, status: int, body: bytes, words: str
) -> None:
    api.answer("GET", ONE_DEPLOYMENT, status=status, body=body, Location="http://elsewhere.test/")
    with pytest.raises(MalformedAnswer) as caught:
        await client.get(DEPLOYMENTS, "ns", "a")
    assert words in str(caught.value)
    assert len(api.calls) == 1


async def test_a_401_is_tried_once_more_with_a_newer_credential(
    api: Api, client: ApiClient, credentials: FakeCredentials
) -> None:
    credentials.next_token = "second"
    api.answer("GET", ONE_DEPLOYMENT, status=401)
    api.answer("GET", ONE_DEPLOYMENT, body=DEPLOYMENT)
    before = time.monotonic()
    assert await client.get(DEPLOYMENTS, "ns", "a") == DEPLOYMENT
    assert [call.headers["authorization"] for call in api.calls] == ["Bearer first", "Bearer second"]
    ((failed_since),) = credentials.refreshes
    assert before <= failed_since <= time.monotonic()


@pytest.mark.parametrize(("newer", "calls"), [(None, 1), ("second", 2)])
async def test_a_401_without_a_newer_credential_or_to_that_too_is_final(
    api: Api, client: ApiClient, credentials: FakeCredentials, newer: str | None, calls: int
) -> None:
    credentials.next_token = newer
    for _ in range(calls):
        api.answer("GET", ONE_DEPLOYMENT, status=401)
    with pytest.raises(Unauthorized):
        await client.get(DEPLOYMENTS, "ns", "a")
    assert (len(credentials.refreshes), len(api.calls)) == (1, calls)


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (aiohttp.ClientConnectionError("refused"), "refused"),
        (aiohttp.ClientPayloadError("cut"), "cut"),
        (OSError(113, "No route to host"), "no route to host"),
        (ConnectionResetError(), "the connection was closed within the handshake of TLS"),
        (TimeoutError(), "no answer in time"),
        (aiohttp.ClientError(), "ClientError"),
    ],
)
async def test_a_failing_transport_is_unreachable_and_named(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch, failure: Exception, words: str
) -> None:
    connect = AsyncMock(side_effect=failure)
    monkeypatch.setattr(aiohttp.TCPConnector, "connect", connect)
    with pytest.raises(Unreachable) as caught:
        await client.get(DEPLOYMENTS, "ns", "a")
    assert str(caught.value).startswith("GET /apis/apps/v1/namespaces/ns/deployments/a: ")
    assert words in str(caught.value)
    assert connect.await_count == 1


async def test_a_credential_that_cannot_be_had_is_no_transport_failure(
    api: Api, client: ApiClient, credentials: FakeCredentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "headers", AsyncMock(side_effect=AuthenticationUnavailable("log in again")))
    with pytest.raises(AuthenticationUnavailable):
        await client.get(DEPLOYMENTS, "ns", "a")
    assert api.calls == []


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
        with pytest.raises(Conflict):
            await client.patch(DEPLOYMENTS, "shop", "refused", {}, field_manager="m", content_type=APPLY_PATCH)
        assert client.requests == {(200, "GET"): 1, (200, "POST"): 1, (200, "PATCH"): 3, (409, "PATCH"): 1}
        assert client.writes == {
            ("deployments.apps", "create"): 1,
            ("deployments.apps", "apply"): 1,
            ("deployments.apps/status", "patch"): 2,
        }
