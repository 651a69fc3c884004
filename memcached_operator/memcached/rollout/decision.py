"""Pure: how the servers of a Memcached come to a new template, and at which pace.

A server that is replaced has lost its keys. So one is replaced after the other, from the highest ordinal, and the next
only when all have been ready for `spec.rollout.pauseSeconds`. Of a StatefulSet the operator does this, by evictions, so
that disruption budgets hold; a Deployment's own controller does the like where the template changed. Where a Secret
did, of which no template tells, the operator does it for both. What is decided here follows from the caches, and from
what the servers show, so that a new leader goes on at the same pace.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from memcached_operator.memcached.observed.pod_status import may_pass
from memcached_operator.memcached.observed.pods import NO_ORDINAL, PodRecord
from memcached_operator.memcached.observed.workloads import WorkloadRecord
from memcached_operator.memcached.rollout import in_place
from memcached_operator.memcached.spec import Spec

STUCK_AFTER_S: Final = 120.0
"""After so many seconds a server that does not get ready is thought to never do so. memcached starts in less than one;
the rest is for an image that must be pulled."""


class Rollout(NamedTuple):
    """How far it is, and what is to be done now.

    Attributes:
        stale: how many servers are of another template.
        evict: the server that is to be replaced now, None for none.
        stuck: why it does not go on by itself, "" where it does.
        next_s: seconds until more is to be done, None where an event will tell.
        change: the server that is to be changed in place now, None for none.
        settle: one that has been, and is yet to be counted as such; None for none.
        in_place: how many of the stale are changed in place, and keep their items.
    """

    stale: int = 0
    evict: PodRecord | None = None
    stuck: str = ""
    next_s: float | None = None
    change: PodRecord | None = None
    settle: PodRecord | None = None
    in_place: int = 0


DONE: Final = Rollout()


def rollout(
    spec: Spec,
    workload: WorkloadRecord | None,
    pods: Sequence[PodRecord],
    impossible: Container[str],
    now: datetime,
    missing_s: float = 0.0,
    *,
    underway: bool = False,
    late: Container[str] = (),
    known: bool = False,
) -> Rollout:
    """What follows from what there is.

    Args:
        workload: what runs the servers, None while there is none.
        pods: its active pods, in any order.
        impossible: uids of those whose memory cannot be changed while they run.
        now: the time, with its zone.
        missing_s: for how long servers have been missing, in seconds, as far as that was seen; see `missing`.
        underway: a rollout was on its way by the last status, of which the last server may be yet to get ready.
        late: uids of those that show another certificate than a new pod would, or trust another CA.
        known: why servers are missing is said beside.
    """
    if workload is None or workload.deleting:
        return DONE
    servers = [pod for pod in pods if pod.workload == workload.kind and pod.ordinal < max(spec.size, 0)]
    stale = [pod for pod in servers if is_stale(pod, workload, impossible)]
    if workload.kind == "Deployment" and stale:
        return Rollout(len(stale))
    stale = [pod for pod in servers if pod in stale or pod.uid in late]
    if workload.kind == "Deployment" and (not stale or len(servers) < spec.size):
        return Rollout(len(stale))
    if not (stale or underway):
        return DONE
    now_s = now.timestamp()
    lost_in_place = [pod for pod in stale if in_place.is_lost(pod, workload, now_s)]
    begun = [pod for pod in stale if pod not in lost_in_place and in_place.is_begun(pod, workload)]
    possible = [pod for pod in stale if pod not in lost_in_place and in_place.is_possible(pod, workload)]
    so_far = Rollout(len(stale), in_place=len(possible))
    if workload.settled and (arrived := [pod for pod in begun if in_place.has_arrived(pod, workload, now_s)]):
        return so_far._replace(settle=arrived[0])
    if spec.rollout.paused or not workload.settled:
        return so_far
    due = [pod for pod in stale if pod not in begun]
    restarting = [pod for pod in stale if in_place.is_restarting(pod, now_s)]
    if lost := [pod for pod in due if pod.down and pod not in restarting]:
        return _turn_of(_highest(lost), possible, so_far)
    if gone := missing(spec, workload, pods):
        if missing_s < STUCK_AFTER_S:
            return so_far._replace(next_s=STUCK_AFTER_S - missing_s)  # the StatefulSet's controller is making one
        ordinals = {pod.ordinal for pod in servers}
        highest = next(each for each in range(spec.size - 1, -1, -1) if each not in ordinals)
        return so_far._replace(stuck=_not_made(workload.name, highest, gone, len(stale), known=known))
    idle = [pod for pod in due if _is_idle(pod, now_s)]
    unready = [pod for pod in servers if not pod.ready or pod in begun or pod in restarting]
    if len(unready) > len(idle):
        fresh = [pod for pod in unready if pod not in due and pod not in restarting]
        fresh = [pod for pod in fresh if pod.problem or pod.ready or _is_idle(pod, now_s)]
        stuck = next((pod for pod in fresh if not _may_yet_start(pod, now_s)), None)
        left = [in_place.left_s(pod, now_s) or _left_s(pod, STUCK_AFTER_S, now_s) for pod in unready]
        next_s = min(filter(None, left), default=None)
        return so_far._replace(stuck=_stuck(stuck, len(due)) if stuck else "", next_s=next_s)
    if not stale:
        return DONE
    # One that is not ready may have keys, as where its node cannot be reached: it takes its turn.
    next_s = max((_left_s(pod, spec.rollout.pauseSeconds, now_s) for pod in servers if pod.ready), default=0.0)
    return so_far._replace(next_s=next_s) if next_s else _turn_of(_highest(idle or due), possible, so_far)


def _turn_of(pod: PodRecord, possible: Container[PodRecord], so_far: Rollout) -> Rollout:
    if pod in possible:
        return so_far._replace(change=pod)
    return so_far._replace(evict=pod)


def missing(spec: Spec, workload: WorkloadRecord | None, pods: Sequence[PodRecord]) -> int:
    """How many of a StatefulSet's servers are not there, or are ending."""
    if workload is None or workload.kind != "StatefulSet":
        return 0
    return spec.size - sum(NO_ORDINAL < pod.ordinal < spec.size for pod in pods)


