"""Access of all that a reconcile consists of: to the API server, the caches, the clock, and what is remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from memcached_operator.core.observed.caches import MEMCACHEDS, Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.servers.stats_cache import StatsCache
from operator_runtime import Client, EventRecorder, ObjectKey, Owners, reference

RecordEvent: TypeAlias = Callable[[MemcachedRecord, Literal["Normal", "Warning"], str, str, str], None]
"""Records an event about a Memcached: its type, reason, action and note."""


class Access(NamedTuple):
    """Access that the parts of a reconcile share.

    Attributes:
        owners: Memcacheds, what is remembered of each, and how often is written for it; a successor begins with none
            of that.
        enqueue: requests a reconcile of a Memcached.
        clock: monotonic seconds.
        stats_cache: the servers' statistics and certificates; None where servers are not queried.
    """

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
