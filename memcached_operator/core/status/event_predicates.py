"""Predicates that choose the changes of servers which are worth a reconcile of their Memcached.

While the servers of a Memcached start, each pod that is made, placed and given an address is an event, and
so is each count that the workload's controller writes. Of these the status would report a number, which is held back
anyway (`debounce`). So only what makes a difference has the Memcached reconciled: the last pod, one that is ready,
one that has a problem or goes, a workload that is not as it was left.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from memcached_operator.core.observed.caches import Caches
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from operator_runtime import ObjectKey

Awaited = Callable[[ObjectKey], int | None]
"""How many pods a Memcached is to have before an event of its servers is worth a reconcile; None where each is."""


class ServerPredicates:
    def __init__(self, caches: Caches, awaited: Awaited) -> None:
        self._caches = caches
        self._awaited = awaited

    def by_pod(self, before: PodRecord | None, after: PodRecord | None) -> bool:
        """Report whether a change of a pod counts."""
        if after is None or not after.starts or not (before is None or before.starts):
            return True
        if before is not None:
            return _as_placed(before, after) != after
        key = after.memcached_key
        awaited = self._awaited(key) if key is not None else None
        return key is None or awaited is None or sum(pod.active for pod in self._caches.pods_of(key)) == awaited

    def by_workload(self, before: WorkloadRecord | None, after: WorkloadRecord | None) -> bool:
        """Report whether a change of a Deployment or a StatefulSet counts."""
        if before is None or after is None:
            return True
        seen = msgspec.structs.replace(
            before,
            resource_version=after.resource_version,
            has_revision=after.has_revision,
            is_observed=after.is_observed,
        )
        key = ObjectKey(after.namespace, after.name)
        if self._awaited(key) is None:
            return seen != after or not self._is_first_and_incomplete(key, after)
        seen = msgspec.structs.replace(
            seen, revised=after.revised, rolled_out=after.rolled_out, revision=after.revision
        )
        return seen != after

    def _is_first_and_incomplete(self, key: ObjectKey, workload: WorkloadRecord) -> bool:
        """Report whether it is a Deployment whose first pods are not all ready: their own changes show more."""
        return (
            workload.kind == "Deployment"
            and workload.generation == 1
            and sum(pod.active and pod.ready for pod in self._caches.pods_of(key)) < workload.replicas
        )


def _as_placed(before: PodRecord, after: PodRecord) -> PodRecord:
    """A pod with what it gets until it runs: a node, an address, which is listed once it is ready, and containers.

    What it waits for meanwhile has its time: see `rollout.server_states`.
    """
    return msgspec.structs.replace(
        before,
        resource_version=after.resource_version,
        address=after.address,
        since_s=after.since_s,
        waits=after.waits,
        placed=after.placed,
        down=before.down and after.down,
    )
