"""Copies of all items of a server at another one, which has it as a peer: values go from one to the other.

The operator carries keys alone. It asks for each at the port for clients of the server that is to have it, whose route
then queries its peer. That answers `HD` also for a copy that was shown and not kept, as where a tomb of an older write
came last, so that both are compared by CAS, again and again, until nothing lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from memcached_operator.core.objects.labels import PEERS_PORT, PORT
from memcached_operator.features.handover.item_dump import Connection, connection, items, within
from memcached_operator.servers.server_connection import Endpoint, Failure
from memcached_operator.servers.text_protocol import DumpedItem, is_mark

# The script of the servers has buffers of 16 MiB for values on their way, beyond which what is asked for is a miss.
_UNDER_WAY_BYTES: Final = 4 << 20
# A hundred million items; a server that does not answer is found sooner.
_ALL_WITHIN_S: Final = 3600.0
_UNDER_WAY: Final = 500
_LETTERS: Final = b"cfs"


@dataclass(frozen=True, slots=True)
class Transferred:
    """Result of one pass over a server's items.

    Attributes:
        items: how many there were.
        lacking: how many of their values the other server did not have, and was asked for.
        is_part: only items that were used lately.
    """

    items: int
    lacking: int
    is_part: bool = False


async def transfer(
    source: Endpoint,
    target: Endpoint,
    clients: Endpoint,
    timeout_s: float,
    *,
    used_since_s: float | None = None,
    carried: Callable[[int], None] = lambda _: None,
) -> Transferred | Failure:
    """Have a server copy what it lacks of another's items, which it has as a peer.

    Args:
        source: the port for peers of the server that has the items.
        target: the port for peers of the server that is to have them.
        clients: that one's port for clients.
        timeout_s: for all of it.
        used_since_s: only what was used since then, by the server's clock in seconds since the epoch; None for all.
        carried: takes how many items it has gone over.
    """
    return await within(_transfer(source, target, clients, used_since_s, carried), timeout_s)


async def transfer_all(
    source: str, target: str, used_since_s: float | None, carried: Callable[[int], None]
) -> Transferred | Failure:
    """`transfer` between servers at these addresses, of as many items as there may be."""
    there, clients = (Endpoint(target, port=port) for port in (PEERS_PORT, PORT))
    here = Endpoint(source, port=PEERS_PORT)
    return await transfer(here, there, clients, _ALL_WITHIN_S, used_since_s=used_since_s, carried=carried)


async def _transfer(
    source: Endpoint,
    target: Endpoint,
    clients: Endpoint,
    used_since_s: float | None,
    carried: Callable[[int], None],
) -> Transferred:
    total = lacking = 0
    async with (
        connection(source) as here,
        connection(target) as there,
        connection(clients) as asking,
        aclosing(items(source)) as blocks,
    ):
        async for all_ in blocks:
            block = [each for each in all_ if used_since_s is None or each.used_s >= used_since_s]
            total += len(block)
            for some in _under_way(block):
                absent = [item for item, has in zip(some, await _cas_of(there, some), strict=True) if has < item.cas]
                # A mark is nothing that could be copied, and what has changed since is newer than it was in the dump.
                values = [item for item, has in zip(absent, await _cas_of(here, absent), strict=True) if has]
                lacking += len(values)
                await asking.answers([b"mg %b%b\r\n" % each.words for each in values])
            carried(total)
    return Transferred(total, lacking, used_since_s is not None)


async def _cas_of(server: Connection, some: Sequence[DumpedItem]) -> list[int]:
    """The CAS of each value, 0 where there is none, or a mark."""
    if not some:
        return []
    return [_cas(line) for line in await server.answers([b"mg %b%b c f s\r\n" % each.words for each in some])]


def _cas(line: bytes) -> int:
    words = line.split()
    if words[0] != b"HD":
        return 0
    found = {word[:1]: int(word[1:]) for word in words[1:] if word[:1] in _LETTERS and word[1:].isdigit()}
    return 0 if is_mark(found.get(b"f"), found.get(b"s")) else found.get(b"c", 0)


def _under_way(block: Sequence[DumpedItem]) -> Iterator[Sequence[DumpedItem]]:
    """Parts of a block that are asked for at once."""
    some: list[DumpedItem] = []
    size = 0
    for item in block:
        if some and (len(some) >= _UNDER_WAY or size + item.size > _UNDER_WAY_BYTES):
            yield some
            some, size = [], 0
        some.append(item)
        size += item.size
    if some:
        yield some
