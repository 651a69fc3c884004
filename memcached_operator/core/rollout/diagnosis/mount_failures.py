"""Reasons for which volumes of servers are not mounted.

A pod's status has the fact of a failed mount alone. The events of one server's pod, or of its claim, are read where it
has waited for longer than a mount takes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

import msgspec

from memcached_operator.core.access import Access
from memcached_operator.core.observed.pod_status import NO_PROBLEM, PodProblem, may_be_unmounted
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.outcome import soonest
from memcached_operator.core.rollout.diagnosis.bounded_reads import READ_AFTER_S, BoundedReads
from memcached_operator.core.rollout.diagnosis.pod_creation_failures import (
    CREATIONS,
    about,
    about_claim,
    may_be_unbound,
    why_not_bound,
    why_not_mounted,
)
from memcached_operator.core.rollout.server_states import ObservedPods
from operator_runtime import KubeError, ObjectKey

logger = logging.getLogger(__name__)


class MountFailures:
    """Search for failed mounts of servers, for one Memcached at a time; see `explained`."""

    def __init__(self, access: Access) -> None:
        self._client = access.client
        self._reads = BoundedReads(access.owners.states, access.clock, NO_PROBLEM)

    async def explained(self, key: ObjectKey, seen: ObservedPods, now_s: float) -> ObservedPods:
        """The pods as they were seen; those whose volumes are not mounted with why, where that is known."""
        waits = (pod for pod in seen.active if not pod.ready)
        waiting = [pod for pod in waits if may_be_unmounted(pod.waits) or may_be_unbound(pod.problem)]
        if not waiting:
            self._reads.drop(key)
            return seen
        pod = min(waiting, key=lambda each: each.name)
        self._reads.expect(key, (pod.uid, may_be_unbound(pod.problem)), pod.since_s + READ_AFTER_S - now_s)
        why, left_s = await self._reads.read(key, partial(self._read, pod))
        return _alike_explained(seen, pod, why, left_s)

    async def _read(self, pod: PodRecord, before: PodProblem) -> PodProblem:
        """Read the events of a pod, or of its claim."""
        try:
            if may_be_unbound(pod.problem):
                events = await self._client.list(CREATIONS, pod.namespace, fields=about_claim(pod.name))
                return why_not_bound(events, pod.name)
            return why_not_mounted(await self._client.list(CREATIONS, pod.namespace, fields=about(pod.uid)))
        except KubeError as error:
            logger.debug("why the volumes of %s are not mounted is not known: %s", pod.name, error)
            return before


def _alike_explained(seen: ObservedPods, read: PodRecord, why: PodProblem, left_s: float) -> ObservedPods:
    """Pods of the same template that wait as the one whose events were read do so for the same reason."""
    alike, unbound = (read.revision, read.waits), may_be_unbound(read.problem)
    pods: Sequence[PodRecord] = [
        msgspec.structs.replace(pod, problem=why)
        if why
        and (pod.revision, pod.waits) == alike
        and (may_be_unbound(pod.problem) if unbound else pod.problem in (NO_PROBLEM, pod.waits))
        else pod
        for pod in seen.pods
    ]
    return seen._replace(pods=pods, next_s=soonest(seen.next_s, left_s))
