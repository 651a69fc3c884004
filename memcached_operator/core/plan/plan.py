"""Pure: servers of the list, their order, and the end of those that left the list.

What is decided here follows from the caches and from the status as it was last written, so that a new leader goes on
where the last one was. The list itself is `published_list`'s; servers that leave it drain, one by one or with a
workload. While a hand-over is under way (`handover.steps`), the list is held, or servers that left it stay.

Where `spec.workload` changes, the new workload is created next to the old one, which stays listed until all servers of
the new one are ready. Then the old one drains as a whole, and is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from memcached_operator.api.status import Drain, Status
from memcached_operator.api.status_times import status_time
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.observed.pods import NO_ORDINAL, PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.plan.published_list import (
    FREE,
    ListedServers,
    ListPolicy,
    addresses,
    drain_left_s,
    next_list,
    stateful_set_servers,
    without_future_times,
)
from operator_runtime import ObjectKey

OTHER: Final[Mapping[Workload, Workload]] = {"Deployment": "StatefulSet", "StatefulSet": "Deployment"}
"""The workload that a Memcached moves from, by the one that it moves to."""


class Migration(NamedTuple):
    """Effect of a migration on the workloads.

    Attributes:
        draining: servers of a workload that drain as a whole.
        removed: the workload that is to be deleted now, None for none.
    """

    draining: tuple[Drain, ...] = ()
    removed: Workload | None = None


def listed_workload(
    spec: Spec, last: Status, owned: Mapping[Workload, WorkloadRecord], pods: Iterable[PodRecord]
) -> Workload:
    """The workload whose servers clients are given: the specified one, once it has all its servers."""
    target: Workload = spec.workload
    other = OTHER[target]
    moves = last.workload == other or (last.workload is None and other in owned)
    return other if moves and not _is_all_ready(target, spec.size, owned, pods) else target


def migration(
    target: Workload,
    listed: Workload,
    last: Status,
    owned: Mapping[Workload, WorkloadRecord],
    pods: Iterable[PodRecord],
    drained: Sequence[Drain],
    now: datetime,
) -> Migration:
    written = last.draining or ()
    if listed != target:
        # It was moved from, and is moved to again: should the user think again once more, it has drained so far.
        return Migration(tuple(each for each in written if each.workload == target and each not in drained))
    other = owned.get(OTHER[target])
    if other is None or other.deleting:
        return Migration()
    drain = next((each for each in written if each.workload == other.kind and each.firstOrdinal == 0), None)
    if drain is None:
        # One without an entry, whose successor is listed, was never listed, or another client removed the entry.
        left = last.workload != target or any(pod.ready and pod.workload == other.kind for pod in pods)
        return Migration((Drain(other.kind, 0, status_time(now)),)) if left else Migration(removed=other.kind)
    return Migration((drain,), other.kind if drain in drained else None)


def _is_all_ready(
    kind: Workload, size: int, owned: Mapping[Workload, WorkloadRecord], pods: Iterable[PodRecord]
) -> bool:
    """Report whether a workload has so many servers that the list can go over to it."""
    if (workload := owned.get(kind)) is None or workload.deleting:
        return False
    if kind == "Deployment":
        return len(addresses(pods)) >= size
    return sum(pod.ready for pod in pods if NO_ORDINAL < pod.ordinal < size) == size


class Plan(NamedTuple):
    """The desired workloads of a Memcached, and the list that is published.

    Attributes:
        replicas: how many pods each workload is to have that is to be kept.
        removed: the workload that is to be deleted now, None for none.
        drained: servers are removed now that are no longer desired, and that have drained.
        next_s: seconds until servers have drained, None where none do.
    """

    target: Workload
    replicas: Mapping[Workload, int]
    removed: Workload | None
    drained: bool
    servers: ListedServers
    next_s: float | None


def plan(
    key: ObjectKey,
    spec: Spec,
    last: Status,
    owned: Mapping[Workload, WorkloadRecord],
    pods: Sequence[PodRecord],
    now: datetime,
    policy: ListPolicy = FREE,
) -> Plan:
    """Plan the servers by the specification and by what there is."""
    target: Workload = spec.workload
    last = without_future_times(last, now) if last.draining else last
    is_moving = OTHER[target] in owned or last.workload == OTHER[target]
    listed = listed_workload(spec, last, owned, pods) if is_moving else target
    drained = [each for each in last.draining or () if drain_left_s(each, spec.drainPeriodSeconds, now) == 0.0]
    over = () if policy.keeps_all else drained
    moved = migration(target, listed, last, owned, pods, over, now) if is_moving else Migration()
    replicas: dict[Workload, int] = {target: spec.size, listed: spec.size}
    draining, has_drained = moved.draining, False
    if "StatefulSet" in replicas:
        kept = stateful_set_servers(spec.size, last, owned, pods, over, now, policy, is_listed=listed == "StatefulSet")
        replicas["StatefulSet"], has_drained = kept.replicas, kept.has_drained
        draining = kept.draining + draining
    names = last.serverList or () if policy.is_frozen else next_list(key, spec.size, listed, last, pods)
    # What has drained is acted upon, in this reconcile or when the status has it.
    next_s = min(
        (drain_left_s(each, spec.drainPeriodSeconds, now) for each in draining if each not in drained), default=None
    )
    return Plan(target, replicas, moved.removed, has_drained, ListedServers(listed, names, draining), next_s)
