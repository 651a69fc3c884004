"""Pure: observation of a reconcile's findings and acts, of which a status is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from memcached_operator.api.status import Problem, Reason, Status, first_names, joined
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects.owned_object import named_finalizers, who_must_remove
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pod_status import NO_PROBLEM, PodProblem
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import ObjectsResult, WorkloadResult
from memcached_operator.core.plan.plan import OTHER, ListedServers, as_ending, as_published
from memcached_operator.core.rollout.server_states import ObservedPods
from memcached_operator.core.snapshot import Snapshot
from memcached_operator.features.handover.handover_reconciler import NO_HANDOVER, Progress
from memcached_operator.features.memory_scaling.retaining_condition import Scaling
from memcached_operator.servers.stats_cache import ServerHealth

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
_REASONS_OF_PODS: Final = (
    Reason.INVALID_SPEC,
    *(Reason.SECRET_NOT_FOUND, Reason.CERTIFICATE_INVALID, Reason.PASSWORDS_INVALID, Reason.RELOAD_UNSUPPORTED),
)


class Observation(msgspec.Struct, frozen=True):
    """Observed state of one Memcached.

    Attributes:
        spec: None where it cannot be read.
        kind: of the workload that is specified.
        pods: the active pods, in any order, of both workloads while it moves from one to the other.
        servers: what is published of them; None where nothing is known yet.
        service: name of the Service that this Memcached controls, "" without one.
        problem: what keeps the operator from doing its work, None when nothing does.
        waiting: what is being waited for before all is there, "" for nothing.
        terminating: what its deletion waits for, "" while it is not being deleted.
        leaving: the kind of the other workload, which the servers move from; None for none.
        advice: what its user should know although all is as specified; the condition Discouraged.
        health: the last answers of its ready servers, in the order of their names; None where servers are not queried.
        names: DNS names by which clients know the servers, for what their certificates are to be for.
        ahead, failure: see `ObservedPods`.
        scaling: what was decided of it; None without `spec.memoryScaling`.
        moving: what is under way of a server's move, "" for nothing.
    """

    name: str
    generation: int
    spec: Spec | None
    kind: Workload
    done: WorkloadResult
    pods: Sequence[PodRecord]
    servers: ListedServers | None = None
    service: str = ""
    problem: Problem | None = None
    waiting: str = ""
    pending_writes: Sequence[str] = ()
    terminating: str = ""
    leaving: Workload | None = None
    advice: Sequence[Problem] = ()
    health: Sequence[ServerHealth] | None = None
    names: Sequence[str] = ()
    ahead: Sequence[str] = ()
    failure: PodProblem = NO_PROBLEM
    scaling: Scaling | None = None
    handover: Progress = NO_HANDOVER
    moving: str = ""

    @property
    def size(self) -> int | None:
        return self.spec.size if self.spec is not None else None

    @property
    def is_paused(self) -> bool:
        return self.spec is not None and self.spec.rollout.paused

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
    outcome = done.outcome
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
        spec,
        plan.target,
        done.workloads,
        pods,
        plan.servers,
        done.service,
        joined([*_problems_of_pods(pods), *_failed_reloads(pods), *outcome.problems]),
        " ".join(waiting),
        pending_writes=sorted(outcome.pending_writes),
        leaving=other.kind if other is not None else None,
        advice=(*_advice(spec), *progress.advice),
        ahead=seen.ahead,
        failure=seen.failure,
        scaling=scaling,
        handover=progress,
        moving=snapshot.moving.message if snapshot.moving is not None else "",
    )


def _advice(spec: Spec) -> Iterator[Problem]:
    if spec.service.type == "ClusterIP" and spec.size > 1:
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


def _problems_of_pods(pods: Sequence[PodRecord]) -> Iterator[Problem]:
    """Yield the problem of servers that are not started, as most of them report it."""
    reported = Counter(pod.problem for pod in pods if not pod.ready and pod.problem.reason in _REASONS_OF_PODS)
    if reported:
        # By count, then by name: equal counts must not make the message flap.
        problem = min(reported, key=lambda each: (-reported[each], str(each)))
        remedy = "Running servers continue; new ones start once this is corrected."
        yield Problem(Reason(problem.reason), f"{problem.message.rstrip('.')}. {remedy}", blocking=False)


def _failed_reloads(pods: Sequence[PodRecord]) -> Iterator[Problem]:
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
    kind: Workload = published.workload if published else next(iter(owned), "Deployment")
    return Observation(
        memcached.name,
        memcached.generation,
        spec,
        kind,
        WorkloadResult(owned.get(kind)),
        pods,
        published,
        last.service or "",
        problem,
        terminating=terminating,
        advice=tuple(_advice(spec)) if spec is not None else (),
        handover=progress or Progress(state=last.handover),
    )


def client_names(observed: Observation, namespace: str) -> list[str]:
    """The DNS names by which clients know the servers: that of the Service, and those that servers keep."""
    service = [f"{observed.service}.{namespace}.svc"] if observed.service else []
    servers = observed.servers
    listed = servers.listed if servers is not None and servers.workload == "StatefulSet" else ()
    return [*service, *(each.rpartition(":")[0] for each in listed)]
