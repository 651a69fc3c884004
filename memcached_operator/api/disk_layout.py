"""Pure: layout of a server's disk as memcached divides it (extstore).

Source of the rules: storage.c and extstore.c of memcached 1.6.45, in brackets below; a unit test tries each refusal on
the program.
"""

from __future__ import annotations

from typing import Final, NamedTuple

# Of the volume: a filesystem keeps some of it for itself, and what is next to the file, such as a log, has a place.
_SHARE_PERCENT: Final = 95
# memcached's own (ext_wbuf_size), and the most that is taken for the sake of speed alone.
_LEAST_BUFFER_MIB: Final = 4
_MOST_BUFFER_MIB: Final = 32
# An item is written whole into one buffer (storage_check_config refuses a larger one), and what is left of the buffer
# when the next one does not fit is lost on the disk.
_ITEMS_OF_A_BUFFER: Final = 4
# memcached's own (ext_page_size). A page is evicted, or compacted, as a whole: so a small disk has smaller ones.
_PAGE_MIB: Final = 64
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
    while page_mib < _PAGE_MIB and file_mib // page_mib >= 2 * _PAGES:
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
