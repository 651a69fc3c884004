"""Pure: memory that the servers of a Memcached are to have: what is specified, or what it has grown to."""

from __future__ import annotations

from memcached_operator.api.quantities import mebibytes, of_mebibytes
from memcached_operator.api.v1alpha1 import MEMORY_MAX, Spec
from memcached_operator.core.objects.memory_annotation import memory_of


def with_effective_memory(spec: Spec, reported: str | None, live: str = "") -> Spec:
    """A specification with the memory that is in force, by which all is made.

    Args:
        reported: `status.memory` as it was last written, by whichever client; None where it was not.
        live: what servers are made with, as `labels.MEMORY_ANNOTATION` has it, for a status that lost it.
    """
    if (scaling := spec.memoryScaling) is None:
        return spec
    if (known_mib := _written_mib(reported or "")) is None:
        if (made := memory_of(live)) is None:
            return spec
        known_mib = made.mib
    mib = min(known_mib, mebibytes(scaling.max))
    return spec.model_copy(update={"memory": of_mebibytes(mib)}) if mib > mebibytes(spec.memory) else spec


def _written_mib(reported: str) -> int | None:
    """MiB as the operator writes them; None where another client wrote it."""
    try:
        mib = mebibytes(reported)
    except ValueError:
        return None
    return mib if of_mebibytes(mib) == reported and mib <= mebibytes(MEMORY_MAX) else None
