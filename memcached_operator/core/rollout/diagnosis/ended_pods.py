"""Pure: pods that are being deleted and do not end, and the failure of pods that nothing has made good since.

A pod that its node rejects, or evicts, has failed for good: its controller makes another one. A ReplicaSet leaves it
for days, and a StatefulSet deletes it at once, so that it is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from memcached_operator.core.objects.owned_object import named_finalizers, who_must_remove
from memcached_operator.core.observed.pod_status import NO_PROBLEM, PodProblem
from memcached_operator.core.observed.pods import PodRecord, Termination
from operator_runtime import rfc3339

OVERDUE_S: Final = 60.0
"""So many seconds after its grace period a pod is thought to need a person: the kubelet kills what is left of it at
once, and then takes it off the API."""
# In a message; `kubectl get pods` lists the others.
_NAMED: Final = 3


def overdue(pods: Iterable[PodRecord], now_s: float) -> tuple[str, float | None]:
    """Explain what keeps pods whose deletion is overdue by now, and the remedy; "" where none is.

    The second result is in how many seconds another one will be, None for never.
    """
    left_s = {pod: pod.termination.ends_s + OVERDUE_S - now_s for pod in pods if pod.termination is not None}
    late = [pod for pod, seconds in left_s.items() if seconds <= 0]
    return why_not_ended(late), min((each for each in left_s.values() if each > 0), default=None)


def why_not_ended(pods: Sequence[PodRecord]) -> str:
    """Explain what keeps pods that are being deleted, and the remedy, as sentences; "" for none."""
    ordered = sorted(pods, key=lambda pod: (pod.ordinal, pod.name))
    sentences = [_why(pod.name, pod.termination) for pod in ordered[:_NAMED] if pod.termination is not None]
    if sentences and (more := len(ordered) - _NAMED) > 0:
        sentences.append("1 more pod has not ended." if more == 1 else f"{more} more pods have not ended.")
    return " ".join(sentences)


def _why(name: str, end: Termination) -> str:
    since = f"{name} has been terminating since {rfc3339(datetime.fromtimestamp(end.since_s, UTC))}"
    if end.finalizers:
        return (
            f"{since} because of {named_finalizers(end.finalizers)}: the {who_must_remove(end.finalizers)} "
            f"(`kubectl edit pod {name}`)."
        )
    return (
        f"{since}, and its node {end.node or '(none)'} has not reported that it ended: see `kubectl describe pod "
        f"{name}`. If the node is lost for good, `kubectl delete pod {name} --force --grace-period=0` deletes the "
        "pod."
    )


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
