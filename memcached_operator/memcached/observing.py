"""Pure: what a reconcile found and did -> what the status is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memcached_operator.api.names import Workload
from memcached_operator.memcached.beside.service import found_by_chance
from memcached_operator.memcached.keeping import Outcome
from memcached_operator.memcached.observation import Observation, Problem, Reason, joined
from memcached_operator.memcached.records import MemcachedRecord
from memcached_operator.memcached.servers import OTHER, Plan, as_published
from memcached_operator.memcached.spec import Spec
from memcached_operator.memcached.status import Status
from memcached_operator.memcached.workloads.pods import PodRecord
from memcached_operator.memcached.workloads.records import WorkloadRecord

_BY_CHANCE = (
    "Each connection to its Service meets another server, so that a key is found by chance: with more than one server, "
    "leave spec.service.type at Headless."
)


def observed(
    memcached: MemcachedRecord,
    spec: Spec,
    plan: Plan,
    outcome: Outcome,
    ours: Mapping[Workload, WorkloadRecord],
    pods: Sequence[PodRecord],
    aside: Problem | None,
) -> Observation:
    """After a reconcile.

    Args:
        ours: the workloads of the Memcached that there were.
        pods: the active pods.
        aside: what was in the way of the finalizer.
    """
    other = ours.get(OTHER[plan.target])
    waiting = list(outcome.waiting)
    if other is not None and other.held_by:
        waiting.append(
            f"The {other.kind} {other.name} is kept by the finalizer {other.held_by}: whoever put it there must "
            "take it off."
        )
    return Observation(
        memcached.name,
        memcached.generation,
        spec.size,
        plan.target,
        outcome.workload,
        # Under a workload that is not ours, pods with our labels are not ours either.
        [pod for pod in pods if pod.workload not in outcome.strange],
        plan.servers,
        outcome.service,
        joined([*outcome.problems, *([aside] if aside else [])]),
        " ".join(waiting),
        leaving=other.kind if other is not None else None,
        advice=_BY_CHANCE if found_by_chance(spec) else "",
        followed=spec.publish != "None",
    )


def unplanned(
    memcached: MemcachedRecord,
    last: Status,
    ours: Mapping[Workload, WorkloadRecord],
    pods: Sequence[PodRecord],
    problem: Problem | None,
    *,
    size: int | None = None,
    terminating: str = "",
) -> Observation:
    """Where nothing is planned: the specification cannot be read, or the Memcached is being deleted.

    Args:
        size: pods that are wanted, None where the specification cannot be read.
        terminating: what its deletion waits for.
    """
    published = as_published(last, pods)
    kind: Workload = published.workload if published else next(iter(ours), "Deployment")
    workload = ours.get(kind)
    return Observation(
        memcached.name,
        memcached.generation,
        size,
        kind,
        workload,
        pods,
        published,
        last.service or "",
        problem,
        terminating=terminating,
    )


def unreadable(
    memcached: MemcachedRecord,
    last: Status,
    ours: Mapping[Workload, WorkloadRecord],
    pods: Sequence[PodRecord],
    why: str,
) -> Observation:
    """Where the specification cannot be read; `why` in words."""
    return unplanned(memcached, last, ours, pods, Problem(Reason.INVALID_SPEC, why))
