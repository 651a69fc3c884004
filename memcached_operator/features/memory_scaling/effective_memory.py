"""Pure: memory that the servers of a Memcached are to have: what is specified, or what it has grown to."""

from __future__ import annotations

import re
from typing import Final

from memcached_operator.api.quantities import as_memory, mebibytes
from memcached_operator.api.v1alpha1 import MEMORY_PATTERN, Spec
from memcached_operator.core.objects.memory_annotation import memory_of

_MEMORY: Final = re.compile(MEMORY_PATTERN)


def with_effective_memory(spec: Spec, reported: str | None, live: str = "") -> Spec:
    """A specification with the memory that is in force, by which all is made.

    Args:
        reported: `status.memory` as it was last written, by whichever client; None where it was not.
        live: what servers are made with, as `labels.MEMORY_ANNOTATION` has it, for a status that lost it.
    """
    if (scaling := spec.memoryScaling) is None:
        return spec
    if reported is not None and _MEMORY.fullmatch(reported):
        known_mib = mebibytes(reported)
    elif (made := memory_of(live)) is not None:
        known_mib = made.mib
    else:
        return spec
    mib = min(known_mib, mebibytes(scaling.max))
    return spec.model_copy(update={"memory": as_memory(mib)}) if mib > mebibytes(spec.memory) else spec
