"""Pure: failure of the servers' pods that nothing has made good since.

A pod that its node rejects, or evicts, has failed for good: its controller makes another one. A ReplicaSet leaves it
for days, and a StatefulSet deletes it at once, so that it is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from memcached_operator.core.observed.pod_status import NO_PROBLEM, PodProblem
from memcached_operator.core.observed.pods import PodRecord


class PodFailure(NamedTuple):
    """Failure of a pod.

    Attributes:
        since_s: since when the pod was not ready, in seconds since 1970.
    """

    problem: PodProblem = NO_PROBLEM
    since_s: int = 0


NO_FAILURE: Final = PodFailure()


def last_failure(pods: Sequence[PodRecord], before: PodFailure) -> PodFailure:
    """Find the last failure, unless a server has become ready since then.

    Args:
        before: the one that was found last. Its words stay while the reason does: they have numbers in them.
    """
    ready_s = max((pod.since_s for pod in pods if pod.ready), default=0)
    failures = (before, *(PodFailure(pod.failure, pod.since_s) for pod in pods))
    found = [each for each in failures if each.problem and each.since_s >= ready_s]
    last = max(found, key=lambda each: each.since_s, default=NO_FAILURE)
    return last._replace(problem=before.problem) if last.problem.reason == before.problem.reason else last
