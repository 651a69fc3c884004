"""A connection to a server: commands of memcached's text protocol, and the lines of those that answer without end."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from kubectl_memcached.port_forward import Tunnel
from kubectl_memcached.words import PluginError, printable_text
from memcached_operator.servers.server_connection import Failure, Login
from memcached_operator.servers.stats_answer import StatsAnswer
from memcached_operator.servers.text_protocol import Stats, answer_of, first_line, is_mark, meta_key, stats_of

T = TypeVar("T")

TIMEOUT_S: Final = 30.0
"""Limit for one answer."""
_BLOCK_BYTES: Final = 1 << 16
_LINE_MAX: Final = 4_096
_PEER: Final = re.compile(rb"^STAT (\d+):addr \w+:\[?([\w.:%]+)\]?:\d+\r$", re.MULTILINE)
# Of a server with some thousands of connections.
_CONNECTIONS_MAX: Final = 1 << 24
_KEY_MAX: Final = 250
_REMEDIES: Final = {
    "watch commands not allowed": "it runs with -W; without it in spec.extraArgs this command works",
    "metadump not allowed": "it runs with -X; without it in spec.extraArgs this command works",
    "flush_all not allowed": "it runs with -F; `flush --prefix ''` deletes items one by one",
}
"""Of refusals, by what a server says."""


class ServerConnection:
    """A connection to one server."""

    def __init__(self, tunnel: Tunnel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tunnel = tunnel
        self._reader, self._writer = reader, writer

    @classmethod
    @asynccontextmanager
    async def over(
        cls, tunnel: Tunnel, context: ssl.SSLContext | None, timeout_s: float
    ) -> AsyncIterator[ServerConnection]:
        """A connection through a tunnel until the end of the block. Raises PluginError: TLS fails."""
        by_tls = {} if context is None else {"ssl": context, "server_hostname": ""}
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(sock=tunnel.near, limit=_BLOCK_BYTES, **by_tls)  # type: ignore[arg-type]
        except (OSError, TimeoutError) as error:
            why = tunnel.failure or getattr(error, "reason", None) or str(error) or "no answer in time"
            raise PluginError(f"{tunnel.pod}: TLS with its server fails: {why}") from None
        try:
            yield cls(tunnel, reader, writer)
        finally:
            writer.transport.abort()

    async def log_in(self, login: Login) -> None:
        """Log in where the server requires that."""
        words = f"{login.user} {login.password}".encode()
        answer = await self.ask(b"set login 0 0 %d\r\n%b\r\n" % (len(words), words), first_line)
        if answer != b"STORED":
            raise self.error(f"it refuses the login of {login.user}; was its Secret changed just now?")

    async def stats(self) -> StatsAnswer:
        """Answers to `stats` and `stats items`."""
        return await self.ask(b"stats\r\nstats items\r\n", answer_of)

    async def stats_lines(self, of: str = "") -> Stats:
        """Answer to `stats`, or to `stats OF`."""
        return await self.ask(f"stats {of}".strip().encode() + b"\r\n", stats_of)

    async def peers(self) -> dict[bytes, str]:
        """The IP addresses of the clients, by the numbers of their connections."""

        def read(received: bytes) -> dict[bytes, str] | None:
            if not received.endswith(b"END\r\n"):
                return None
            return {number: address.decode() for number, address in _PEER.findall(received)}

        return await self.ask(b"stats conns\r\n", read, limit=_CONNECTIONS_MAX)

    async def flush(self) -> None:
        """Have all items expire."""
        answer = await self.ask(b"flush_all\r\n", first_line)
        if answer != b"OK":
            raise self.refusal(answer)

    async def value(self, key: bytes) -> tuple[bytes, int] | None:
        """The value of a key and the seconds that are left of it, -1 for no end; None for none, as for a mark."""
        self._writer.write(b"mg %b%b f t v\r\n" % key_words(key))
        head = (await self._within(self._reader.readuntil(b"\r\n"))).split()
        if head[:1] == [b"EN"]:
            return None
        if head[:1] != [b"VA"] or len(head) < 4:
            raise self.refusal(b" ".join(head))
        size, flags, left_s = (int(each.lstrip(b"ft")) for each in head[1:4])
        value = await self._within(self._reader.readexactly(size + 2))
        return None if is_mark(flags, size) else (value[:-2], left_s)

    async def deleted(self, keys: Sequence[bytes]) -> int:
        """Delete items; how many there were."""
        if not keys:
            return 0
        self._writer.write(b"".join(b"md %b%b q\r\n" % key_words(key) for key in keys) + b"mn\r\n")
        answers = 0
        # A deletion is quiet where there was an item.
        while (line := await self._within(self._reader.readuntil(b"\r\n"))) != b"MN\r\n":
            if line != b"NF\r\n":
                raise self.refusal(line)
            answers += 1
        return len(keys) - answers

    async def ask(self, request: bytes, read: Callable[[bytes], T | Failure | None], *, limit: int = 1 << 18) -> T:
        """Send a request, and read until something can be made of the answer.

        Args:
            read: what came, to what it means; None while it is not whole.
            limit: bytes that an answer may have.

        Raises:
            PluginError: the server fails, or refuses it.
        """
        self._writer.write(request)
        received = b""
        while True:
            found = read(received)
            if isinstance(found, Failure):
                raise self.refusal(found.why.encode())
            if found is not None:
                return found
            if len(received) > limit:
                raise self.error("its answer has no end")
            received += await self.block()

    async def block(self, timeout_s: float | None = TIMEOUT_S) -> bytes:
        """Read what came, at least one byte, after so many seconds at most."""
        block = await self._within(self._reader.read(_BLOCK_BYTES), timeout_s)
        if not block:
            raise self.error("it closed the connection")
        return block

    def send(self, request: bytes) -> None:
        """Send a request whose answer is read by `block`."""
        self._writer.write(request)

    async def _within(self, reading: Awaitable[T], timeout_s: float | None = TIMEOUT_S) -> T:
        try:
            async with asyncio.timeout(timeout_s):
                return await reading
        except TimeoutError:
            raise self.error(f"no answer within {timeout_s:g} s") from None
        except (OSError, EOFError):
            raise self.error("it closed the connection") from None
        except (asyncio.LimitOverrunError, ValueError):
            raise self.error("its answer does not follow memcached's protocol") from None

    def refusal(self, line: bytes) -> PluginError:
        """An error for a line in which a server refuses a command, with the remedy where one is known."""
        words = printable_text(line.strip()[:_LINE_MAX])
        remedy = next((remedy for refused, remedy in _REMEDIES.items() if refused in words), "")
        return self.error(f"{words.removeprefix('it answers ')}{': ' if remedy else ''}{remedy}")

    def error(self, what: str) -> PluginError:
        """An error of this server."""
        return PluginError(f"{self._tunnel.pod}: {self._tunnel.failure or what}")


def key_words(key: bytes) -> tuple[bytes, bytes]:
    """A key as a meta command has it; see `meta_key`. Raises PluginError: no key can be like that."""
    if not 0 < len(key) <= _KEY_MAX:
        raise PluginError(f"a key has 1 to {_KEY_MAX} bytes, and this one has {len(key)}")
    return meta_key(key)
