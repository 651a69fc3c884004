"""A server that was away loses all that it has, also what clients read at that moment."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.handover.scripts import cluster_of, needs_memcached
from tests.handover.servers import connected

pytestmark = needs_memcached
ITEMS, BATCH, READERS, ROUNDS = 3_000, 100, 3, 3


@pytest.mark.parametrize("options", [(), ("-F",)], ids=["default", "without flush_all"])
async def test_no_item_outlives_the_emptying_of_a_server_that_clients_read(
    folder: Path, options: Sequence[str]
) -> None:
    cluster, chosen = cluster_of(folder, 1, options=options), random.Random(1)
    try:
        await cluster.start(1)
        (server,) = cluster.servers

        async def read(ended: asyncio.Event) -> None:
            async with connected(server.port) as client:
                while not ended.is_set():
                    await client.answer(*(f"get {chosen.randrange(ITEMS)}" for _ in range(10)))

        for _ in range(ROUNDS):
            async with connected(server.peer_port) as inner:
                for first in range(0, ITEMS, BATCH):
                    await inner.answer(*(f"set {name} 0 0 3\r\nold" for name in range(first, first + BATCH)))
                ended = asyncio.Event()
                async with asyncio.TaskGroup() as readers:
                    for _ in range(READERS):
                        readers.create_task(read(ended))
                    await server.empty()
                    ended.set()
                assert await inner.answer(*(f"get {name}" for name in range(ITEMS))) == "END\r\n" * ITEMS
    finally:
        await cluster.stop()
