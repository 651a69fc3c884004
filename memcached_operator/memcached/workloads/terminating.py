"""Pure: pods that are being deleted and do not end, and what a person can do about each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from memcached_operator.memcached.workloads.pods import PodRecord
from operator_runtime import rfc3339

OVERDUE_S: Final = 60.0
"""So many seconds after its grace period a pod is thought to need a person: the kubelet kills what is left of it at
once, and then takes it off the API."""
# In a message; of the others `kubectl get pods` tells.
_NAMED: Final = 3


def left_s(pod: PodRecord, now_s: float) -> float:
    """Seconds until a pod that is being deleted is overdue, 0 where it is."""
    return max(pod.ends_s + OVERDUE_S - now_s, 0.0)


def why_not_ended(pods: Iterable[PodRecord]) -> str:
    """What keeps pods that are being deleted, and the remedy, as sentences; "" for none."""
    ordered = sorted(pods, key=lambda pod: (pod.ordinal, pod.name))
    told = [_why(pod) for pod in ordered[:_NAMED]]
    if more := len(ordered) - len(told):
        told.append("1 more pod has not ended." if more == 1 else f"{more} more pods have not ended.")
    return " ".join(told)


def _why(pod: PodRecord) -> str:
    since = f"{pod.name} has been terminating since {rfc3339(datetime.fromtimestamp(pod.terminating_s, UTC))}"
    if pod.held_by:
        return (
            f"{since}, kept by the finalizer {pod.held_by}: whoever put it there must take it off "
            f"(`kubectl edit pod {pod.name}`)."
        )
    return (
        f"{since}, and its node {pod.node or '(none)'} does not say that it has ended: see "
        f"`kubectl describe pod {pod.name}`. Where the node is gone for good, `kubectl delete pod {pod.name} --force "
        "--grace-period=0` ends it."
    )
