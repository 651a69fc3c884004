"""Why servers do not start whose volumes are not mounted, or not there: a pod's status says that, and events say why.

They are asked for seldom, of one server of a Memcached, and only where it has waited for longer than a mount takes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from memcached_operator.memcached.observed.claim_events import about_claim, may_be_unbound, why_not_bound
from memcached_operator.memcached.observed.pod_creation_failures import CREATIONS, about, why_not_mounted
from memcached_operator.memcached.observed.pod_status import may_be_unmounted
from memcached_operator.memcached.observed.pods import PodRecord
from memcached_operator.memcached.rollout.missing_pods import ASK_EVERY_S, LOOK_AFTER_S, LOOK_AGAIN_S
from memcached_operator.memcached.rollout.observed_times import Sighted
from operator_runtime import Client, KeyedStates, KubeError, ObjectKey

logger = logging.getLogger(__name__)


class _Asked(NamedTuple):
    """Of one Memcached.

    Attributes:
        uid: of the pod that was asked about.
        at_s: when, by the clock.
        why: what came of it, "" for nothing.
    """

    uid: str = ""
    at_s: float = float("-inf")
    why: str = ""


class MountFailures:
    """Looks why servers of one Memcached at a time do not start; see `explained`."""

    def __init__(self, client: Client, states: KeyedStates, *, clock: Callable[[], float]) -> None:
        """
        Args:
            client: lists events.
            states: what is known of each Memcached; a successor asks once more.
            clock: monotonic seconds.
        """
        self._client = client
        self._asked = states.keyed(_Asked)
        self._clock = clock
        self._free_s = float("-inf")  # from when on any Memcached may ask

    async def explained(self, key: ObjectKey, seen: Sighted, now_s: float) -> Sighted:
        """The pods as they were seen; those whose volumes are not mounted with why, where that is known.

        Args:
            now_s: the operator's time, in seconds since 1970.
        """
        waiting = [pod for pod in seen.active if _is_asked_about(pod) and not pod.ready]
        if not waiting:
            self._asked.drop(key)
            return seen
        pod = min(waiting, key=lambda each: each.name)
        asked = self._asked.of(key) if self._asked.of(key).uid == pod.uid else _Asked(pod.uid)
        left_s = max(pod.since_s + LOOK_AFTER_S - now_s, asked.at_s + LOOK_AGAIN_S - self._clock())
        if left_s <= 0.0:
            asked, left_s = await self._ask(pod, asked), LOOK_AGAIN_S
        self._asked.set(key, asked)
        return _told(seen, pod, asked.why, left_s)

    async def _ask(self, pod: PodRecord, before: _Asked) -> _Asked:
        """What the events of a pod say by now; what was known where it is not the turn of this Memcached."""
        now_s = self._clock()
        if now_s < self._free_s:
            return before._replace(at_s=now_s)
        self._free_s = now_s + ASK_EVERY_S
        try:
            if may_be_unbound(pod.problem):
                events = await self._client.list(CREATIONS, pod.namespace, fields=about_claim(pod.name))
                why = why_not_bound(events, pod.name)
            else:
                why = why_not_mounted(await self._client.list(CREATIONS, pod.namespace, fields=about(pod.uid)))
        except KubeError as error:
            logger.debug("why the volumes of %s are not mounted is not known: %s", pod.name, error)
            why = before.why
        return _Asked(pod.uid, now_s, why)


def _is_asked_about(pod: PodRecord) -> bool:
    return may_be_unmounted(pod.waits) or may_be_unbound(pod.problem)


def _told(seen: Sighted, asked: PodRecord, why: str, left_s: float) -> Sighted:
    """Pods of the same template that wait as the one that was asked about do so for the same reason."""
    next_s = min((each for each in (seen.next_s, left_s) if each is not None), default=None)
    alike, unbound = (asked.template_hash, asked.waits), may_be_unbound(asked.problem)
    pods: Sequence[PodRecord] = [
        msgspec.structs.replace(pod, problem=why)
        if why
        and (pod.template_hash, pod.waits) == alike
        and (may_be_unbound(pod.problem) if unbound else pod.problem in ("", pod.waits))
        else pod
        for pod in seen.pods
    ]
    return seen._replace(pods=pods, next_s=next_s)
