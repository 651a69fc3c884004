"""Misbehaviour on request, as a client sees it over a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import orjson
import pytest
import pytest_asyncio

from kube_simulator.faults import Break, Delay, End, Refuse, SendError, Stall
from tests.unit.kube_simulator.http.http_support import LEASES, Served, events, key, served

# Long enough to tell a stall from an answer, which takes a few milliseconds.
MOMENT_S = 0.05
DEADLINE_S = 60.0
BROKEN = (aiohttp.ClientPayloadError, ConnectionResetError)


@pytest_asyncio.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as found:
        yield found


async def test_a_refusal_is_for_the_requests_that_fit_and_as_many_as_were_asked_for(api: Served) -> None:
    api.faults.add(Refuse(429, retry_after_s=2), verb="list", agent="tool/", times=1)
    assert (await api.get(LEASES, User_Agent="other/1")).status == 200
    refused = await api.get(LEASES, User_Agent="tool/1")
    assert (refused.status, refused.headers["Retry-After"]) == (429, "2")
    assert refused.json["reason"] == "TooManyRequests"
    assert (await api.get(LEASES, User_Agent="tool/1")).status == 200
    codes = [event["responseStatus"]["code"] for event in api.audited()]
    assert codes == [200, 429, 200], "the audit log knows of it"


async def test_a_watch_can_be_refused_too(api: Served) -> None:
    api.faults.add(Refuse(410), verb="watch", times=1)
    assert (await api.get(f"{LEASES}?watch=1")).status == 410


async def test_a_delayed_answer_comes_late(api: Served) -> None:
    api.faults.add(Delay(MOMENT_S), resource="leases")
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert (await api.get(LEASES)).status == 200
    assert loop.time() - began >= MOMENT_S


async def test_a_stalled_request_hangs_until_the_rule_is_removed(api: Served) -> None:
    rule = api.faults.add(Stall(), namespace="a", times=1)
    hanging = asyncio.create_task(api.get(LEASES))
    async with asyncio.timeout(DEADLINE_S):
        while not rule.used:  # noqa: ASYNC110 - a rule tells nobody
            await asyncio.sleep(0.001)
    done, _ = await asyncio.wait([hanging], timeout=MOMENT_S)
    assert not done
    assert rule.used == 1
    assert (await api.get(LEASES)).status == 200, "others are answered"
    api.faults.remove(rule)
    assert (await hanging).status == 200


async def test_a_connection_is_cut_in_the_middle_of_an_answer(api: Served) -> None:
    api.verbs.body = b"0123456789"
    api.faults.add(Break(), verb="get", times=1)
    answer = await api.client.get(f"{api.url}{LEASES}/l", headers={"Authorization": "Bearer admin"})
    assert answer.status == 200
    with pytest.raises(BROKEN):
        await answer.read()
    assert (await api.get(f"{LEASES}/l")).status == 200


async def test_a_connection_is_cut_in_the_middle_of_an_event(api: Served) -> None:
    for name in ("a", "b", "c"):
        api.put(name)
    api.faults.add(Break(after_events=2), verb="watch")
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    head = f"GET {LEASES}?watch=1 HTTP/1.1", "Host: x", "Authorization: Bearer admin", "", ""
    writer.write("\r\n".join(head).encode())
    received = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    first, second, half = [line for line in received.splitlines() if line.startswith(b'{"type":"ADDED"')]
    assert [orjson.loads(line)["object"]["metadata"]["name"] for line in (first, second)] == ["a", "b"]
    assert len(half) < len(first) * 2 / 3
    assert not received.endswith(b"0\r\n\r\n"), "no chunk says that this is the end"


@pytest.mark.parametrize("after_events", [0, 1])
async def test_a_watch_ends_cleanly_after_so_many_events(api: Served, after_events: int) -> None:
    api.put("a")
    api.put("b")
    api.faults.add(End(after_events=after_events), verb="watch", times=1)
    stream = await api.watch()
    assert [key(event) for event in await events(stream, after_events)] == [("ADDED", "a")][:after_events]
    assert await stream.content.read() == b""
    whole = await api.watch()
    assert len(await events(whole, 2)) == 2


@pytest.mark.parametrize("after_events", [0, 1])
async def test_a_watch_ends_with_an_error_after_so_many_events(api: Served, after_events: int) -> None:
    api.put("a")
    api.put("b")
    api.faults.add(SendError(code=410, after_events=after_events), verb="watch")
    stream = await api.watch()
    *_, error = await events(stream, after_events + 1)
    assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert await stream.content.read() == b""


async def test_faults_of_watches_leave_other_requests_alone(api: Served) -> None:
    for fault in (End(), SendError()):
        api.faults.add(fault, times=1)
        assert (await api.get(LEASES)).status == 200
