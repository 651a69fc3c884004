"""Clients of servers whose list changes: by a ring and by a modulo, some with the former list, each read judged.

Each key has one writer, and two readers: a client that follows a new list at once, and one that follows late. A reader
must find what the writer was last told to be stored, or something newer.
"""

from __future__ import annotations

import random
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from pymemcache import HashClient
from pymemcache.client.rendezvous import RendezvousHash

from operator_runtime.testing.waiting import until

PORT: Final = 11211
_BATCH: Final = 100
_WRITES: Final = 2
_TIMEOUT_S: Final = 3.0
_READ_ALL_S: Final = 180.0
# The library hashes in Python. Without a pause that alone would take both processors.
_PAUSE_S: Final = 0.02
_RETRY_S: Final = 0.2

Addresses = Callable[[str], str]
"""The address of a server by its name, as DNS has it for pods."""


class Modulo:
    """Chooses the server of a key by the remainder of its hash, as many clients do by default."""

    def __init__(self, nodes: Sequence[str] = ()) -> None:
        self.nodes = list(nodes)

    def add_node(self, node: str) -> None:
        self.nodes.append(node)

    def remove_node(self, node: str) -> None:
        self.nodes.remove(node)

    def get_node(self, key: str) -> str | None:
        return self.nodes[zlib.crc32(key.encode()) % len(self.nodes)] if self.nodes else None


HASHERS: Final[Mapping[str, Any]] = {"ring": RendezvousHash, "modulo": Modulo}


@dataclass
class Counts:
    """What clients have seen since somebody began to count.

    Attributes:
        missed: the numbers of keys that were not found.
        stale: reads of an older value than was stored.
        errors: of requests.
        refused: the numbers of keys whose write failed: nobody has them then.
        batches_s: how long requests of `_BATCH` keys took.
    """

    reads: int = 0
    missed: set[int] = field(default_factory=set)
    misses: int = 0
    stale: int = 0
    errors: int = 0
    refused: set[int] = field(default_factory=set)
    batches_s: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        took = sorted(self.batches_s) or [0.0]
        p50, p99 = (1000 * took[int(len(took) * share)] for share in (0.5, 0.99))
        return (
            f"{self.reads} reads, {100 - 100 * self.misses / max(1, self.reads):.2f} % hits, {len(self.missed)} keys "
            f"missed, {self.stale} stale, {self.errors} errors; {_BATCH} keys in {p50:.1f} ms (p99 {p99:.1f} ms)"
        )


class Keys:
    """The keys of one kind of client, what is in them, and what was seen of that."""

    def __init__(self, hasher: str, count: int) -> None:
        self.hasher = hasher
        self.count = count
        self.stored = [0] * count
        self.counts = Counts()
        self.lock = threading.Lock()

    def name(self, number: int) -> str:
        return f"{self.hasher}-{number:05}"

    def owners(self, servers: Sequence[str]) -> dict[int, str]:
        """The server of each key by a list."""
        ring = HASHERS[self.hasher](list(servers))
        return {number: ring.get_node(self.name(number)) for number in range(self.count)}

    def begin(self) -> Counts:
        """What was seen so far; from now on it is counted anew."""
        with self.lock:
            found, self.counts = self.counts, Counts()
            return found


