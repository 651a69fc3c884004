"""Pure: the servers of a Memcached: since when each is as it is, as far as that may be believed, and its state.

Nodes, the scheduler and the API server write their own times into a pod. One whose clock is ahead writes a time that is
yet to come, and what waits for so many seconds after it would wait for as long as that clock is ahead. So no wait lasts
longer than it would from the moment at which this operator saw the time first. Which clock it has makes no difference:
its own waits are counted by one that nobody sets.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.holder import Moving
from memcached_operator.core.observed.pod_status import NO_PROBLEM, PodProblem
from memcached_operator.core.observed.pods import NO_ORDINAL, PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.rollout.diagnosis.bounded_reads import READ_AFTER_S
from memcached_operator.core.rollout.in_place_restart import can_restart, has_ended, requested, restart_left_s

AHEAD_S: Final = 5.0
"""By less a time may be ahead of the operator's without a word, and without effect: clocks that are set over a network
are right to within a second, and Kubernetes' times are in whole ones."""
WAIT_S: Final = 30.0
"""After so many seconds what a pod waits for is reported as its problem. A node mounts a volume in one or two."""

_Stamp = tuple[str, str, int]
Seen = Mapping[_Stamp, float]
"""Times that were yet to come when they were seen first, by the pod's uid and what they are of, and when that was, by
a monotonic clock."""
UNSEEN: Final[Seen] = {}


class ObservedPods(NamedTuple):
    """Pods, as far as their reports are to be believed.

    Attributes:
        pods: in the order in which they came, with times that are not yet to come.
        ahead: names of those with times that are, of which the clock that wrote them is ahead.
        next_s: seconds until more is to be reported of one, None for never.
    """

    pods: Sequence[PodRecord]
    ahead: tuple[str, ...]
    seen: Seen
    next_s: float | None
    failure: PodProblem = NO_PROBLEM

    @property
    def active(self) -> Sequence[PodRecord]:
        """Pods that are neither terminating nor finished."""
        return [pod for pod in self.pods if pod.active]

    @property
    def inactive(self) -> Sequence[PodRecord]:
        """The others."""
        return [pod for pod in self.pods if not pod.active]


def observed_pods(pods: Sequence[PodRecord], seen: Seen, now_s: float, clock_s: float) -> ObservedPods:
    """Correct the times that pods report, and delay problems that may pass.

    Args:
        now_s: the operator's time, in seconds since 1970.
        clock_s: by its monotonic clock.
    """
    known: dict[_Stamp, float] = {}
    ahead = tuple(sorted(pod.name for pod in pods if max(_times(pod).values()) > now_s + AHEAD_S))
    if seen or ahead:
        pods = [_believed(pod, seen, known, now_s, clock_s) for pod in pods]
    looks = (_next_s(pod, now_s) for pod in pods if pod.starts and (pod.waits or pod.down))
    next_s = min((each for each in looks if each is not None), default=None)
    if next_s is not None:
        pods = [_reported(pod, now_s) for pod in pods]
    return ObservedPods(pods, ahead, known, next_s)


def _believed(pod: PodRecord, seen: Seen, known: dict[_Stamp, float], now_s: float, clock_s: float) -> PodRecord:
    """Replace a pod's times that are yet to come, or were when they were seen first; add those to `known`."""
    for of, at in _times(pod).items():
        stamp = pod.uid, of, at
        if stamp in seen or at > now_s + AHEAD_S:
            first_s = known[stamp] = seen.get(stamp, clock_s)
            pod = _since(pod, of, min(at, int(now_s - (clock_s - first_s))))
    return pod


def _next_s(pod: PodRecord, now_s: float) -> float | None:
    """Seconds until more may be known of a pod that starts: what it waits for on its node is no event.

    None of one that got no node in that time: that it gets one is an event then, see `is_placed_late`.
    """
    left_s = pod.since_s + (READ_AFTER_S if pod.placed and not pod.waits else WAIT_S) - now_s
    if left_s > 0.0:
        return left_s
    return WAIT_S if pod.placed or pod.waits else None


def is_placed_late(before: PodRecord, after: PodRecord, now_s: float) -> bool:
    """Report whether a pod got its node when it may be looked at no more: late, also by the control plane's clock.

    That may be ahead of the operator's, by which a pod is looked at; see `observed_pods`.
    """
    waited_s = max(now_s, after.since_s) - before.since_s
    return after.placed and not before.placed and not 0.0 <= waited_s < WAIT_S


def _reported(pod: PodRecord, now_s: float) -> PodRecord:
    """A pod whose wait is its problem if it takes long."""
    late = pod.starts and pod.since_s + WAIT_S <= now_s
    return msgspec.structs.replace(pod, problem=pod.waits) if late else pod


def _times(pod: PodRecord) -> Mapping[str, int]:
    """The times on a pod that others wrote, in seconds since 1970, by what they are of."""
    request = requested(pod) if pod.in_place else None
    times = {"ready": pod.since_s}
    if request is not None:
        times["in place"] = request.since_s
    if pod.termination is not None:
        times["termination"] = pod.termination.since_s
    return times


def _since(pod: PodRecord, of: str, since_s: int) -> PodRecord:
    """A pod that is so since then."""
    if of == "ready":
        return msgspec.structs.replace(pod, since_s=since_s)
    if of == "in place" and (request := requested(pod)) is not None:
        return msgspec.structs.replace(pod, in_place=str(request._replace(since_s=since_s)))
    if pod.termination is not None:
        ends_s = pod.termination.ends_s - pod.termination.since_s + since_s
        return msgspec.structs.replace(
            pod, termination=msgspec.structs.replace(pod.termination, since_s=since_s, ends_s=ends_s)
        )
    return pod


