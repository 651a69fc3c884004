"""``./dev bench-watch``: what it costs the operator to hold and to follow very many objects.

They are played by a server that has nothing else; the operator is a process of its own, as installed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvloop

from benchmarks.operators import OPERATORS
from benchmarks.process import OperatorDied, OperatorProcess
from benchmarks.watching.capture import Captured, captured
from benchmarks.watching.server import Server
from benchmarks.watching.world import World

_START_DEADLINE_S = 600.0
_REST_DEADLINE_S = 120.0


@dataclass(frozen=True, slots=True)
class State:
    """An operator at rest: CPU since its start, resident memory now and at its highest, and how long it took."""

    cpu_s: float
    rss_mib: float
    peak_mib: float
    rested_s: float


@dataclass(frozen=True, slots=True)
class Followed:
    """What a stream of changes cost.

    Attributes:
        change_ms: CPU for each, in milliseconds.
        writes: status writes for each.
    """

    change_ms: float
    writes: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All that was measured: with nothing there, with all there, and by each kind of change.

    Attributes:
        pod_kib: how long the JSON of a pod is.
        unknown: what the operator asked that is not played.
    """

    empty: State
    full: State
    grown_mib: float
    first_writes: int
    still: Followed
    ready: Followed
    pod_kib: float
    unknown: dict[str, int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code: 1 if it could not be measured."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    count = max(1, options.pods // options.size)
    try:
        found = uvloop.run(_measured(count, options.size, options.changes, options.rate))
    except (OperatorDied, TimeoutError) as error:
        print(f"bench-watch: {str(error) or 'it took too long'}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench-watch: stopped", file=sys.stderr)
        return 1
    print(_table(found, count, options.size, options.changes, options.rate))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev bench-watch", description=__doc__.partition("\n")[0] if __doc__ else ""
    )
    parser.add_argument("--pods", type=int, default=100_000, metavar="N", help="how many there are (100000)")
    parser.add_argument("--size", type=int, default=10, metavar="N", help="of each Memcached (10)")
    parser.add_argument("--changes", type=int, default=5_000, metavar="N", help="of pods, of each kind (5000)")
    parser.add_argument("--rate", type=float, default=250.0, metavar="N", help="of changes, in one second (250)")
    return parser


async def _measured(count: int, size: int, changes: int, per_s: float) -> Figures:
    _say("making one of each")
    made = await captured(size)
    with tempfile.TemporaryDirectory(prefix="bench-watch-") as folder:
        server = Server(Path(folder), World(made, 0))
        await server.start()
        try:
            return await _all(server, made, count, changes, per_s)
        finally:
            await server.stop()


async def _all(server: Server, made: Captured, count: int, changes: int, per_s: float) -> Figures:
    _say("an operator with nothing there")
    async with _operator(server) as (operator, empty):
        pass
    world = server.world = World(made, count)
    _say(f"an operator with {count} Memcacheds and {world.pods} pods there")
    async with _operator(server) as (operator, full):
        first_writes = world.status_writes
        _say(f"{changes} changes that say nothing new")
        still = await _followed(server, operator, changes, per_s, ready=False)
        _say(f"{changes} changes of readiness")
        ready = await _followed(server, operator, changes, per_s, ready=True)
        grown_mib = operator.rss_mib()[0]
    return Figures(
        empty, full, grown_mib, first_writes, still, ready, len(world.pod(0)) / 1024, server.requests.unknown
    )


@asynccontextmanager
async def _operator(server: Server) -> AsyncIterator[tuple[OperatorProcess, State]]:
    """One at rest, which has read all that is there."""
    command = OPERATORS["ours"].prepare(False)(server.account)
    environment = {"PATH": os.defpath, "HOME": str(server.account), **server.environment, **command.environment}
    operator = OperatorProcess(command.arguments, environment, server.account.parent / "operator.log")
    try:
        async with asyncio.TaskGroup() as group:
            watchdog = group.create_task(operator.died())
            async with asyncio.timeout(_START_DEADLINE_S):
                await server.pods_listed()
                rested_s = await operator.rests() - operator.started_s
            yield operator, State(operator.cpu_s, *operator.rss_mib(), rested_s)
            watchdog.cancel()
        await operator.stop()
    except* OperatorDied as died:
        raise died.exceptions[0] from None
    finally:
        operator.kill()


async def _followed(server: Server, operator: OperatorProcess, changes: int, per_s: float, *, ready: bool) -> Followed:
    cpu_s, writes = operator.cpu_s, server.world.status_writes
    await server.play(changes, per_s, ready=ready)
    async with asyncio.timeout(_REST_DEADLINE_S + changes / per_s):
        await operator.rests()
    spent_s = operator.cpu_s - cpu_s
    return Followed(spent_s * 1000 / changes, (server.world.status_writes - writes) / changes)


def _table(found: Figures, count: int, size: int, changes: int, per_s: float) -> str:
    objects = count * (2 + size)
    each_kib = (found.full.rss_mib - found.empty.rss_mib) * 1024 / objects
    each_us = (found.full.cpu_s - found.empty.cpu_s) * 1e6 / objects
    rows = [
        ("a pod as JSON, KiB", f"{found.pod_kib:.1f}"),
        ("RSS with nothing there, MiB", f"{found.empty.rss_mib:.1f}"),
        ("RSS with all there, MiB", f"{found.full.rss_mib:.1f}"),
        ("RSS at its highest, MiB", f"{found.full.peak_mib:.1f}"),
        ("RSS after the changes, MiB", f"{found.grown_mib:.1f}"),
        ("RSS for each object, KiB", f"{each_kib:.2f}"),
        ("start with nothing there: CPU, s", f"{found.empty.cpu_s:.2f}"),
        ("start with all there: CPU, s", f"{found.full.cpu_s:.2f}"),
        ("start with all there: until it rests, s", f"{found.full.rested_s:.2f}"),
        ("start with all there: status writes", f"{found.first_writes}"),
        ("start with all there: CPU for each object, µs", f"{each_us:.1f}"),
    ]
    for name, what in (("that says nothing new", found.still), ("of readiness", found.ready)):
        rows += [
            (f"a change of a pod {name}: CPU, ms", f"{what.change_ms:.3f}"),
            (f"a change of a pod {name}: in one second of CPU", f"{1000 / max(what.change_ms, 1e-6):.0f}"),
            (f"a change of a pod {name}: status writes", f"{what.writes:.2f}"),
        ]
    head = (
        f"{count} Memcacheds of size {size}, as many Deployments, {count * size} pods; "
        f"{changes} changes of each kind, {per_s:g} in one second:"
    )
    width = max(len(label) for label, _ in rows)
    lines = [head, *(f"  {label.ljust(width)}  {value:>10}" for label, value in rows)]
    return "\n".join([*lines, *(f"  asked in vain: {what}, {times} times" for what, times in found.unknown.items())])


def _say(message: str) -> None:
    print(f"bench-watch: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