def is_stale(pod: PodRecord, workload: WorkloadRecord, impossible: Container[str] = ()) -> bool:
    """Whether only a new pod would be as the template says.

    Args:
        impossible: uids of pods whose memory cannot be changed while they run.
    """
    rolls = (pod.rolls, pod.restarted) != (workload.rolls, workload.restarted)
    if workload.kind == "Deployment":
        # A pod whose annotations were removed says nothing of it.
        return bool(pod.rolls) and (rolls or pod.memory != workload.memory)
    if pod.in_place:
        return True
    if not workload.revision or pod.template_hash == workload.revision:
        return False
    # A template that differs in nothing of ours was changed by another client, who waits for new pods.
    return rolls or pod.memory == workload.memory or pod.uid in impossible


def _is_idle(pod: PodRecord, now_s: float) -> bool:
    """Whether a server has been of no use for long."""
    return not pod.ready and not _left_s(pod, STUCK_AFTER_S, now_s)


def _may_yet_start(pod: PodRecord, now_s: float) -> bool:
    """Whether a new server waits for what often comes by itself."""
    return may_pass(pod.problem) and _left_s(pod, STUCK_AFTER_S, now_s) > 0.0


def _left_s(pod: PodRecord, enough_s: float, now_s: float) -> float:
    """Seconds until a pod has been as it is for long enough, by its node's clock; no more than that at a time."""
    return min(max(pod.since_s + enough_s - now_s, 0.0), enough_s)


def _highest(pods: Sequence[PodRecord]) -> PodRecord:
    return max(pods, key=lambda pod: (pod.ordinal, pod.name))


def _not_made(name: str, ordinal: int, gone: int, stale: int, *, known: bool) -> str:
    more = f", nor have {gone - 1} others" if gone > 2 else ", nor has another" if gone > 1 else ""
    why = "" if known else f" The events of `kubectl describe statefulset {name}` say why."
    return (
        f"The server {name}-{ordinal} has no pod{more}{_left(stale)}.{why} Correct the cause or the specification, "
        "or restore the previous specification."
    )


def _stuck(pod: PodRecord, stale: int) -> str:
    why = f" ({pod.problem})" if pod.problem else ""
    if pod.in_place:
        is_not = "has not started its container again" if pod.ready else "is not ready after its change in place"
        return (
            f"The server {pod.name} {is_not}{why}{_left(stale, 'changed')}. Correct the specification, or restore the "
            "previous one: then this server is changed first, and has its items as long as its pod is there."
        )
    return (
        f"The new server {pod.name} is not ready{why}{_left(stale)}. Correct the specification, or restore the "
        "previous one: then this server is replaced first."
    )


def _left(stale: int, done: str = "replaced") -> str:
    return f", so the other {stale} are not {done}" if stale else ""
