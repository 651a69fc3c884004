"""``python -m benchmarks.server_stats.fake_servers COUNT``: so many servers on loopback addresses, in this process.

Each answers `stats` and `stats items` as a memcached 1.6 does. Says `ready` on a line when all listen, and ends with
its standard input.
"""

from __future__ import annotations

import asyncio
import sys
from ipaddress import IPv4Address

from memcached_operator.core.objects.labels import PORT
from memcached_operator.servers.stats_answer import BY_CLASS, FIGURES

_FIRST = int(IPv4Address("127.96.0.1"))
# memcached gives some that nobody keeps.
_OTHERS = 40
# Its items are of so many sizes, of each of which it tells so much besides.
_CLASSES, _OF_EACH = 20, 26


def addresses(count: int) -> list[str]:
    """Where they listen."""
    return [str(IPv4Address(_FIRST + number)) for number in range(count)]


def answer() -> bytes:
    """What one says."""
    figures = {name: 10**7 + place for place, name in enumerate(FIGURES)}
    others = {f"slab_reassign_{number}": 0 for number in range(_OTHERS)}
    items = {
        f"items:{number}:{name}": number
        for number in range(1, _CLASSES + 1)
        for name in (*BY_CLASS, *(f"other_{place}" for place in range(_OF_EACH)))
    }
    stats = [f"STAT {name} {value}" for name, value in (figures | others).items()]
    lines = [
        "STAT version 1.6.45",
        *stats,
        "END",
        *(f"STAT {name} {value}" for name, value in items.items()),
        "END",
        "",
    ]
    return "\r\n".join(lines).encode()


class _Server(asyncio.Protocol):
    def __init__(self, response: bytes) -> None:
        self._response = response

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._response)


async def _serve(count: int) -> None:
    loop, response = asyncio.get_running_loop(), answer()
    server = await loop.create_server(lambda: _Server(response), addresses(count), PORT)
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
