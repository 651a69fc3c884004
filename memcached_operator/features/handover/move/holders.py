"""Holders of servers' items, as the cluster has them: each is found, made and deleted when `move_steps` says so."""

from __future__ import annotations

import logging
from typing import Final

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.access import Access
from memcached_operator.core.objects.holder import holder, holder_key, holder_label, with_room
from memcached_operator.core.objects.labels import HOLDER_ANNOTATION, PEERS_ANNOTATION
from memcached_operator.core.objects.owned_object import is_owned
from memcached_operator.core.observed.caches import STATEFUL_SETS
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import EMPTY, WRITE_REFUSALS, Outcome, refused_write
from memcached_operator.features.handover.move.move_memory import MoveMemory
from memcached_operator.features.handover.move.situation import Holder, MovingServer
from memcached_operator.features.handover.situation import Peers
from operator_runtime import Conflict, Forbidden, Invalid, ServerError, TooManyRequests

logger = logging.getLogger(__name__)

_AGAIN_S: Final = 10.0
"""After so long a holder that the API server refused is tried again."""


class Holders:
    """Finds, makes and deletes the holder of one Memcached at a time."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def live(self, memcached: MemcachedRecord) -> WorkloadRecord | None:
        """The StatefulSet of the holder, None where there is none."""
        found = self._access.caches.stateful_sets.get(holder_key(memcached.key))
        return found if found is not None and is_owned(found, memcached.uid) else None

    def find(self, memcached: MemcachedRecord) -> Holder | None:
        """The holder that there is; its pod only where that was made for the same server."""
        if (live := self.live(memcached)) is None:
            return None
        labelled = memcached.key._replace(name=holder_label(memcached.name))
        name, _, uid = live.holder.partition(" ")
        own = (each for each in self._access.caches.pods_of(labelled) if each.active and each.holder == live.holder)
        pod = next(own, None)
        return Holder(name, uid, live.deleting, MovingServer(pod) if pod is not None else None)

    async def hold(self, memcached: MemcachedRecord, known: MoveMemory, spec: Spec, pod: PodRecord) -> bool:
        """Make the holder of a server's items, which is born with the server as its peer.

        Returns:
            False where none can be made any more, as the namespace is being deleted.
        """
        if self._access.clock() < known.refused_s + _AGAIN_S:
            return True
        known.copied.clear()
        peers = Peers(1, (pod.address,))
        annotations = {HOLDER_ANNOTATION: f"{pod.name} {pod.uid}", PEERS_ANNOTATION: str(peers)}
        workload = self._access.caches.workloads_of(memcached).get("StatefulSet")
        restart = workload.restart if workload is not None else ""
        servers = self._access.workload("StatefulSet", memcached, 1, with_room(spec), False, restart)
        try:
            await self._access.client.create(STATEFUL_SETS, holder(servers, annotations).body())
        except (Conflict, Forbidden, Invalid, ServerError, TooManyRequests) as error:
            if isinstance(error, Forbidden) and any(each.reason == "NamespaceTerminating" for each in error.causes):
                return False
            known.refused_s = self._access.clock()
            logger.warning("no holder of %s can be made: %s", pod.name, error.message or error)
        return True

    async def forget_in_template(self, memcached: MemcachedRecord) -> Outcome:
        """Have new servers made without a holder where nothing else is written: the specification cannot be read."""
        workload = self._access.caches.workloads_of(memcached).get("StatefulSet")
        if workload is None or not workload.holder:
            return EMPTY
        template = {"metadata": {"annotations": dict.fromkeys((HOLDER_ANNOTATION, PEERS_ANNOTATION))}}
        body = {"metadata": {"resourceVersion": workload.resource_version}, "spec": {"template": template}}
        try:
            await self._access.client.patch(STATEFUL_SETS, workload, body)
        except WRITE_REFUSALS as error:
            what = f"The StatefulSet {workload.name} cannot be changed"
            return refused_write(self._access.client, STATEFUL_SETS, workload, what, error)
        return EMPTY

    async def let_go(self, memcached: MemcachedRecord, known: MoveMemory) -> Outcome | None:
        """Delete the holder, with its pod before it; None once that was done."""
        if (live := self.live(memcached)) is None:
            return None
        if known.refusal is not None and self._access.clock() < known.refused_s + _AGAIN_S:
            return Outcome((known.refusal,))
        try:
            await self._access.client.delete(
                STATEFUL_SETS, live, resource_version=live.resource_version, propagation="Foreground"
            )
        except WRITE_REFUSALS as error:
            what = f"The StatefulSet {live.name} cannot be deleted"
            outcome = refused_write(self._access.client, STATEFUL_SETS, live, what, error)
            if outcome.problems:
                known.refused_s, known.refusal = self._access.clock(), outcome.problems[0]
            return outcome
        return None
