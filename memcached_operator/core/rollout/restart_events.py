"""Events of servers that restarted without a request, and so lost their keys."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from memcached_operator.core.events import RecordEvent
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from operator_runtime import KeyedStates

logger = logging.getLogger(__name__)

# Of the many whose servers have never restarted.
_NONE: Final[Mapping[str, int]] = {}


class RestartEvents:
    """Records an event for each server of a Memcached whose container has restarted and is ready again.

    A container that never gets ready has no keys to lose; the condition Degraded has why it fails.
    """

    def __init__(self, states: KeyedStates, record_event: RecordEvent) -> None:
        """
        Args:
            states: how often the servers of each Memcached have restarted; a successor reports only what follows.
            record_event: records an event.
        """
        self._restarts = states.keyed(lambda: _NONE)
        self._record_event = record_event

    def report(self, memcached: MemcachedRecord, pods: Sequence[PodRecord]) -> None:
        """Record what has happened since the last reconcile."""
        known = self._restarts.find(memcached.key)
        if known is not None:
            for pod in pods:
                self._report(memcached, pod, known.get(pod.uid, 0))
        counts = {pod.uid: _reported(pod, known or _NONE) for pod in pods}
        self._restarts.set(memcached.key, {uid: count for uid, count in counts.items() if count} or _NONE)

    def _report(self, memcached: MemcachedRecord, pod: PodRecord, known: int) -> None:
        """Record an event of one server; where it is restarted in place, it has another."""
        if pod.ready and not pod.in_place and pod.restarts > known:
            note = _note(pod)
            logger.warning("%s", note, extra={"fields": {"server": pod.name, "restarts": pod.restarts}})
            self._record_event(memcached, "Warning", "ServerRestarted", "Report", note)


def _reported(pod: PodRecord, known: Mapping[str, int]) -> int:
    """Count a server's restarts that have been reported, or need not be."""
    return pod.restarts if pod.ready or pod.in_place else known.get(pod.uid, 0)


def _note(pod: PodRecord) -> str:
    written = f"it has its items only if it could write them out: see `kubectl logs {pod.name}`"
    lost = written if pod.restart_hash else "its items are lost"
    name = pod.name
    return f"The container of the server {name} restarted, and {lost}. `kubectl describe pod {name}` has the cause."
