"""Delay of a status that still changes, and the events that count meanwhile.

A status is written at once when its servers are all there or all ready, and else `delay_s` after it first differed.
While many Memcacheds start servers at once, it is held back for longer, as long as no user is to act on it: so the API
server's time goes into what they wait for.

Meanwhile each pod that is made, placed and given an address is an event, and so is each count that the workload's
controller writes. Of these the status would report a number. So only what makes a difference has the Memcached
reconciled: the last pod, one that is ready, one that has a problem or goes, a workload that is not as it was left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from memcached_operator.api.status import Status
from memcached_operator.core.observed.caches import Caches
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.rollout.server_states import is_placed_late
from memcached_operator.core.rollout.workload_decision import Hold
from memcached_operator.core.status.observation import Observation
from operator_runtime import ObjectKey

CONFLICT_PAUSE_S: Final = 0.25
"""After a conflict: long enough not to race with a client that writes in a loop, and too short to notice."""
# What 10,000 Memcacheds take on two cores; after it a status is written although its servers are still starting.
_LONGEST_S: Final = 300.0
# What the API server and Kubernetes' controllers take on two cores for all that one Memcached of two servers brings;
# until that was seen often enough here.
_EACH_S: Final = 0.03
_OFTEN: Final = 50


@dataclass(slots=True)
class _Unwritten:
    """A status that is held back.

    Attributes:
        since_s: since when (by the clock) it has been other than what was written; None while it is not.
        due_s: when it is reconciled again without an event.
        pods: how many there are of its servers once more than their number is to be reported; None where each event may
            be.
        not_before_s: until when none is written, after a conflict.
        others: of how many servers were starting besides its own, at most.
    """

    since_s: float | None = None
    due_s: float = 0.0
    pods: int | None = None
    not_before_s: float = 0.0
    others: int = 0


class StatusDebounce:
    """Holds statuses back: for `delay_s`, and for as long as all take, at most 300 s, that start servers at once."""

    def __init__(self, delay_s: float, clock: Callable[[], float]) -> None:
        self._delay_s = delay_s
        self._clock = clock
        self._unwritten: dict[ObjectKey, _Unwritten] = {}
        self._starting: set[ObjectKey] = set()  # those of them that are held back as their servers start
        self._since_s: float | None = None  # when the first of those began
        self._completed = 0  # how many of them have got theirs

    def begin(self, key: ObjectKey) -> None:
        """Begin a reconcile: what comes from now on it may not see."""
        if (unwritten := self._unwritten.get(key)) is not None:
            unwritten.pods = None

    def held_back_s(self, key: ObjectKey, observed: Observation, desired: Status, last: Status) -> float:
        """Seconds for which a status that differs from the last one is not written yet."""
        now, unwritten = self._clock(), self._unwritten.setdefault(key, _Unwritten())
        if unwritten.since_s is None:
            unwritten.since_s = now
        unwritten.pods, delay_s = None if is_urgent(desired, last) else awaited_pods(observed), self._delay_s
        if unwritten.pods is not None:
            self._starting.add(key)
            unwritten.others = max(unwritten.others, len(self._starting) - 1)
            each_s = self._each_s(now)
            delay_s += min(unwritten.others * each_s, _LONGEST_S) if delay_s else 0.0
        due_s = now if is_complete(desired, last, observed.size) else unwritten.since_s + delay_s
        unwritten.due_s = max(due_s, unwritten.not_before_s)
        if key in self._starting and (unwritten.pods is None or unwritten.due_s <= now):
            self._starts_no_longer(key)  # also where the write fails: no other is to wait for that
        return unwritten.due_s - now

    def written(self, key: ObjectKey, observed: Observation, desired: Status, last: Status) -> None:
        if self._starting and is_complete(desired, last, observed.size):
            self._completed += 1
        self.forget(key)

    def conflicted(self, key: ObjectKey) -> None:
        """Record a conflict: another client wrote the status."""
        pause_s = max(self._delay_s, CONFLICT_PAUSE_S)
        self._unwritten.setdefault(key, _Unwritten()).not_before_s = self._clock() + pause_s

    def forget(self, key: ObjectKey) -> None:
        """Forget what of the status waits to be written."""
        self._unwritten.pop(key, None)
        if key in self._starting:
            self._starts_no_longer(key)

    def awaited(self, key: ObjectKey) -> int | None:
        """Return how many pods a Memcached is to have before there is more to report of it than their number.

        None where any event may be worth a reconcile. Where it is a number, there is a reconcile without an event, too.
        """
        unwritten = self._unwritten.get(key)
        return unwritten.pods if unwritten is not None and unwritten.due_s > self._clock() else None

    def _starts_no_longer(self, key: ObjectKey) -> None:
        self._starting.remove(key)
        if not self._starting:
            self._since_s, self._completed = None, 0

    def _each_s(self, now_s: float) -> float:
        """Seconds from one Memcached that has got its servers to the next."""
        if self._since_s is None:
            self._since_s = now_s
        return (now_s - self._since_s + _OFTEN * _EACH_S) / (self._completed + _OFTEN)


def awaited_pods(observed: Observation) -> int | None:
    """Count the desired pods, where servers that start are all that is waited for; else None."""
    holds = observed.is_paused or observed.done.hold is not Hold.NONE or observed.done.rollout.is_underway
    more = holds or observed.problem or observed.waiting or observed.terminating or observed.leaving
    drains = observed.servers is None or observed.servers.draining
    ready = sum(pod.ready for pod in observed.pods)
    return None if more or drains or observed.done.workload is None or ready == observed.size else observed.size


def is_complete(desired: Status, last: Status, size: int | None) -> bool:
    """Report whether a change is worth writing at once: its servers all exist, or are all ready.

    On the way there each pod would cost a write of its own; those wait a moment for the next one. So does no server
    that leaves the list, as its end is counted from the write, nor the step of a hand-over.
    """
    if desired.draining != last.draining or desired.handover != last.handover:
        return True
    if desired.nodes != last.nodes:
        return desired.replicas == size
    return desired.readyReplicas != last.readyReplicas and desired.readyReplicas == size


def is_urgent(desired: Status, last: Status) -> bool:
    """Report whether a change concerns more than servers that start: clients or people are to act on it."""
    if (desired.serverList or ()) != (last.serverList or ()) or desired.draining != last.draining:
        return True
    return any(_holds(desired, each) != _holds(last, each) for each in ("Available", "Degraded"))


def _holds(status: Status, type_: str) -> bool:
    condition = status.condition(type_)
    return condition is not None and condition.status == "True"


class ServerPredicates:
    def __init__(
        self, caches: Caches, awaited: Callable[[ObjectKey], int | None], now_s: Callable[[], float] = time.time
    ) -> None:
        self._caches = caches
        self._awaited = awaited
        self._now_s = now_s

    def by_pod(self, before: PodRecord | None, after: PodRecord | None) -> bool:
        """Report whether a change of a pod counts."""
        if after is None or not after.starts or not (before is None or before.starts):
            return True
        if before is not None:
            return _as_placed(before, after) != after or is_placed_late(before, after, self._now_s())
        key = after.memcached_key
        awaited = self._awaited(key) if key is not None else None
        return key is None or awaited is None or sum(pod.active for pod in self._caches.pods_of(key)) == awaited

    def by_workload(self, before: WorkloadRecord | None, after: WorkloadRecord | None) -> bool:
        """Report whether a change of a Deployment or a StatefulSet counts."""
        if before is None or after is None:
            return True
        seen = msgspec.structs.replace(
            before,
            resource_version=after.resource_version,
            has_revision=after.has_revision,
            is_observed=after.is_observed,
        )
        key = ObjectKey(after.namespace, after.name)
        if self._awaited(key) is None:
            return seen != after or not self._is_first_and_incomplete(key, after)
        seen = msgspec.structs.replace(
            seen, revised=after.revised, rolled_out=after.rolled_out, revision=after.revision
        )
        return seen != after

    def _is_first_and_incomplete(self, key: ObjectKey, workload: WorkloadRecord) -> bool:
        """Report whether it is a Deployment whose first pods are not all ready: their own changes show more."""
        return (
            workload.kind == "Deployment"
            and workload.generation == 1
            and sum(pod.active and pod.ready for pod in self._caches.pods_of(key)) < workload.replicas
        )


def _as_placed(before: PodRecord, after: PodRecord) -> PodRecord:
    """A pod with what it gets until it runs: a node, an address, which is listed once it is ready, and containers.

    What it waits for meanwhile has its time: see `rollout.server_states`.
    """
    return msgspec.structs.replace(
        before,
        resource_version=after.resource_version,
        address=after.address,
        since_s=after.since_s,
        waits=after.waits,
        placed=after.placed,
        down=before.down and after.down,
    )
