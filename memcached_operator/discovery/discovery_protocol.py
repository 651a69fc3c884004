"""Pure: the protocol of auto discovery, by which clients of managed caches are given the list of servers.

It is a part of memcached's text protocol: `config get cluster`, and for older clients an item of the same content.
"""

from __future__ import annotations

from typing import Final

ITEM: Final = "AmazonElastiCache:cluster"
"""Key of the item by which clients read the list where `config` is no command."""
MAX_LINE: Final = 2_048
"""Bytes of the longest request; memcached's own limit."""
# The first release whose clients ask by `config get cluster`; they query it before they do.
_VERSION: Final = b"1.4.14"
_DIGITS: Final = 10  # of 32 bits


def version_of(servers: bytes) -> int:
    """The version of a list, the number in its first line; 0 where it has none."""
    first = servers.partition(b"\n")[0]
    return int(first) if first.isdigit() and len(first) <= _DIGITS else 0


def answer(request: bytes, servers: bytes) -> bytes | None:
    """The answer to a line, None where the connection is to be closed.

    A list of no servers has no answer: clients keep the servers that they know, and try again.

    Args:
        request: without its end.
        servers: `VERSION\\nHOST|IP|PORT HOST|IP|PORT\\n`.
    """
    match request.split():
        case [b"config", b"get", b"cluster"]:
            head = b"CONFIG cluster 0 %d" % len(servers)
        case [b"get", key] if key == ITEM.encode():
            head = b"VALUE %b 0 %d" % (key, len(servers))
        case [b"gets", key] if key == ITEM.encode():
            head = b"VALUE %b 0 %d %d" % (key, len(servers), version_of(servers))
        case [b"version"]:
            return b"VERSION %b\r\n" % _VERSION
        case [b"stats"]:
            return b"STAT version %b\r\nEND\r\n" % _VERSION
        case [b"quit"]:
            return None
        case _:
            return b"ERROR\r\n"
    return b"%b\r\n%b\r\nEND\r\n" % (head, servers) if b"|" in servers else None
