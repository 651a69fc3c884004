"""Pure: report of the memory that follows what is evicted: the condition Retaining, events, and steps that are refused.

The condition has the last decision until as much is known again, as after each step, and under a new leader. No server
is replaced for memory that nobody specified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from memcached_operator.api.quantities import mebibytes, of_mebibytes
from memcached_operator.api.status import RETAINING, Problem, Reason, Status, sentence
from memcached_operator.api.v1alpha1 import MemoryScaling, Spec
from memcached_operator.core.objects.memory_annotation import memory_of
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.outcome import Blocked
from memcached_operator.core.rollout.live.resize_state import Resizing
from memcached_operator.features.memory_scaling.scaling_decision import (
    AtMaximum,
    Decision,
    ForeignLimit,
    Grow,
    Observing,
    Retained,
    ScalingWait,
)
from operator_runtime import Condition

# In which servers report nothing of what they evict, whatever else is known of them.
_UNKNOWN: Final = (Reason.UNREACHABLE, Reason.CREDENTIALS_MISSING)
_DECIDED: Final = (
    *(Reason.RETENTION_KEPT, Reason.MEMORY_UNUSED, Reason.GROWING, Reason.MAXIMUM_REACHED),
    *(Reason.RESIZE_IMPOSSIBLE, Reason.QUOTA_EXCEEDED),
)


@dataclass(frozen=True, slots=True)
class Scaling:
    """Result of a decision about a Memcached's memory.

    Attributes:
        memory: of each server, to be in force now, as a quantity.
        recommended: with which the retention would be kept, None where that is no less.
    """

    spec: MemoryScaling
    decision: Decision
    memory: str
    recommended: str | None = None


class ScalingEvent(NamedTuple):
    type: Literal["Normal", "Warning"]
    reason: str
    note: str


def retaining(scaling: Scaling, serving: Condition, last: Status, generation: int, *, is_queried: bool) -> Condition:
    if not is_queried or (serving.status == "Unknown" and serving.reason in _UNKNOWN):
        message = f"What servers evict is not known, so their memory does not grow. {serving.message}"
        return Condition(RETAINING, "Unknown", serving.reason, message)
    retention = _retention(scaling)
    match scaling.decision:
        case Retained(is_unused=True):
            return Condition(RETAINING, "True", Reason.MEMORY_UNUSED, f"{_unused(scaling)}.")
        case Retained():
            message = f"What clients request is evicted no earlier than {retention} after the last request for it."
            return Condition(RETAINING, "True", Reason.RETENTION_KEPT, message)
        case Grow():
            return Condition(RETAINING, "False", Reason.GROWING, f"{_step(scaling.decision, retention)}.")
        case ScalingWait(ready=ready, servers=servers, is_rolling=is_rolling):
            until = "no server is to be replaced" if is_rolling else f"all servers are ready; {ready} of {servers} are"
            message = f"Items idle for less than {retention} are evicted. The memory grows once {until}."
            return Condition(RETAINING, "False", Reason.WAITING, message)
        case AtMaximum():
            message = (
                f"Items idle for less than {retention} are evicted, and the memory is at spec.memoryScaling.max, "
                f"{scaling.spec.max}. Raise it, or lower spec.memoryScaling.retentionSeconds."
            )
            return Condition(RETAINING, "False", Reason.MAXIMUM_REACHED, message)
        case Blocked(problem=problem):
            return Condition(RETAINING, "False", problem.reason, problem.message)
        case ForeignLimit(server=server, limit_mib=limit_mib, mib=mib):
            message = (
                f"{server} uses {limit_mib} MiB for items instead of {mib} MiB, as after another client's "
                f"cache_memlimit. Nothing is decided until it has what the others have: send it cache_memlimit {mib}, "
                "or delete its pod."
            )
            return Condition(RETAINING, "Unknown", Reason.OBSERVING, message)
        case Observing():
            before, applies = last.condition(RETAINING), (last.memory, last.observedGeneration)
            # Its numbers are those of the memory and of the specification then.
            if before is not None and before.reason in _DECIDED and applies == (scaling.memory, generation):
                return before
            message = "It is not known yet what servers evict; they are observed before anything is decided."
            return Condition(RETAINING, "Unknown", Reason.OBSERVING, message)


def events(scaling: Scaling, last: Status) -> list[ScalingEvent]:
    """List the events, which are also log lines, to record once the status was written."""
    found, before = [], last.condition(RETAINING)
    match scaling.decision:
        case Grow() if scaling.memory != last.memory:
            found.append(ScalingEvent("Normal", "MemoryGrows", _step(scaling.decision, _retention(scaling))))
        case Blocked(problem=problem) if before is None or before.message != problem.message:
            found.append(ScalingEvent("Warning", problem.reason, problem.message))
        case AtMaximum() if before is None or before.reason != Reason.MAXIMUM_REACHED:
            note = f"Items idle for less than {_retention(scaling)} are evicted at the maximum of {scaling.spec.max}"
            found.append(ScalingEvent("Warning", Reason.MAXIMUM_REACHED, note))
        case Retained(is_unused=True) if before is None or before.reason != Reason.MEMORY_UNUSED:
            found.append(ScalingEvent("Normal", Reason.MEMORY_UNUSED, _unused(scaling)))
    return found


def _blocked(why: str, reason: Reason, kept_mib: int) -> Blocked:
    """Build the decision for servers that could not all be given more memory, so that all keep what they have."""
    message = f"All servers keep {kept_mib} MiB. {sentence(why)}"
    return Blocked(Problem(reason, message, blocking=False), kept_mib)


def _unused(scaling: Scaling) -> str:
    return (
        f"For a day, {scaling.recommended} of {scaling.memory} would have kept what clients request within "
        f"{_retention(scaling)}. Servers do not shrink by themselves, as that evicts: to shrink them, lower "
        "spec.memory and spec.memoryScaling.max"
    )


def _step(step: Grow, retention: str) -> str:
    idle = duration_text(step.idle_s)
    return f"Items idle for {idle} were evicted, retention is {retention}: {step.from_mib} → {step.to_mib} MiB"


def _retention(scaling: Scaling) -> str:
    """Write the retention in the largest unit of which it is a whole number."""
    seconds = scaling.spec.retentionSeconds
    unit, length_s = next(each for each in (("h", 3600), ("m", 60), ("s", 1)) if seconds % each[1] == 0)
    return f"{seconds // length_s}{unit}"


def duration_text(seconds: float) -> str:
    """Write a time in the largest unit that needs no fraction to be about right, as 45s, 12m or 3h."""
    if seconds < 120:
        return f"{seconds:.0f}s"
    return f"{seconds / 60:.0f}m" if seconds < 7200 else f"{seconds / 3600:.0f}h"


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
        return _blocked(refused.message, reason, before.mib)
    if resizing.impossible:
        names = {each.uid: each.name for each in servers}
        uid = min(resizing.impossible, key=lambda each: names.get(each, each))
        why = f"{names.get(uid, uid)} cannot get {after.mib} MiB: {resizing.impossible[uid]}"
        return _blocked(why, Reason.RESIZE_IMPOSSIBLE, before.mib)
    return None


def without_replacing(resizing: Resizing) -> Resizing:
    """The same without servers that would be replaced, and without news: what prevents it is reported elsewhere."""
    pending = resizing.pending if resizing.failure is not None else {}
    return resizing._replace(pending=pending, impossible={}, refused=None)
