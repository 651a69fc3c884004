"""``./dev bench-stats``: what it costs the operator to query its servers, and to show what they report.

The servers are of another process. The part that is measured is the operator's own: its poller on caches that hold as
many pods, and its scrapes.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from aiohttp.test_utils import make_mocked_request

from benchmarks.server_stats.fake_servers import addresses
from memcached_operator.core.observed.caches import Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pod_status import NO_PROBLEM
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.servers.metric_families import PATH, server_families
from memcached_operator.servers.polling import Poller
from memcached_operator.servers.stats_cache import AnswerVerdict, StatsCache
from operator_runtime import Channel, Metrics, ObjectKey, Store
from operator_runtime.serving.scrape import Scrapes

_SIZE = 3
_SCRAPES = 3
_MIB = 1 << 20
_PAGE = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured.

    Attributes:
        share: of one core, while servers are asked.
        query_ms: CPU for each time that a server is asked, in milliseconds.
        grown_kib: resident memory for each server, in KiB.
        scrape_s: CPU of a scrape, in seconds.
        scrape_mib: its answer, in MiB.
        silent: servers of which no answer is there in the end.
    """

    share: float
    query_ms: float
    grown_kib: float
    scrape_s: float
    scrape_mib: float
    silent: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code: 1 if a server did not answer."""
    parser = argparse.ArgumentParser(
        prog="./dev bench-stats", description=__doc__.partition("\n")[0] if __doc__ else ""
    )
    parser.add_argument("--servers", type=int, default=1_000, metavar="N", help="how many there are (1000)")
    parser.add_argument("--interval", type=float, default=30.0, metavar="S", help="how often each is queried (30)")
    parser.add_argument("--intervals", type=int, default=2, metavar="N", help="for how long it is measured (2)")
    options = parser.parse_args(arguments)
    _raise_the_limit_of_files()
    with _servers(options.servers):
        found = asyncio.run(_measured(options.servers, options.interval, options.intervals))
    print(f"{options.servers} servers, each queried every {options.interval:g} s, for {options.intervals} intervals:")
    print(f"  CPU of the queries       {found.share:.2%} of a core, {found.query_ms:.2f} ms each time")
    print(f"  resident memory          {found.grown_kib:.1f} KiB for each server")
    print(f"  a scrape of {PATH}  {found.scrape_s:.2f} s of CPU, {found.scrape_mib:.1f} MiB")
    if found.silent:
        print(f"  {found.silent} did not answer")
    return int(found.silent > 0)


async def _measured(servers: int, interval_s: float, intervals: int) -> Figures:
    caches, pods = _caches(servers)
    stats_cache, changed = StatsCache(), Channel[ObjectKey]()

    def read_stats(key: ObjectKey) -> None:
        stats_cache.read(caches.pods_of(key))

    changed.listen(read_stats)
    poller = Poller(caches, stats_cache, changed, interval_s=interval_s)
    before = _resident()
    began_s, cpu_s = time.monotonic(), time.process_time()
    running = asyncio.create_task(poller.run())
    await asyncio.sleep(intervals * interval_s)
    cpu_s, took_s = time.process_time() - cpu_s, time.monotonic() - began_s
    poller.stop()
    await running
    grown = _resident() - before
    silent = sum(each.verdict is not AnswerVerdict.ANSWERING for each in stats_cache.read(pods))
    metrics = Metrics()
    metrics.add(lambda: server_families(caches.pods.values(), stats_cache.of))
    scrapes, get = Scrapes({PATH: metrics}), make_mocked_request("GET", PATH)
    scraping_s, size = time.process_time(), 0
    for _ in range(_SCRAPES):
        size = len((await scrapes.answer(get)).body)
    scraping_s = time.process_time() - scraping_s
    return Figures(
        share=cpu_s / took_s,
        query_ms=cpu_s / (intervals * servers) * 1_000,
        grown_kib=grown / servers / 1_024,
        scrape_s=scraping_s / _SCRAPES,
        scrape_mib=size / _MIB,
        silent=silent,
    )


def _caches(servers: int) -> tuple[Caches, list[PodRecord]]:
    """Memcacheds of three servers each."""
    caches, pods = Caches(Store(), Store(), Store(), Store(), {}), []
    caches.index()
    for number, address in enumerate(addresses(servers)):
        name = f"cache-{number // _SIZE}"
        if number % _SIZE == 0:
            caches.memcacheds.put(MemcachedRecord("shop", name, name, "1", 1, False, b"", b""))
        pod = PodRecord(
            namespace="shop",
            name=f"{name}-{number % _SIZE}",
            uid=f"{number:08x}-7e1c-4b0a-9d55-0123456789ab",
            resource_version="1",
            memcached=name,
            revision="a",
            active=True,
            ready=True,
            problem=NO_PROBLEM,
            ordinal=number % _SIZE,
            address=address,
        )
        caches.pods.put(pod)
        pods.append(pod)
    return caches, pods


@contextmanager
def _servers(count: int) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.server_stats.fake_servers", str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise SystemExit("the fake servers cannot listen on their addresses; is this Linux?")
        yield
    finally:
        process.kill()
        process.communicate()


def _raise_the_limit_of_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _resident() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * _PAGE


if __name__ == "__main__":
    sys.exit(main())
