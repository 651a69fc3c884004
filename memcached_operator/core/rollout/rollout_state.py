"""Pure: the servers of a Memcached during a rollout: which are of another template, ready, missing, or starting."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.observed.pods import NO_ORDINAL, PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.rollout import in_place

STUCK_AFTER_S: Final = 120.0
"""After so many seconds a server that does not get ready is thought to never do so. memcached starts in less than one;
the rest is for an image that must be pulled."""


class RolloutState(msgspec.Struct, frozen=True, dict=True):
    """Observed state that decides a rollout's next step.

    Attributes:
        workload: what runs the servers.
        pods: its active pods, in any order.
        now_s: the time, in seconds since 1970.
        impossible: uids of pods whose memory cannot be changed while they run.
        outdated_secrets: uids of pods that show another certificate than a new pod would, or trust another CA.
        missing_s: for how many seconds each server that has no pod, not even one that is ending, has had none, by its
            ordinal and as far as that was seen; see `missing_pods`.
        missing_reported: why servers are missing is reported elsewhere.
        handing_over: no server is replaced that has keys; see `handover.steps`.
        underway: a rollout was in progress by the last status, of which the last server may be yet to get ready.
    """

    spec: Spec
    workload: WorkloadRecord
    pods: Sequence[PodRecord]
    now_s: float
    impossible: Container[str] = ()
    outdated_secrets: Container[str] = ()
    missing_s: Mapping[int, float] = msgspec.field(default_factory=dict)
    missing_reported: bool = False
    handing_over: bool = False
    underway: bool = False

    @property
    def is_deployment(self) -> bool:
        """Report whether the workload's own controller replaces pods."""
        return self.workload.kind == "Deployment"

    @cached_property
    def servers(self) -> Sequence[PodRecord]:
        """The pods that are to stay."""
        size = max(self.spec.size, 0)
        return [pod for pod in self.pods if pod.workload == self.workload.kind and pod.ordinal < size]

    @cached_property
    def of_other_template(self) -> Sequence[PodRecord]:
        """Servers that only a new pod, or a restart in place, would bring to the template."""
        return [pod for pod in self.servers if is_stale(pod, self.workload, self.impossible)]

    @cached_property
    def stale(self) -> Sequence[PodRecord]:
        """Servers that are to be replaced, or restarted in place."""
        if self.is_deployment and self.of_other_template:
            return self.of_other_template  # the new ones show the present certificate
        return [pod for pod in self.servers if pod in self.of_other_template or pod.uid in self.outdated_secrets]

    @cached_property
    def restartable(self) -> Sequence[PodRecord]:
        """Stale servers that can come to the template in their pods."""
        if self.is_deployment and self.of_other_template:
            return ()  # its controller replaces pods
        return [
            pod for pod in self.stale if pod not in self._failed_in_place and in_place.is_possible(pod, self.workload)
        ]

    @cached_property
    def in_progress(self) -> Sequence[PodRecord]:
        """Stale servers that were given the present template in their pods, and have not failed to return to it."""
        return [
            pod
            for pod in self.stale
            if pod not in self._failed_in_place and in_place.is_in_progress(pod, self.workload)
        ]

    @cached_property
    def completed(self) -> Sequence[PodRecord]:
        """Servers in progress that serve by the template."""
        return [pod for pod in self.in_progress if in_place.has_completed(pod, self.workload, self.now_s)]

    @cached_property
    def restarting(self) -> Sequence[PodRecord]:
        """Stale servers whose container is about to start again."""
        return [pod for pod in self.stale if in_place.is_restarting(pod, self.now_s)]

    @cached_property
    def due(self) -> Sequence[PodRecord]:
        """Stale servers that were not given the present template in their pods, or have failed to return to it."""
        return [pod for pod in self.stale if pod not in self.in_progress]

    @cached_property
    def past_deadline(self) -> Sequence[PodRecord]:
        """Due servers that have been unready past the deadline."""
        return [pod for pod in self.due if self.is_past_deadline(pod)]

    @cached_property
    def unready(self) -> Sequence[PodRecord]:
        """Servers that do not serve, or are about to stop."""
        return [pod for pod in self.servers if not pod.ready or pod in self.in_progress or pod in self.restarting]

    @cached_property
    def unproven(self) -> Sequence[PodRecord]:
        """Servers of the present template, or on their way to it, that do not serve by it."""
        return [pod for pod in self.unready if pod not in self.due]

    @cached_property
    def is_proven(self) -> bool:
        """Report whether a server of the present template serves."""
        return any(pod.ready for pod in self.servers if pod not in self.stale)

    @cached_property
    def missing(self) -> int:
        """Number of servers without an active pod."""
        return missing_servers(self.spec, self.workload, self.pods)

    def is_past_deadline(self, pod: PodRecord) -> bool:
        """Report whether a server has been unready past the deadline."""
        return not pod.ready and not self.left_s(pod, STUCK_AFTER_S)

    def may_yet_start(self, pod: PodRecord) -> bool:
        """Report whether a server that starts has a problem that often passes by itself, and not for long."""
        may_pass = pod.problem.may_pass or pod.problem == pod.waits
        return may_pass and self.left_s(pod, STUCK_AFTER_S) > 0.0

    def left_s(self, pod: PodRecord, enough_s: float) -> float:
        """Seconds until a pod has been as it is for long enough, by its node's clock; no more than that at a time."""
        return min(max(pod.since_s + enough_s - self.now_s, 0.0), enough_s)

    @cached_property
    def _failed_in_place(self) -> Sequence[PodRecord]:
        """Stale servers that were given back what they ran before in their pods, and do not run it in time."""
        return [pod for pod in self.stale if in_place.has_failed(pod, self.workload, self.now_s)]


def missing_servers(spec: Spec, workload: WorkloadRecord | None, pods: Sequence[PodRecord]) -> int:
    """Count a StatefulSet's servers without an active pod, such as one that is ending."""
    if workload is None or workload.kind != "StatefulSet":
        return 0
    return spec.size - sum(NO_ORDINAL < pod.ordinal < spec.size for pod in pods)


def is_stale(pod: PodRecord, workload: WorkloadRecord, impossible: Container[str] = ()) -> bool:
    """Report whether only a new pod, or a restart in place, would be as the template has it.

    Args:
        impossible: uids of pods whose memory cannot be changed while they run.
    """
    is_other = (pod.template_hash, pod.restarted) != (workload.template_hash, workload.restarted)
    if workload.kind == "Deployment":
        # A pod whose annotations were removed has no hash.
        return bool(pod.template_hash) and (is_other or pod.memory != workload.memory)
    if pod.in_place:
        return True
    if not workload.revision or pod.revision == workload.revision:
        return False
    # Of another revision, and alike in all that the operator makes: another client has added something to the template.
    return is_other or pod.memory == workload.memory or pod.uid in impossible
