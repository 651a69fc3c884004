"""Streams: what comes in which order, how they end, and what they do with time.

No test waits for a clock. One whose stream says nothing, against its expectation, runs into the suite's own timeout.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube_simulator.errors import bad_request
from kube_simulator.store.store import Store
from kube_simulator.store.watches import Stream, Watches
from kube_simulator.values import Json
from operator_runtime.testing.clock import FakeClock
from tests.unit.kube_simulator.store.examples import LEASES, NAMESPACES, put, version

STREAMING = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
BOOKMARKS = {"allowWatchBookmarks": "true"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store() -> Store:
    """`b` and `a` of `ns`, and `a` of `other`: revisions 2 to 4."""
    store = Store()
    put(store, "b")
    put(store, "a", labels={"color": "red"})
    put(store, "a", "other")
    return store


@pytest.fixture
def watches(store: Store, clock: FakeClock) -> Watches:
    """A watch that does not say how long lasts an hour."""
    return Watches(store, clock, uniform=lambda low, high: high)


def follow(watches: Watches, namespace: str = "ns", **query: Any) -> Stream:
    return watches.open(LEASES, namespace, {key: str(value) for key, value in query.items()})


async def next_batch(stream: Stream) -> list[tuple[str, str, int]]:
    """Type, name and version of the next batch."""
    return [(type_, each["metadata"].get("name", ""), version(each)) for type_, each in await stream.batch()]


async def rest(stream: Stream) -> list[tuple[str, Json]]:
    events: list[tuple[str, Json]] = []
    while batch := await stream.batch():
        events += batch
    return events


def is_silent(stream: Stream) -> bool:
    """Whether a reader would have to wait."""
    reader = stream.batch()
    try:
        reader.send(None)
    except StopIteration:
        return False
    reader.close()
    return True


# Where it begins.


# What is forgotten.


def gone(revision: int, oldest: int) -> list[tuple[str, Json]]:
    return [
        (
            "ERROR",
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": f"too old resource version: {revision} ({oldest})",
                "reason": "Expired",
                "code": 410,
            },
        )
    ]


async def test_a_version_that_the_store_forgot_is_one_error_410(watches: Watches, store: Store) -> None:
    store.forget()
    assert await rest(follow(watches, resourceVersion=3)) == gone(3, 4)
    assert is_silent(follow(watches, resourceVersion=4))
    assert len(await next_batch(follow(watches, **STREAMING, resourceVersion=1))) == 3, "the present is not forgotten"


async def test_after_a_start_of_the_server_only_what_is_not_older_can_be_watched_from(
    watches: Watches, store: Store
) -> None:
    before = follow(watches, resourceVersion=4)
    watches.begin_serving()
    assert is_silent(follow(watches, resourceVersion=4)), "nothing was written since"
    put(store, "c")
    watches.begin_serving()
    assert await rest(follow(watches, resourceVersion=4)) == gone(4, 5)
    assert await rest(watches.open(NAMESPACES, "", {"resourceVersion": "4"})) == gone(4, 5)
    assert await next_batch(before) == [("ADDED", "c", 5)], "a running watch goes on"


async def test_a_collection_may_be_served_anew_alone(watches: Watches) -> None:
    watches.begin_serving(LEASES.collection)
    assert await rest(follow(watches, resourceVersion=1)) == gone(1, 4)
    assert is_silent(watches.open(NAMESPACES, "", {"resourceVersion": "1"}))


# What it tells.


async def test_a_batch_is_bounded_and_nothing_is_lost(watches: Watches) -> None:
    stream = follow(watches, "", **STREAMING)
    batches = [await stream.batch(3), await stream.batch(3)]
    assert [len(batch) for batch in batches] == [3, 1]
    assert is_silent(stream)


async def test_a_reader_that_is_cancelled_loses_nothing(watches: Watches, store: Store) -> None:
    stream = follow(watches, resourceVersion=4)
    reader = asyncio.create_task(stream.batch())
    await asyncio.sleep(0)
    put(store, "c")
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert await next_batch(stream) == [("ADDED", "c", 5)]


# Time.


async def test_bookmarks_come_every_minute_as_a_sign_of_life_and_after_what_is_pending(
    watches: Watches, store: Store, clock: FakeClock
) -> None:
    stream = follow(watches, resourceVersion=4, **BOOKMARKS)
    silent = follow(watches, resourceVersion=4)
    clock.advance(59)
    assert is_silent(stream)
    clock.advance(1)
    assert await next_batch(stream) == [("BOOKMARK", "", 4)]
    put(store, "elsewhere", "other")
    put(store, "c")
    clock.advance(60)
    assert await next_batch(stream) == [("ADDED", "c", 6), ("BOOKMARK", "", 6)]
    assert await next_batch(silent) == [("ADDED", "c", 6)]


async def test_a_bookmark_before_the_end_is_for_what_was_not_told(
    watches: Watches, store: Store, clock: FakeClock
) -> None:
    idle = follow(watches, resourceVersion=4, timeoutSeconds=10, **BOOKMARKS)
    stream = follow(watches, resourceVersion=3, timeoutSeconds=10, **BOOKMARKS)
    assert is_silent(stream), "what came after 3 was in another namespace"
    clock.advance(8)
    assert is_silent(idle)
    assert await next_batch(stream) == [("BOOKMARK", "", 4)]
    put(store, "c")
    clock.advance(2)
    assert await next_batch(stream) == await next_batch(idle) == [("ADDED", "c", 5)]
    assert await next_batch(stream) == await next_batch(idle) == []


async def test_a_waiting_reader_is_woken_by_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    real, skipped_s = loop.time, [0.0]
    monkeypatch.setattr(loop, "time", lambda: real() + skipped_s[0])
    query = {"resourceVersion": "4", "timeoutSeconds": "100", **BOOKMARKS}
    stream = Watches(store, loop.time).open(LEASES, "empty", query)
    put(store, "unseen")
    for until_s, expected in ((60, [("BOOKMARK", "", 5)]), (100, [])):
        reader = asyncio.create_task(next_batch(stream))
        await asyncio.sleep(0)
        assert not reader.done()
        skipped_s[0] = until_s
        assert await reader == expected


# How it ends.


async def test_a_reader_who_leaves_is_told_no_more(watches: Watches, store: Store) -> None:
    stream = follow(watches, resourceVersion=4)
    put(store, "c")
    stream.end()
    stream.end()
    stream.fail(bad_request("too late"))
    assert (stream.ended, watches.streams) == (True, ())
    put(store, "d")
    assert await next_batch(stream) == [("ADDED", "c", 5)], "what was on its way arrives"
    assert await next_batch(stream) == []


async def test_streams_can_be_ended_on_request_all_or_some(watches: Watches) -> None:
    here, there = follow(watches, "ns", resourceVersion=4), watches.open(NAMESPACES, "", {"resourceVersion": "4"})
    reader = asyncio.create_task(rest(here))
    await asyncio.sleep(0)
    watches.end_all(LEASES.collection)
    assert await reader == []
    assert watches.streams == (there,)
    watches.end_all()
    assert await rest(there) == []
