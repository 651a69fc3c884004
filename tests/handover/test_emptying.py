"""A server that was away loses all that it has, also what clients read at that moment, and gives nobody any of it."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Final

import pytest

from memcached_operator.features.handover.move.item_copy import Transferred, transfer
from memcached_operator.servers.server_connection import Endpoint
from tests.handover.changes import started
from tests.handover.scripts import cluster_of, needs_memcached
from tests.handover.servers import HOST, Connection, connected

pytestmark = needs_memcached
ITEMS, BATCH, READERS, ROUNDS = 3_000, 100, 3, 3
KEYS: Final = range(600)


@pytest.mark.parametrize("options", [(), ("-F",)], ids=["default", "without flush_all"])
async def test_no_item_outlives_the_emptying_of_a_server_that_clients_read(
    folder: Path, options: Sequence[str]
) -> None:
    cluster, chosen = cluster_of(folder, 1, options=options), random.Random(1)
    async with started(cluster, 1) as (server,):

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


# As long as a key may be, with bytes that text has not; encoded it would be longer than a command takes.
LONG_KEY: Final = "".join(map(chr, range(1, 10))) + "\r\x7f" + "x" * 239
KEYS_OF_CLIENTS: Final = (("plain", ""), (LONG_KEY, ""), ("YSBi", " b"))
"""Each as a command has it, with the flag that says how it is encoded; the last one has a space."""


async def test_whatever_its_key_an_item_moves_and_what_is_outdated_is_purged(folder: Path) -> None:
    async with started(cluster_of(folder, 1), 2) as (source, target):
        target.update_peers(7, [f"{HOST} {source.peer_port}"])
        await target.confirmed(7)
        async with connected(source.peer_port) as inner, connected(target.peer_port) as moved:
            for key, flag in KEYS_OF_CLIENTS:
                assert await inner.answer(f"ms {key} 3{flag}\r\nold") == "HD\r\n"
            here, there, clients = (
                Endpoint(HOST, port=each) for each in (source.peer_port, target.peer_port, target.port)
            )
            done = await transfer(here, there, clients, 10.0)
            assert isinstance(done, Transferred), done
            for key, flag in KEYS_OF_CLIENTS:
                assert await moved.answer(f"mg {key} v{flag}") == "VA 3\r\nold\r\n"
            assert await source.purge(inf) == len(KEYS_OF_CLIENTS)
            for key, flag in KEYS_OF_CLIENTS:
                assert await inner.answer(f"mg {key} v{flag}") == "EN\r\n"


async def _write(client: Connection, value: str, keys: Sequence[int] = KEYS) -> None:
    for first in range(0, len(keys), BATCH):
        batch = keys[first : first + BATCH]
        answer = await client.answer(*(f"set {key} 0 0 {len(value)}\r\n{value}" for key in batch))
        assert answer == "STORED\r\n" * len(batch)


async def _read(client: Connection) -> dict[int, str]:
    """The values of all keys that have one."""
    words = (await client.answer(*(f"get {key}" for key in KEYS))).split()
    return {int(words[at + 1]): words[at + 4] for at, word in enumerate(words) if word == "VALUE"}


async def _returned(folder: Path, *, in_order: bool) -> list[tuple[int, str]]:
    """Former values that clients get once a server that hung is emptied, while the list has changed.

    Its keys are written, or deleted, by clients of the other list while it hangs and while it is back. Other servers
    read each for the first time within that time.

    Args:
        in_order: others query it once it was emptied and then told of all writes; else as soon as it is back.
    """
    cluster = cluster_of(folder, 1)
    async with (
        started(cluster, 3, filled=True) as (away, other, third),
        connected(other.port) as others,
        connected(third.port) as reader,
        connected(away.port) as former,
    ):
        await _write(former, "old")
        away.signal(signal.SIGSTOP)
        await cluster.leave(away)
        await _write(others, "new")
        gone = range(0, len(KEYS), 3)
        assert "DELETED" in await others.answer(*(f"delete {key}" for key in gone))
        away.signal(signal.SIGCONT)
        if in_order:
            await away.empty()
            await _write(former, "between")
            await _write(others, "new", [key for key in KEYS if key not in gone])
            await others.answer(*(f"delete {key}" for key in gone))  # which it knows nothing of
            await asyncio.sleep(cluster.marker_ttl_s)
            await cluster.join(away, is_queried=False)
            seen = await _read(reader)
            await away.empty()
            await cluster.join(away, is_queried=True)
        else:
            await asyncio.sleep(cluster.marker_ttl_s)
            await cluster.fill()
            seen = await _read(reader)
            await away.empty()
        found = [seen, await _read(reader), await _read(others), await _read(former)]
        return [item for values in found for item in values.items() if item[1] != "new" or item[0] in gone]


async def test_a_server_that_is_back_gives_nobody_what_others_have_changed(folder: Path) -> None:
    assert await _returned(folder, in_order=True) == []


async def test_the_model_finds_that_a_server_is_queried_before_it_is_emptied(folder: Path) -> None:
    assert await _returned(folder, in_order=False)
