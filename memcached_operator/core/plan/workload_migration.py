"""Pure: the migration of servers between Deployment and StatefulSet, where `spec.workload` changes.

The new workload is created next to the old one, which stays listed until all servers of the new one are ready. Then
the old one drains as a whole, and is deleted.
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
from memcached_operator.core.plan.published_list import addresses

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
    """The next step of a migration."""
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
