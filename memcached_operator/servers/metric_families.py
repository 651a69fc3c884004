"""The answers of servers as metrics, under the names of prometheus/memcached_exporter (pkg/exporter/exporter.go).

Dashboards and alerts that were made for it work, with the labels of a pod in the place of an exporter's target. What it
asks `stats slabs`, `stats items` and `stats settings` for is left out, but for the limit of connections, and for what
alerts use of each size class: there are up to 63 of them.

Two types differ: OpenMetrics knows no counter whose name does not end with `_total`, so that `memcached_uptime_seconds`
and `memcached_extstore_bytes_used` are gauges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Final, NamedTuple

from prometheus_client import Metric
from prometheus_client.samples import Sample

from memcached_operator.servers.queried_pod import QueriedPod
from memcached_operator.servers.stats_answer import StatsAnswer
from memcached_operator.servers.stats_cache import AnswerVerdict, QueriedServer, is_queried

PATH: Final = "/metrics/servers"
LABELS: Final = ("namespace", "memcached", "pod")
_PREFIX = "memcached_"
_EXPIRY = "server_certificate_expiry_timestamp_seconds"


class Figure(NamedTuple):
    """A metric that is one figure of an answer."""

    name: str
    type: str
    help: str
    stat: str


_FIGURES: Final = tuple(
    Figure(*each)
    for each in (
        ("uptime_seconds", "gauge", "Seconds since the server was started.", "uptime"),
        ("time_seconds", "gauge", "The server's clock, in seconds since 1970.", "time"),
        ("process_user_cpu_seconds_total", "counter", "CPU time in user mode, in seconds.", "rusage_user"),
        ("process_system_cpu_seconds_total", "counter", "CPU time in the kernel, in seconds.", "rusage_system"),
        ("read_bytes_total", "counter", "Bytes read from connections.", "bytes_read"),
        ("written_bytes_total", "counter", "Bytes written to connections.", "bytes_written"),
        ("current_connections", "gauge", "Open connections.", "curr_connections"),
        ("max_connections", "gauge", "Limit of connections, the server's own files included.", "max_connections"),
        ("connections_total", "counter", "Connections opened.", "total_connections"),
        ("connections_rejected_total", "counter", "Connections turned away.", "rejected_connections"),
        (
            "connections_yielded_total",
            "counter",
            "Times that a connection yielded to others after many requests.",
            "conn_yields",
        ),
        (
            "connections_listener_disabled_total",
            "counter",
            "Times that accepting connections was paused at the limit.",
            "listen_disabled_num",
        ),
        ("accepting_connections", "gauge", "Whether connections are accepted.", "accepting_conns"),
        ("current_bytes", "gauge", "Bytes used by items.", "bytes"),
        ("limit_bytes", "gauge", "Bytes available for items.", "limit_maxbytes"),
        ("current_items", "gauge", "Items stored now.", "curr_items"),
        ("items_total", "counter", "Items stored since the start.", "total_items"),
        ("items_evicted_total", "counter", "Unexpired items evicted for new ones.", "evictions"),
        ("items_reclaimed_total", "counter", "Expired items whose memory was reused for new ones.", "reclaimed"),
        ("item_too_large_total", "counter", "Items refused for their size.", "store_too_large"),
        ("item_no_memory_total", "counter", "Items refused for lack of memory.", "store_no_memory"),
        ("direct_reclaims_total", "counter", "Times that a request had to free memory itself.", "direct_reclaims"),
        ("lru_crawler_starts_total", "counter", "Times that the LRU crawler started.", "lru_crawler_starts"),
        ("lru_crawler_reclaimed_total", "counter", "Items freed by the LRU crawler.", "crawler_reclaimed"),
        ("lru_crawler_items_checked_total", "counter", "Items checked by the LRU crawler.", "crawler_items_checked"),
        ("lru_crawler_moves_to_cold_total", "counter", "Moves from the HOT or WARM to the COLD LRU.", "moves_to_cold"),
        ("lru_crawler_moves_to_warm_total", "counter", "Moves from the COLD to the WARM LRU.", "moves_to_warm"),
        ("lru_crawler_moves_within_lru_total", "counter", "Moves within the HOT or the WARM LRU.", "moves_within_lru"),
    )
)
_EXTSTORE: Final = tuple(
    Figure(f"extstore_{name}", type_, help, f"extstore_{stat}")
    for name, type_, help, stat in (
        ("compact_lost_total", "counter", "Items lost in compaction.", "compact_lost"),
        ("compact_rescued_total", "counter", "Items moved in compaction.", "compact_rescues"),
        ("compact_skipped_total", "counter", "Items dropped in compaction.", "compact_skipped"),
        ("pages_allocated_total", "counter", "Pages taken into use.", "page_allocs"),
        ("pages_evicted_total", "counter", "Pages evicted.", "page_evictions"),
        ("pages_reclaimed_total", "counter", "Empty pages freed.", "page_reclaims"),
        ("pages_free", "gauge", "Pages without items.", "pages_free"),
        ("pages_used", "gauge", "Pages with items.", "pages_used"),
        ("objects_evicted_total", "counter", "Items evicted from disk.", "objects_evicted"),
        ("objects_read_total", "counter", "Items read from disk.", "objects_read"),
        ("objects_written_total", "counter", "Items written to disk.", "objects_written"),
        ("objects_used", "gauge", "Items on disk.", "objects_used"),
        ("bytes_evicted_total", "counter", "Bytes evicted from disk.", "bytes_evicted"),
        ("bytes_written_total", "counter", "Bytes written to disk.", "bytes_written"),
        ("bytes_read_total", "counter", "Bytes read from disk.", "bytes_read"),
        ("bytes_used", "gauge", "Bytes of items on disk.", "bytes_used"),
        ("bytes_fragmented", "gauge", "Bytes of used pages that hold no item.", "bytes_fragmented"),
        ("bytes_limit", "gauge", "Bytes available on disk.", "limit_maxbytes"),
        ("io_queue_depth", "gauge", "Items waiting for the disk.", "io_queue"),
    )
) + tuple(  # which the exporter does not have
    Figure(f"extstore_{name}_total", "counter", help, f"{stat}_extstore")
    for name, help, stat in (
        ("gets", "Items on disk that clients requested.", "get"),
        ("gets_no_memory", "Items on disk that were missed for lack of memory to read them into.", "get_oom"),
        ("recached", "Items moved back from disk to memory.", "recache_from"),
        ("misses", "Items that were no longer on disk when a client requested them.", "miss_from"),
        ("damaged", "Items on disk that were not what had been written.", "badcrc_from"),
    )
)
_SLABS: Final = tuple(
    Figure(f"slab_items_{name}_total", "counter", help, stat)
    for name, help, stat in (
        ("evicted", "Unexpired items evicted for new ones, by size class.", "evicted"),
        ("outofmemory", "Items refused for lack of memory, by size class.", "outofmemory"),
    )
)
_COMMANDS: Final = ("get", "delete", "incr", "decr", "cas", "touch")
_Labels = dict[str, str]
_Row = tuple[_Labels, StatsAnswer]
_Value = Callable[[StatsAnswer], float]


def _stat(name: str) -> _Value:
    return lambda answer: answer.number(name)


def _sets(answer: StatsAnswer) -> float:
    """memcached counts each cas among them."""
    return answer.number("cmd_set") - sum(answer.number(f"cas_{how}") for how in ("misses", "hits", "badval"))


_BY_COMMAND: Final[Mapping[tuple[str, str], _Value]] = {
    **{(command, "hit"): _stat(f"{command}_hits") for command in _COMMANDS},
    **{(command, "miss"): _stat(f"{command}_misses") for command in _COMMANDS},
    ("cas", "badval"): _stat("cas_badval"),
    ("flush", "hit"): _stat("cmd_flush"),
    ("set", "hit"): _sets,
}


class _Samples:
    """Samples that are made when they are written: of thousands of servers there are too many to hold at once.

    What they are made of does not change, so that they may be written on another thread.
    """

    def __init__(self, name: str, rows: Sequence[_Row], values: Sequence[tuple[_Labels, _Value]]) -> None:
        """
        Args:
            values: what is read of each answer, and the labels of that.
        """
        self._name, self._rows, self._values = name, rows, values

    def __iter__(self) -> Iterator[Sample]:
        for more, value in self._values:
            for labels, answer in self._rows:
                if not isnan(number := value(answer)):
                    yield Sample(self._name, labels | more if more else labels, number)

    def __len__(self) -> int:
        return sum(not isnan(value(answer)) for _, value in self._values for _, answer in self._rows)


class _SamplesByClass:
    """The same of a figure that each size class has."""

    def __init__(self, figure: Figure, rows: Sequence[_Row]) -> None:
        self._figure, self._rows = figure, rows

    def __iter__(self) -> Iterator[Sample]:
        for labels, answer in self._rows:
            for slab, number in answer.by_class(self._figure.stat):
                if not isnan(number):
                    yield Sample(f"{_PREFIX}{self._figure.name}", {**labels, "slab": str(slab)}, number)

    def __len__(self) -> int:
        return sum(answer.class_count for _, answer in self._rows)


def server_families(
    pods: Iterable[QueriedPod], server_of: Callable[[QueriedPod], QueriedServer | None]
) -> Iterator[Metric]:
    """The last answers of the servers that were queried; of one that gave none only that.

    Nothing is shown of those that are out of the operator's reach altogether, as they may well answer their clients.
    Of those for which it has no credentials it is shown when their certificates expire, and nothing else.

    Args:
        server_of: the last known state of a pod's server, None where none is known.
    """
    health = [
        ({"namespace": pod.namespace, "memcached": pod.memcached, "pod": pod.name}, server)
        for pod in pods
        if is_queried(pod)
        and (server := server_of(pod)) is not None
        and server.verdict is not AnswerVerdict.OUT_OF_REACH
    ]
    rows = [(labels, server.answer) for labels, server in health if server.up and server.answer is not None]
    up = [
        Sample(f"{_PREFIX}up", labels, float(server.up))
        for labels, server in health
        if server.verdict is not AnswerVerdict.DENIED
    ]
    yield _family("up", "gauge", "Whether the server answered the last request for its statistics.", up)
    versions = [
        Sample(f"{_PREFIX}version", {**labels, "version": answer.version}, 1.0)
        for labels, answer in rows
        if answer.version
    ]
    yield _family("version", "gauge", "The server's version; always 1.", versions)
    expiries = [
        Sample(f"{_PREFIX}{_EXPIRY}", labels, server.shown.certificate.not_after)
        for labels, server in health
        if server.shown is not None
    ]
    yield _family(_EXPIRY, "gauge", "When the server's certificate expires, in seconds since 1970.", expiries)
    by_command = [({"command": command, "status": status}, value) for (command, status), value in _BY_COMMAND.items()]
    commands = _Samples(f"{_PREFIX}commands_total", rows, by_command)
    yield _family("commands_total", "counter", "Requests by command and result.", commands)
    with_disk = [(labels, answer) for labels, answer in rows if answer.has_extstore]
    for figures, there in ((_FIGURES, rows), (_EXTSTORE, with_disk)):
        for each in figures:
            samples = _Samples(f"{_PREFIX}{each.name}", there, [({}, _stat(each.stat))])
            yield _family(each.name, each.type, each.help, samples)
    for each in _SLABS:
        yield _family(each.name, each.type, each.help, _SamplesByClass(each, rows))


def _family(name: str, type_: str, help: str, samples: Sequence[Sample] | _Samples | _SamplesByClass) -> Metric:
    # prometheus-client puts the suffix back.
    family = Metric(f"{_PREFIX}{name.removesuffix('_total') if type_ == 'counter' else name}", help, type_)
    family.samples = samples  # type: ignore[assignment] # it only reads them
    return family
