"""Pure: observation of a reconcile's findings and acts, of which a status is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from memcached_operator.api.status import HandoverStatus, Problem, Reason, Sizes, Status, first_names, joined, sizes_of
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects.owned_object import named_finalizers, who_must_remove
from memcached_operator.core.objects.service import is_load_balanced
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pod_status import NO_PROBLEM, PodProblem
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import ObjectsResult
from memcached_operator.core.plan.plan import OTHER, ListedServers, as_ending, as_published
from memcached_operator.core.rollout.next_step import DONE, RolloutProgress
from memcached_operator.core.rollout.server_states import ObservedPods
from memcached_operator.core.rollout.workload_decision import Hold
from memcached_operator.core.snapshot import Snapshot
from memcached_operator.features.handover.handover_reconciler import Progress
from memcached_operator.features.memory_scaling.retaining_condition import Scaling
from memcached_operator.servers.stats_cache import ServerHealth
from operator_runtime import Condition

_LOAD_BALANCED: Final = Problem(
    Reason.LOAD_BALANCED_SERVERS,
    "The Service load-balances connections over the servers, so that a client finds a key only by chance. With more "
    "than one server, set spec.service.type to Headless.",
)
_IN_THE_CLEAR: Final = Problem(
    Reason.PASSWORDS_IN_THE_CLEAR,
    "Passwords are sent unencrypted and can be intercepted: set spec.tls together with spec.auth.",
)
# How often the clients of auto discovery read the list, by their own default, in seconds.
_READ_S: Final = 60
_OF_PODS: Final = (
    Reason.INVALID_SPEC,
    *(Reason.SECRET_NOT_FOUND, Reason.CERTIFICATE_INVALID, Reason.PASSWORDS_INVALID, Reason.RELOAD_UNSUPPORTED),
)


class Observation(msgspec.Struct, frozen=True):
    """Observed state of one Memcached.

    Attributes:
        pods: the active pods, in any order, of both workloads while it moves from one to the other.
        servers: what is published of them; None where nothing is known yet.
        service: name of the Service that this Memcached controls, "" without one.
        problem: what keeps the operator from doing its work, None when nothing does.
        waiting: what is being waited for before all is there, "" for nothing.
        write_failed: the workload is not as specified, as the API server failed to write it.
        terminating: what its deletion waits for, "" while it is not being deleted.
        leaving: the kind of the other workload, which the servers move from; None for none.
        advice: what its user should know although all is as specified; the condition Discouraged.
        drain_s: seconds for which servers run on that left the list.
        pause_s: seconds between one server that is replaced and the next.
        health: the last answers of its ready servers, in the order of their names; None where servers are not queried.
        names: DNS names by which clients know the servers, for what their certificates are to be for.
        ahead, failure: see `ObservedPods`; rollout, absent, hold: see `WorkloadResult`.
        memory: of each server, in force, as a quantity; "" where that is not known.
        sizes: others that are in force; None where they are not known.
        scaling: what was decided of it; None without `spec.memoryScaling`.
        handing_over: the condition HandingOver, None where there is none.
        moving: what is under way of a server's move, "" for nothing.
    """

    name: str
    generation: int
    size: int | None
    kind: Workload
    workload: WorkloadRecord | None
    pods: Sequence[PodRecord]
    servers: ListedServers | None = None
    service: str = ""
    problem: Problem | None = None
    waiting: str = ""
    write_failed: bool = False
    pending_writes: Sequence[str] = ()
    terminating: str = ""
    leaving: Workload | None = None
    advice: Sequence[Problem] = ()
    rollout: RolloutProgress = DONE
    absent: str = ""
    drain_s: int = 0
    paused: bool = False
    pause_s: int = 0
    hold: Hold = Hold.NONE
    health: Sequence[ServerHealth] | None = None
    names: Sequence[str] = ()
    ahead: Sequence[str] = ()
    failure: PodProblem = NO_PROBLEM
    memory: str = ""
    sizes: Sizes | None = None
    scaling: Scaling | None = None
    handover: HandoverStatus | None = None
    handing_over: Condition | None = None
    moving: str = ""

    @property
    def target(self) -> Sequence[PodRecord]:
        """The pods of the workload that the specification has."""
        return [pod for pod in self.pods if self.leaving is None or pod.workload != self.leaving]

    @property
    def serving(self) -> Sequence[PodRecord]:
        """The pods of the workload whose servers are listed, without those that are terminating."""
        listed = self.servers.workload if self.servers else None
        desired = self.size if listed == "StatefulSet" else None
        pods = (pod for pod in self.pods if listed in (None, pod.workload))
        return [pod for pod in pods if desired is None or pod.ordinal < desired]


def observed(
    snapshot: Snapshot,
    done: ObjectsResult,
    owned: Mapping[Workload, WorkloadRecord],
    progress: Progress,
    seen: ObservedPods,
    scaling: Scaling | None = None,
) -> Observation:
    memcached, spec, plan = snapshot.memcached, snapshot.spec, snapshot.plan
    workloads, outcome = done.workloads, done.outcome
    other = owned.get(OTHER[plan.target])
    waiting = list(outcome.waiting)
    # Under a foreign workload, pods with our labels are foreign, too.
    pods = [pod for pod in snapshot.pods if pod.workload not in outcome.foreign]
    if other is not None and other.finalizers:
        waiting.append(
            f"The {other.kind} {other.name} has {named_finalizers(other.finalizers)}: the "
            f"{who_must_remove(other.finalizers)}."
        )
    return Observation(
        memcached.name,
        memcached.generation,
        spec.size,
        plan.target,
        workloads.workload,
        pods,
        plan.servers,
        done.service,
        joined([*_of_pods(pods), *_of_reloads(pods), *outcome.problems]),
        " ".join(waiting),
        write_failed=workloads.write_failed,
        pending_writes=sorted(outcome.pending_writes),
        leaving=other.kind if other is not None else None,
        advice=(*_advice(spec), *progress.advice),
        rollout=workloads.rollout,
        absent=workloads.absent,
        drain_s=spec.drainPeriodSeconds,
        paused=spec.rollout.paused,
        pause_s=spec.rollout.minReadySeconds,
        hold=workloads.hold,
        ahead=seen.ahead,
        failure=seen.failure,
        memory=scaling.memory if scaling is not None else spec.memory,
        sizes=sizes_of(spec),
        scaling=scaling,
        handover=progress.state,
        handing_over=progress.condition,
        moving=snapshot.moving.message if snapshot.moving is not None else "",
    )


def _advice(spec: Spec) -> Iterator[Problem]:
    if is_load_balanced(spec):
        yield _LOAD_BALANCED
    if spec.auth is not None and spec.tls is None:
        yield _IN_THE_CLEAR
    if spec.discovery is not None and spec.has_endpoint and spec.handover is None:
        yield from _short_drain(spec)


def _short_drain(spec: Spec) -> Iterator[Problem]:
    """Advice where clients of the endpoint ask servers that are gone; a Deployment's end as they leave the list."""
    remedies = ["spec.workload to StatefulSet"] if spec.workload == "Deployment" else []
    if spec.drainPeriodSeconds < _READ_S:
        remedies.append(f"spec.drainPeriodSeconds to more than that, such as {2 * _READ_S}")
    if remedies:
        yield Problem(
            Reason.DRAIN_TOO_SHORT,
            "Clients of spec.discovery.autoDiscovery read the list each minute, and a server that left it runs on for "
            f"less: set {' and '.join(remedies)}.",
        )


