"""Pure: servers of the list, their order, and the end of those that left the list.

What is decided here follows from the caches and from the status as it was last written, so that a new leader goes on
where the last one was. The list itself is `published_list`'s; servers that leave it drain (`draining`), one by one or
with a workload that is moved from (`workload_migration`). While a hand-over is under way (`handover.steps`), the
list is held, or servers that left it stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from memcached_operator.api.status import Status
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.plan.draining import drain_left_s, stateful_set_servers, without_future_times
from memcached_operator.core.plan.published_list import FREE, ListedServers, ListPolicy, next_list
from memcached_operator.core.plan.workload_migration import OTHER, Migration, listed_workload, migration
from operator_runtime import ObjectKey


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
