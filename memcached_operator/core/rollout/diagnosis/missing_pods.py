"""Reasons for which pods of a StatefulSet are missing.

A StatefulSet does not report in its status which pods do not end, cannot be created, or block its own. What the caches
do not show is read seldom, where a pod has been missing for longer than its creation takes: the events of the
StatefulSet, then a pod of a server's name.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from memcached_operator.api.status import Problem, Reason
from memcached_operator.core.access import Access
from memcached_operator.core.objects.labels import selector_labels, selector_text
from memcached_operator.core.objects.refusal_reasons import pods_refused
from memcached_operator.core.observed.pods import NO_ORDINAL
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import soonest
from memcached_operator.core.rollout.diagnosis.bounded_reads import READ_AFTER_S, BoundedReads
from memcached_operator.core.rollout.diagnosis.ended_pods import overdue
from memcached_operator.core.rollout.diagnosis.pod_creation_failures import CREATIONS, Creation, about, why_not_made
from memcached_operator.core.rollout.server_states import missing_servers
from memcached_operator.core.snapshot import Snapshot
from operator_runtime import Forbidden, Invalid, KubeError, NotFound, ObjectKey, PlainObject, plain

logger = logging.getLogger(__name__)

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

    missing_s: Mapping[int, float] = {}
    cause: Problem | None = None
    requeue_s: float | None = None


NONE_MISSING: Final = PodAbsence()


class _Cause(NamedTuple):
    """Result of a read.

    Attributes:
        since_s: since when it had no pod.
    """

    ordinal: int = NO_ORDINAL
    since_s: float = 0.0
    problem: Problem | None = None


class MissingPods:
    """Search for missing servers' reasons, for one Memcached at a time; see `absence`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._reads = BoundedReads(access.owners.states, access.clock, _Cause())
        self._is_reported = False  # that events may not be read

    async def absence(self, snapshot: Snapshot, workload: WorkloadRecord | None) -> PodAbsence:
        """Find out why servers are missing, as far as that is known by now."""
        spec, pods, remembered = snapshot.spec, snapshot.pods, snapshot.remembered
        key, clock_s, known = snapshot.memcached.key, self._access.clock(), remembered.missing_since_s or {}
        remembered.missing_since_s = None
        if workload is None or workload.deleting or not missing_servers(spec, workload, pods):
            self._reads.drop(key)
            return NONE_MISSING
        self._reads.expect(key, (workload.uid, workload.generation), READ_AFTER_S)
        active = {pod.ordinal for pod in pods if pod.workload == workload.kind}
        missing = [ordinal for ordinal in range(spec.size) if ordinal not in active]
        inactive = (pod for pod in snapshot.inactive if pod.workload == workload.kind and pod.ordinal in missing)
        terminating = {pod.ordinal: pod for pod in inactive}
        since = {ordinal: known.get(ordinal, clock_s) for ordinal in missing if ordinal not in terminating}
        remembered.missing_since_s = since
        absence = PodAbsence({ordinal: clock_s - since_s for ordinal, since_s in since.items()})
        if not workload.is_observed:
            return absence
        late, requeue_s = overdue(terminating.values(), snapshot.now.timestamp())
        if late or not since:
            self._reads.drop(key)
            problem = Problem(Reason.TERMINATION_STALLED, late, blocking=False) if late else None
            return absence._replace(cause=problem, requeue_s=requeue_s)
        cause, again_s = await self._reads.read(key, partial(self._read, workload, since))
        is_current = since.get(cause.ordinal) == cause.since_s  # that server is not there again
        return absence._replace(cause=cause.problem if is_current else None, requeue_s=soonest(again_s, requeue_s))

    async def _read(self, workload: WorkloadRecord, since: Mapping[int, float], before: _Cause) -> _Cause:
        """Read why the pods of these ordinals are not created."""
        ordinal, since_s = next(iter(since.items()))
        cause = _Cause(ordinal, since_s)
        try:
            if refusal := why_not_made(await self._events(workload), workload.name, since):
                return cause._replace(problem=pods_refused(refusal, sidecar=workload.sidecar))
            pod = await self._access.client.get(_ANY_POD, ObjectKey(workload.namespace, f"{workload.name}-{ordinal}"))
        except (NotFound, Forbidden):
            return cause
        except KubeError:
            return before  # it is not known now
        return cause._replace(problem=_blocking_pod(pod, workload))

    async def _events(self, workload: WorkloadRecord) -> Sequence[Creation]:
        """Read the events of the StatefulSet; nothing where they may not be read."""
        try:
            events = await self._access.client.list(CREATIONS, workload.namespace, fields=about(workload.uid))
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