def _of_pods(pods: Sequence[PodRecord]) -> Iterator[Problem]:
    """Yield the problem of servers that are not started, as most of them report it."""
    reported = Counter(pod.problem for pod in pods if not pod.ready and pod.problem.reason in _OF_PODS)
    if reported:
        # By count, then by name: equal counts must not make the message flap.
        problem = min(reported, key=lambda each: (-reported[each], str(each)))
        remedy = "Running servers continue; new ones start once this is corrected."
        yield Problem(Reason(problem.reason), f"{problem.message.rstrip('.')}. {remedy}", blocking=False)


def _of_reloads(pods: Sequence[PodRecord]) -> Iterator[Problem]:
    """Servers that run and could not be made to reload their Secrets."""
    failed = [pod for pod in pods if pod.outdated.reason == Reason.RELOAD_FAILED]
    if failed:
        names = first_names(sorted(pod.name for pod in failed))
        message = failed[0].outdated.message
        remedy = "Correct spec.podTemplate, which replaces the servers, or replace them with `kubectl rollout restart`."
        yield Problem(Reason.RELOAD_FAILED, f"{names}: {message}. {remedy}", blocking=False)


def unplanned(
    memcached: MemcachedRecord,
    last: Status,
    owned: Mapping[Workload, WorkloadRecord],
    pods: Sequence[PodRecord],
    problem: Problem | None,
    *,
    spec: Spec | None = None,
    terminating: str = "",
    progress: Progress | None = None,
) -> Observation:
    """Observe a Memcached without a plan: its specification cannot be read, or it is being deleted.

    Args:
        progress: of its hand-over; None where it stays as it is.
    """
    published = as_ending(last, owned, pods) if terminating else as_published(last, pods)
    progress = progress or Progress(state=last.handover)
    kind: Workload = published.workload if published else next(iter(owned), "Deployment")
    workload = owned.get(kind)
    return Observation(
        memcached.name,
        memcached.generation,
        spec.size if spec is not None else None,
        kind,
        workload,
        pods,
        published,
        last.service or "",
        problem,
        terminating=terminating,
        advice=tuple(_advice(spec)) if spec is not None else (),
        handover=progress.state,
        handing_over=progress.condition,
    )


def client_names(observed: Observation, namespace: str) -> list[str]:
    """The DNS names by which clients know the servers: that of the Service, and those that servers keep."""
    service = [f"{observed.service}.{namespace}.svc"] if observed.service else []
    servers = observed.servers
    listed = servers.listed if servers is not None and servers.workload == "StatefulSet" else ()
    return [*service, *(each.rpartition(":")[0] for each in listed)]
