"""Deletion of items that may be older than what other servers have: of former owners, or all.

A server is queried on the port of its peers, which has no routes: nothing that is deleted there is deleted elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from memcached_operator.core.objects.labels import PEERS_PORT
from memcached_operator.servers.server_connection import Endpoint, ErrorKind, Failure, exchange
from memcached_operator.servers.stats_answer import WHOLE
from memcached_operator.servers.text_protocol import MALFORMED, MAX_LINE, first_line, stats_of

PURGE_WITHIN_S: Final = 300.0
"""Limit for one server: some ten million items."""
COARSE_S: Final = 2.0
"""By how much the time of an item's last use may be late: memcached counts whole seconds."""
_TRY_AGAIN_S: Final = 0.1
_BLOCK_BYTES: Final = 1 << 16
_ITEM: Final = re.compile(rb"key=(\S+) exp=\S+ la=(\d+) cas=(\d+) ")
# While its crawler is busy with something else, or its hash table grows.
_BUSY: Final = (b"BUSY currently processing crawler request", b"ERROR locked try again later")
_PLAIN: Final = re.compile(rb"[\x21-\x7e\x80-\xff]+")


@dataclass(frozen=True, slots=True)
class Purged:
    """Result of a purge.

    Attributes:
        items: how many there were.
        deleted: how many of them were deleted.
    """

    items: int
    deleted: int


async def empty(address: str, timeout_s: float, *, port: int = PEERS_PORT) -> Purged | Failure:
    """Delete all items of a server that it has by now.

    `flush_all` takes nearly all at once, however many there are. It keeps what was used within the last second, as
    memcached flushes by the time of last use, so that what is read meanwhile would stay; where a server runs with
    `-F` it is refused. So each item that is left is deleted by its CAS.

    A flushed item is hidden until memcached's crawler takes it, within seconds. A `flush_all` with a delay would show
    it again, which takes a client at the port of the peers: the proxy accepts none.

    Args:
        address: IP address of its pod.
        timeout_s: for the flush, and for the rest.
    """
    flushed, _ = await exchange(Endpoint(address, port=port), b"flush_all\r\n", first_line, timeout_s)
    if isinstance(flushed, Failure):
        return flushed
    return await purge(address, inf, timeout_s, port=port)


async def purge(
    address: str,
    unused_since_s: float,
    timeout_s: float,
    *,
    port: int = PEERS_PORT,
    clock: Callable[[], float] = time.time,
) -> Purged | Failure:
    """Delete the items of a server that were last used before a time, unless they change meanwhile.

    Such an item may be older than the value of the same key at another server: while the key belonged to that one, no
    client sent this one its writes. What was used since then was used by clients of the present list, so is their
    value.

    Args:
        address: IP address of its pod.
        unused_since_s: when the last client of the former list used a server, in seconds since the epoch; infinity for
            all items.
        timeout_s: for all of it.
        clock: by which that time is; the server's own may be another.
    """
    server_s: tuple[int | Failure, bytes] = await exchange(Endpoint(address, port=port), b"stats\r\n", _time, timeout_s)
    if isinstance(server_s[0], Failure):
        return server_s[0]
    ahead_s = server_s[0] + 1 - clock()  # it may say so for a second more
    connected = False
    try:
        async with asyncio.timeout(timeout_s), _connection(address, port) as deleting:
            connected = True
            while True:
                async with _connection(address, port) as dump:
                    found = await _purge(dump, deleting, unused_since_s + ahead_s + COARSE_S)
                if found is not None:
                    return found
                await asyncio.sleep(_TRY_AGAIN_S)
    except TimeoutError:
        kind = ErrorKind.SILENT if connected else ErrorKind.UNREACHABLE
        return Failure(kind, f"not all of its items were read within {timeout_s:g} s")
    except (OSError, asyncio.IncompleteReadError) as error:
        if connected:
            return Failure(ErrorKind.CLOSED, "it closes the connection without an answer")
        return Failure(ErrorKind.UNREACHABLE, os.strerror(getattr(error, "errno", None) or 0).lower())
    except asyncio.LimitOverrunError:
        return MALFORMED


def _time(received: bytes) -> int | Failure | None:
    """Time of a server's clock, by the response to `stats`; None while that is not whole."""
    stats = stats_of(received)
    if stats is None or isinstance(stats, Failure):
        return stats
    return int(time_s) if WHOLE.fullmatch(time_s := stats.get(b"time", b"")) else MALFORMED


class _Connection(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@asynccontextmanager
async def _connection(address: str, port: int) -> AsyncIterator[_Connection]:
    reader, writer = await asyncio.open_connection(address, port, limit=_BLOCK_BYTES)
    try:
        yield _Connection(reader, writer)
    finally:
        writer.transport.abort()  # what is yet to be sent is of no use, and would have to be waited for


async def _purge(dump: _Connection, deleting: _Connection, used_until_s: float) -> Purged | Failure | None:
    """Walk over all items, block by block; None where the server cannot do that now.

    By its hash table: an item that moves from one of the LRU lists to another would be missed.
    """
    dump.writer.write(b"lru_crawler metadump hash\r\n")
    items = deleted = 0
    begun = b""
    while True:
        block = await dump.reader.read(_BLOCK_BYTES)
        *lines, begun = (begun + block).split(b"\n")
        old: list[tuple[bytes, bytes]] = []
        for line in lines:
            if (item := _ITEM.match(line)) is not None:
                items += 1
                if int(item[2]) <= used_until_s:
                    old.append((item[1], item[3]))
            elif line.startswith(_BUSY):
                return None
            elif line != b"OK\r":
                deleted += await _delete(deleting, old)
                return Purged(items, deleted) if line == b"END\r" else _refused(line)
        deleted += await _delete(deleting, old)
        if not block or len(begun) > MAX_LINE:
            return MALFORMED


async def _delete(connection: _Connection, old: Sequence[tuple[bytes, bytes]]) -> int:
    """Delete items, each a key as a dump has it and a CAS; how many had not changed."""
    if not old:
        return 0
    commands = []
    for quoted, cas in old:
        key = unquote_to_bytes(quoted)
        # The key of a command has 250 bytes at most, also where it is encoded.
        words = key if _PLAIN.fullmatch(key) else b64encode(key) + b" b"
        commands.append(b"md %b q C%b\r\n" % (words, cas))
    connection.writer.write(b"".join([*commands, b"mn\r\n"]))
    await connection.writer.drain()
    changed = 0
    while (await connection.reader.readuntil(b"\r\n")) != b"MN\r\n":
        changed += 1
    return len(old) - changed


def _refused(line: bytes) -> Failure:
    words = line.rstrip().decode(errors="replace")
    if line.startswith((b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR", b"NOTSTARTED")):
        return Failure(ErrorKind.REFUSED, f"it answers {words[:100]}")
    return MALFORMED
