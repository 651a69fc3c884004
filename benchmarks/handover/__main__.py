"""``./dev bench-fills``: the table of costs in docs/performance.md, measured on this machine."""

from __future__ import annotations

import argparse
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from benchmarks.handover.servers import HOST, Server, ServerError, confirm, started
from lab.cache import BuildError
from memcached_operator.features.handover import handover_proxy

# How many misses may ask other servers, at once and in a second, as the script has it.
_BOUND = "10000, 2000"
_CONNECTIONS = 4
_PIPELINED = 50
_VALUE = b"x" * 1_000
_HEAD = (
    "| servers | set, µs | hit, µs | miss, µs | a request alone, p50 / p99 of set, µs | of hit | of miss |\n"
    "|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Request:
    """A kind of request. ``text`` makes the one of a number."""

    text: Callable[[int], bytes]
    end: bytes


SET = Request(lambda number: b"set key-%d 0 0 %d\r\n%b\r\n" % (number % 1_000, len(_VALUE), _VALUE), b"STORED\r\n")
HIT = Request(lambda number: b"get key-%d\r\n" % (number % 1_000), b"END\r\n")
MISS = Request(lambda number: b"get none-%d-%d\r\n" % (time.monotonic_ns(), number), b"END\r\n")
REQUESTS = (SET, HIT, MISS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit code: 1 if a server could not be measured."""
    parser = argparse.ArgumentParser(
        prog="./dev bench-fills", description="Measure what servers take for a request while they hand over."
    )
    parser.add_argument("--requests", type=int, default=20_000, metavar="N", help="of each kind, for a cell (20000)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of which the least is shown (3)")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(_HEAD, flush=True)
    try:
        for name, servers in _situations():
            cells = [_cpu_us(servers, each, options.requests, options.rounds) for each in REQUESTS]
            alone = [_alone_us(servers[0], each, options.requests // 10) for each in REQUESTS]
            times = (f"{round(p50)} / {round(p99)}" for p50, p99 in alone)
            print(f"| {name} | {' | '.join([*(f'{cell:.1f}' for cell in cells), *times])} |", flush=True)
    except (BuildError, ServerError, OSError) as error:
        print(f"bench-fills: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 1
    return 0


def _situations() -> Iterator[tuple[str, list[Server]]]:
    """Servers in each situation of a hand-over; requests go to the first."""
    with started(1) as servers:
        yield "plain", servers
    unbounded, bounded = _script("1000000000, 0"), _script("0, 0")
    with started(3, unbounded) as servers:
        yield "with the proxy, at rest", servers
        confirm(servers, 1, servers)
        yield "3 that hand over", servers
        confirm(servers, 2, ())
        yield "3 afterwards, until they restart", servers
    with started(10, unbounded) as servers:
        confirm(servers, 1, servers)
        yield "10 that hand over", servers
    with started(10, bounded) as servers:
        confirm(servers, 1, servers)
        yield "10 that hand over, when misses no longer ask", servers


def _script(bound: str) -> str:
    """The script with another bound, so that each miss of the many asks, or none does."""
    text = handover_proxy.lua()
    if text.count(_BOUND) != 1:
        raise ServerError(f"the script has no bound of {_BOUND}")
    return text.replace(_BOUND, bound)


def _cpu_us(servers: Sequence[Server], request: Request, count: int, rounds: int) -> float:
    """The processor time of all servers for a request, the least of all rounds."""
    return min(_round_us(servers, request, count) for _ in range(rounds))


def _round_us(servers: Sequence[Server], request: Request, count: int) -> float:
    connections = [socket.create_connection((HOST, servers[0].port)) for _ in range(_CONNECTIONS)]
    batch = _CONNECTIONS * _PIPELINED
    try:
        before_ns = sum(server.cpu_ns for server in servers)
        for first in range(0, count, batch):
            for index, connection in enumerate(connections):
                begin = first + index * _PIPELINED
                texts = [request.text(number) for number in range(begin, begin + _PIPELINED)]
                connection.sendall(b"".join([*texts, b"mn\r\n"]))
            for connection in connections:
                _read(connection, b"MN\r\n")
        sent = -(-count // batch) * batch
        return (sum(server.cpu_ns for server in servers) - before_ns) / sent / 1_000
    finally:
        for connection in connections:
            connection.close()


def _alone_us(server: Server, request: Request, count: int) -> tuple[float, float]:
    """Median and 99th percentile of the time that one request after the other takes."""
    took: list[float] = []
    with closing(socket.create_connection((HOST, server.port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(count):
            began = time.perf_counter()
            connection.sendall(request.text(number))
            _read(connection, request.end)
            took.append((time.perf_counter() - began) * 1e6)
    took.sort()
    return took[len(took) // 2], took[len(took) * 99 // 100]


def _read(connection: socket.socket, end: bytes) -> None:
    received = b""
    while not received.endswith(end):
        block = connection.recv(1 << 18)
        if not block:
            raise ServerError("memcached: it closed a connection")
        received = received[-len(end) :] + block


if __name__ == "__main__":
    sys.exit(main())
