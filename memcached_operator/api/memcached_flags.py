"""Pure: the flags and options of memcached, each with what its value must be, or why it may not be given.

Source: what memcached 1.6.45 prints and does, tried with the program itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

_Check = Callable[[str], str | None]
"""What a value must be, in words, where it is not that."""

# memcached's own, where no option says otherwise: the largest chunk of an item, shares of the lists of items, and the
# bytes of the smallest item and between two sizes of them.
CHUNK_KIB: Final = 512
PAGE_KIB: Final = 1024
HOT, WARM, HOT_AND_WARM = 20, 40, 80
SIZE_CLASSES: Final = 39
# The smallest chunk that an item is in: 48 bytes of its own, and 48 for key and value (-n).
LEAST_ITEM_BYTES: Final = 96
ITEM_BYTES, ALIGNED_BYTES, FACTOR = 48, 8, 1.25
_INT: Final = 2**31 - 1
_UNSIGNED: Final = 2**32 - 1


def _whole(least: int, most: int = _INT) -> _Check:
    def check(value: str) -> str | None:
        good = re.fullmatch("[0-9]{1,10}", value) and least <= int(value) <= most
        return None if good else f"a whole number from {least} to {most}"

    return check


def _number(above: float, most: float | None = None) -> _Check:
    def check(value: str) -> str | None:
        good = re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,10})?", value) and above < float(value) <= (most or float("inf"))
        limits = f"above {above:g}" + (f" and at most {most:g}" if most else "")
        return None if good else f"a number {limits}"

    return check


def _one_of(*words: str) -> _Check:
    return lambda value: None if value in words else " or ".join(words)


def _chunk(value: str) -> str | None:
    good = re.fullmatch("[0-9]{1,4}", value) and int(value) in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, PAGE_KIB)
    return None if good else f"a power of two of KiB from 1 to {PAGE_KIB}"


def _sizes(value: str) -> str | None:
    if re.fullmatch("[0-9]{1,9}(-[0-9]{1,9}){0,61}", value):
        sizes = [int(size) for size in value.split("-")]
        if all(after > before + ALIGNED_BYTES for before, after in pairwise(sizes)):
            return None
    return f"at most 62 numbers of bytes such as 100-200-400, each more than {ALIGNED_BYTES} above the one before"


def _delimiter(value: str) -> str | None:
    return None if len(value) == 1 and value.isascii() and value.isprintable() else "one character"


@dataclass(frozen=True, slots=True)
class _Flag:
    """A flag of memcached.

    Attributes:
        long: its long name.
        valued: whether it takes a value.
        check: judges the value of one that may be given.
        refused: why it may not be given, and what to do instead.
    """

    long: str
    valued: bool = False
    check: _Check | None = None
    refused: str = ""


def _field(name: str) -> str:
    return f"it would undo spec.{name}; set that field instead"


_REACHED = "servers are reached over TCP on port 11211, as the Service, the list and the probe say; omit it"
_TLS = "spec.tls specifies the TLS of servers; set that field instead"
_PASSWORDS = "spec.auth specifies the passwords that servers require; set that field instead"
_SASL = "it requires authentication for the binary protocol only; omit it, and set spec.auth or spec.tls.clientAuth"
_FOREGROUND = "a server that leaves the foreground ends its container; omit it"
_ENDS = "memcached prints a text and exits; omit it"
_NO_VOLUME = "a server has no volume to write to; omit it"
_DISK = "spec.extstore says how a server uses a disk; set that field instead"

FLAGS: Final[Mapping[str, _Flag]] = {
    "a": _Flag("unix-mask", True, refused=_REACHED),
    "A": _Flag("enable-shutdown", refused="any client could stop a server; omit it"),
    "Z": _Flag("enable-ssl", refused=_TLS),
    "p": _Flag("port", True, refused=_REACHED),
    "s": _Flag("unix-socket", True, refused=_REACHED),
    "U": _Flag("udp-port", True, refused=_REACHED),
    "m": _Flag("memory-limit", True, refused=_field("memory")),
    "M": _Flag("disable-evictions"),
    "c": _Flag("conn-limit", True, refused=_field("maxConnections")),
    "k": _Flag("lock-memory", refused="a server is not allowed to lock memory; omit it"),
    "h": _Flag("help", refused=_ENDS),
    "i": _Flag("license", refused=_ENDS),
    "V": _Flag("version", refused=_ENDS),
    "r": _Flag("enable-coredumps"),
    "v": _Flag("verbose"),
    "d": _Flag("daemon", refused=_FOREGROUND),
    "l": _Flag("listen", True, refused=_REACHED),
    "u": _Flag("user", True, refused="set spec.podTemplate.spec.securityContext instead"),
    "P": _Flag("pidfile", True, refused=_NO_VOLUME),
    "f": _Flag("slab-growth-factor", True, _number(1)),
    "n": _Flag("slab-min-size", True, _whole(1)),
    "t": _Flag("threads", True, refused=_field("threads")),
    "D": _Flag("", True, _delimiter),
    "L": _Flag("enable-largepages", refused="spec.memory could not be changed while a server runs; omit it"),
    "R": _Flag("max-reqs-per-event", True, _whole(1)),
    "C": _Flag("disable-cas"),
    "b": _Flag("listen-backlog", True, _whole(0)),
    # By the binary protocol alone the operator could ask a server nothing.
    "B": _Flag("protocol", True, _one_of("auto", "ascii")),
    "I": _Flag("max-item-size", True, refused=_field("maxItemSize")),
    "S": _Flag("enable-sasl", refused=_SASL),
    "F": _Flag("disable-flush-all"),
    "X": _Flag("disable-dumping"),
    "W": _Flag("disable-watch"),
    "Y": _Flag("auth-file", True, refused=_PASSWORDS),
    "e": _Flag("memory-file", True, refused="set spec.warmRestart instead"),
    "o": _Flag("extended", True),
    "N": _Flag("napi-ids", True, _whole(1)),
}
LONG_FLAGS: Final = {flag.long: letter for letter, flag in FLAGS.items() if flag.long}

OPTIONS: Final[Mapping[str, _Check | None]] = {
    **dict.fromkeys(
        (
            *("maxconns_fast", "no_maxconns_fast", "no_hashexpand", "modern", "no_modern", "track_sizes"),
            *("slab_reassign", "no_slab_reassign", "no_slab_automove", "no_chunked_items"),
            *("lru_crawler", "no_lru_crawler", "lru_maintainer", "no_lru_maintainer"),
            *("inline_ascii_resp", "no_inline_ascii_resp", "drop_privileges", "no_drop_privileges"),
        )
    ),
    "hashpower": _whole(12, 32),
    "slab_automove": _whole(0, 2),
    "slab_automove_ratio": _number(0, 1),
    "slab_automove_window": _whole(3, 1800),
    "slab_automove_freeratio": _number(0, 1),
    "tail_repair_time": _whole(10),
    "hash_algorithm": _one_of("murmur3", "jenkins", "xxh3"),
    "lru_crawler_sleep": _whole(0, 1_000_000),
    "lru_crawler_tocrawl": _whole(0, _UNSIGNED),
    "hot_lru_pct": _whole(1, HOT_AND_WARM - 1),
    "warm_lru_pct": _whole(1, HOT_AND_WARM - 1),
    "hot_max_factor": _number(0),
    "warm_max_factor": _number(0),
    "temporary_ttl": _whole(0),
    "idle_timeout": _whole(0),
    "watcher_logbuf_size": _whole(0, _UNSIGNED // 1024),
    "worker_logbuf_size": _whole(0, _UNSIGNED // 1024),
    "slab_sizes": _sizes,
    "slab_chunk_max": _chunk,
    "read_buf_mem_limit": _whole(0, _UNSIGNED // 2**20),
}
"""The options of -o, each with what its value must be; None where it takes none."""

REFUSED_OPTIONS: Final = {
    "ssl_": _TLS,
    "proxy_": "spec.handover says whether a server runs memcached's proxy; omit it",
    "ext_": _DISK,
}
