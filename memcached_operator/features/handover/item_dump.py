"""Reading of all items of a server, block by block, on the port of its peers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, TypeVar

from memcached_operator.servers.server_connection import Endpoint, ErrorKind, Failure
from memcached_operator.servers.text_protocol import DUMP, DUMP_BUSY, MALFORMED, MAX_LINE, DumpedItem, read_items

T = TypeVar("T")

_TRY_AGAIN_S: Final = 0.1
_BLOCK_BYTES: Final = 1 << 16


class Connection(NamedTuple):
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
    try:
        reader, writer = await asyncio.open_connection(endpoint.address, endpoint.port, limit=_BLOCK_BYTES)
    except OSError as error:
        raise _DumpError(Failure(ErrorKind.UNREACHABLE, os.strerror(error.errno or 0).lower())) from None
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()  # what is yet to be sent is of no use, and would have to be waited for


async def items(endpoint: Endpoint) -> AsyncGenerator[Sequence[DumpedItem], None]:
    """Blocks of all items of a server; where it is busy with another dump, that is waited for."""
    while True:
        async with connection(endpoint) as dump:
            dump.writer.write(DUMP)
            begun = other = b""
            while not other:
                received = await dump.reader.read(_BLOCK_BYTES)
                lines, end, begun = (begun + received).rpartition(b"\n")
                found, other = read_items(lines + end)
                yield found
                if not other and (not received or len(begun) > MAX_LINE):
                    raise _DumpError(MALFORMED)
            if other == b"END":
                return
            if not other.startswith(DUMP_BUSY):
                raise _DumpError(_refused(other))
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
