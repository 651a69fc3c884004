"""Pure: marks, which servers that copy items from each other store in the place of items for some seconds.

`features/handover/handover.lua` stores them, with these flags and this size.
"""

from __future__ import annotations

from typing import Final

# Placeholder, tomb, and absent.
MARK_FLAGS: Final = (4076008192, 4076008193, 4076008194)
MARK_BYTES: Final = 13


def is_mark(flags: int | None, size: int | None) -> bool:
    """Report whether an item with these flags, and a value of so many bytes, is a mark."""
    return size == MARK_BYTES and flags in MARK_FLAGS
