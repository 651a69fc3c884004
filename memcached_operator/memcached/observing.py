"""Pure: what a reconcile found and did -> what the status is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memcached_operator.api.names import Workload
from memcached_operator.memcached.observation import Advice, Observation, Problem, Reason, joined
from memcached_operator.memcached.outcome import Outcome
from memcached_operator.memcached.plan import OTHER, Plan, as_ending, as_published
from memcached_operator.memcached.records import MemcachedRecord
from memcached_operator.memcached.spec import Spec
from memcached_operator.memcached.status import Status
from memcached_operator.memcached.wanted.service import is_load_balanced
from memcached_operator.memcached.workloads.pods import PodRecord
from memcached_operator.memcached.workloads.records import WorkloadRecord

_LOAD_BALANCED: Final = Advice(
    Reason.LOAD_BALANCED_SERVERS,
    "The Service load-balances connections over the servers, so that a client finds a key only by chance. With more "
    "than one server, set spec.service.type to Headless.",
)
_IN_THE_CLEAR: Final = Advice(
    Reason.PASSWORDS_IN_THE_CLEAR,
    "Passwords are sent unencrypted and can be intercepted: set spec.tls beside spec.auth.",
)
_OF_SECRETS: Final = (
    *(Reason.SECRET_NOT_FOUND, Reason.CERTIFICATE_INVALID, Reason.PASSWORDS_INVALID, Reason.RELOAD_UNSUPPORTED),
)


def observed(
    memcached: MemcachedRecord,
    spec: Spec,
    plan: Plan,
    outcome: Outcome,
    ours: Mapping[Workload, WorkloadRecord],
    pods: Sequence[PodRecord],
) -> Observation:
    """After a reconcile.

    Args:
        ours: the workloads of the Memcached that there were.
        pods: the active pods.
    """
    other = ours.get(OTHER[plan.target])
    waiting = list(outcome.waiting)
    # Under a workload that is not ours, pods with our labels are not ours either.
    pods = [pod for pod in pods if pod.workload not in outcome.strange]
    if other is not None and other.held_by:
        waiting.append(
            f"The {other.kind} {other.name} has the finalizer {other.held_by}: the client that added it must remove it."
        )
    return Observation(
        memcached.name,
        memcached.generation,
        spec.size,
        plan.target,
        outcome.workload,
        pods,
        plan.servers,
        outcome.service,
        joined([*_of_secrets(pods), *outcome.problems]),
        " ".join(waiting),
        unwritten=bool(outcome.unwritten),
        leaving=other.kind if other is not None else None,
        advice=tuple(_advice(spec)),
        rollout=outcome.rollout,
        absent=outcome.absent,
        paused=spec.rollout.paused,
        pause_s=spec.rollout.pauseSeconds,
        queued=outcome.queued,
    )


def _advice(spec: Spec) -> Iterator[Advice]:
    if is_load_balanced(spec):
        yield _LOAD_BALANCED
    if spec.auth is not None and spec.tls is None:
        yield _IN_THE_CLEAR


def _of_secrets(pods: Sequence[PodRecord]) -> Iterator[Problem]:
    """What servers wait for that are not started, as most of them tell it."""
    told = Counter(pod.problem for pod in pods if not pod.ready and pod.problem.partition(":")[0] in _OF_SECRETS)
    if told:
        # By count, then by name: equal counts must not make the message flap.
        problem = min(told, key=lambda each: (-told[each], each))
        reason, _, message = problem.partition(": ")
        ending = "Running servers continue; new ones start once this is corrected."
        yield Problem(Reason(reason), f"{message.rstrip('.')}. {ending}", blocking=False)


def unplanned(
    memcached: MemcachedRecord,
    last: Status,
    ours: Mapping[Workload, WorkloadRecord],
    pods: Sequence[PodRecord],
    problem: Problem | None,
    *,
    spec: Spec | None = None,
    terminating: str = "",
) -> Observation:
    """Where nothing is planned: the specification cannot be read, or the Memcached is being deleted.

    Args:
        spec: the specification, None where it cannot be read.
        terminating: what its deletion waits for.
    """
    published = as_ending(last, ours, pods) if terminating else as_published(last, pods)
    kind: Workload = published.workload if published else next(iter(ours), "Deployment")
    workload = ours.get(kind)
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
