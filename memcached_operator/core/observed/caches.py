"""The kinds that this operator watches, what their caches hold of each, and how these are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memcached_operator.api.names import API_VERSION, KIND, PLURAL
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects.owned_kind import OwnedKind
from memcached_operator.core.objects.owned_object import is_owned
from memcached_operator.core.observed.memcacheds import MemcachedRecord, memcached_record
from memcached_operator.core.observed.pods import PodRecord, pod_record
from memcached_operator.core.observed.workloads import DEPLOYMENT_RESOURCE, WorkloadRecord, stateful_set_record
from operator_runtime import Kind, ObjectKey, Store, resource_of

MEMCACHEDS = Kind(resource_of(API_VERSION, KIND, PLURAL), memcached_record)
DEPLOYMENTS: Kind[WorkloadRecord] = DEPLOYMENT_RESOURCE.kind
STATEFUL_SETS = Kind(resource_of("apps/v1", "StatefulSet", "statefulsets"), stateful_set_record)
PODS = Kind(resource_of("v1", "Pod", "pods"), pod_record)
WORKLOADS: Mapping[Workload, Kind[WorkloadRecord]] = {"Deployment": DEPLOYMENTS, "StatefulSet": STATEFUL_SETS}


@dataclass(frozen=True, slots=True)
class Caches:
    """The stores, as the reflectors fill them."""

    memcacheds: Store[MemcachedRecord]
    deployments: Store[WorkloadRecord]
    stateful_sets: Store[WorkloadRecord]
    pods: Store[PodRecord]
    auxiliary: Mapping[OwnedKind, Store[Any]]

    def index(self) -> None:
        """Add the indexes that are read here, before the stores are filled."""
        self.pods.add_index("memcached", lambda pod: pod.memcached_key)
        self.memcacheds.add_index("namespace", lambda memcached: ObjectKey(memcached.namespace, ""))
        for resource, store in {each.resource: store for each, store in self.auxiliary.items()}.items():
            for name, function in resource.indexes.items():
                store.add_index(name, function)

    def pods_of(self, key: ObjectKey) -> list[PodRecord]:
        """The pods that are a Memcached's by name, whatever their state."""
        return self.pods.by_index("memcached", key)

    def workloads(self, key: ObjectKey) -> list[WorkloadRecord]:
        """The workloads of a Memcached's name, whosever they are."""
        stores = (self.deployments, self.stateful_sets)
        return [found for store in stores if (found := store.get(key)) is not None]

    def workloads_of(self, memcached: MemcachedRecord) -> Mapping[Workload, WorkloadRecord]:
        return {each.kind: each for each in self.workloads(memcached.key) if is_owned(each, memcached.uid)}

    def servers_of(self, memcached: MemcachedRecord) -> list[PodRecord]:
        """The active pods of a Memcached's workloads."""
        return [pod for pod in self.own_pods_of(memcached) if pod.active]

    def each_server(self) -> Iterator[PodRecord]:
        """The servers of all Memcacheds, as they are when their turn comes.

        Those that cannot be queried take a turn, too: to pass over thousands at once would hold up the reconciles.
        """
        for key in self.memcacheds.keys():  # noqa: SIM118 -- a store is no mapping
            memcached = self.memcacheds.get(key)
            yield from self.servers_of(memcached) if memcached is not None else ()

    def own_pods_of(self, memcached: MemcachedRecord) -> list[PodRecord]:
        """The pods of a Memcached's workloads. Those of a foreign workload of its name are left out."""
        foreign = {each.kind for each in self.workloads(memcached.key) if not is_owned(each, memcached.uid)}
        return [pod for pod in self.pods_of(memcached.key) if pod.workload not in foreign]

    def spec_at(self, memcached: ObjectKey | None) -> Spec | None:
        """The specification of a Memcached, None where it is gone, or that cannot be read."""
        found = self.memcacheds.get(memcached) if memcached is not None else None
        return found.readable_spec if found is not None else None

    def memcacheds_in(self, namespace: str) -> list[ObjectKey]:
        return [each.key for each in self.memcacheds.by_index("namespace", ObjectKey(namespace, ""))]
