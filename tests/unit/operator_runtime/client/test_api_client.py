"""What the client sends and how it takes answers, on mocked ones; what a connection is needed for is beside it."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
from aioresponses import aioresponses
from aioresponses.core import RequestCall
from yarl import URL

from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import (
    ApiError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    MalformedAnswer,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from operator_runtime.client.resources import DEPLOYMENTS, PODS, Resource
from tests.unit.operator_runtime.client.client_support import USER_AGENT, FakeCredentials, client_of

SERVER = "https://api.test:6443"
MEMCACHEDS = Resource("cache.example.com", "v1alpha1", "memcacheds", "Memcached")
ONE_DEPLOYMENT = f"{SERVER}/apis/apps/v1/namespaces/ns/deployments/a"


class _Response(aiohttp.ClientResponse):
    """aioresponses 0.7.9 does not pass the writer that aiohttp 3.14 asks for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("stream_writer", type("Writer", (), {"output_size": 0})())
        super().__init__(*args, **kwargs)


class Api:
    """Mocked answers, and the requests that were made."""

    def __init__(self, mock: aioresponses) -> None:
        self._mock = mock

    def answer(self, method: str, url: str, **fields: Any) -> None:
        self._mock.add(url, method, response_class=_Response, **fields)

    @property
    def calls(self) -> list[tuple[str, str, RequestCall]]:
        return [(method, str(url), call) for (method, url), calls in self._mock.requests.items() for call in calls]

    @property
    def only(self) -> tuple[str, str, dict[str, Any]]:
        """Method, URL and keyword arguments of the one request that was made."""
        ((method, url, call),) = self.calls
        return method, url, call.kwargs


@pytest.fixture
def api() -> Iterator[Api]:
    with aioresponses() as mock:
        yield Api(mock)


@pytest.fixture
def credentials() -> FakeCredentials:
    return FakeCredentials()


@pytest.fixture
async def client(credentials: FakeCredentials) -> AsyncIterator[ApiClient]:
    async with client_of(SERVER + "/", credentials) as client:
        yield client


async def test_a_request_names_who_asks_and_what_for(api: Api, client: ApiClient) -> None:
    api.answer("GET", ONE_DEPLOYMENT, body=b'{"kind":"Deployment"}')
    assert await client.get(DEPLOYMENTS, "ns", "a") == b'{"kind":"Deployment"}'
    _, _, kwargs = api.only
    assert kwargs["headers"] == {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": USER_AGENT,
        "Authorization": "Bearer first",
    }
    assert kwargs["data"] is None
    assert kwargs["allow_redirects"] is False


async def test_gzip_is_asked_for_where_the_caller_wants_it(api: Api, client: ApiClient) -> None:
    api.answer("GET", f"{SERVER}/api/v1/pods", body=b"{}")
    await client.request("GET", PODS.path(), gzip=True)
    assert api.only[2]["headers"]["Accept-Encoding"] == "gzip"


async def test_a_query_is_encoded_once(api: Api, client: ApiClient) -> None:
    token, selector = "a+b/c==&d", "app=memcached,memcached_cr"
    url = URL(f"{SERVER}/api/v1/pods").with_query({"continue": token, "labelSelector": selector})
    api.answer("GET", str(url), body=b"{}")
    await client.request("GET", PODS.path(), query={"continue": token, "labelSelector": selector})
    assert dict(URL(api.only[1]).query) == {"continue": token, "labelSelector": selector}


@pytest.mark.parametrize(
    ("call", "method", "url", "content_type"),
    [
        (
            lambda client: client.create(DEPLOYMENTS, "ns", {"x": "ü"}, field_manager="me"),
            "POST",
            f"{SERVER}/apis/apps/v1/namespaces/ns/deployments?fieldManager=me",
            "application/json",
        ),
        (
            lambda client: client.apply(DEPLOYMENTS, "ns", "a", {"x": "ü"}, field_manager="me", force=False),
            "PATCH",
            f"{ONE_DEPLOYMENT}?fieldManager=me",
            "application/apply-patch+yaml",
        ),
        (
            lambda client: client.apply(DEPLOYMENTS, "ns", "a", {"x": "ü"}, field_manager="me", force=True),
            "PATCH",
            f"{ONE_DEPLOYMENT}?fieldManager=me&force=true",
            "application/apply-patch+yaml",
        ),
        (
            lambda client: client.merge_patch(DEPLOYMENTS, "ns", "a", {"x": "ü"}, field_manager="me"),
            "PATCH",
            f"{ONE_DEPLOYMENT}?fieldManager=me",
            "application/merge-patch+json",
        ),
        (
            lambda client: client.merge_patch(
                MEMCACHEDS, "ns", "a", {"x": "ü"}, field_manager="me", subresource="status"
            ),
            "PATCH",
            f"{SERVER}/apis/cache.example.com/v1alpha1/namespaces/ns/memcacheds/a/status?fieldManager=me",
            "application/merge-patch+json",
        ),
        (
            lambda client: client.strategic_merge_patch(DEPLOYMENTS, "ns", "a", {"x": "ü"}, field_manager="me"),
            "PATCH",
            f"{ONE_DEPLOYMENT}?fieldManager=me",
            "application/strategic-merge-patch+json",
        ),
    ],
    ids=["create", "apply", "forced apply", "merge patch", "status", "strategic merge patch"],
)
async def test_each_write_has_its_method_path_and_content_type(
    api: Api, client: ApiClient, call: Any, method: str, url: str, content_type: str
) -> None:
    api.answer(method, url, body=b'{"kind":"Answer"}')
    assert await call(client) == b'{"kind":"Answer"}'
    sent_method, sent_url, kwargs = api.only
    assert (sent_method, sent_url) == (method, url)
    assert json.loads(kwargs["data"]) == {"x": "ü"}
    assert kwargs["headers"]["Content-Type"] == content_type