class Reader(threading.Thread):
    """A client that reads all keys again and again, writes its part of them, and sets what of that it misses."""

    def __init__(self, keys: Keys, part: int, servers: Sequence[str], addresses: Addresses, retry_s: float) -> None:
        super().__init__(daemon=True)
        self._retry_s = retry_s
        self.servers = list(servers)
        self._keys = keys
        self._part = part
        self._addresses = addresses
        self._random = random.Random(part)
        self.ends = threading.Event()
        self.rounds = 0

    def run(self) -> None:
        servers: list[str] = []
        client: HashClient | None = None
        while not self.ends.is_set():
            for first in range(0, self._keys.count, _BATCH):
                if self.ends.is_set():
                    break
                if servers != self.servers or client is None:
                    if client is not None:
                        client.close()
                    servers = self.servers
                    client = connect(servers, self._keys.hasher, self._addresses, self._retry_s)
                self._read(client, range(first, min(first + _BATCH, self._keys.count)))
                time.sleep(_PAUSE_S)
            self.rounds += 1
        if client is not None:
            client.close()

    def fill(self) -> None:
        client = connect(self.servers, self._keys.hasher, self._addresses, self._retry_s)
        for number in range(self._keys.count):
            if self._writes(number):
                self._write(client, number)
        client.close()

    def _writes(self, number: int) -> bool:
        return number % 2 == self._part

    def _write(self, client: HashClient, number: int) -> None:
        value = self._keys.stored[number] + 1
        try:
            if client.set(self._keys.name(number), b"%d" % value, noreply=False):
                self._keys.stored[number] = value
                return
        except Exception:
            pass
        with self._keys.lock:
            self._keys.counts.errors += 1
            self._keys.counts.refused.add(number)
        # Nobody knows whether it is stored: readers may find either.

    def _read(self, client: HashClient, numbers: range) -> None:
        keys, counts = self._keys, self._keys.counts
        least = {number: keys.stored[number] for number in numbers}
        began = time.monotonic()
        try:
            found = client.get_many([keys.name(number) for number in numbers])
        except Exception:
            with keys.lock:
                counts.errors += 1
            return
        took = time.monotonic() - began
        missed = [number for number in numbers if keys.name(number) not in found]
        stale = [number for number in numbers if number not in missed and int(found[keys.name(number)]) < least[number]]
        with keys.lock:
            counts.reads += len(numbers)
            counts.misses += len(missed)
            counts.missed.update(missed)
            counts.stale += len(stale)
            counts.batches_s.append(took)
        for number in (*missed, *self._random.sample(numbers, _WRITES)):
            if self._writes(number):
                self._write(client, number)


def connect(servers: Sequence[str], hasher: str, addresses: Addresses, retry_s: float = _RETRY_S) -> HashClient:
    """A client that raises where a server does not answer, and never moves keys to other servers.

    Args:
        retry_s: for so long after a failure it takes all keys of a server for missing, without a request.
    """

    def getaddrinfo(host: str, port: int, *_: object) -> list[Any]:
        return socket.getaddrinfo(addresses(host), port, type=socket.SOCK_STREAM)

    names = SimpleNamespace(**{name: getattr(socket, name) for name in dir(socket) if not name.startswith("__")})
    names.getaddrinfo = getaddrinfo
    return HashClient(
        servers,
        hasher=HASHERS[hasher],
        socket_module=names,
        connect_timeout=_TIMEOUT_S,
        timeout=_TIMEOUT_S,
        no_delay=True,
        retry_attempts=1 << 30,
        retry_timeout=retry_s,
        default_noreply=False,
    )


@dataclass
class Load:
    """Clients of both kinds, of each one that follows at once and one that is late."""

    keys: Mapping[str, Keys]
    early: Sequence[Reader]
    late: Sequence[Reader]

    def seen(self) -> dict[str, Counts]:
        """What was seen since the last time."""
        return {name: keys.begin() for name, keys in self.keys.items()}

    def follow(self, readers: Sequence[Reader], servers: Sequence[str]) -> None:
        for reader in readers:
            reader.servers = list(servers)

    def read_all(self) -> None:
        """Wait until each client has read each key, by the list that it has now."""
        readers = [*self.early, *self.late]
        # The first round may have begun before.
        goals = [reader.rounds + 2 for reader in readers]
        until(
            "each client has read each key",
            lambda: all(reader.rounds >= goal for reader, goal in zip(readers, goals, strict=True)),
            deadline_s=_READ_ALL_S,
        )


@contextmanager
def load(servers: Sequence[str], addresses: Addresses, count: int, retry_s: float = _RETRY_S) -> Iterator[Load]:
    """Fill the servers with so many keys of each kind, and read and write them until the end of the block.

    Args:
        retry_s: see `connect`.
    """
    keys = {name: Keys(name, count) for name in HASHERS}
    early = [Reader(each, 0, servers, addresses, retry_s) for each in keys.values()]
    late = [Reader(each, 1, servers, addresses, retry_s) for each in keys.values()]
    for reader in (*early, *late):
        reader.fill()
    for reader in (*early, *late):
        reader.start()
    try:
        yield Load(keys, early, late)
    finally:
        for reader in (*early, *late):
            reader.ends.set()
        for reader in (*early, *late):
            reader.join(10)
