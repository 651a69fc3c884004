"""The API server on the wire: who asks, whether they may, what it leads to, and how it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kube_simulator.errors import ApiError
from tests.unit.kube_simulator.http.http_support import LEASES, Served, served


@pytest_asyncio.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as found:
        yield found


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


async def test_a_client_that_leaves_ends_its_watch(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await api.watch()
    [stream] = api.watches.streams
    ended = asyncio.Event()
    monkeypatch.setattr(stream, "end", ended.set)
    client.close()
    await asyncio.wait_for(ended.wait(), 60)


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
