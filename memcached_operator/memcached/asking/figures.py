"""What is kept of a server's answer: the figures that are shown, packed, as there may be thousands of servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import nan
from struct import Struct, pack
from typing import Final, Self

import msgspec

from operator_runtime import shared

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
EXTSTORE: Final = tuple(
    f"extstore_{name}"
    for name in (
        *("compact_lost", "compact_rescues", "compact_skipped"),
        *("page_allocs", "page_evictions", "page_reclaims", "pages_free", "pages_used"),
        *("objects_evicted", "objects_read", "objects_written", "objects_used"),
        *("bytes_evicted", "bytes_written", "bytes_read", "bytes_used", "bytes_fragmented"),
        *("limit_maxbytes", "io_queue"),
    )
)
"""Names that a server with storage on disk adds."""

_PLACE: Final = {name: place for place, name in enumerate((*FIGURES, *EXTSTORE))}
_BASIC: Final = tuple(name.encode() for name in FIGURES)
_ALL: Final = tuple(name.encode() for name in (*FIGURES, *EXTSTORE))
_NUMBER: Final = Struct("d")
# It goes into the status and becomes a label, and a server can say what it likes.
_VERSION: Final = re.compile(rb"[0-9A-Za-z][0-9A-Za-z.+~_-]{0,63}")


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What a server said of itself.

    Attributes:
        version: its release, "" where it says none that can be shown.
        packed: the figures, see `number`.
    """

    version: str
    packed: bytes

    @classmethod
    def of(cls, stats: Mapping[bytes, bytes]) -> Self:
        """From the lines of `stats`."""
        version = stats.get(b"version", b"")
        text = shared(version.decode("ascii")) if _VERSION.fullmatch(version) else ""
        names = _ALL if b"extstore_limit_maxbytes" in stats else _BASIC
        return cls(text, pack(f"{len(names)}d", *[_number(stats.get(name)) for name in names]))

    @property
    def has_extstore(self) -> bool:
        """Whether it has the figures of `EXTSTORE`."""
        return len(self.packed) > len(FIGURES) * _NUMBER.size

    def number(self, name: str) -> float:
        """The figure of that name of `FIGURES` or `EXTSTORE`, NaN where the server does not give it."""
        place = _PLACE[name] * _NUMBER.size
        if place >= len(self.packed):
            return nan
        value: float = _NUMBER.unpack_from(self.packed, place)[0]
        return value


def _number(text: bytes | None) -> float:
    if text is None:
        return nan
    try:
        return float(text)
    except ValueError:
        return nan
