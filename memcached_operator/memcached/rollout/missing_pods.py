"""Reasons for missing servers of a StatefulSet: pods that do not end, that cannot be created, or that block them.

A StatefulSet reports nothing of that in its status. What the caches do not show is read seldom, and only where a
server has been missing for longer than its creation takes: the events of the StatefulSet, then a pod of its name.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from memcached_operator.api.status import Problem, Reason
from memcached_operator.memcached.labels import selector_labels, selector_text
from memcached_operator.memcached.observed.memcacheds import MemcachedRecord
from memcached_operator.memcached.observed.pod_creation_failures import CREATIONS, Creation, about, why_not_made
from memcached_operator.memcached.observed.pod_termination import overdue
from memcached_operator.memcached.observed.pods import NO_ORDINAL, PodRecord
from memcached_operator.memcached.observed.workloads import WorkloadRecord
from memcached_operator.memcached.refusal_reasons import pods_refused
from memcached_operator.memcached.rollout.reconcile_results import soonest
from memcached_operator.memcached.rollout.rollout_state import missing_servers
from memcached_operator.memcached.spec import Spec
from operator_runtime import Client, Forbidden, Invalid, KeyedStates, KubeError, NotFound, ObjectKey, PlainObject, plain

logger = logging.getLogger(__name__)

READ_AFTER_S: Final = 5.0
"""A StatefulSet's controller makes a pod in less."""
REREAD_AFTER_S: Final = 30.0
READ_EVERY_S: Final = 1.0
"""Of all Memcacheds together: the API server reads all events of a namespace for those of one object, and where
thousands of Memcacheds begin at once, all of them miss servers for a while."""

_REMEDY: Final = (
    "for the condition Degraded to say why a StatefulSet creates no pods, grant list on events to the operator's "
    "service account"
)
_ANY_POD: Final = plain("v1", "Pod", "pods")


class PodAbsence(NamedTuple):
    """Knowledge of missing servers.

    Attributes:
        missing_s: for how many seconds each server that has no pod, not even one that is ending, has had none, by its
            ordinal and as far as that was seen.
        cause: why, where that is known.
        requeue_s: seconds until more may be known, None for never.
    """

    missing_s: Mapping[int, float]
    cause: Problem | None = None
    requeue_s: float | None = None


_NONE: Final = PodAbsence({})


@dataclass(slots=True)
class _Seen:
    """Observation of one Memcached's missing servers.

    Attributes:
        of: of which StatefulSet, and which generation of it.
        read_s: when the API server was queried last, or was busy with queries for others.
        about: the ordinal of that query.
        cause: what came of it.
        since_s: since when each server has no pod, in seconds since 1970.
    """

    of: tuple[str, int]
    read_s: float = 0.0
    about: int = NO_ORDINAL
    cause: Problem | None = None
    since_s: dict[int, float] = field(default_factory=dict)

    def missing_s(self, not_created: Sequence[int], now_s: float) -> Mapping[int, float]:
        """Return for how many seconds each of these servers has had no pod."""
        self.since_s = {ordinal: self.since_s.get(ordinal, now_s) for ordinal in not_created}
        return {ordinal: now_s - since_s for ordinal, since_s in self.since_s.items()}


def _nothing() -> _Seen:
    return _Seen(("", 0))


