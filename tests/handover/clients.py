"""Clients of several memcacheds: random commands of all kinds, and what each was answered."""

from __future__ import annotations

import asyncio
import base64
import random
import re
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.handover.model import BITS, MASK, NO_ANSWER, Effect, History, Operation, Status, padded
from tests.handover.servers import HOST, Server, closed

_DEADLINE_S = 5.0
_VALUE = re.compile(rb"VALUE (\S+) (\d+) (\d+)(?: (\d+))?")
# Of a mark: such values are hidden by no mistake.
_PLAIN_SIZE = 13
_OF_COOL = 0.3
"""How many commands are on keys that are seldom used."""


@dataclass(slots=True)
class Ring:
    """Which server a client sends a key to: by the position in its list, as clients of the simple kind do."""

    servers: Sequence[Server]

    def server_of(self, key: str) -> Server:
        return self.servers[zlib.crc32(key.encode()) % len(self.servers)]


@dataclass
class Keys:
    """The keys that clients use now: some often, more seldom. After so many commands, another takes the place of one.

    ``finished`` are all that were in use.
    """

    random: random.Random
    hot: int
    cool: int
    commands: int
    lifetimes: bool = False
    largest: int = 200
    histories: list[History] = field(default_factory=list)
    finished: list[History] = field(default_factory=list)
    _made: int = 0
    _operations: int = 0

    def one(self) -> History:
        while len(self.histories) < self.hot + self.cool:
            self.histories.append(self._new())
        index = self.random.randrange(self.hot)
        if self.cool and self.random.random() < _OF_COOL:
            index = self.hot + self.random.randrange(self.cool)
        if len(self.histories[index].operations) >= self.commands:
            self.finished.append(self.histories[index])
            self.histories[index] = self._new()
        return self.histories[index]

    def all(self) -> list[History]:
        return [*self.finished, *self.histories]

    def next_number(self) -> int:
        self._operations += 1
        return self._operations

    def _new(self) -> History:
        self._made += 1
        kind = self.random.choices(("text", "up", "down", "plain", "binary"), (6, 1, 1, 1, 1))[0]
        return History(f"key-{self._made}", kind)


