"""Pure: the annotation with the memory that running servers are given, written and read."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from memcached_operator.api.quantities import mebibytes, of_mebibytes

# More than any server has: what is larger another client wrote.
_MOST_MIB: Final = 2**40


class Memory(NamedTuple):
    """Memory in the annotation `labels.MEMORY_ANNOTATION`.

    Attributes:
        mib: that memcached may use for items.
        request, limit: of its container, as quantities.
        disk_from: bytes from which on it moves an item to its disk; None without a disk.
    """

    mib: int
    request: str
    limit: str
    disk_from: int | None = None

    def __str__(self) -> str:
        """Format as messages have it after "to"."""
        disk = "" if self.disk_from is None else f", with items of {self.disk_from} bytes or more moved to the disk,"
        return f"{self.mib} MiB{disk}"

    @property
    def items(self) -> str:
        """Memory for items as a quantity, as `spec.memory` has it."""
        return of_mebibytes(self.mib)

    @property
    def annotation(self) -> str:
        disk = () if self.disk_from is None else (str(self.disk_from),)
        return ",".join((self.items, self.request, self.limit, *disk))


def memory_of(annotation: str) -> Memory | None:
    """Parse such an annotation, None where it is not of the operator's."""
    try:
        items, request, limit, *disk = annotation.split(",")
        mib = mebibytes(items)
        disk_from = count_of(*disk) if disk else None
    except (TypeError, ValueError):
        return None
    return Memory(mib, request, limit, disk_from) if mib <= _MOST_MIB else None


def count_of(text: str) -> int:
    """A number that the operator wrote into an annotation: of bytes, of restarts, or of seconds since 1970.

    Raises:
        ValueError: it is none, as of another client that wrote it: longer than any, for one.
    """
    if re.fullmatch("[0-9]{1,10}", text, re.ASCII) is None:
        raise ValueError(f"no count: {text[:20]!r}")
    return int(text)
