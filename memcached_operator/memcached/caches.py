"""The caches of all kinds, as reconciles read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memcached_operator.api.names import Workload
from memcached_operator.memcached.records import MemcachedRecord
from memcached_operator.memcached.wanted.budget import BudgetRecord
from memcached_operator.memcached.wanted.shape import OwnedRecord, is_ours
from memcached_operator.memcached.workloads.pods import PodRecord
from memcached_operator.memcached.workloads.records import WorkloadRecord
from operator_runtime import ObjectKey, Store


@dataclass(frozen=True, slots=True)
class Caches:
    """The stores, as the reflectors fill them."""

    memcacheds: Store[MemcachedRecord]
    deployments: Store[WorkloadRecord]
    stateful_sets: Store[WorkloadRecord]
    pods: Store[PodRecord]
    services: Store[OwnedRecord]
    budgets: Store[BudgetRecord]
    network_policies: Store[OwnedRecord]
    config_maps: Store[OwnedRecord]

    def index(self) -> None:
        """Add the indexes that are read here, before the stores are filled."""
        self.pods.add_index("memcached", lambda pod: pod.memcached_key)
        self.memcacheds.add_index("namespace", lambda memcached: ObjectKey(memcached.namespace, ""))
        # Those of others alone.
        self.budgets.add_index("namespace", lambda each: ObjectKey(each.namespace, "") if each.selector else None)

    def pods_of(self, key: ObjectKey) -> list[PodRecord]:
        """The pods that are a Memcached's by name, whatever their state."""
        return self.pods.by_index("memcached", key)

    def workloads(self, key: ObjectKey) -> list[WorkloadRecord]:
        """The workloads of a Memcached's name, whosever they are."""
        stores = (self.deployments, self.stateful_sets)
        return [found for store in stores if (found := store.get(key)) is not None]

    def workloads_of(self, memcached: MemcachedRecord) -> Mapping[Workload, WorkloadRecord]:
        """The workloads that are a Memcached's."""
        return {each.kind: each for each in self.workloads(memcached.key) if is_ours(each, memcached.uid)}

    def servers_of(self, memcached: MemcachedRecord) -> list[PodRecord]:
        """The active pods of a Memcached's workloads. Those of a stranger's workload of its name are left out."""
        strange = {each.kind for each in self.workloads(memcached.key) if not is_ours(each, memcached.uid)}
        return [pod for pod in self.pods_of(memcached.key) if pod.active and pod.workload not in strange]

    def others_budgets(self, namespace: str) -> Mapping[str, bytes]:
        """The selectors of the disruption budgets of a namespace that are no Memcached's, by name."""
        budgets = self.budgets.by_index("namespace", ObjectKey(namespace, ""))
        return {each.name: each.selector for each in budgets if not each.deleting}

    def memcacheds_in(self, namespace: str) -> list[ObjectKey]:
        """The Memcacheds of a namespace."""
        return [each.key for each in self.memcacheds.by_index("namespace", ObjectKey(namespace, ""))]
