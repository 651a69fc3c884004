"""The memory of one Memcached at a time: keeps what its servers evicted, and decides by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from prometheus_client import Metric
from prometheus_client.metrics_core import GaugeMetricFamily

from memcached_operator.api.quantities import kibibytes, mebibytes, of_mebibytes
from memcached_operator.api.status import decode_status
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.observed.caches import Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.outcome import Blocked, WorkloadResult
from memcached_operator.features.memory_scaling.effective_memory import with_effective_memory
from memcached_operator.features.memory_scaling.retaining_condition import Scaling
from memcached_operator.features.memory_scaling.scaling_decision import (
    Decision,
    ForeignLimit,
    Grow,
    History,
    Observing,
    Retained,
    ScalingWait,
    decide_memory,
    evicted_after_s,
    extended,
    recommended_mib,
)
from memcached_operator.servers.queried_pod import QueriedPod
from memcached_operator.servers.stats_answer import StatsAnswer
from operator_runtime import KeyedStates, ObjectKey

_DAY_S: Final = 86_400.0
# Windows after which a step is tried again that not all servers could take, doubled each time.
_RETRY_WINDOWS: Final = 2
_RETRIES: Final = 3
# That memcached takes at all.
_LEAST_MIB: Final = 8

_Judged: TypeAlias = tuple[Decision, str | None]


@dataclass(slots=True)
class _MemoryHistory:
    """State of a Memcached's memory; a successor observes its servers anew.

    Attributes:
        histories: of its servers, by uid of the pod.
        judged: what a reconcile acted on last: a decision, and the memory that it recommended.
        refused: how many steps in a row not all servers could take.
        kept_mib: what all servers kept then.
        not_before_s: until when, by the clock, no other is tried.
        low_since_s: since when, by the clock, less than half of the memory would do; None while it would not.
        is_rolling: servers are to be replaced, as of the last reconcile.
        mib: memory that was in force when something was decided last.
    """

    histories: dict[str, History]
    judged: _Judged | None = None
    refused: int = 0
    kept_mib: int = 0
    not_before_s: float = 0.0
    low_since_s: float | None = None
    is_rolling: bool = False
    mib: int = 0


class Scaler:
    """Decides how much memory servers are to have; see `record` and `decide`."""

    def __init__(self, caches: Caches, states: KeyedStates, window_s: float, clock: Callable[[], float]) -> None:
        """
        Args:
            window_s: for how long servers are observed before a step.
        """
        self._caches = caches
        self.known = states.keyed(lambda: _MemoryHistory({}))
        self._window_s = window_s
        self._clock = clock

    def record(self, pod: QueriedPod, answer: StatsAnswer) -> bool:
        """Take a server's answer; report whether something else is decided since."""
        memcached = self._caches.memcacheds.get(pod.memcached_key) if pod.memcached_key is not None else None
        spec = memcached.readable_spec if memcached is not None else None
        if memcached is None or spec is None or spec.memoryScaling is None:
            return False
        known, pods = self.known[memcached.key], self._caches.own_pods_of(memcached)
        retention_s = spec.memoryScaling.retentionSeconds
        if answer.number("uptime") < retention_s and any(each.holder for each in pods if each.uid == pod.uid):
            return False  # its items moved there, and are none older than it
        history = known.histories.get(pod.uid, History())
        known.histories[pod.uid] = extended(history, answer, pod.restarts, self._window_s, retention_s)
        for gone in known.histories.keys() - {each.uid for each in pods if each.active}:
            del known.histories[gone]
        return self._judged(known, with_effective_memory(spec, _reported(memcached)), pods) != known.judged

    def decide(self, key: ObjectKey, spec: Spec, pods: Sequence[PodRecord], done: WorkloadResult) -> Scaling | None:
        """Decide about the memory, None without `spec.memoryScaling`."""
        if spec.memoryScaling is None:
            self.known.pop(key, None)
            return None
        known = self.known[key]
        known.is_rolling, refused = done.is_rolling, done.refused
        if refused is not None:
            self._withdraw(known, refused.kept_mib)
            known.judged = (refused, None)
            return Scaling(spec.memoryScaling, refused, of_mebibytes(refused.kept_mib))
        known.judged = decision, recommended = self._judged(known, spec, pods)
        # What is decided of more memory than was kept is decided of servers that have it.
        if isinstance(decision, Retained) or (isinstance(decision, Grow) and decision.from_mib > known.kept_mib):
            known.refused = 0
        mib = decision.to_mib if isinstance(decision, Grow) else mebibytes(spec.memory)
        return Scaling(spec.memoryScaling, decision, of_mebibytes(mib), recommended)

    def families(self) -> Iterator[Metric]:
        """Memory in force, its maximum and the observed retention of each Memcached with `spec.memoryScaling`."""
        labels = ("namespace", "memcached")

        def family(name: str, help: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"memcached_scaling_{name}", help, labels=labels)

        actual = family("memory_actual_bytes", "Least memory for items that a server of the Memcached has.")
        desired = family("memory_desired_bytes", "Memory for items that each server of the Memcached is to have.")
        most = family("memory_max_bytes", "spec.memoryScaling.max of the Memcached.")
        retention = family(
            "observed_retention_seconds",
            "Shortest time, over servers, for which items had been idle that clients had fetched and that were evicted "
            "in the last while; absent while there are none.",
        )
        required = family("required_retention_seconds", "spec.memoryScaling.retentionSeconds of the Memcached.")
        for key, known in self.known.items():
            memcached = self._caches.memcacheds.get(key)
            spec = memcached.readable_spec if memcached is not None else None
            if memcached is None or spec is None or spec.memoryScaling is None:
                continue
            at = (key.namespace, key.name)
            in_force = with_effective_memory(spec, _reported(memcached))
            desired.add_metric(at, mebibytes(in_force.memory) * 2.0**20)
            most.add_metric(at, mebibytes(spec.memoryScaling.max) * 2.0**20)
            required.add_metric(at, spec.memoryScaling.retentionSeconds)
            histories = _histories(known, _serving(spec, self._caches.own_pods_of(memcached)))
            if limits := [each.limit_mib for each in histories if each.limit_mib is not None]:
                actual.add_metric(at, min(limits) * 2.0**20)
            idle = [evicted_after_s(each.samples) for each in histories]
            if times := [each for each in idle if each is not None]:
                retention.add_metric(at, min(times))
        yield from (actual, desired, most, retention, required)

    def _judged(self, known: _MemoryHistory, spec: Spec, pods: Sequence[PodRecord]) -> _Judged:
        scaling = spec.memoryScaling
        if scaling is None:
            return Observing(), None
        mib, max_mib, retention_s = mebibytes(spec.memory), mebibytes(scaling.max), scaling.retentionSeconds
        if mib != known.mib:  # servers are yet to be given it
            known.mib = mib
            known.histories = {uid: each for uid, each in known.histories.items() if each.limit_mib in (mib, None)}
        serving, now_s = _serving(spec, pods), self._clock()
        histories = _histories(known, serving)
        decision, found = decide_memory(histories, spec.size, mib, max_mib, retention_s, self._window_s), None
        if isinstance(decision, Retained):
            found = recommended_mib(histories, mib, _least_mib(spec), retention_s)
        if found is None or 2 * found >= mib:
            known.low_since_s = None
        elif known.low_since_s is None:
            known.low_since_s = now_s
        match decision:
            case Observing() if not known.is_rolling:
                decision = self._foreign_limit(known, serving, mib) or decision
            case Grow() if now_s < known.not_before_s:
                decision = Observing()
            case Grow() if known.is_rolling or len(serving) < spec.size:
                decision = ScalingWait(len(serving), spec.size, known.is_rolling)  # all servers take a step, or none
            case Retained() if known.low_since_s is not None and now_s - known.low_since_s >= _DAY_S:
                decision = Retained(is_unused=True)
        return decision, of_mebibytes(found) if found is not None else None

    def _foreign_limit(self, known: _MemoryHistory, serving: Sequence[PodRecord], mib: int) -> ForeignLimit | None:
        for pod, history in ((pod, known.histories.get(pod.uid, History())) for pod in serving):
            if history.limit_mib not in (mib, None) and history.covers(self._window_s):
                return ForeignLimit(pod.name, history.limit_mib or 0, mib)
        return None

    def _withdraw(self, known: _MemoryHistory, kept_mib: int) -> None:
        """Withdraw a step that not all servers could take: it is tried again later, and each time after longer."""
        if known.judged is not None and isinstance(known.judged[0], Blocked):
            return  # it is yet to be written
        known.histories.clear()
        windows = _RETRY_WINDOWS ** min(known.refused, _RETRIES)
        known.refused += 1
        known.kept_mib = kept_mib
        known.not_before_s = self._clock() + windows * self._window_s


def _serving(spec: Spec, pods: Sequence[PodRecord]) -> list[PodRecord]:
    """Return the servers of a StatefulSet that are ready, and to stay."""
    return [pod for pod in pods if pod.active and pod.ready and 0 <= pod.ordinal < spec.size]


def _least_mib(spec: Spec) -> int:
    """The least memory that the specification would allow: an item takes at most half of it."""
    return max(_LEAST_MIB, -(-2 * kibibytes(spec.maxItemSize) // 1024))


def _histories(known: _MemoryHistory, pods: Sequence[PodRecord]) -> list[History]:
    return [known.histories[pod.uid] for pod in pods if pod.uid in known.histories]


def _reported(memcached: MemcachedRecord) -> str | None:
    return decode_status(memcached.status).memory
