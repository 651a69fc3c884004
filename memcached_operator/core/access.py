"""Access of all that a reconcile consists of: to settings, API server, caches, clock, and what is remembered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects.holder import holder, with_room
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.caches import MEMCACHEDS, Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.servers.stats_cache import StatsCache
from operator_runtime import Client, EventRecorder, ObjectKey, Owners, reference

RecordEvent: TypeAlias = Callable[[MemcachedRecord, Literal["Normal", "Warning"], str, str, str], None]
"""Records an event about a Memcached: its type, reason, action and note."""


@dataclass(frozen=True, slots=True)
class Config:
    """Configuration of a Memcached's reconcile, from the settings.

    Attributes:
        operator_namespace: where the operator's own pods are, "" where it runs in no pod.
        operator_image: that the operator runs, "" where its own pod has it.
        credentials: the Secrets that servers require may be read.
    """

    image: str
    user_id: int | None
    status_delay_s: float
    operator_namespace: str = ""
    finalizer: bool = False
    operator_image: str = ""
    credentials: bool = False
    memory_scaling_window_s: float = 600.0

    def workload(
        self, kind: Workload, memcached: MemcachedRecord, replicas: int, spec: Spec, paused: bool, restart: str
    ) -> WorkloadManifest:
        image = spec.image or self.image
        return desired_workload(
            kind, memcached.owner, replicas, image, self.user_id, spec, paused=paused, restart=restart
        )

    def holder(
        self, memcached: MemcachedRecord, spec: Spec, restart: str, annotations: Mapping[str, str]
    ) -> WorkloadManifest:
        return holder(self.workload("StatefulSet", memcached, 1, with_room(spec), False, restart), annotations)


class Access(NamedTuple):
    """Access that the parts of a reconcile share.

    Attributes:
        owners: Memcacheds, what is remembered of each, and how often is written for it; a successor begins with none
            of that.
        enqueue: requests a reconcile of a Memcached.
        clock: monotonic seconds.
        stats_cache: the servers' statistics and certificates; None where servers are not queried.
    """

    config: Config
    client: Client
    caches: Caches
    owners: Owners[MemcachedRecord]
    record_event: RecordEvent
    enqueue: Callable[[ObjectKey], None]
    clock: Callable[[], float]
    stats_cache: StatsCache | None = None


def recorded_by(recorder: EventRecorder) -> RecordEvent:

    def record_event(
        memcached: MemcachedRecord, type_: Literal["Normal", "Warning"], reason: str, action: str, note: str
    ) -> None:
        about = reference(MEMCACHEDS, memcached)
        recorder.emit(about, type=type_, reason=reason, action=action, note=note)

    return record_event
