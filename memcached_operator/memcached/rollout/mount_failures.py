"""Failed mounts that keep servers from starting: a pod's status has that fact, and events have the reason.

The events are read seldom, of one server of a Memcached, and only where it has waited for longer than a mount takes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from memcached_operator.memcached.observed.claim_events import about_claim, may_be_unbound, why_not_bound
from memcached_operator.memcached.observed.pod_creation_failures import CREATIONS, about, why_not_mounted
from memcached_operator.memcached.observed.pod_status import NO_PROBLEM, PodProblem, may_be_unmounted
from memcached_operator.memcached.observed.pods import PodRecord
from memcached_operator.memcached.rollout.missing_pods import READ_AFTER_S, READ_EVERY_S, REREAD_AFTER_S
from memcached_operator.memcached.rollout.observed_times import ObservedPods
from operator_runtime import Client, KeyedStates, KubeError, ObjectKey

logger = logging.getLogger(__name__)


class _Read(NamedTuple):
    """Last read of the events of one Memcached.

    Attributes:
        uid: of the pod whose events were read.
        at_s: when, by the clock.
        why: what came of it.
    """

    uid: str = ""
    at_s: float = float("-inf")
    why: PodProblem = NO_PROBLEM


class MountFailures:
    """Search for failed mounts of servers, for one Memcached at a time; see `explained`."""

    def __init__(self, client: Client, states: KeyedStates, *, clock: Callable[[], float]) -> None:
        """
        Args:
            client: lists events.
            states: what is known of each Memcached; a successor queries once more.
            clock: monotonic seconds.
        """
        self._client = client
        self._reads = states.keyed(_Read)
        self._clock = clock
        self._free_s = float("-inf")  # from when on any Memcached may query

    async def explained(self, key: ObjectKey, seen: ObservedPods, now_s: float) -> ObservedPods:
        """The pods as they were seen; those whose volumes are not mounted with why, where that is known.

        Args:
            now_s: the operator's time, in seconds since 1970.
        """
        waiting = [pod for pod in seen.active if not pod.ready and _needs_events(pod)]
        if not waiting:
            self._reads.drop(key)
            return seen
        pod = min(waiting, key=lambda each: each.name)
        read = self._reads.of(key) if self._reads.of(key).uid == pod.uid else _Read(pod.uid)
        left_s = max(pod.since_s + READ_AFTER_S - now_s, read.at_s + REREAD_AFTER_S - self._clock())
        if left_s <= 0.0:
            read, left_s = await self._read(pod, read), REREAD_AFTER_S
        self._reads.set(key, read)
        return _explained(seen, pod, read.why, left_s)

    async def _read(self, pod: PodRecord, before: _Read) -> _Read:
        """Read the events of a pod; keep what was known where it is not the turn of this Memcached."""
        now_s = self._clock()
        if now_s < self._free_s:
            return before._replace(at_s=now_s)
        self._free_s = now_s + READ_EVERY_S
        try:
            if may_be_unbound(pod.problem):
                events = await self._client.list(CREATIONS, pod.namespace, fields=about_claim(pod.name))
                why = why_not_bound(events, pod.name)
            else:
                why = why_not_mounted(await self._client.list(CREATIONS, pod.namespace, fields=about(pod.uid)))
        except KubeError as error:
            logger.debug("why the volumes of %s are not mounted is not known: %s", pod.name, error)
            why = before.why
        return _Read(pod.uid, now_s, why)


def _needs_events(pod: PodRecord) -> bool:
    return may_be_unmounted(pod.waits) or may_be_unbound(pod.problem)


def _explained(seen: ObservedPods, read: PodRecord, why: PodProblem, left_s: float) -> ObservedPods:
    """Pods of the same template that wait as the one whose events were read do so for the same reason."""
    next_s = min((each for each in (seen.next_s, left_s) if each is not None), default=None)
    alike, unbound = (read.revision, read.waits), may_be_unbound(read.problem)
    pods: Sequence[PodRecord] = [
        msgspec.structs.replace(pod, problem=why)
        if why
        and (pod.revision, pod.waits) == alike
        and (may_be_unbound(pod.problem) if unbound else pod.problem in (NO_PROBLEM, pod.waits))
        else pod
        for pod in seen.pods
    ]
    return seen._replace(pods=pods, next_s=next_s)
