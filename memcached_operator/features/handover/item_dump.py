"""Reading of all items of a server, block by block, on the port of its peers."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

from memcached_operator.servers.server_connection import Endpoint, ErrorKind, Failure
from memcached_operator.servers.text_protocol import MALFORMED, MAX_LINE, meta_key

T = TypeVar("T")

_TRY_AGAIN_S: Final = 0.1
_BLOCK_BYTES: Final = 1 << 16
_ITEM: Final = re.compile(rb"key=(\S+) exp=\S+ la=(\d+) cas=(\d+) (?:.*\bsize=(\d+))?")
# While its crawler is busy with something else, or its hash table grows.
_BUSY: Final = (b"BUSY currently processing crawler request", b"ERROR locked try again later")


class Item(NamedTuple):
    """An item as a dump has it.

    Attributes:
        used_s: when it was last used, by the server's clock, in seconds since the epoch.
        size: in bytes, with its key and its header; 0 where the server does not say it.
    """

    quoted: bytes
    used_s: int
    cas: int
    size: int

    @property
    def words(self) -> tuple[bytes, bytes]:
        """The key; see `meta_key`."""
        return meta_key(unquote_to_bytes(self.quoted))


class Connection(NamedTuple):
    """A connection to a server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def answers(self, commands: Sequence[bytes]) -> Sequence[bytes]:
        """The lines that commands are answered, in their order; of those that are quiet, such as are."""
        self.writer.write(b"".join([*commands, b"mn\r\n"]))
        await self.writer.drain()
        found: list[bytes] = []
        while (line := await self.reader.readuntil(b"\r\n")) != b"MN\r\n":
            if not line.strip():
                raise ValueError("an empty line is no answer")
            found.append(line)
        return found


class _DumpError(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.why)
        self.failure = failure


@asynccontextmanager
async def connection(endpoint: Endpoint) -> AsyncIterator[Connection]:
    """A connection until the end of the block."""
    try:
        reader, writer = await asyncio.open_connection(endpoint.address, endpoint.port, limit=_BLOCK_BYTES)
    except OSError as error:
        raise _DumpError(Failure(ErrorKind.UNREACHABLE, os.strerror(error.errno or 0).lower())) from None
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()  # what is yet to be sent is of no use, and would have to be waited for


async def items(endpoint: Endpoint) -> AsyncGenerator[Sequence[Item], None]:
    """Blocks of all items of a server; where it is busy with another dump, that is waited for.

    By its hash table: an item that moves from one of the LRU lists to another would be missed.
    """
    while True:
        async with connection(endpoint) as dump:
            dump.writer.write(b"lru_crawler metadump hash\r\n")
            begun = b""
            is_busy = False
            while not is_busy:
                block = await dump.reader.read(_BLOCK_BYTES)
                *lines, begun = (begun + block).split(b"\n")
                found: list[Item] = []
                for line in lines:
                    if (item := _ITEM.match(line)) is not None:
                        found.append(Item(item[1], int(item[2]), int(item[3]), int(item[4] or 0)))
                    elif line.startswith(_BUSY):
                        is_busy = True
                    elif line == b"END\r":
                        yield found
                        return
                    elif line != b"OK\r":
                        raise _DumpError(_refused(line))
                yield found
                if not is_busy and (not block or len(begun) > MAX_LINE):
                    raise _DumpError(MALFORMED)
        await asyncio.sleep(_TRY_AGAIN_S)


async def within(doing: Awaitable[T], timeout_s: float) -> T | Failure:
    """Return the result of what reads and asks servers, or why one of them did not answer."""
    try:
        async with asyncio.timeout(timeout_s):
            return await doing
    except _DumpError as error:
        return error.failure
    except TimeoutError:
        return Failure(ErrorKind.SILENT, f"not all of its items were read within {timeout_s:g} s")
    except (OSError, asyncio.IncompleteReadError):
        return Failure(ErrorKind.CLOSED, "it closes the connection without an answer")
    except (asyncio.LimitOverrunError, ValueError):
        return MALFORMED


def _refused(line: bytes) -> Failure:
    words = line.rstrip().decode(errors="replace")
    if line.startswith((b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR", b"NOTSTARTED")):
        return Failure(ErrorKind.REFUSED, f"it answers {words[:100]}")
    return MALFORMED