class Client:
    """One that sends a command, and the next when that is answered."""

    def __init__(self, keys: Keys, ring: Ring, seed: int) -> None:
        self.ring = ring
        self._keys = keys
        self._random = random.Random(seed)
        self._connections: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._tokens: dict[str, Operation] = {}

    async def run(self, ended: asyncio.Event) -> None:
        try:
            while not ended.is_set():
                if not await self._one():
                    await asyncio.sleep(0.02)  # the server is gone; it is tried again
        finally:
            for _, writer in self._connections.values():
                await closed(writer)
            self._connections.clear()

    async def _one(self) -> bool:
        """Send a command; whether it was answered."""
        history = self._keys.one()
        server = self.ring.server_of(history.key)
        command = _Command(history, self._keys, self._random, self._tokens, server.number)
        operation, request = command.made()
        operation.sent_s = time.monotonic()
        history.operations.append(operation)
        try:
            async with asyncio.timeout(_DEADLINE_S):
                reader, writer = await self._connection(server)
                writer.write(request)
                await self._read(reader, operation, command)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            if (connection := self._connections.pop(server.number, None)) is not None:
                await closed(connection[1])
            operation.raw = NO_ANSWER
        operation.answered_s = time.monotonic()
        if operation.cas and operation.value is not None:
            self._tokens[history.key] = operation
        return operation.raw != NO_ANSWER

    async def _connection(self, server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if server.number not in self._connections:
            self._connections[server.number] = await asyncio.open_connection(HOST, server.port)
        return self._connections[server.number]

    async def _read(self, reader: asyncio.StreamReader, operation: Operation, command: _Command) -> None:
        line = await reader.readuntil(b"\r\n")
        operation.raw = line.decode(errors="replace").rstrip()
        if command.quiet and line == b"MN\r\n":
            return
        if found := _VALUE.match(line):
            body = await reader.readexactly(int(found[3]) + 2)
            await reader.readuntil(b"END\r\n")
            operation.value, operation.flags = body[:-2].decode(errors="replace"), int(found[2])
            operation.cas = (found[4] or b"").decode()
            operation.status = Status.DONE if operation.effect is Effect.TOUCHES else Status.FOUND
            return
        words = line.split()
        if words[0] == b"VA":
            operation.value = (await reader.readexactly(int(words[1]) + 2))[:-2].decode(errors="replace")
            words = words[1:]
        command.understand(words)
        if command.quiet:
            await reader.readuntil(b"MN\r\n")


_STATUS = {
    **dict.fromkeys((b"STORED", b"DELETED", b"TOUCHED", b"HD"), Status.DONE),
    **dict.fromkeys((b"END", b"EN", b"NOT_FOUND", b"NF"), Status.MISSED),
    **dict.fromkeys((b"EXISTS", b"EX", b"NOT_STORED", b"NS"), Status.REFUSED),
}


class _Command:
    """A random command on a key; what it would do, its text, and how its answer is read."""

    def __init__(
        self, history: History, keys: Keys, chosen: random.Random, tokens: dict[str, Operation], via: int
    ) -> None:
        self._history, self._keys, self._random, self._tokens, self._via = history, keys, chosen, tokens, via
        self.quiet = False
        self._operation = Operation(keys.next_number(), "", Effect.READS, via, 0.0)
        self._key = history.key
        if history.kind == "binary":
            self._key = base64.b64encode(history.key.encode()).decode()

    def made(self) -> tuple[Operation, bytes]:
        return self._operation, self._made()

    def understand(self, words: Sequence[bytes]) -> None:
        """A line that is no VALUE."""
        operation = self._operation
        if words[0].endswith(b"ERROR"):
            return
        flags = {word[:1].decode(): word[1:].decode() for word in words[1:]}
        if words[0] in _STATUS:
            operation.status = _STATUS[words[0]]
        elif operation.value is not None or words[0].isdigit():
            operation.status = Status.DONE
            if operation.value is None:
                operation.value = words[0].decode()
        if operation.effect is not Effect.SETS:
            operation.flags = int(flags["f"]) if "f" in flags else None
        operation.cas = flags.get("c", "")
        operation.stale = "X" in flags
        if operation.effect is Effect.READS and operation.status is Status.DONE:
            operation.status = Status.FOUND
        if operation.status is Status.REFUSED and operation.needs and operation.token is None:
            operation.status = Status.MISSED  # replace and append: NOT_STORED
        if operation.name == "mg N":
            won = "W" in flags and "X" not in flags
            operation.effect = Effect.SETS if won else Effect.READS
            operation.needs, operation.status = (False, Status.DONE) if won else (None, operation.status)
            if won:
                operation.value = operation.flags = None
            elif operation.status is Status.DONE:
                operation.status = Status.FOUND

    def _made(self) -> bytes:
        kind = self._history.kind
        if not self._history.operations:
            return self._set("set")
        names: dict[str, int] = {"get": 30, "gets": 8, "mg": 16, "set": 10, "delete": 5, "add": 4, "replace": 3}
        names |= {"cas": 8, "touch": 3, "gat": 2, "gats": 2, "mg N": 2, "mg T": 2, "md I": 2}
        if kind in ("up", "down"):
            names |= {"incr": 12, "ma": 5, "gets": 12, "cas": 12}
        elif kind != "plain":
            names |= {"append": 6, "prepend": 4}
        if kind in ("up", "down", "plain"):
            names.pop("mg N")
        name = self._random.choices(list(names), list(names.values()))[0]
        if name in ("set", "add", "replace", "cas"):
            return self._set(name)
        return self._other(name)

    def _meta(self) -> bool:
        self._operation.is_meta = self._history.kind == "binary" or self._random.random() < 0.4
        return self._operation.is_meta

    @property
    def _b(self) -> str:
        return " b" if self._history.kind == "binary" else ""

    def _lifetime(self) -> int:
        return (
            self._random.choice((0, 0, 1, 2, 5, 100)) if self._keys.lifetimes else self._random.choice((0, 100, 1000))
        )

    def _value(self) -> str:
        number, kind = self._operation.number, self._history.kind
        if kind in ("up", "down"):
            return str(number << BITS | (MASK if kind == "down" else 0))
        if kind == "plain":
            return str(number).zfill(_PLAIN_SIZE)
        size = self._random.choice((0, 3, 50, 1000, self._keys.largest))
        return padded(number, size)

    def _set(self, name: str) -> bytes:
        operation = self._operation
        operation.name, operation.effect = name, Effect.SETS
        operation.flags, operation.lifetime_s = self._random.choice((0, 1, 4294967295)), self._lifetime()
        operation.needs = {"add": False, "replace": True, "cas": True}.get(name)
        token = self._tokens.get(self._history.key)
        if name == "cas":
            if token is None:
                operation.name, operation.needs = "set", None
            operation.token = token
        value = self._value()
        if self._meta():
            mode = {"add": " ME", "replace": " MR", "cas": f" C{token.cas}" if token else ""}.get(name, "")
            self.quiet = self._random.random() < 0.1
            words = f"ms {self._key} {len(value)}{self._b} F{operation.flags} T{operation.lifetime_s}{mode} s"
            return f"{words}{' q' if self.quiet else ''}\r\n{value}\r\n{self._end}".encode()
        self.quiet = self._random.random() < 0.05
        number = f" {operation.token.cas}" if operation.token else ""
        words = f"{operation.name} {self._key} {operation.flags} {operation.lifetime_s} {len(value)}{number}"
        return f"{words}{' noreply' if self.quiet else ''}\r\n{value}\r\n{self._end}".encode()

    @property
    def _end(self) -> str:
        return "mn\r\n" if self.quiet else ""

    def _other(self, name: str) -> bytes:
        operation, key, meta = self._operation, self._key, self._meta()
        operation.name = name
        if name == "delete":
            operation.effect = Effect.DELETES
            return (f"md {key}{self._b}" if meta else f"delete {key}").encode() + b"\r\n"
        if name == "md I":
            operation.effect, operation.lifetime_s = Effect.MARKS_STALE, 100
            return f"md {key}{self._b} I T100\r\n".encode()
        if name in ("append", "prepend"):
            return self._join(name)
        if name in ("incr", "ma"):
            return self._count(name)
        if name in ("touch", "gat", "gats", "mg T"):
            operation.effect, operation.lifetime_s, operation.needs = Effect.TOUCHES, self._lifetime(), True
            operation.is_meta = name == "mg T" or (meta and self._history.kind == "binary")
            if operation.is_meta:
                return f"mg {key}{self._b} T{operation.lifetime_s} v f c s\r\n".encode()
            words = f"touch {key} {operation.lifetime_s}" if name == "touch" else f"{name} {operation.lifetime_s} {key}"
            return f"{words}\r\n".encode()
        if name == "mg N":
            operation.is_meta, operation.lifetime_s = True, 100
            return f"mg {key}{self._b} N100 v f c k O{operation.number}\r\n".encode()
        if name == "mg" or meta:
            operation.is_meta, flags = (
                True,
                self._random.choice(("v f c t", "v", "f c s v k", "t", "v R30 f", "h l t f")),
            )
            return f"mg {key}{self._b} {flags}\r\n".encode()
        return f"{name} {key}\r\n".encode()

    def _join(self, name: str) -> bytes:
        operation = self._operation
        operation.effect, operation.needs = Effect.JOINS, True
        value = f",{operation.number}" if name == "append" else f"{operation.number},"
        if operation.is_meta:
            return f"ms {self._key} {len(value)}{self._b} M{'A' if name == 'append' else 'P'}\r\n{value}\r\n".encode()
        return f"{name} {self._key} 0 0 {len(value)}\r\n{value}\r\n".encode()

    def _count(self, name: str) -> bytes:
        operation = self._operation
        operation.effect, operation.needs = Effect.JOINS, True
        used = sum(1 for each in self._history.operations if each.bit)
        operation.bit, down = 1 << used % BITS, self._history.kind == "down"
        if name == "ma":
            operation.is_meta = True
            return f"ma {self._key} D{operation.bit} v c{' MD' if down else ''}\r\n".encode()
        operation.is_meta = False
        return f"{'decr' if down else 'incr'} {self._key} {operation.bit}\r\n".encode()
