"""Statistics of one answer of a server, as arrays of numbers: there may be thousands of servers.

Which are kept follows from the metrics that show them (`metric_families`), and from what is decided by them.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from math import nan
from typing import Final, NamedTuple, Self

import msgspec


class Figure(NamedTuple):
    """A figure of an answer that a metric shows.

    Attributes:
        name: of the metric, without its prefix; a counter's ends with `_total`, and all others are gauges.
        stat: its name as memcached has it.
    """

    name: str
    help: str
    stat: str


SHOWN: Final = (
    Figure("uptime_seconds", "Seconds since the server was started.", "uptime"),
    Figure("time_seconds", "The server's clock, in seconds since 1970.", "time"),
    Figure("process_user_cpu_seconds_total", "CPU time in user mode, in seconds.", "rusage_user"),
    Figure("process_system_cpu_seconds_total", "CPU time in the kernel, in seconds.", "rusage_system"),
    Figure("read_bytes_total", "Bytes read from connections.", "bytes_read"),
    Figure("written_bytes_total", "Bytes written to connections.", "bytes_written"),
    Figure("current_connections", "Open connections.", "curr_connections"),
    Figure("max_connections", "Limit of connections, the server's own files included.", "max_connections"),
    Figure("connections_total", "Connections opened.", "total_connections"),
    Figure("connections_rejected_total", "Connections turned away.", "rejected_connections"),
    Figure(
        "connections_yielded_total", "Times that a connection yielded to others after many requests.", "conn_yields"
    ),
    Figure(
        "connections_listener_disabled_total",
        "Times that accepting connections was paused at the limit.",
        "listen_disabled_num",
    ),
    Figure("accepting_connections", "Whether connections are accepted.", "accepting_conns"),
    Figure("current_bytes", "Bytes used by items.", "bytes"),
    Figure("limit_bytes", "Bytes available for items.", "limit_maxbytes"),
    Figure("current_items", "Items stored now.", "curr_items"),
    Figure("items_total", "Items stored since the start.", "total_items"),
    Figure("items_evicted_total", "Unexpired items evicted for new ones.", "evictions"),
    Figure("items_reclaimed_total", "Expired items whose memory was reused for new ones.", "reclaimed"),
    Figure("item_too_large_total", "Items refused for their size.", "store_too_large"),
    Figure("item_no_memory_total", "Items refused for lack of memory.", "store_no_memory"),
    Figure("direct_reclaims_total", "Times that a request had to free memory itself.", "direct_reclaims"),
    Figure("lru_crawler_starts_total", "Times that the LRU crawler started.", "lru_crawler_starts"),
    Figure("lru_crawler_reclaimed_total", "Items freed by the LRU crawler.", "crawler_reclaimed"),
    Figure("lru_crawler_items_checked_total", "Items checked by the LRU crawler.", "crawler_items_checked"),
    Figure("lru_crawler_moves_to_cold_total", "Moves from the HOT or WARM to the COLD LRU.", "moves_to_cold"),
    Figure("lru_crawler_moves_to_warm_total", "Moves from the COLD to the WARM LRU.", "moves_to_warm"),
    Figure("lru_crawler_moves_within_lru_total", "Moves within the HOT or the WARM LRU.", "moves_within_lru"),
)
SHOWN_OF_DISKS: Final = tuple(
    Figure(f"extstore_{name}", help, f"extstore_{stat}")
    for name, help, stat in (
        ("compact_lost_total", "Items lost in compaction.", "compact_lost"),
        ("compact_rescued_total", "Items moved in compaction.", "compact_rescues"),
        ("compact_skipped_total", "Items dropped in compaction.", "compact_skipped"),
        ("pages_allocated_total", "Pages taken into use.", "page_allocs"),
        ("pages_evicted_total", "Pages evicted.", "page_evictions"),
        ("pages_reclaimed_total", "Empty pages freed.", "page_reclaims"),
        ("pages_free", "Pages without items.", "pages_free"),
        ("pages_used", "Pages with items.", "pages_used"),
        ("objects_evicted_total", "Items evicted from disk.", "objects_evicted"),
        ("objects_read_total", "Items read from disk.", "objects_read"),
        ("objects_written_total", "Items written to disk.", "objects_written"),
        ("objects_used", "Items on disk.", "objects_used"),
        ("bytes_evicted_total", "Bytes evicted from disk.", "bytes_evicted"),
        ("bytes_written_total", "Bytes written to disk.", "bytes_written"),
        ("bytes_read_total", "Bytes read from disk.", "bytes_read"),
        ("bytes_used", "Bytes of items on disk.", "bytes_used"),
        ("bytes_fragmented", "Bytes of used pages that hold no item.", "bytes_fragmented"),
        ("bytes_limit", "Bytes available on disk.", "limit_maxbytes"),
        ("io_queue_depth", "Items waiting for the disk.", "io_queue"),
    )
) + tuple(  # which the exporter does not have
    Figure(f"extstore_{name}_total", help, f"{stat}_extstore")
    for name, help, stat in (
        ("gets", "Items on disk that clients requested.", "get"),
        ("gets_no_memory", "Items on disk that were missed for lack of memory to read them into.", "get_oom"),
        ("recached", "Items moved back from disk to memory.", "recache_from"),
        ("misses", "Items that were no longer on disk when a client requested them.", "miss_from"),
        ("damaged", "Items on disk that were not what had been written.", "badcrc_from"),
    )
)
SHOWN_BY_CLASS: Final = (
    Figure("slab_items_evicted_total", "Unexpired items evicted for new ones, by size class.", "evicted"),
    Figure("slab_items_outofmemory_total", "Items refused for lack of memory, by size class.", "outofmemory"),
)
COMMANDS: Final = ("get", "delete", "incr", "decr", "cas", "touch")
FIGURES: Final = (
    *(each.stat for each in SHOWN),
    *("reserved_fds", "cmd_set", "cmd_flush", "cas_badval"),
    *(f"{command}_{how}" for command in COMMANDS for how in ("hits", "misses")),
)
"""Names as `stats` has them, in the order in which they are kept."""
EXTSTORE: Final = tuple(each.stat for each in SHOWN_OF_DISKS)
"""Names that a server with storage on disk adds."""
BY_CLASS: Final = ("evicted", "outofmemory", "evicted_unfetched", "evicted_time", "age", "mem_requested", "number")
"""Names as `stats items` has them of each size class."""


class SizeClass(NamedTuple):
    """The figures of a size class, in the order of `BY_CLASS`; NaN where the server does not give one.

    Attributes:
        evicted_unfetched: of the evicted items, those that no client ever fetched.
        evicted_time: for how many seconds the last of them had been idle.
        age: for how many seconds the item has been idle that is next.
    """

    number: int
    evicted: float
    outofmemory: float
    evicted_unfetched: float
    evicted_time: float
    age: float
    mem_requested: float
    items: float


_PLACE: Final = {name: place for place, name in enumerate((*FIGURES, *EXTSTORE))}
_BASIC: Final = tuple(name.encode() for name in FIGURES)
_ALL: Final = tuple(name.encode() for name in (*FIGURES, *EXTSTORE))
# memcached has at most so many (MAX_NUMBER_OF_SLAB_CLASSES).
_CLASSES: Final = tuple(
    (number, tuple(f"items:{number}:{name}".encode() for name in BY_CLASS)) for number in range(1, 64)
)
# As memcached writes them: whole ones of 64 bits, and seconds with a fraction. Python takes more for numbers, such as
# inf, and raises ValueError for an integer of 4,301 digits.
WHOLE: Final = re.compile(rb"[0-9]{1,20}")
_FIGURE: Final = re.compile(rb"[0-9]{1,20}(\.[0-9]{1,9})?")
# It goes into the status and becomes a label, and a server can send anything.
_VERSION: Final = re.compile(rb"[0-9A-Za-z][0-9A-Za-z.+~_-]{0,63}")


class StatsAnswer(msgspec.Struct, frozen=True, gc=False):
    """Answer of a server with its statistics.

    Attributes:
        version: its release, "" where it reports none that can be shown.
        figures: in the order of `FIGURES` and `EXTSTORE`, see `number`.
        classes: those of each size class that has had an item, one after another, see `size_classes`.
    """

    version: str
    figures: array[float]
    classes: array[float]

    @classmethod
    def of(cls, stats: Mapping[bytes, bytes], items: Mapping[bytes, bytes] | None = None) -> Self:
        """Read the lines of `stats`, and of `stats items` where there are some."""
        version = stats.get(b"version", b"")
        text = version.decode("ascii") if _VERSION.fullmatch(version) else ""
        names = _ALL if b"extstore_limit_maxbytes" in stats else _BASIC
        classes = array("d")
        held = items or {}
        for slab, names_of_class in _CLASSES:
            if names_of_class[0] in held:
                classes.extend((slab, *map(_number, map(held.get, names_of_class))))
        return cls(text, array("d", map(_number, map(stats.get, names))), classes)

    @property
    def has_extstore(self) -> bool:
        """Report whether it has the figures of `EXTSTORE`."""
        return len(self.figures) > len(FIGURES)

    def number(self, name: str) -> float:
        """The figure of that name of `FIGURES` or `EXTSTORE`, NaN where the server does not give it."""
        place = _PLACE[name]
        return self.figures[place] if place < len(self.figures) else nan

    def size_classes(self) -> Iterator[SizeClass]:
        width = len(SizeClass._fields)
        for place in range(0, len(self.classes), width):
            number, *figures = self.classes[place : place + width]
            yield SizeClass(int(number), *figures)

    @property
    def class_count(self) -> int:
        return len(self.classes) // len(SizeClass._fields)


def _number(text: bytes | None) -> float:
    return float(text) if text is not None and _FIGURE.fullmatch(text) else nan
