"""Announces once what a change is about to cost, before servers are replaced or get it while they run."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from memcached_operator.core.change_messages import announced
from memcached_operator.core.events import RecordEvent
from memcached_operator.core.objects.pod_template import fingerprint
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.rollout.live.live_memory import LiveMemory
from memcached_operator.core.rollout.workload_decision import Provenance, WorkloadChange
from memcached_operator.core.snapshot import Snapshot
from operator_runtime import ObjectKey

logger = logging.getLogger(__name__)


class Announcements:
    """Announces changes of one Memcached at a time; see `announce`."""

    def __init__(self, memory: LiveMemory, record_event: RecordEvent) -> None:
        self._memory = memory
        self._record_event = record_event

    async def announce(
        self, snapshot: Snapshot, change: WorkloadChange, servers: Sequence[PodRecord], after: ObjectKey | None
    ) -> None:
        """Report once what a change of the workload is about to cost.

        Args:
            after: whose servers come first, None for none.
        """
        template, live, remembered = change.template, change.live, snapshot.remembered
        desired = fingerprint(change.desired.spec.template)
        if live is None or not any(template):
            remembered.announced = None
        elif remembered.announced != desired:
            remembered.announced = desired
            words = announced(
                snapshot.spec,
                change.desired,
                live,
                servers,
                why_not="" if template.needs_new_pods else await self._memory.why_not(servers, remembered.resizes),
                desired_changed=change.provenance is Provenance.SPECIFICATION,
                after=after,
            )
            if words.note:
                logger.info("%s", words.line, extra={"fields": words.fields})
                self._record_event(snapshot.memcached, "Normal", words.reason, words.action, words.note)
