"""Pure: times since when pods are as they are, as far as this operator may believe them.

Nodes, the scheduler and the API server write their own times into a pod. One whose clock is ahead writes a time that is
yet to come, and what waits for so many seconds after it would wait for as long as that clock is ahead. So no wait lasts
longer than it would from the moment at which this operator saw the time first. Which clock it has makes no difference:
its own waits are counted by one that nobody sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from memcached_operator.core.observed.pod_status import NO_PROBLEM, PodProblem
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.rollout.diagnosis.bounded_reads import READ_AFTER_S
from memcached_operator.core.rollout.in_place import requested

AHEAD_S: Final = 5.0
"""By less a time may be ahead of the operator's without a word, and without effect: clocks that are set over a network
are right to within a second, and Kubernetes' times are in whole ones."""
WAIT_S: Final = 30.0
"""After so many seconds what a pod waits for is reported as its problem. A node mounts a volume in one or two."""

_Stamp = tuple[str, str, int]
Seen = Mapping[_Stamp, float]
"""Times that were yet to come when they were seen first, by the pod's uid and what they are of, and when that was, by
a monotonic clock."""
UNSEEN: Final[Seen] = {}


class ObservedPods(NamedTuple):
    """Pods, as far as their reports are to be believed.

    Attributes:
        pods: in the order in which they came, with times that are not yet to come.
        ahead: names of those with times that are, of which the clock that wrote them is ahead.
        seen: to be remembered.
        next_s: seconds until more is to be reported of one, None for never.
        failure: why pods have failed, as far as nothing has made that good.
    """

    pods: Sequence[PodRecord]
    ahead: tuple[str, ...]
    seen: Seen
    next_s: float | None
    failure: PodProblem = NO_PROBLEM

    @property
    def active(self) -> Sequence[PodRecord]:
        """Pods that are neither terminating nor finished."""
        return [pod for pod in self.pods if pod.active]

    @property
    def inactive(self) -> Sequence[PodRecord]:
        """The others."""
        return [pod for pod in self.pods if not pod.active]


def observed_pods(pods: Sequence[PodRecord], seen: Seen, now_s: float, clock_s: float) -> ObservedPods:
    """Correct the times that pods report, and delay problems that may pass.

    Args:
        seen: what was remembered.
        now_s: the operator's time, in seconds since 1970.
        clock_s: by its monotonic clock.
    """
    known: dict[_Stamp, float] = {}
    ahead = tuple(sorted(pod.name for pod in pods if max(_times(pod).values()) > now_s + AHEAD_S))
    if seen or ahead:
        pods = [_believed(pod, seen, known, now_s, clock_s) for pod in pods]
    next_s = min((_next_s(pod, now_s) for pod in pods if pod.starts and (pod.waits or pod.down)), default=None)
    if next_s is not None:
        pods = [_reported(pod, now_s) for pod in pods]
    return ObservedPods(pods, ahead, known, next_s)


def _believed(pod: PodRecord, seen: Seen, known: dict[_Stamp, float], now_s: float, clock_s: float) -> PodRecord:
    """Replace a pod's times that are yet to come, or were when they were seen first; add those to `known`."""
    for of, at in _times(pod).items():
        stamp = pod.uid, of, at
        if stamp in seen or at > now_s + AHEAD_S:
            first_s = known[stamp] = seen.get(stamp, clock_s)
            pod = _since(pod, of, min(at, int(now_s - (clock_s - first_s))))
    return pod


def _next_s(pod: PodRecord, now_s: float) -> float:
    """Seconds until more may be known of a pod that starts: what it waits for is no event (`event_predicates`).

    A node says that within seconds. While a pod has none, there is nothing to see.
    """
    left_s = pod.since_s + (READ_AFTER_S if pod.placed and not pod.waits else WAIT_S) - now_s
    return left_s if left_s > 0.0 else WAIT_S


def _reported(pod: PodRecord, now_s: float) -> PodRecord:
    """A pod whose wait is its problem if it takes long."""
    late = pod.starts and pod.since_s + WAIT_S <= now_s
    return msgspec.structs.replace(pod, problem=pod.waits) if late else pod


def _times(pod: PodRecord) -> Mapping[str, int]:
    """The times on a pod that others wrote, in seconds since 1970, by what they are of."""
    request = requested(pod) if pod.in_place else None
    times = {"ready": pod.since_s}
    if request is not None:
        times["in place"] = request.since_s
    if pod.termination is not None:
        times["termination"] = pod.termination.since_s
    return times


def _since(pod: PodRecord, of: str, since_s: int) -> PodRecord:
    """A pod that is so since then."""
    if of == "ready":
        return msgspec.structs.replace(pod, since_s=since_s)
    if of == "in place" and (request := requested(pod)) is not None:
        return msgspec.structs.replace(pod, in_place=str(request._replace(since_s=since_s)))
    if pod.termination is not None:
        ends_s = pod.termination.ends_s - pod.termination.since_s + since_s
        return msgspec.structs.replace(
            pod, termination=msgspec.structs.replace(pod.termination, since_s=since_s, ends_s=ends_s)
        )
    return pod
