"""`flush`: all items of a Memcached, or those of a prefix, server after server, so that a backend bears the misses."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Final, NamedTuple

from kubectl_memcached.big import dump
from kubectl_memcached.cluster import UserCluster
from kubectl_memcached.objects import ServerPod, ShownMemcached
from kubectl_memcached.server import ServerConnection
from kubectl_memcached.words import (
    CommandOutput,
    PluginError,
    count_text,
    printable_text,
    seconds_text,
    share_text,
    show_progress,
    size_text,
    table,
)

# Between two looks at how many reads there were.
_RATE_S: Final = 1.0


class FlushOptions(NamedTuple):
    """Options of the command line.

    Attributes:
        pause_s: after each server, in which clients fill it again.
        prefix: of the keys that are deleted; None for all, by `flush_all`.
        confirmed: nobody is asked.
    """

    pause_s: float
    prefix: bytes | None
    confirmed: bool


class Load(NamedTuple):
    """Items of a server, and its reads since its start."""

    items: float
    size: float
    hits: float
    misses: float

    @staticmethod
    async def of(connection: ServerConnection) -> Load:
        """Ask a server."""
        number = (await connection.stats()).number
        return Load(number("curr_items"), number("bytes"), number("get_hits"), number("get_misses"))


async def flush(cluster: UserCluster, memcached: ShownMemcached, options: FlushOptions) -> CommandOutput:
    """Flush one server after the other, and report what each missed afterwards.

    Raises:
        PluginError: nothing was flushed, or not all; the message names where it stopped.
    """
    await cluster.check_at_rest(memcached)
    pods = await cluster.pods(memcached)
    # All of them before the first is flushed: one that cannot be spoken to is better known by then.
    async with AsyncExitStack() as stack:
        servers = {pod.name: await stack.enter_async_context(cluster.server(pod, memcached)) for pod in pods}
        await _confirm(cluster, memcached, servers, options)
    done: list[str] = []
    midst, reports = "", []
    try:
        for place, pod in enumerate(pods, 1):
            await cluster.check_at_rest(memcached)
            # One that idled during the pauses of the others, some server or proxy would have closed.
            async with cluster.server(pod, memcached) as connection:
                before = await Load.of(connection)
                midst = f" in the midst of {pod.name}"
                if options.prefix is None:
                    await connection.flush()
                    count = int(before.items)
                else:
                    count = await _deleted(cluster, memcached, pod, connection, options.prefix)
                done.append(pod.name)
                midst = ""
                _say(f"{pod.name}: {count_text(count)} items flushed ({place} of {len(pods)})")
                since = await _pause(pod, connection, options.pause_s)
            reads = since.hits + since.misses
            _say(
                f"{pod.name}: {count_text(since.misses)} misses, {share_text(since.misses, reads)} of its reads in"
                f" the {options.pause_s:g} s since; it has {count_text(since.items)} items now"
            )
            figures = {"misses": int(since.misses), "reads": int(reads), "itemsNow": int(since.items)}
            reports.append({"server": pod.name, "flushed": count, **figures})
    finally:
        show_progress("")
        if left := [pod.name for pod in pods if pod.name not in done]:
            _say(f"stopped{midst}: flushed are {', '.join(done) or 'none'}; not flushed: {', '.join(left)}")
    return CommandOutput(f"all {len(pods)} servers are flushed\n", {"servers": reports})


def _say(line: str) -> None:
    """Report progress, also where it is no terminal: it takes minutes, and what was done counts."""
    show_progress("")
    print(line, file=sys.stderr, flush=True)


async def _confirm(
    cluster: UserCluster, memcached: ShownMemcached, servers: Mapping[str, ServerConnection], options: FlushOptions
) -> None:
    before = await asyncio.gather(*map(Load.of, servers.values()))
    await asyncio.sleep(_RATE_S)
    after = await asyncio.gather(*map(Load.of, servers.values()))
    rows = [
        (name, count_text(now.items), size_text(now.size), count_text((now.hits - then.hits) / _RATE_S))
        for name, then, now in zip(servers, before, after, strict=True)
    ]
    what = (
        "all items" if options.prefix is None else f"the items whose keys begin with {printable_text(options.prefix)!r}"
    )
    sys.stderr.write(
        f"{table(('SERVER', 'ITEMS', 'SIZE', 'HITS PER SECOND'), rows)}\n"
        f"This deletes {what} of {memcached.name} in namespace {memcached.namespace} ({cluster.description}),\n"
        f"server after server, {options.pause_s:g} s apart ({seconds_text(options.pause_s * len(servers))} in all).\n"
        "The hits of a flushed server are misses, which a backend has to answer, until it is filled again.\n"
    )
    sys.stderr.flush()
    if options.confirmed:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise PluginError("nobody can be asked here, as standard input is no terminal; --yes flushes without")
    sys.stderr.write(f"Type {memcached.name} to go on: ")
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not typed.done():
            typed.set_result(sys.stdin.readline())

    loop.add_reader(sys.stdin, read)
    try:
        answer = await typed
    finally:
        loop.remove_reader(sys.stdin)
    if answer.strip() != memcached.name:
        raise PluginError("nothing was flushed")


async def _deleted(
    cluster: UserCluster, memcached: ShownMemcached, pod: ServerPod, connection: ServerConnection, prefix: bytes
) -> int:
    """Delete the keys of a server that begin so; how many there were."""
    deleted = 0
    async with cluster.server(pod, memcached) as reading, aclosing(dump(reading)) as blocks:
        async for block in blocks:
            keys: Sequence[bytes] = [item.key for item in block if item.key.startswith(prefix)]
            deleted += await connection.deleted(keys)
            show_progress(f"{pod.name}: {count_text(deleted)} items deleted so far")
    return deleted


async def _pause(pod: ServerPod, connection: ServerConnection, pause_s: float) -> Load:
    """Wait; the reads of the server meanwhile, and its items at the end."""
    begun = now = await Load.of(connection)
    loop = asyncio.get_running_loop()
    ends = loop.time() + pause_s
    while (left_s := ends - loop.time()) > 0:
        show_progress(
            f"{pod.name}: {count_text(now.misses - begun.misses)} misses so far, {count_text(now.items)} items again;"
            f" {left_s:.0f} s left; Ctrl-C stops"
        )
        await asyncio.sleep(min(left_s, _RATE_S))
        now = await Load.of(connection)
    return Load(now.items, now.size, now.hits - begun.hits, now.misses - begun.misses)
