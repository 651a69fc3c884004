"""Emptying of servers: once each, until their pods say that it is done."""

from __future__ import annotations

import asyncio

import pytest

from memcached_operator.core.observed.pod_status import NO_PROBLEM
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.features.handover.handover_memory import Emptying
from memcached_operator.features.handover.purge import Purged
from memcached_operator.servers.server_connection import ErrorKind, Failure

SILENT = Failure(ErrorKind.SILENT, "no answer within 1 s")
DONE = Purged(3, 3)


def pod(since_s: int = 1, *, outdated: bool = True) -> PodRecord:
    return PodRecord(
        namespace="shop", name="cache-1", uid="uid-1", resource_version="7", memcached="cache", revision="",
        active=True, ready=True, problem=NO_PROBLEM, ordinal=1, address="10.0.0.1", since_s=since_s,
        outdated_items=outdated,
    )  # fmt: skip


class Port:
    """A server's port of peers.

    Attributes:
        begun: how often it was to be emptied.
        cancelled: how often that was cancelled.
        ended: how often the result was reported to be there.
    """

    def __init__(self) -> None:
        self.begun = self.cancelled = self.ended = 0
        self.answers: asyncio.Queue[Purged | Failure] = asyncio.Queue()
        self.emptying = Emptying()

    async def empty(self, address: str, timeout_s: float) -> Purged | Failure:
        self.begun += 1
        try:
            return await self.answers.get()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    def end(self) -> None:
        self.ended += 1

    async def result(self, server: PodRecord, *, is_last: bool = True) -> Purged | Failure | None:
        found = self.emptying.result(server, self.empty, self.end, is_last=is_last)
        for _ in range(3):
            await asyncio.sleep(0)
        return found


async def test_a_server_is_emptied_once_while_its_pod_says_that_its_items_are_outdated() -> None:
    port = Port()
    assert await port.result(pod()) is None
    assert await port.result(pod()) is None
    port.answers.put_nowait(DONE)
    assert await port.result(pod()) is None
    for _ in range(2):
        port.emptying.keep([pod()])
        assert await port.result(pod()) == DONE
    assert (port.begun, port.ended) == (1, 1)


async def test_a_failure_is_returned_once_and_then_tried_again() -> None:
    port = Port()
    await port.result(pod())
    port.answers.put_nowait(SILENT)
    await port.result(pod())
    assert await port.result(pod()) == SILENT
    assert await port.result(pod()) is None
    assert (port.begun, port.ended) == (2, 1)


async def test_a_server_that_starts_again_meanwhile_is_emptied_anew_and_not_twice_at_once() -> None:
    port = Port()
    await port.result(pod())
    port.emptying.keep([pod(since_s=2)])
    assert await port.result(pod(since_s=2)) is None
    assert (port.begun, port.cancelled, port.ended) == (2, 1, 0)


@pytest.mark.parametrize("done", [False, True])
async def test_a_server_that_another_no_longer_has_as_a_peer_is_emptied_once_more(done: bool) -> None:
    port = Port()
    await port.result(pod())
    if done:
        port.answers.put_nowait(DONE)
        await port.result(pod())
    port.emptying.forget({"10.0.0.2"}, [pod()])
    assert await port.result(pod()) == (DONE if done else None)
    port.emptying.forget({"10.0.0.1"}, [pod()])
    assert await port.result(pod()) is None
    assert (port.begun, port.cancelled) == (2, 0 if done else 1)


async def test_one_whose_pod_says_that_it_is_done_is_forgotten() -> None:
    port = Port()
    await port.result(pod())
    port.answers.put_nowait(DONE)
    await port.result(pod())
    port.emptying.keep([pod(outdated=False)])
    assert await port.result(pod()) is None
    assert port.begun == 2


async def test_a_server_is_emptied_as_soon_as_it_is_back_and_once_more() -> None:
    port = Port()
    for answer, has_emptied in ((SILENT, False), (DONE, True)):
        assert await port.result(pod(), is_last=False) is None
        assert not port.emptying.has_emptied(pod())
        port.answers.put_nowait(answer)
        await asyncio.sleep(0)
        assert await port.result(pod(), is_last=False) in (None, answer)
        assert port.emptying.has_emptied(pod()) is has_emptied
    assert not port.emptying.has_emptied(pod(since_s=2))
    await port.result(pod())
    assert port.begun == 3
    port.emptying.forget({"10.0.0.1"}, [pod()])
    assert not port.emptying.has_emptied(pod())
