"""Events of servers that restarted without a request, and so lost their keys."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from memcached_operator.core.access import RecordEvent
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord

logger = logging.getLogger(__name__)

# Of the many whose servers have never restarted.
_NONE: Final[Mapping[str, int]] = {}


def report_restarts(
    record_event: RecordEvent, memcached: MemcachedRecord, pods: Sequence[PodRecord], known: Mapping[str, int] | None
) -> Mapping[str, int]:
    """Record an event for each server whose container has restarted and is ready again; what is to be remembered.

    The condition Degraded has why one fails that never gets ready; a restart in place has another event.

    Args:
        known: what was remembered; None at first: a successor reports only what follows.
    """
    for pod in pods if known is not None else ():
        if pod.ready and not pod.in_place and pod.restarts > (known or _NONE).get(pod.uid, 0):
            note = _note(pod)
            logger.warning("%s", note, extra={"fields": {"server": pod.name, "restarts": pod.restarts}})
            record_event(memcached, "Warning", "ServerRestarted", "Report", note)
    counts = {pod.uid: pod.restarts if pod.ready or pod.in_place else (known or _NONE).get(pod.uid, 0) for pod in pods}
    return {uid: count for uid, count in counts.items() if count} or _NONE


def _note(pod: PodRecord) -> str:
    written = f"it has its items only if it could write them out: see `kubectl logs {pod.name}`"
    lost = written if pod.restart_hash else "its items are lost"
    name = pod.name
    return f"The container of the server {name} restarted, and {lost}. `kubectl describe pod {name}` has the cause."
