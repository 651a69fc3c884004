"""Pure: progress of servers to memory that nobody specified: none is replaced for its sake."""

from __future__ import annotations

from collections.abc import Sequence

from memcached_operator.api.quantities import mebibytes, of_mebibytes
from memcached_operator.api.status import Reason
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.memory_annotation import memory_of
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.outcome import Blocked
from memcached_operator.core.rollout.live.resize_state import Resizing
from memcached_operator.features.memory_scaling.retaining_condition import blocked


def without_step(spec: Spec, specified: str, live: str) -> Spec:
    """A specification without a step that servers have yet to take; the same where there is none.

    Args:
        spec: with the memory in force.
        specified: the memory that the user specifies.
        live: what servers are made with, as `labels.MEMORY_ANNOTATION` has it.
    """
    made = memory_of(live)
    if made is None or max(made.mib, mebibytes(specified)) >= mebibytes(spec.memory):
        return spec
    memory = of_mebibytes(made.mib) if made.mib > mebibytes(specified) else specified
    return spec.model_copy(update={"memory": memory})


def refusal(resizing: Resizing, servers: Sequence[PodRecord], kept: str, desired: str) -> Blocked | None:
    """Explain why the servers cannot all be given the memory, None where they can, as far as is known.

    Args:
        kept, desired: what all of them have and what they are to have, as `labels.MEMORY_ANNOTATION` has it.
    """
    before, after = memory_of(kept), memory_of(desired)
    if before is None or after is None or before.mib >= after.mib:
        return None
    if (refused := resizing.refused) is not None:
        is_quota = refused.reason is Reason.QUOTA_EXCEEDED
        reason = Reason.QUOTA_EXCEEDED if is_quota else Reason.RESIZE_IMPOSSIBLE
        return blocked(refused.message, reason, before.mib)
    if resizing.impossible:
        names = {each.uid: each.name for each in servers}
        uid = min(resizing.impossible, key=lambda each: names.get(each, each))
        why = f"{names.get(uid, uid)} cannot get {after.mib} MiB: {resizing.impossible[uid]}"
        return blocked(why, Reason.RESIZE_IMPOSSIBLE, before.mib)
    return None


def without_replacing(resizing: Resizing) -> Resizing:
    """The same without servers that would be replaced, and without news: what prevents it is reported elsewhere."""
    pending = resizing.pending if resizing.failure is not None else {}
    return resizing._replace(pending=pending, impossible={}, refused=None)
