"""Reads of keys that no server has: each queries all others, so that only so many of them do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from operator_runtime.testing.waiting import async_eventually
from tests.handover.changes import Cluster, started
from tests.handover.scripts import changed, cluster_of, needs_memcached
from tests.handover.servers import connected

pytestmark = needs_memcached
AT_ONCE, A_SECOND = 100, 5
MISSES, BATCH = 1_000, 20


async def _queries(cluster: Cluster) -> Sequence[int]:
    """How often each peer of the first server was queried."""
    return [await peer.count("cmd_get") for peer in cluster.servers[1:]]


async def test_reads_of_what_nobody_has_query_so_often_and_no_more(folder: Path) -> None:
    script = changed("10000, 2000", f"{AT_ONCE}, {A_SECOND}")
    cluster = cluster_of(folder, 1, script=script)
    async with (
        started(cluster, 3, filled=True) as (first, second, _),
        connected(first.port) as client,
        connected(first.peer_port) as inner,
        connected(second.peer_port) as peer,
    ):
        await peer.answer("set moved 7 0 5\r\nvalue", "set number 0 0 1\r\n1", "set text 0 0 1\r\na")
        before, began_s = await _queries(cluster), time.monotonic()
        for batch in range(0, MISSES, BATCH):
            names = range(batch, batch + BATCH)
            assert await client.answer(*(f"get none-{name}" for name in names)) == "END\r\n" * BATCH
        queries = [now - then for now, then in zip(await _queries(cluster), before, strict=True)]
        most = AT_ONCE + BATCH + A_SECOND * (time.monotonic() - began_s)

        assert all(AT_ONCE <= each <= most for each in queries), (queries, most)
        assert await inner.answer(f"mg none-{MISSES - 1} f") == "EN\r\n"  # no mark says that peers have nothing
        assert await client.answer("incr number 1", "append text 0 0 1\r\nb") == "2\r\nSTORED\r\n"
        await async_eventually(
            lambda: client.answer("get moved"),
            lambda answer: answer == "VALUE moved 7 5\r\nvalue\r\nEND\r\n",
            what="a value of a peer is found again",
        )


async def test_reads_of_what_was_deleted_elsewhere_ask_so_often_and_no_more(folder: Path) -> None:
    cluster = cluster_of(folder, 1, script=changed("10000, 2000", f"{AT_ONCE}, 0"))
    async with (
        started(cluster, 2, filled=True),
        connected(cluster.servers[0].port) as client,
        connected(cluster.servers[1].port) as other,
    ):
        await other.answer(*(f"delete gone-{number}" for number in range(BATCH)))
        before = await _queries(cluster)
        for _ in range(MISSES // BATCH):
            assert await client.answer(*(f"get gone-{number}" for number in range(BATCH))) == "END\r\n" * BATCH

        assert [now - then for now, then in zip(await _queries(cluster), before, strict=True)] == [AT_ONCE]


async def test_values_that_a_peer_has_are_queried_without_end(folder: Path) -> None:
    async with (
        started(cluster_of(folder, 1, script=changed("10000, 2000", "1, 0")), 2, filled=True) as (first, second),
        connected(first.port) as client,
        connected(second.peer_port) as peer,
    ):
        await peer.answer(*(f"set key-{number} 0 0 1\r\n1" for number in range(BATCH)))

        answers = await client.answer(*(f"get key-{number}" for number in range(BATCH)))

        assert answers.count("VALUE") == BATCH
        assert await first.count("user_handover_filled", "stats proxy") == BATCH
