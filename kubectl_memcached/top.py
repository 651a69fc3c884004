"""`top`: the keys that servers are asked for most, by `watch fetchers mutations` for a while."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import repeat
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from kubectl_memcached.cluster import Results, UserCluster
from kubectl_memcached.objects import ServerPod, ShownMemcached
from kubectl_memcached.server import ServerConnection
from kubectl_memcached.sketch import CAPACITY, SpaceSaving, Tally
from kubectl_memcached.words import (
    CommandOutput,
    count_text,
    key_text,
    printable_text,
    share_text,
    size_text,
    table,
)

BY: Final = ("key", "prefix", "client")
_LINE: Final = re.compile(
    rb"type=(item_get|item_store) key=(\S+) status=(\S+) (?:cmd=\S+ ttl=\S+ )?clsid=\S+ cfd=(\d+) size=(\d+)"
)
_LINE_MAX: Final = 4_096


class TopOptions(NamedTuple):
    """Options of the command line.

    Attributes:
        for_s: for how long servers are watched.
        separator: ends a prefix.
    """

    for_s: float
    by: str
    shown: int
    separator: bytes
    hashed: bool


class WatchedServer(NamedTuple):
    """Result of the watch of a server.

    Attributes:
        lines: how many were read.
        skipped: how many the server left out, as they were not read fast enough.
        peers: the addresses of clients by the numbers of their connections.
    """

    lines: int
    skipped: int
    peers: Mapping[bytes, str]


Group: TypeAlias = tuple[str, bytes]
"""Server, "" for all of them, and key or prefix, quoted as in a URL, client, or number of a connection."""


def read_lines(block: bytes) -> tuple[list[tuple[bytes, ...]], bytes]:
    """Read the whole lines of a block.

    Returns:
        Of each request: item_get or item_store, the key as the server quotes it, what became of it, the number of the
        connection, and the bytes of the value. Then the beginning of the next line.
    """
    end = block.rfind(b"\n") + 1
    rest = block[end:]
    return _LINE.findall(block, 0, end), rest if len(rest) <= _LINE_MAX else b""


def prefix_of(key: bytes, separator: bytes) -> bytes:
    """The beginning of a key up to the first separator, with it; b"" where there is none."""
    head, found, _ = key.partition(separator)
    return head + found if found else b""


async def top(cluster: UserCluster, memcached: ShownMemcached, options: TopOptions) -> CommandOutput:
    """Watch all servers, and show what they were asked for."""
    # Reads, hits, stores, bytes of values.
    sketch: SpaceSaving[Group] = SpaceSaving()
    results = await cluster.each(
        memcached,
        partial(_watched, cluster, memcached, sketch, options),
        progress=lambda: f"watching {memcached.name}: {count_text(sketch.total)} requests so far; Ctrl-C stops",
    )
    tallies = sketch.heaviest(CAPACITY)
    if options.by == "client":
        names = await cluster.names_by_address(memcached.namespace)
        peers = {server: each.peers for server, each in results.found.items()}
        tallies = _by_client(tallies, peers, names)
    return _shown(tallies[: options.shown], sketch.total, results, options)


async def _watched(
    cluster: UserCluster,
    memcached: ShownMemcached,
    sketch: SpaceSaving[Group],
    options: TopOptions,
    pod: ServerPod,
    control: ServerConnection,
) -> WatchedServer:
    """Watch one server, by a connection of its own: one that watches answers nothing else."""
    of_clients = options.by == "client"
    peers = await control.peers() if of_clients else {}
    skipped = -await _skipped(control)
    separator = quote(options.separator, safe="").encode()

    def group(key: bytes, number: bytes) -> Group:
        if options.by == "prefix":
            return "", prefix_of(key, separator)
        return pod.name, number if of_clients else key

    lines = 0
    async with cluster.server(pod, memcached) as watcher:
        begun = await watcher.ask(b"watch fetchers mutations\r\n", lambda read: read if b"\n" in read else None)
        if not begun.startswith(b"OK\r\n"):
            raise watcher.refusal(begun.partition(b"\n")[0])
        loop = asyncio.get_running_loop()
        ends = loop.time() + options.for_s
        with suppress(TimeoutError):
            async with asyncio.timeout_at(ends):
                while loop.time() < ends:
                    requests, begun = read_lines(begun + await watcher.block(None))
                    lines += len(requests)
                    for kind, key, result, number, size in requests:
                        reads = (1, int(result == b"found"), 0) if kind == b"item_get" else (0, 0, 1)
                        sketch.add(group(key, number), 1, (*reads, int(size)))
    if of_clients:
        peers |= await control.peers()
    return WatchedServer(lines, skipped + await _skipped(control), peers)


async def _skipped(control: ServerConnection) -> int:
    """Number of lines that a server has left out since its start, of all watchers."""
    stats = await control.stats_lines()
    return sum(int(stats.get(name, b"0")) for name in (b"log_watcher_skipped", b"log_worker_dropped"))


def _by_client(
    tallies: Iterable[Tally[Group]], peers: Mapping[str, Mapping[bytes, str]], names: Mapping[str, str]
) -> list[Tally[Group]]:
    """Sums of the connections of each client, by the name of its pod where that is known."""
    sums: dict[bytes, list[int]] = {}
    for (server, number), *counts, seen in tallies:
        address = peers.get(server, {}).get(number, "")
        client = (names.get(address, address) or "connections that ended meanwhile").encode()
        former = sums.get(client, repeat(0))
        sums[client] = [one + other for one, other in zip((*counts, *seen), former, strict=False)]
    found = [Tally(("", client), weight, error, tuple(seen)) for client, (weight, error, *seen) in sums.items()]
    return sorted(found, key=lambda each: -each.weight)


def _shown(
    tallies: Iterable[Tally[Group]], total: int, results: Results[WatchedServer], options: TopOptions
) -> CommandOutput:
    by_key = options.by == "key"
    columns = ("REQUESTS", "SHARE", "PER SECOND", "READS FOUND", "STORES", "BYTES OF VALUES")
    headings = ("KEY", "SERVER", *columns) if by_key else (options.by.upper(), *columns)
    rows, entries = [], []
    for (server, name), weight, error, (reads, hits, stores, size) in tallies:
        # All keys of a long tail are estimated to be as frequent as the rarest that is kept.
        if error > weight / 2:
            continue
        if options.by == "client":
            text = printable_text(name)
        else:
            text = key_text(unquote_to_bytes(name), hashed=options.hashed) if name else "(none)"
        approximate = f" (-{count_text(error)})" if error else ""
        rows.append(
            (
                *((text, server) if by_key else (text,)),
                *(f"{count_text(weight)}{approximate}", share_text(weight, total), count_text(weight / options.for_s)),
                *(share_text(hits, reads), count_text(stores), size_text(size)),
            )
        )
        counts = {"requests": weight, "error": error, "reads": reads, "hits": hits, "stores": stores, "bytes": size}
        entries.append({options.by: text, **({"server": server} if by_key else {}), **counts})
    text = table(headings, rows) if rows else "none stands out\n"
    for server, watched in results.found.items():
        text += (
            f"\n{server}: {count_text(watched.lines)} requests seen in {options.for_s:g} s,"
            f" {count_text(watched.skipped)} skipped by the server"
        )
    servers = [{"server": name, "requests": one.lines, "skipped": one.skipped} for name, one in results.found.items()]
    seen = {"seconds": options.for_s, "requests": total, "by": options.by}
    document = {**seen, "top": entries, "servers": servers}
    return CommandOutput(f"{text}\n" if results.found else "", document).with_failures(results.failures)