class MissingPods:
    """Search for missing servers' reasons, for one Memcached at a time; see `absence`."""

    def __init__(self, client: Client, states: KeyedStates) -> None:
        """
        Args:
            client: reads what no cache has.
            states: what is known of each Memcached; a successor gives missing servers their time anew.
        """
        self._client = client
        self._seen = states.keyed(_nothing)
        self._is_reported = False  # that events may not be read
        self._free_s = 0.0  # from when on any Memcached may query

    async def absence(
        self,
        memcached: MemcachedRecord,
        spec: Spec,
        workload: WorkloadRecord | None,
        pods: Sequence[PodRecord],
        inactive: Sequence[PodRecord],
        now: datetime,
    ) -> PodAbsence:
        """Find out why servers are missing, as far as that is known by now.

        Args:
            workload: what runs the servers.
            pods: the active ones.
            inactive: the others.
            now: the time, with its zone.
        """
        key, now_s = memcached.key, now.timestamp()
        if workload is None or workload.deleting or not missing_servers(spec, workload, pods):
            self._seen.drop(key)
            return _NONE
        of = workload.uid, workload.generation
        first_read_s = now_s + READ_AFTER_S - REREAD_AFTER_S
        seen = self._seen.find(key) or _Seen(of, first_read_s)
        self._seen.set(key, seen)
        if seen.of != of:
            seen.of, seen.read_s, seen.cause = of, first_read_s, None
        active = {pod.ordinal for pod in pods if pod.workload == workload.kind}
        missing = [ordinal for ordinal in range(spec.size) if ordinal not in active]
        terminating = {pod.ordinal: pod for pod in inactive if pod.workload == workload.kind and pod.ordinal in missing}
        not_created = [ordinal for ordinal in missing if ordinal not in terminating]
        absence = PodAbsence(seen.missing_s(not_created, now_s))
        if not workload.is_observed:
            return absence
        late, requeue_s = overdue(terminating.values(), now_s)
        if late:
            seen.cause = None
            problem = Problem(Reason.TERMINATION_STALLED, late, blocking=False)
            return absence._replace(cause=problem, requeue_s=requeue_s)
        if not not_created:
            return absence._replace(requeue_s=requeue_s)
        await self._find_cause(seen, workload, not_created, now_s)
        again_s = seen.read_s + REREAD_AFTER_S - now_s
        return absence._replace(cause=seen.cause, requeue_s=soonest(again_s, requeue_s))

    async def _find_cause(
        self, seen: _Seen, workload: WorkloadRecord, not_created: Sequence[int], now_s: float
    ) -> None:
        """Have the cause known of pods that are not made, as far as it is the turn of this Memcached."""
        if seen.about not in not_created:
            seen.cause = None  # that server is there again
        if now_s < seen.read_s + REREAD_AFTER_S:
            return
        seen.read_s = now_s
        if now_s >= self._free_s:
            seen.about, self._free_s = not_created[0], now_s + READ_EVERY_S
            seen.cause = await self._read(workload, not_created, seen.cause)

    async def _read(
        self, workload: WorkloadRecord, not_created: Sequence[int], before: Problem | None
    ) -> Problem | None:
        """Read why the pods of these ordinals are not created, None where it is not known."""
        try:
            if refusal := why_not_made(await self._events(workload), workload.name, not_created):
                return pods_refused(refusal, sidecar=workload.sidecar)
            pod = await self._client.get(_ANY_POD, ObjectKey(workload.namespace, f"{workload.name}-{not_created[0]}"))
        except (NotFound, Forbidden):
            return None
        except KubeError:
            return before  # it is not known now
        return _blocking_pod(pod, workload)

    async def _events(self, workload: WorkloadRecord) -> Sequence[Creation]:
        """Read the events of the StatefulSet; nothing where they may not be read."""
        try:
            events = await self._client.list(CREATIONS, workload.namespace, fields=about(workload.uid))
        except (Forbidden, NotFound, Invalid) as error:
            if not self._is_reported:
                logger.info("cannot list events: %s; %s", error, _REMEDY)
            self._is_reported = True
            return ()
        self._is_reported = False
        return events


def _blocking_pod(pod: PlainObject, workload: WorkloadRecord) -> Problem | None:
    """Return the problem of a pod that has a server's name and keeps the StatefulSet from creating that server."""
    labels, actual = selector_labels(workload.name), pod.labels
    holder = pod.controller
    if holder is not None and holder.uid != workload.uid:
        whose, remedy = f"belongs to {holder.kind} {holder.name}", ""
    elif any(actual.get(label) != text for label, text in labels.items()):
        whose = f"lacks the labels {selector_text(workload.name)}"
        relabel = " ".join(f"{label}={text}" for label, text in labels.items())
        remedy = f"Restore them with `kubectl label pod {pod.name} {relabel} --overwrite`, or delete it: "
    else:
        return None  # no cache has it yet
    message = (
        f"Pod {pod.name} blocks the server of that name: it {whose}, so it does not belong to this Memcached. "
        f"{remedy or 'Delete it: '}`kubectl delete pod {pod.name}`."
    )
    return Problem(Reason.NOT_CONTROLLED, message, blocking=False)
