"""Equal texts of many records as one object: namespaces, hashes of templates, reasons."""

from __future__ import annotations

from functools import lru_cache


# What many records have is requested again and again, and stays, while what few have passes, such as the hash of a
# template. One that falls out is held once more, in some 60 bytes; one that stays takes 200.
@lru_cache(maxsize=512)
def shared(text: str) -> str:
    """The string that stands for all equal ones.

    `sys.intern` would do the same, but Python 3.12 never frees what it was given, and what users name has no end.
    """
    return text
