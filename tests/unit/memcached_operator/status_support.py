"""What the tests of the status share: Deployments on their way, pods, and the status that one reconcile reports."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memcached_operator.api.status import Problem, Status, decode_status
from memcached_operator.api.v1alpha1 import Rollout, Spec, Workload
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.outcome import WorkloadResult
from memcached_operator.core.plan.plan import ListedServers
from memcached_operator.core.rollout.next_step import DONE, RolloutProgress
from memcached_operator.core.rollout.workload_decision import Hold
from memcached_operator.core.status.conditions import status_of
from memcached_operator.core.status.observation import Observation
from memcached_operator.features.handover.handover_reconciler import Progress
from memcached_operator.features.memory_scaling.retaining_condition import Scaling
from memcached_operator.servers.stats_cache import ServerHealth
from operator_runtime import Condition
from tests.unit.memcached_operator.support import NAME, deployment_of, pod_of

NEW = Status()
NOW, LATER = "2026-11-21T12:00:00Z", "2026-11-21T12:05:00Z"
# A Deployment that was just made: its controller has not looked at it yet.
FRESH = deployment_of(generation=1, is_observed=False, rolled_out=False)
DEPLOYING = deployment_of(generation=1, is_observed=True, rolled_out=False)
ROLLED_OUT = deployment_of(generation=1, is_observed=True, rolled_out=True)
SCALED = deployment_of(generation=2, is_observed=True, rolled_out=True)
UPDATED = deployment_of(generation=2, is_observed=True, revised=True, rolled_out=False)
EXCEEDED = 'pods "sessions-1" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'


def pods(ready: int, unready: int = 0, problem: str = "", template: str = "a") -> list[PodRecord]:
    return [
        pod_of(str(number), ready=number < ready, problem="" if number < ready else problem, template=template)
        for number in range(ready + unready)
    ]


def reported_status(
    size: int | None = 3,
    found: Sequence[PodRecord] = (),
    deployment: WorkloadRecord | None = ROLLED_OUT,
    *,
    last: Status = NEW,
    problem: Problem | None = None,
    waiting: str = "",
    terminating: str = "",
    leaving: Workload | None = None,
    servers: ListedServers | None = None,
    service: str = "",
    rollout: RolloutProgress = DONE,
    paused: bool = False,
    hold: Hold = Hold.NONE,
    health: Sequence[ServerHealth] | None = None,
    advice: Sequence[Problem] = (),
    pending_writes: Sequence[str] = (),
    scaling: Scaling | None = None,
    handing_over: Condition | None = None,
    moving: str = "",
    generation: int = 1,
    now: str = NOW,
) -> Status:
    """The status after one reconcile, read back as the API server would return it."""
    spec = Spec(size=size, rollout=Rollout(paused=paused)) if size is not None else None
    observation = Observation(
        NAME, generation, spec, "Deployment", WorkloadResult(deployment, hold=hold, rollout=rollout), found, servers,
        service, problem=problem, waiting=waiting, terminating=terminating, leaving=leaving,
        health=health, advice=advice, pending_writes=pending_writes,
        scaling=scaling, handover=Progress(condition=handing_over), moving=moving,
    )  # fmt: skip
    status = status_of(observation, last, now)
    assert decode_status(msgspec.json.encode(status)) == status
    return status


def condition_of(status: Status, type_: str) -> tuple[str, str, str]:
    condition = status.condition(type_)
    assert condition is not None
    return condition.status, condition.reason, condition.message


def reported(status: Status, type_: str) -> tuple[str, str]:
    return condition_of(status, type_)[:2]
