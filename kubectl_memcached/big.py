"""`big`: the largest items of servers and what each prefix takes, by one read of all their keys."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from kubectl_memcached.cluster import Results, UserCluster
from kubectl_memcached.objects import ServerPod, ShownMemcached
from kubectl_memcached.server import ServerConnection
from kubectl_memcached.sketch import SpaceSaving
from kubectl_memcached.top import prefix_of
from kubectl_memcached.words import (
    CommandOutput,
    count_text,
    key_text,
    seconds_text,
    share_text,
    size_text,
    table,
)
from memcached_operator.servers.text_protocol import DUMP, DUMP_BUSY, DumpedItem, read_items

_TRY_AGAIN_S: Final = 0.2
_TRIES: Final = 150
_LINE_MAX: Final = 4_096


class BigOptions(NamedTuple):
    """Options of the command line."""

    shown: int
    separator: bytes
    hashed: bool


@dataclass
class Census:
    """Items of all servers, as far as they were read.

    Attributes:
        largest: size, server and item, the largest first.
        prefixes: quoted as in a URL, by what they take, and how many items they have.
    """

    options: BigOptions
    items: int = 0
    size: int = 0
    largest: list[tuple[int, str, DumpedItem]] = field(default_factory=list)
    prefixes: SpaceSaving[bytes] = field(default_factory=SpaceSaving)

    def add(self, server: str, items: Sequence[DumpedItem]) -> None:
        """Count a block of items."""
        prefixes: dict[bytes, list[int]] = {}
        separator = quote(self.options.separator, safe="").encode()
        for item in items:
            prefix = prefixes.setdefault(prefix_of(item.quoted, separator), [0, 0])
            prefix[0] += item.size
            prefix[1] += 1
        for name, (size, count) in prefixes.items():
            self.size += size
            self.prefixes.add(name, size, (count,))
        self.items += len(items)
        least = self.largest[-1][0] if len(self.largest) == self.options.shown else 0
        larger = ((item.size, server, item) for item in items if item.size > least)
        self.largest = heapq.nlargest(self.options.shown, chain(self.largest, larger))


async def dump(connection: ServerConnection) -> AsyncGenerator[list[DumpedItem], None]:
    """Read all items of a server, block by block; while it is busy with another dump, that is waited for."""
    for _ in range(_TRIES):
        connection.send(DUMP)
        begun, other = b"", b""
        while not other:
            block = begun + await connection.block()
            end = block.rfind(b"\n") + 1
            begun = block[end:]
            found, other = read_items(block[:end])
            if len(begun) > _LINE_MAX:
                raise connection.error("its answer does not follow memcached's protocol")
            yield found
        if other == b"END":
            return
        if not other.startswith(DUMP_BUSY):
            raise connection.refusal(other)
        await asyncio.sleep(_TRY_AGAIN_S)
    raise connection.error("its crawler is busy with other dumps; try again later")


async def big(cluster: UserCluster, memcached: ShownMemcached, options: BigOptions) -> CommandOutput:
    """Read the keys of all servers, and show which items are large."""
    census = Census(options)
    begun_s = time.monotonic()
    results = await cluster.each(
        memcached,
        partial(_counted, census),
        progress=lambda: f"reading {memcached.name}: {count_text(census.items)} items so far; Ctrl-C stops",
    )
    return _shown(census, results, time.monotonic() - begun_s, options)


async def _counted(census: Census, pod: ServerPod, connection: ServerConnection) -> int:
    items = 0
    async with aclosing(dump(connection)) as blocks:
        async for block in blocks:
            census.add(pod.name, block)
            items += len(block)
    return items


def _shown(census: Census, results: Results[int], took_s: float, options: BigOptions) -> CommandOutput:
    now = time.time()
    items, rows = [], []
    for size, server, item in census.largest:
        key = key_text(item.key, hashed=options.hashed)
        expires = "never" if item.expires_s < 0 else seconds_text(item.expires_s - now)
        rows.append((key, server, size_text(size), expires, seconds_text(now - item.used_s)))
        expiry = None if item.expires_s < 0 else item.expires_s
        items.append({"key": key, "server": server, "bytes": size, "expires": expiry, "used": item.used_s})
    text = table(("KEY", "SERVER", "SIZE", "EXPIRES IN", "LAST USED AGO"), rows)
    prefixes, prefix_rows = [], []
    for prefix, size, error, (count,) in census.prefixes.heaviest(options.shown):
        name = key_text(unquote_to_bytes(prefix), hashed=options.hashed) if prefix else "(none)"
        approximate = "" if not error else f" (-{size_text(error)})"
        prefix_rows.append((name, count_text(count), f"{size_text(size)}{approximate}", share_text(size, census.size)))
        prefixes.append({"prefix": name, "items": count, "bytes": size, "error": error})
    text += "\n" + table(("PREFIX", "ITEMS", "SIZE", "SHARE"), prefix_rows)
    text += f"\n{count_text(census.items)} items of {size_text(census.size)}, read in {took_s:.1f} s\n"
    document = {
        **{"items": census.items, "bytes": census.size, "seconds": round(took_s, 3)},
        **{"largest": items, "prefixes": prefixes},
        "servers": [{"server": server, "items": count} for server, count in results.found.items()],
    }
    return CommandOutput(text if results.found else "", document).with_failures(results.failures)
