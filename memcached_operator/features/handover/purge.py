"""Deletion of items that may be older than what other servers have: of former owners, or all.

A server is queried on the port of its peers, which has no routes: nothing that is deleted there is deleted elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from math import inf
from typing import Any, Final, TypeAlias

from memcached_operator.core.objects.labels import PEERS_PORT
from memcached_operator.features.handover.item_dump import Connection, connection, items, within
from memcached_operator.servers.server_connection import Endpoint, Failure, exchange
from memcached_operator.servers.stats_answer import WHOLE
from memcached_operator.servers.text_protocol import MALFORMED, DumpedItem, first_line, stats_of

PURGE_WITHIN_S: Final = 300.0
"""Limit for one server: some ten million items."""
COARSE_S: Final = 2.0
"""By how much the time of an item's last use may be late: memcached counts whole seconds."""


@dataclass(frozen=True, slots=True)
class Purged:
    items: int
    deleted: int


EmptyServer: TypeAlias = Callable[[str, float], Coroutine[Any, Any, Purged | Failure]]
"""Takes the address of a pod, and seconds for each part of it."""
PurgeServer: TypeAlias = Callable[[str, float, float], Coroutine[Any, Any, Purged | Failure]]
"""Takes the address of a pod, a time in seconds since 1970, and seconds for all of it."""


async def empty(address: str, timeout_s: float, *, port: int = PEERS_PORT) -> Purged | Failure:
    """Delete all items of a server that it has by now.

    `flush_all` takes nearly all at once, however many there are. It keeps what was used within the last second, as
    memcached flushes by the time of last use, so that what is read meanwhile would stay; where a server runs with
    `-F` it is refused. So each item that is left is deleted by its CAS.

    A flushed item is hidden until memcached's crawler takes it, within seconds. A `flush_all` with a delay would show
    it again, which takes a client at the port of the peers: the proxy accepts none.

    Args:
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
        unused_since_s: when the last client of the former list used a server, in seconds since the epoch; infinity for
            all items.
        clock: by which that time is; the server's own may be another.
    """
    server_s: tuple[int | Failure, bytes] = await exchange(Endpoint(address, port=port), b"stats\r\n", _time, timeout_s)
    if isinstance(server_s[0], Failure):
        return server_s[0]
    ahead_s = server_s[0] + 1 - clock()  # it may say so for a second more
    return await within(_purge(Endpoint(address, port=port), unused_since_s + ahead_s + COARSE_S), timeout_s)


def _time(received: bytes) -> int | Failure | None:
    """Time of a server's clock, by the response to `stats`; None while that is not whole."""
    stats = stats_of(received)
    if stats is None or isinstance(stats, Failure):
        return stats
    return int(time_s) if WHOLE.fullmatch(time_s := stats.get(b"time", b"")) else MALFORMED


async def _purge(endpoint: Endpoint, used_until_s: float) -> Purged:
    total = deleted = 0
    async with connection(endpoint) as deleting, aclosing(items(endpoint)) as blocks:
        async for block in blocks:
            total += len(block)
            deleted += await _delete(deleting, [each for each in block if each.used_s <= used_until_s])
    return Purged(total, deleted)


async def _delete(deleting: Connection, old: Sequence[DumpedItem]) -> int:
    """Delete items by their CAS; how many had not changed."""
    if not old:
        return 0
    commands = [b"md %b%b q C%d\r\n" % (*each.words, each.cas) for each in old]
    return len(old) - len(await deleting.answers(commands))
