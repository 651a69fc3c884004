"""Pure: memory that a memcached takes, from its settings; `core/objects/pod_template.py` makes a pod's limit of it.

The terms are those of memcached 1.6.45's sources, in brackets below; docs/sizing.md has what was measured for them.
"""

from __future__ import annotations

from typing import Final

from memcached_operator.api.disk_layout import DiskLayout

_KIB_OF_MIB: Final = 1024

# Pages of 1 MiB hold the items. Each is an allocation with a header, and the kernel has tables of its pages: 6 KiB.
_PAGES_SHARE: Final = 128
# Where the memory is full, a size class that has no page yet still gets its first (do_slabs_newslab). There are 39
# classes; what fills the memory is in one of them.
SIZE_CLASSES: Final = 39
_PAGE_MIB: Final = 1
# The smallest chunk that an item is in: 48 bytes of its own, and 48 for key and value (-n).
LEAST_ITEM_BYTES: Final = 96
# A bucket of the hash table is a pointer. The table doubles when there are 1.5 items for each (assoc_start_expand), and
# until all have moved the old one is there, too.
_BUCKET_BYTES: Final = 8
_FIRST_TABLE: Final = 2**16
# The program, its libraries, and its threads for everything but connections.
_PROCESS_MIB: Final = 8
# A thread's stack, and its buffers for the log and for what was used last (LOGGER_BUF_SIZE, LRU_BUMP_BUF_SIZE).
_THREAD_KIB: Final = 256
# A connection's structures, here and in the kernel: 4.4 KiB measured. And its read buffer (READ_BUFFER_SIZE), which it
# has while a command is not complete; buffers are used again, but not given back.
_CONNECTION_KIB: Final = 5 + 16
# What OpenSSL keeps for a connection (22 KiB measured, 26 where the client shows a certificate), and the record that it
# is in the midst of (13 KiB), of which the read buffer above has as much as comes to less there.
_TLS_KIB: Final = 28
# With a disk there is a buffer for each kind of page that is written, and one for compaction (measured: 7 of 1.6.45, 5
# of 1.6.18); and what it keeps of each page, twice while it looks for one to compact (124 bytes measured).
_DISK_BUFFERS: Final = 7
_DISK_PAGE_BYTES: Final = 192
# What servers that hand over hold for the proxy: values on their way, of which `handover.lua` bounds the first of three
# copies (50 MiB measured), and the script in each thread (0.5 MiB measured).
_HANDOVER_MIB: Final = 56
_HANDOVER_OF_A_THREAD_MIB: Final = 1
# For what is in no term: what waits in sockets, which the kernel holds down where memory gets scarce, and fragments.
_MARGIN_PERCENT: Final = 5


def memory_needed_mib(
    memory_mib: int,
    connections: int,
    threads: int,
    *,
    tls: bool = False,
    size_classes: int = SIZE_CLASSES,
    least_item_bytes: int = LEAST_ITEM_BYTES,
    disk_kib: int = 0,
    hands_over: bool = False,
) -> int:
    """MiB that a memcached takes at most: full of the smallest items and then some of all sizes, its connections busy.

    The size of the largest item (-I) adds nothing: large ones are made of the same pages.

    Args:
        memory_mib: memory for items (-m).
        connections: most connections (-c).
        threads: that serve connections (-t).
        tls: connections are encrypted (-Z).
        size_classes: how many sizes of chunks there are (-f, slab_sizes).
        least_item_bytes: the smallest of them (-n, slab_sizes).
        disk_kib: what a disk takes of the memory, see `disk_memory_kib`.
        hands_over: it fills itself from others, by its proxy.
    """
    kib = (memory_mib + (size_classes - 1) * _PAGE_MIB + _PROCESS_MIB) * _KIB_OF_MIB
    kib += memory_mib * _KIB_OF_MIB // _PAGES_SHARE + _hash_table_kib(memory_mib, least_item_bytes)
    kib += threads * _THREAD_KIB + connections * (_CONNECTION_KIB + (_TLS_KIB if tls else 0)) + disk_kib
    if hands_over:
        kib += (_HANDOVER_MIB + threads * _HANDOVER_OF_A_THREAD_MIB) * _KIB_OF_MIB
    return -(-kib * (100 + _MARGIN_PERCENT) // (100 * _KIB_OF_MIB))


def disk_memory_kib(layout: DiskLayout, threads: int) -> int:
    """KiB that memcached takes for a disk; keys and headers of items on it are in the memory for items.

    Args:
        threads: that read and write (ext_threads).
    """
    buffers = _DISK_BUFFERS * layout.buffer_mib * _KIB_OF_MIB
    return buffers + -(-layout.pages * _DISK_PAGE_BYTES // 1024) + threads * _THREAD_KIB


def _hash_table_kib(memory_mib: int, least_item_bytes: int) -> int:
    """The table for as many items as there can be, and the one before it."""
    items = memory_mib * 2**20 // least_item_bytes
    buckets = _FIRST_TABLE
    while items * 2 > buckets * 3:
        buckets *= 2
    return (buckets + buckets // 2) * _BUCKET_BYTES // 1024
