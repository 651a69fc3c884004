"""Access of all that a reconcile consists of: to settings, API server, caches, clock, and what is remembered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.caches import MEMCACHEDS, Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.servers.stats_cache import StatsCache
from memcached_operator.settings import Settings
from operator_runtime import Client, EventRecorder, ObjectKey, Owners, reference

RecordEvent: TypeAlias = Callable[[MemcachedRecord, Literal["Normal", "Warning"], str, str, str], None]
"""Records an event of a Memcached: its type, reason, action and note."""


@dataclass(frozen=True, slots=True)
class Access:
    """Access that the parts of a reconcile share.

    Attributes:
        operator_namespace: where the operator's own pods are, "" where it runs in no pod.
        owners: Memcacheds, what is remembered of each, and how often is written for it; a successor begins with none
            of that.
        enqueue: requests a reconcile of a Memcached.
        clock: monotonic seconds.
        stats_cache: the servers' statistics and certificates; None where servers are not queried.
    """

    settings: Settings
    operator_namespace: str
    client: Client
    caches: Caches
    owners: Owners[MemcachedRecord]
    events: EventRecorder
    enqueue: Callable[[ObjectKey], None]
    clock: Callable[[], float]
    stats_cache: StatsCache | None

    def record_event(
        self, memcached: MemcachedRecord, type_: Literal["Normal", "Warning"], reason: str, action: str, note: str
    ) -> None:
        self.events.emit(reference(MEMCACHEDS, memcached), type=type_, reason=reason, action=action, note=note)

    def workload(
        self, kind: Workload, memcached: MemcachedRecord, replicas: int, spec: Spec, paused: bool, restart: str
    ) -> WorkloadManifest:
        image, user_id = spec.image or self.settings.memcached_image, self.settings.memcached_user_id
        return desired_workload(kind, memcached.owner, replicas, image, user_id, spec, paused=paused, restart=restart)
