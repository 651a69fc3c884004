"""What servers say as metrics: under the exporter's names, and read back by prometheus-client's own parsers."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from memcached_operator.core.objects.labels import PORT
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.servers.certificates import Certificate
from memcached_operator.servers.metric_families import PATH, server_families
from memcached_operator.servers.server_connection import SATURATED, ErrorKind, Failure
from memcached_operator.servers.stats_answer import EXTSTORE, StatsAnswer
from memcached_operator.servers.stats_cache import StatsCache
from operator_runtime.serving.scrape import Scrapes
from operator_runtime.telemetry.metrics import Metrics
from tests.unit.memcached_operator.servers.support import TIMEOUT_S, answer, queried, running, server_pod
from tests.unit.operator_runtime.http import get

# Name and type of what prometheus/memcached_exporter 0.16.0 makes of `stats` (pkg/exporter/exporter.go), of the limit
# of connections, which it takes from `stats settings`, and of what its alerts look at of `stats items`.
EXPORTER = {
    **dict.fromkeys(
        (
            *("up", "version", "time_seconds", "current_connections", "max_connections", "accepting_connections"),
            *("current_bytes", "limit_bytes", "current_items"),
        ),
        "gauge",
    ),
    **dict.fromkeys(
        (
            *("uptime_seconds", "process_user_cpu_seconds_total", "process_system_cpu_seconds_total"),
            *("read_bytes_total", "written_bytes_total", "connections_total", "connections_rejected_total"),
            *("connections_yielded_total", "connections_listener_disabled_total", "commands_total", "items_total"),
            *("items_evicted_total", "items_reclaimed_total", "item_too_large_total", "item_no_memory_total"),
            *("direct_reclaims_total", "lru_crawler_starts_total", "lru_crawler_reclaimed_total"),
            *("lru_crawler_items_checked_total", "lru_crawler_moves_to_cold_total"),
            *("lru_crawler_moves_to_warm_total", "lru_crawler_moves_within_lru_total"),
            *("slab_items_evicted_total", "slab_items_outofmemory_total"),
        ),
        "counter",
    ),
}
EXPORTER_EXTSTORE = {
    **{f"extstore_compact_{what}_total": "counter" for what in ("lost", "rescued", "skipped")},
    **{f"extstore_pages_{what}_total": "counter" for what in ("allocated", "evicted", "reclaimed")},
    **{f"extstore_objects_{what}_total": "counter" for what in ("evicted", "read", "written")},
    **{f"extstore_bytes_{what}_total": "counter" for what in ("evicted", "written", "read")},
    **dict.fromkeys(("extstore_pages_free", "extstore_pages_used", "extstore_objects_used"), "gauge"),
    **dict.fromkeys(("extstore_bytes_fragmented", "extstore_bytes_limit", "extstore_io_queue_depth"), "gauge"),
    "extstore_bytes_used": "counter",
}
# OpenMetrics knows no counter of such a name.
OWN_EXTSTORE = {
    f"extstore_{what}_total": "counter" for what in ("gets", "gets_no_memory", "recached", "misses", "damaged")
}
NO_COUNTERS = {"uptime_seconds", "extstore_bytes_used"}
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
Series = dict[tuple[str, ...], float]


def health(*received: tuple[PodRecord, StatsAnswer | Failure]) -> StatsCache:
    stats_cache = StatsCache()
    for pod, each in received:
        stats_cache.record(pod, each)
    return stats_cache


async def scraped(pods: list[PodRecord], stats_cache: StatsCache, accept: str = "") -> dict[str, tuple[str, Series]]:
    """Type and series of each metric that has some, by its name; the labels in the order of their names."""
    metrics = Metrics()
    metrics.add(lambda: server_families(pods, stats_cache.of))
    response = await Scrapes({PATH: metrics}).answer(get(PATH, accept=accept))
    assert response.status == 200
    parse = parse_openmetrics if accept else parse_text
    found: dict[str, tuple[str, Series]] = {}
    families: list[Metric] = list(parse(response.body.decode()))
    for family in families:
        for sample in family.samples:
            _, series = found.setdefault(sample.name, (family.type, {}))
            series[tuple(value for _, value in sorted(sample.labels.items()))] = sample.value
    return found


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
async def test_a_real_server_is_shown_under_the_exporters_names_and_types(accept: str) -> None:
    async with running() as where:
        await store(where, items=1)
        received = await queried(where, TIMEOUT_S)
    pod = server_pod()
    found = await scraped([pod], health((pod, received)), accept)
    types = {name.removeprefix("memcached_"): type_ for name, (type_, _) in found.items()}
    assert types == {name: "gauge" if name in NO_COUNTERS else type_ for name, type_ in EXPORTER.items()}


async def store(where: str, *, items: int, size: int = 5) -> bytes:
    """Store so many items; the last answer."""
    reader, writer = await asyncio.open_connection(where, PORT)
    received = b""
    for each in range(items):
        writer.write(b"set key%d 0 0 %d\r\n%b\r\n" % (each, size, b"x" * size))
        received = await reader.readline()
    writer.close()
    return received


async def test_what_each_size_class_evicts_is_shown_and_what_it_refuses() -> None:
    async with running("-m", "8", "-t", "1") as where:
        await store(where, items=100, size=200_000)
        received = await queried(where, TIMEOUT_S)
    assert isinstance(received, StatsAnswer)
    pod = server_pod()
    found = await scraped([pod], health((pod, received)))
    evicted, refused = (found[f"memcached_slab_items_{what}_total"][1] for what in ("evicted", "outofmemory"))
    assert evicted.keys() == refused.keys()
    assert sum(evicted.values()) == received.number("evictions") > 0
    assert all(labels[:3] == ("cache", "shop", "cache-0") and labels[3].isdigit() for labels in evicted)


async def test_a_server_with_storage_on_disk_is_shown_with_that() -> None:
    pod, bare = server_pod("a"), server_pod("b")
    received = answer(**{name: place for place, name in enumerate(EXTSTORE)})
    found = await scraped([pod, bare], health((pod, received), (bare, answer())))
    shown = {name.removeprefix("memcached_"): each for name, each in found.items() if "extstore" in name}
    assert {name: type_ for name, (type_, _) in shown.items()} == {
        name: "gauge" if name in NO_COUNTERS else type_ for name, type_ in (EXPORTER_EXTSTORE | OWN_EXTSTORE).items()
    }
    assert all(list(series) == [("cache", "shop", "a")] for _, series in shown.values())


async def test_commands_are_told_by_what_came_of_them() -> None:
    pod = server_pod()
    received = answer(
        get_hits=5, get_misses=2, cmd_set=100, cas_hits=3, cas_misses=4, cas_badval=5, cmd_flush=6, touch_hits=7,
        touch_misses=0, delete_hits=0, delete_misses=0, incr_hits=0, incr_misses=0, decr_hits=0, decr_misses=8,
    )  # fmt: skip
    found = await scraped([pod], health((pod, received)))
    _, series = found["memcached_commands_total"]
    counted = {(command, status): value for (command, _, _, _, status), value in series.items() if value}
    assert counted == {
        **{("get", "hit"): 5, ("get", "miss"): 2, ("flush", "hit"): 6, ("touch", "hit"): 7, ("decr", "miss"): 8},
        # memcached counts each cas among the sets.
        **{("set", "hit"): 88, ("cas", "hit"): 3, ("cas", "miss"): 4, ("cas", "badval"): 5},
    }


@pytest.mark.parametrize("failure", [SATURATED, Failure(ErrorKind.SILENT, "silent")])
async def test_of_a_server_without_an_answer_only_that_is_told(failure: Failure) -> None:
    good, bad = server_pod("a"), server_pod("b")
    found = await scraped([good, bad], health((good, answer()), (bad, answer()), (bad, failure)))
    assert found["memcached_up"][1] == {("cache", "shop", "a"): 1, ("cache", "shop", "b"): 0}
    for name, (_, series) in found.items():
        assert name == "memcached_up" or all("b" not in labels for labels in series)


async def test_servers_that_are_out_of_reach_altogether_are_not_said_to_be_down() -> None:
    first, second = server_pod("a"), server_pod("b")
    refused = Failure(ErrorKind.UNREACHABLE, "connection refused")
    stats_cache = health(*[(first, refused), (second, refused)] * 2)
    assert await scraped([first, second], stats_cache) == {}
    stats_cache.record(first, answer())
    stats_cache.record(second, refused)
    assert [*(await scraped([first, second], stats_cache))["memcached_up"][1].values()] == [1, 0]


async def test_a_figure_that_a_server_does_not_give_is_left_out() -> None:
    pod = server_pod()
    found = await scraped([pod], health((pod, StatsAnswer.of({b"uptime": b"7"}))))
    assert set(found) == {"memcached_up", "memcached_uptime_seconds"}


async def test_when_certificates_expire_is_shown_also_of_servers_that_want_credentials() -> None:
    first, second = server_pod("a"), server_pod("b")
    stats_cache = StatsCache()
    stats_cache.record(first, answer(), Certificate("one", 0.0, 2e9))
    stats_cache.record(second, Failure(ErrorKind.DENIED, "it requires a login"), Certificate("two", 0.0, 1e9))
    found = await scraped([first, second], stats_cache)
    expiries = found["memcached_server_certificate_expiry_timestamp_seconds"]
    assert expiries == ("gauge", {("cache", "shop", "a"): 2e9, ("cache", "shop", "b"): 1e9})
    assert found["memcached_up"][1] == {("cache", "shop", "a"): 1}
