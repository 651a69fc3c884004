"""What is done to a memcached so that it takes all that it can: fill it, and keep its connections busy."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.sizing.server import Memcached

_CONNECTIONS = 4
# Of what is sent at once. It is made once and renamed: keys that are made one by one would take the most time.
_BLOCK_BYTES = 2**18
_NAME = b"NNNNNNNN"
# Of each round, by the memory for items.
_ROUND = 1 / 8
# Values of all sizes, each so much larger than the one before that no size class is left out: these grow by 1.25.
_FROM_BYTES, _GROWS_BY = 16, 1.1
# A read buffer is of 16 KiB (READ_BUFFER_SIZE); a connection keeps it while a command is not complete.
_BUSY_VALUE_BYTES = 1024
_BUSY_VALUES = 16


def fill(server: Memcached, memory_mib: int, value_bytes: int) -> None:
    """Set values of one size until memcached evicts, and its hash table has stopped to grow."""
    with _Filling(server, value_bytes) as filling:
        while int(server.stats()["evictions"]) < filling.values_of_a_round:
            filling.put(memory_mib * _ROUND)
    server.wait("its hash table grows on and on", lambda: _has_grown(server.stats()))


def put(server: Memcached, mib: float, value_bytes: int) -> None:
    """Set values of one size, so many that their commands are of that length together."""
    with _Filling(server, value_bytes) as filling:
        filling.put(mib)


class _Filling(contextlib.ExitStack):
    """Values of one size, set over several connections at once."""

    def __init__(self, server: Memcached, value_bytes: int) -> None:
        super().__init__()
        count = max(1, _BLOCK_BYTES // (value_bytes + 40))
        prefix = _NAME + b"of%d." % value_bytes
        self._block = b"".join(_set(prefix + b"%04x" % number, value_bytes, b" noreply") for number in range(count))
        self.values_of_a_round = count * _CONNECTIONS
        self._pool = self.enter_context(ThreadPoolExecutor(_CONNECTIONS))
        self._connections = [self.enter_context(server.connect()) for _ in range(_CONNECTIONS)]
        self._begun = 0

    def put(self, mib: float) -> None:
        blocks = max(1, int(mib * 2**20 / len(self._block) / _CONNECTIONS))
        rounds = [
            (connection, self._begun + index * blocks, blocks) for index, connection in enumerate(self._connections)
        ]
        list(self._pool.map(lambda each: _send(self._block, *each), rounds))
        self._begun += blocks * _CONNECTIONS


def _has_grown(stats: Mapping[str, str]) -> bool:
    """Whether the hash table has the size that it is to have for its items (assoc_start_expand)."""
    buckets = 2 ** int(stats["hash_power_level"])
    return stats["hash_is_expanding"] == "0" and int(stats["curr_items"]) <= buckets * 3 // 2


def one_of_each_size(server: Memcached, largest_bytes: int) -> None:
    """One value for each of memcached's size classes."""
    size = float(_FROM_BYTES)
    with server.connect() as connection:
        while size < largest_bytes:
            connection.sendall(_set(b"size%d" % size, int(size)))
            _answer(connection, b"STORED\r\n")
            size *= _GROWS_BY


def fill_with_large(server: Memcached, memory_mib: int, value_bytes: int) -> None:
    """Set values of many pages over several connections at once, twice what fits, and read each that was kept."""
    rounds = 1 + 2 * memory_mib * 2**20 // value_bytes // _CONNECTIONS
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(_CONNECTIONS)]
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            list(pool.map(lambda each: _set_and_get(each, value_bytes, rounds), connections))


def _set_and_get(connection: socket.socket, value_bytes: int, rounds: int) -> None:
    with connection.makefile("rb") as answer:
        for number in range(rounds):
            key = b"large%d.%d" % (connection.fileno(), number)
            connection.sendall(_set(key, value_bytes))
            answer.readline()
            connection.sendall(b"get %s\r\n" % key)
            if answer.readline().startswith(b"VALUE "):
                answer.read(value_bytes + len(b"\r\nEND\r\n"))


@contextlib.contextmanager
def idle(server: Memcached, count: int) -> Iterator[list[socket.socket]]:
    """So many connections, each of which has been answered once."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(count)]
        for connection in connections:
            connection.sendall(b"get idle\r\n")
        for connection in connections:
            _answer(connection, b"END\r\n")
        yield connections


def busy(connections: Sequence[socket.socket]) -> None:
    """Each is in the midst of a value at the same time, with values before it that fill its read buffer."""
    value = b"v" * _BUSY_VALUE_BYTES
    rest = _BUSY_VALUE_BYTES // 2
    for number, connection in enumerate(connections):
        whole = b"".join(_set(b"busy%d.%d" % (number, each), len(value), b" noreply") for each in range(_BUSY_VALUES))
        connection.sendall((whole + _set(b"busy%d" % number, len(value)))[: -rest - len(b"\r\n")])
    for connection in connections:
        connection.sendall(value[:rest] + b"\r\n")
        _answer(connection, b"\r\n")  # that it is stored, or, where all items of its size are in use, that it is not


def _set(key: bytes, value_bytes: int, noreply: bytes = b"") -> bytes:
    return b"set %s 0 0 %d%s\r\n%s\r\n" % (key, value_bytes, noreply, b"v" * value_bytes)


def _send(block: bytes, connection: socket.socket, first: int, count: int) -> None:
    for number in range(first, first + count):
        connection.sendall(block.replace(_NAME, b"%08x" % number))
    connection.sendall(b"mn\r\n")
    _answer(connection, b"MN\r\n")


def _answer(connection: socket.socket, end: bytes) -> None:
    """Read up to the end of an answer."""
    answer = b""
    while not answer.endswith(end):
        received = connection.recv(2**20)
        if not received:
            raise ConnectionError(f"memcached has closed the connection; it said {answer[-80:]!r}")
        answer = answer[-len(end) :] + received