STUCK_AFTER_S: Final = 120.0
"""After so many seconds a server that does not get ready is thought to never do so. memcached starts in less than one;
the rest is for an image that must be pulled."""


class ServerState(Enum):
    """State of a server with regard to the present template; of all but the first it is stale."""

    CURRENT = "of the present template"
    RESTARTING = "given the present template in its pod, and its node is about to start its container"
    RETURNING = "given the present template in its pod, and started again or late, but does not serve by it"
    RETURNED = "given the present template in its pod, and serves by it"
    OUTDATED = "of another template, or of a Secret's former content"
    OVERDUE = "outdated, and not ready past the deadline"
    DIVERTED = "outdated, and its node is about to start its container, by a template that is not the present one"


_DUE: Final = (ServerState.OUTDATED, ServerState.OVERDUE, ServerState.DIVERTED)


class RollingServer(NamedTuple):
    """A server that is to stay.

    Attributes:
        can_restart: it can come to the template in its pod, and keeps its items.
    """

    pod: PodRecord
    state: ServerState
    can_restart: bool

    @property
    def is_due(self) -> bool:
        """Report whether it was not given the present template in its pod, or has failed to return to it."""
        return self.state in _DUE

    @property
    def serves(self) -> bool:
        """Report whether it serves, and is not about to stop."""
        return self.pod.ready and self.state in (ServerState.CURRENT, ServerState.OUTDATED)


class RolloutState(msgspec.Struct, frozen=True, dict=True):
    """Observed state that decides a rollout's next step.

    Attributes:
        impossible: uids of pods whose memory cannot be changed while they run.
        outdated_secrets: uids of pods that show another certificate than a new pod would, or trust another CA.
        missing_s: see `missing_pods.PodAbsence`; handing_over, moving: see `Snapshot`.
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
    moving: Moving | None = None
    underway: bool = False

    @cached_property
    def servers(self) -> Sequence[RollingServer]:
        """The pods that are to stay, each with its state."""
        size = max(self.spec.size, 0)
        pods = [pod for pod in self.pods if pod.workload == self.workload.kind and pod.ordinal < size]
        stale = {pod.uid for pod in pods if is_stale(pod, self.workload, self.impossible)}
        # A Deployment's controller replaces those, by the present certificate.
        restarts = self.workload.kind != "Deployment" or not stale
        stale |= {pod.uid for pod in pods if restarts and pod.uid in self.outdated_secrets}
        return [
            self._stale_server(pod, restarts=restarts)
            if pod.uid in stale
            else RollingServer(pod, ServerState.CURRENT, False)
            for pod in pods
        ]

    def _stale_server(self, pod: PodRecord, *, restarts: bool) -> RollingServer:
        request, left_s, template_hash = requested(pod), restart_left_s(pod, self.now_s), self.workload.template_hash
        is_possible = can_restart(pod, self.workload)
        is_given = is_possible and request is not None and request.template_hash == template_hash
        has_restarted = request is not None and pod.restarts > request.restarts
        # It was given back what it ran before, and need not have restarted: its node could not be reached meanwhile.
        is_late_back = is_given and pod.template_hash == template_hash and not left_s
        if is_late_back and pod.down and not pod.ready:
            # Any that is changed to something new stops the rollout; this one is what people come back to.
            is_possible = is_given = False
        if is_given and pod.ready and (has_restarted or is_late_back):
            state = ServerState.RETURNED
        elif left_s and not has_restarted and not (pod.down and pod.problem and not has_ended(pod)):
            state = ServerState.RESTARTING if is_given else ServerState.DIVERTED
        elif is_given:
            state = ServerState.RETURNING
        else:
            state = ServerState.OVERDUE if self.is_past_deadline(pod) else ServerState.OUTDATED
        return RollingServer(pod, state, restarts and is_possible)

    @cached_property
    def stale(self) -> Sequence[RollingServer]:
        """Servers that are to be replaced, or restarted in place, or are being so."""
        return [each for each in self.servers if each.state is not ServerState.CURRENT]

    @cached_property
    def due(self) -> Sequence[RollingServer]:
        """Stale servers that were not given the present template in their pods, or have failed to return to it."""
        return [each for each in self.servers if each.is_due]

    @cached_property
    def away(self) -> Sequence[RollingServer]:
        """Servers that do not serve, or are about to stop."""
        return [each for each in self.servers if not each.serves]

    @cached_property
    def missing(self) -> int:
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


def missing_servers(spec: Spec, workload: WorkloadRecord | None, pods: Sequence[PodRecord]) -> int:
    """Count a StatefulSet's servers without an active pod, such as one that is ending."""
    if workload is None or workload.kind != "StatefulSet":
        return 0
    return spec.size - sum(NO_ORDINAL < pod.ordinal < spec.size for pod in pods)


def is_stale(pod: PodRecord, workload: WorkloadRecord, impossible: Container[str] = ()) -> bool:
    """Report whether only a new pod, or a restart in place, would be as the template has it; see `RolloutState`."""
    is_other = (pod.template_hash, pod.restarted) != (workload.template_hash, workload.restarted)
    if workload.kind == "Deployment":
        # A pod whose annotations were removed has no hash.
        return bool(pod.template_hash) and (is_other or pod.memory != workload.memory)
    if pod.in_place:
        return True
    if not workload.revision or pod.revision == workload.revision:
        return False
    # Of another revision, and alike in all that the operator makes: another client has added something to the template.
    # Or a holder is named there, or was when the pod was made, which is no difference of servers.
    is_foreign = pod.memory == workload.memory and not (pod.holder or workload.holder)
    return is_other or is_foreign or pod.uid in impossible
