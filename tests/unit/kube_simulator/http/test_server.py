"""The API server on the wire: who asks, whether they may, what it leads to, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from kube_simulator.errors import ApiError
from tests.unit.kube_simulator.http.http_support import LEASES, Served, events, served


@pytest_asyncio.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as found:
        yield found


async def test_a_request_reaches_the_verbs_with_everything_that_it_says(api: Served) -> None:
    path = f"{LEASES}/l/?fieldManager=me"
    answer = await api.request(
        "PATCH", path, b"{}", Content_Type="application/merge-patch+json", User_Agent="tool/1.2 (x)", Accept="*/*"
    )
    assert (answer.status, answer.body) == (200, b'{"kind":"Lease"}\n')
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-cache, private"
    assert re.fullmatch("[0-9a-f-]{36}", answer.headers["Audit-Id"])
    [received] = api.verbs.received
    assert (received.verb, received.target.resource.kind, received.target.namespace, received.target.name) == (
        "patch", "Lease", "a", "l",
    )  # fmt: skip
    assert (received.query, received.body, received.content_type) == (
        {"fieldManager": "me"}, b"{}", "application/merge-patch+json",
    )  # fmt: skip
    assert (received.caller.user.name, received.caller.agent) == ("admin", "tool")


async def test_a_refusal_is_a_status(api: Served) -> None:
    api.verbs.fail = ApiError(409, "Conflict", "no", {"kind": "leases"}, {"Retry-After": "3"})
    answer = await api.get(f"{LEASES}/l")
    assert (answer.status, answer.headers["Retry-After"]) == (409, "3")
    assert answer.json["reason"] == "Conflict"
    assert (await api.get(f"{LEASES}/l", Accept="text/html")).status == 406


async def test_a_fault_of_its_own_is_500_and_logged_and_the_server_goes_on(
    api: Served, caplog: pytest.LogCaptureFixture
) -> None:
    api.verbs.fail = ZeroDivisionError("oh")
    answer = await api.get(f"{LEASES}/l")
    assert (answer.status, answer.json["message"]) == (
        500, "Internal error occurred: ZeroDivisionError: oh",
    )  # fmt: skip
    [record] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert (record.getMessage(), bool(record.exc_info)) == (f"GET {LEASES}/l failed", True)
    api.verbs.fail = None
    assert (await api.get(f"{LEASES}/l")).status == 200


async def test_to_ask_as_another_is_501(api: Served) -> None:
    refused = await api.get(LEASES, Impersonate_User="jane")
    assert (refused.status, refused.json["message"]) == (501, "the simulator does not do this: impersonation")


async def test_a_client_that_leaves_ends_its_watch(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await api.watch()
    [stream] = api.watches.streams
    ended = asyncio.Event()
    monkeypatch.setattr(stream, "end", ended.set)
    client.close()
    await asyncio.wait_for(ended.wait(), 60)


async def test_stopped_it_ends_streams_cleanly_and_refuses_connections(api: Served) -> None:
    stream = await api.watch()
    await api.server.stop()
    assert await asyncio.wait_for(stream.content.read(), 60) == b""
    with pytest.raises(aiohttp.ClientConnectorError):
        await api.get("/version")
    assert not api.server.serving
    await api.server.stop()  # once more does no harm


async def test_killed_it_resets_connections_and_comes_back_on_the_same_port_without_its_history(api: Served) -> None:
    api.put("a")
    old = api.store.revision - 1
    stream = await api.watch()
    await events(stream, 1)
    api.server.kill()
    with pytest.raises((aiohttp.ClientPayloadError, ConnectionResetError)):
        await asyncio.wait_for(stream.content.read(), 60)
    with pytest.raises(aiohttp.ClientConnectorError):
        await api.get("/version")
    port = api.port
    await api.start()
    assert api.port == port
    [event] = await events(await api.watch(f"&resourceVersion={old}"), 1)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


async def test_requests_are_audited_before_they_are_answered(api: Served) -> None:
    await api.request("POST", f"{LEASES}?fieldManager=me", b"{}", User_Agent="tool/1.2")
    await api.get(f"{LEASES}/l", Authorization="Bearer wrong")
    created, refused = api.audited()
    assert created == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": created["auditID"],
        "stage": "ResponseComplete",
        "requestURI": f"{LEASES}?fieldManager=me",
        "verb": "create",
        "user": {"username": "admin", "groups": ["system:masters"]},
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "tool/1.2",
        "objectRef": {
            "resource": "leases",
            "namespace": "a",
            "name": "created",
            "apiGroup": "coordination.k8s.io",
            "apiVersion": "v1",
        },
        "responseStatus": {"metadata": {}, "code": 201},
        "requestReceivedTimestamp": "2026-01-02T03:04:05.678901Z",
        "stageTimestamp": "2026-01-02T03:04:05.678901Z",
    }
    assert (refused["user"], refused["responseStatus"]["code"], refused["objectRef"]["name"]) == ({}, 401, "l")


async def test_a_watch_is_audited_when_it_begins_and_when_it_ends(api: Served) -> None:
    stream = await api.watch()
    assert [(event["stage"], event["verb"]) for event in api.audited()] == [("ResponseStarted", "watch")]
    api.watches.end_all()
    await stream.content.read()
    began, ended = api.audited()
    assert (ended["stage"], ended["auditID"]) == ("ResponseComplete", began["auditID"])
