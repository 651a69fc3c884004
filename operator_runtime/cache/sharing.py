"""Equal texts of many records as one object: namespaces, hashes of templates, reasons."""

from __future__ import annotations

from functools import lru_cache


# More than a cluster has namespaces, and less than 1 MiB. A text that falls out is merely held twice.
@lru_cache(maxsize=4096)
def shared(text: str) -> str:
    """The string that stands for all equal ones.

    `sys.intern` would do the same, but Python 3.12 never frees what it was given, and what users name has no end.
    """
    return text
