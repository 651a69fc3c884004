"""Events about a Memcached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from memcached_operator.core.observed.caches import MEMCACHEDS
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from operator_runtime import EventRecorder, reference

RecordEvent: TypeAlias = Callable[[MemcachedRecord, Literal["Normal", "Warning"], str, str, str], None]
"""Records an event about a Memcached: its type, reason, action and note."""


def recorded_by(recorder: EventRecorder) -> RecordEvent:

    def record_event(
        memcached: MemcachedRecord, type_: Literal["Normal", "Warning"], reason: str, action: str, note: str
    ) -> None:
        about = reference(MEMCACHEDS, memcached)
        recorder.emit(about, type=type_, reason=reason, action=action, note=note)

    return record_event