@pytest.mark.parametrize(
    ("asked", "sent"),
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
    api: Api, client: ApiClient, asked: dict[str, Any], sent: dict[str, Any]
) -> None:
    api.answer("DELETE", ONE_DEPLOYMENT, body=b'{"kind":"Status"}')
    assert await client.delete(DEPLOYMENTS, "ns", "a", **asked) == b'{"kind":"Status"}'
    method, url, kwargs = api.only
    assert (method, url) == ("DELETE", ONE_DEPLOYMENT)
    assert json.loads(kwargs["data"]) == sent
    assert client.writes == {("deployments.apps", "delete"): 1}


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", Invalid),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", Conflict),
        (410, "Expired", Expired),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerError),
        (503, "ServiceUnavailable", ServerError),
        (418, "", ApiError),
    ],
)
async def test_an_answer_that_says_no_is_an_error_of_the_closed_set(
    api: Api, client: ApiClient, status: int, reason: str, kind: type[ApiError]
) -> None:
    body = json.dumps({"kind": "Status", "code": status, "reason": reason, "message": "because"})
    api.answer("GET", ONE_DEPLOYMENT, status=status, body=body)
    with pytest.raises(ApiError) as caught:
        await client.get(DEPLOYMENTS, "ns", "a")
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.reason, caught.value.message) == (status, reason, "because")
    assert len(api.calls) == 1


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, "<html>Please log in</html>", "HTTP 200 with what is no object of the API: b'<html>Please log in"),
        (200, "", "HTTP 200 with what is no object"),
        (302, "", "HTTP 302, which no API server answers: a proxy"),
        (304, "", "HTTP 304"),
    ],
)
async def test_what_no_api_server_answers_is_malformed(
    api: Api, client: ApiClient, status: int, body: str, words: str
) -> None:
    api.answer("GET", ONE_DEPLOYMENT, status=status, body=body, headers={"Location": "http://elsewhere.test/"})
    with pytest.raises(MalformedAnswer) as caught:
        await client.get(DEPLOYMENTS, "ns", "a")
    assert words in str(caught.value)
    assert len(api.calls) == 1


@pytest.mark.parametrize(("header", "wait_s"), [("5", 5.0), ("0.5", 0.5), ("soon", None)])
async def test_retry_after_is_told_and_not_waited_for(
    api: Api, client: ApiClient, header: str, wait_s: float | None
) -> None:
    api.answer("GET", ONE_DEPLOYMENT, status=429, body="slow down", headers={"Retry-After": header})
    with pytest.raises(TooManyRequests) as caught:
        await client.get(DEPLOYMENTS, "ns", "a")
    assert caught.value.retry_after_s == wait_s


async def test_a_401_is_tried_once_more_with_a_newer_credential(
    api: Api, client: ApiClient, credentials: FakeCredentials
) -> None:
    credentials.next_token = "second"
    api.answer("GET", ONE_DEPLOYMENT, status=401)
    api.answer("GET", ONE_DEPLOYMENT, body=b"{}")
    before = time.monotonic()
    assert await client.get(DEPLOYMENTS, "ns", "a") == b"{}"
    assert [call.kwargs["headers"]["Authorization"] for _, _, call in api.calls] == ["Bearer first", "Bearer second"]
    ((failed_since),) = credentials.refreshes
    assert before <= failed_since <= time.monotonic()


async def test_a_401_without_a_newer_credential_is_final(
    api: Api, client: ApiClient, credentials: FakeCredentials
) -> None:
    api.answer("GET", ONE_DEPLOYMENT, status=401)
    with pytest.raises(Unauthorized):
        await client.get(DEPLOYMENTS, "ns", "a")
    assert len(credentials.refreshes) == len(api.calls) == 1


async def test_a_401_to_the_newer_credential_too_is_final(
    api: Api, client: ApiClient, credentials: FakeCredentials
) -> None:
    credentials.next_token = "second"
    api.answer("GET", ONE_DEPLOYMENT, status=401, repeat=True)
    with pytest.raises(Unauthorized):
        await client.get(DEPLOYMENTS, "ns", "a")
    assert (len(credentials.refreshes), len(api.calls)) == (1, 2)


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (aiohttp.ClientConnectionError("refused"), "refused"),
        (aiohttp.ClientPayloadError("cut"), "cut"),
        (OSError(113, "No route to host"), "No route to host"),
        (TimeoutError(), "no answer in time"),
        (aiohttp.ClientError(), "ClientError"),
    ],
)
async def test_a_failing_transport_is_unreachable_and_named(
    api: Api, client: ApiClient, failure: Exception, words: str
) -> None:
    api.answer("GET", ONE_DEPLOYMENT, exception=failure)
    with pytest.raises(Unreachable) as caught:
        await client.get(DEPLOYMENTS, "ns", "a")
    assert str(caught.value).startswith("GET /apis/apps/v1/namespaces/ns/deployments/a: ")
    assert words in str(caught.value)
    assert len(api.calls) == 1


async def test_a_credential_that_cannot_be_had_is_no_transport_failure(
    api: Api, client: ApiClient, credentials: FakeCredentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoLogin(KubeError):
        pass

    async def headers() -> dict[str, str]:
        raise NoLogin("log in again")

    monkeypatch.setattr(credentials, "headers", headers)
    with pytest.raises(NoLogin):
        await client.get(DEPLOYMENTS, "ns", "a")
    assert api.calls == []
