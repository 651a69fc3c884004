"""Pure: memory that a memcached takes, from its settings, and how it divides its disk (extstore).

`core/objects/pod_template.py` makes a pod's limit of the former. The terms are those of memcached 1.6.45's sources
(storage.c and extstore.c for the disk), in brackets below; docs/sizing.md has what was measured for them, and a unit
test tries each refusal of a disk on the program.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from memcached_operator.api.arguments import judge_arguments
from memcached_operator.api.quantities import kibibytes, mebibytes
from memcached_operator.api.v1alpha1 import Spec

# Of the volume: a filesystem keeps some of it for itself, and what is next to the file, such as a log, has a place.
_SHARE_PERCENT: Final = 95
# memcached's own (ext_wbuf_size), and the most that is taken for the sake of speed alone.
_LEAST_BUFFER_MIB: Final = 4
_MOST_BUFFER_MIB: Final = 32
# An item is written whole into one buffer (storage_check_config refuses a larger one), and what is left of the buffer
# when the next one does not fit is lost on the disk.
_ITEMS_OF_A_BUFFER: Final = 4
# memcached's own (ext_page_size). A page is evicted, or compacted, as a whole: so a small disk has smaller ones.
_DISK_PAGE_MIB: Final = 64
_PAGES: Final = 64
# More are refused (extstore_init), as an item has its page's number in 16 bits.
_MOST_PAGES: Final = 2**16 - 2
# There are six kinds of pages that are written at the same time (PAGE_BUCKET_COUNT), and some must be full.
_LEAST_PAGES: Final = 8


class DiskLayout(NamedTuple):
    """The sizes with which memcached is started, in MiB.

    Invariants:
        All are even, and `page_mib` is a multiple of `buffer_mib` and below 4,096, as its bytes are counted in 32 bits.

    Attributes:
        buffer_mib: of each write buffer.
        page_mib: of each page.
        pages: how many there are.
    """

    buffer_mib: int
    page_mib: int
    pages: int

    @property
    def file_mib(self) -> int:
        """The file's size."""
        return self.page_mib * self.pages


def disk_layout(volume_mib: int, item_kib: int) -> DiskLayout:
    """The layout for a volume that is at least of `least_volume_mib`.

    Args:
        volume_mib: size of the volume.
        item_kib: size of the largest item.
    """
    file_mib, buffer_mib = volume_mib * _SHARE_PERCENT // 100, _buffer_mib(item_kib)
    page_mib = 2 * buffer_mib
    while page_mib < _DISK_PAGE_MIB and file_mib // page_mib >= 2 * _PAGES:
        page_mib *= 2
    while file_mib // page_mib > _MOST_PAGES:
        page_mib *= 2
    return DiskLayout(buffer_mib, page_mib, file_mib // page_mib)


def least_volume_mib(item_kib: int) -> int:
    """MiB of the smallest volume for items up to that size."""
    return -(-_LEAST_PAGES * 2 * _buffer_mib(item_kib) * 100 // _SHARE_PERCENT)


def _buffer_mib(item_kib: int) -> int:
    """A power of two, as are pages, so that the one divides the other."""
    item_mib = 1
    while item_mib * 1024 < item_kib:
        item_mib *= 2
    return max(item_mib, min(item_mib * _ITEMS_OF_A_BUFFER, _MOST_BUFFER_MIB), _LEAST_BUFFER_MIB)


_KIB_OF_MIB: Final = 1024

# Pages of 1 MiB hold the items. Each is an allocation with a header, and the kernel has tables of its pages: 6 KiB.
_PAGES_SHARE: Final = 128
# Where the memory is full, a size class that has no page yet still gets its first (do_slabs_newslab). What fills the
# memory is in one of them.
_PAGE_MIB: Final = 1
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


def memory_of_server_mib(spec: Spec) -> int:
    """MiB that a server takes at most: full of the smallest items and then some of all sizes, its connections busy.

    The size of the largest item (-I) adds nothing: large ones are made of the same pages.
    """
    judged, memory_mib = judge_arguments(spec.extraArgs, spec.threads), mebibytes(spec.memory)
    kib = (memory_mib + (judged.size_classes - 1) * _PAGE_MIB + _PROCESS_MIB) * _KIB_OF_MIB
    kib += memory_mib * _KIB_OF_MIB // _PAGES_SHARE + _hash_table_kib(memory_mib, judged.least_item_bytes)
    kib += spec.threads * _THREAD_KIB + spec.maxConnections * (_CONNECTION_KIB + (_TLS_KIB if spec.tls else 0))
    if (disk := spec.extstore) is not None:
        kib += _disk_memory_kib(disk_layout(mebibytes(disk.size), kibibytes(spec.maxItemSize)), disk.threads)
    if spec.handover is not None:
        kib += (_HANDOVER_MIB + spec.threads * _HANDOVER_OF_A_THREAD_MIB) * _KIB_OF_MIB
    return -(-kib * (100 + _MARGIN_PERCENT) // (100 * _KIB_OF_MIB)) + judged.table_mib


def _disk_memory_kib(layout: DiskLayout, threads: int) -> int:
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


def memory_file_mib(spec: Spec) -> int:
    """MiB of the file in which a server has its items.

    It is as large as -m, and memcached gives each size class its first page of it before there is any item. Without a
    file that page comes besides, when the class has its first item.
    """
    return mebibytes(spec.memory) + judge_arguments(spec.extraArgs, spec.threads).size_classes - 1
