"""Statistics of one answer of a server, as arrays of numbers: there may be thousands of servers."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from math import nan
from typing import Final, NamedTuple, Self

import msgspec

_COMMANDS: Final = ("get", "delete", "incr", "decr", "cas", "touch")
FIGURES: Final = (
    *("uptime", "time", "rusage_user", "rusage_system"),
    *("max_connections", "curr_connections", "total_connections", "rejected_connections", "reserved_fds"),
    *("conn_yields", "listen_disabled_num", "accepting_conns"),
    *("cmd_set", "cmd_flush", "cas_badval"),
    *(f"{command}_{how}" for command in _COMMANDS for how in ("hits", "misses")),
    *("bytes_read", "bytes_written", "bytes", "limit_maxbytes", "curr_items", "total_items"),
    *("evictions", "reclaimed", "store_too_large", "store_no_memory", "direct_reclaims"),
    *("lru_crawler_starts", "crawler_reclaimed", "crawler_items_checked"),
    *("moves_to_cold", "moves_to_warm", "moves_within_lru"),
)
"""Names as `stats` has them, in the order in which they are kept."""
EXTSTORE: Final = (
    *(
        f"extstore_{name}"
        for name in (
            *("compact_lost", "compact_rescues", "compact_skipped"),
            *("page_allocs", "page_evictions", "page_reclaims", "pages_free", "pages_used"),
            *("objects_evicted", "objects_read", "objects_written", "objects_used"),
            *("bytes_evicted", "bytes_written", "bytes_read", "bytes_used", "bytes_fragmented"),
            *("limit_maxbytes", "io_queue"),
        )
    ),
    *(f"{name}_extstore" for name in ("get", "get_oom", "recache_from", "miss_from", "badcrc_from")),
)
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

    def by_class(self, name: str) -> Iterator[tuple[int, float]]:
        """The figure of that name of `BY_CLASS` of each size class."""
        place = BY_CLASS.index(name) + 1
        return ((each.number, each[place]) for each in self.size_classes())

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
