"""Pure: how much memory the servers of a Memcached are to have: what is specified, or what it has grown to."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from memcached_operator.api.names import MEMORY_PATTERN
from memcached_operator.api.quantities import canonical, mebibytes
from memcached_operator.memcached.spec import Spec

_MEMORY: Final = re.compile(MEMORY_PATTERN)


def with_memory_in_force(spec: Spec, reported: str | None) -> Spec:
    """A specification with the memory that is in force, by which all is made.

    Args:
        reported: `status.memory` as it was last written, by whichever client; None where it was not.
    """
    scaling = spec.memoryScaling
    if scaling is None or reported is None or not _MEMORY.fullmatch(reported):
        return spec
    mib = min(mebibytes(reported), mebibytes(scaling.max))
    return msgspec.structs.replace(spec, memory=quantity(mib)) if mib > mebibytes(spec.memory) else spec


def quantity(mib: int) -> str:
    """So many MiB as the status has them."""
    return canonical(f"{mib}Mi")
