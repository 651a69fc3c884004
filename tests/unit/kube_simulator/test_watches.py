"""What streams do with time, and what becomes of a reader that is late or cancelled.

No test waits for a clock. One whose stream says nothing, against its expectation, runs into the suite's own timeout.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube_simulator.schema.kubernetes import builtin_resources
from kube_simulator.store.store import Store
from kube_simulator.store.watches import Stream, Watches
from operator_runtime.testing.clock import FakeClock

[LEASES] = [each for each in builtin_resources() if each.plural == "leases"]
BOOKMARKS = {"allowWatchBookmarks": "true"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def put(store: Store, name: str, namespace: str = "ns") -> None:
    store.put(LEASES.collection, {"metadata": {"name": name, "namespace": namespace}})


@pytest.fixture
def store() -> Store:
    """`b` and `a` of `ns`, and `a` of `other`: revisions 2 to 4."""
    store = Store()
    put(store, "b")
    put(store, "a")
    put(store, "a", "other")
    return store


@pytest.fixture
def watches(store: Store, clock: FakeClock) -> Watches:
    return Watches(store, clock)


def follow(watches: Watches, namespace: str = "ns", **query: Any) -> Stream:
    return watches.open(LEASES, namespace, {key: str(value) for key, value in query.items()})


async def next_batch(stream: Stream) -> list[tuple[str, str, int]]:
    """Type, name and version of the next batch."""
    seen = [(type_, each["metadata"]) for type_, each in await stream.batch()]
    return [(type_, metadata.get("name", ""), int(metadata["resourceVersion"])) for type_, metadata in seen]


def is_silent(stream: Stream) -> bool:
    """Whether a reader would have to wait."""
    reader = stream.batch()
    try:
        reader.send(None)
    except StopIteration:
        return False
    reader.close()
    return True


async def test_no_version_but_one_that_is_forgotten_is_an_error_410(watches: Watches, store: Store) -> None:
    store.forget()
    [(type_, error)] = await follow(watches, resourceVersion=3).batch()
    assert (type_, error["code"], error["message"]) == ("ERROR", 410, "too old resource version: 3 (4)")
    assert is_silent(follow(watches, resourceVersion=4))


async def test_a_reader_that_is_cancelled_loses_nothing(watches: Watches, store: Store) -> None:
    stream = follow(watches, resourceVersion=4)
    reader = asyncio.create_task(stream.batch())
    await asyncio.sleep(0)
    put(store, "c")
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert await next_batch(stream) == [("ADDED", "c", 5)]


async def test_what_was_on_its_way_at_the_end_arrives_and_nothing_later(watches: Watches, store: Store) -> None:
    stream = follow(watches, resourceVersion=4)
    put(store, "c")
    watches.end_all()
    put(store, "d")
    assert await next_batch(stream) == [("ADDED", "c", 5)]
    assert await next_batch(stream) == []


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
