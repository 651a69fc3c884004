"""Which failure of its pods is told of a Memcached: the last, until a server has become ready since."""

from __future__ import annotations

import msgspec

from memcached_operator.core.observed.pod_status import PodProblem
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.rollout.diagnosis.ended_pods import NO_FAILURE, PodFailure, last_failure
from tests.unit.memcached_operator.core.rollout.test_next_step import server

FULL = PodProblem("OutOfmemory", "used: 5")
FULLER = PodProblem("OutOfmemory", "used: 6")
EVICTED = PodProblem("Evicted", "low on memory")


def failed(problem: PodProblem, *, for_s: float) -> PodRecord:
    return msgspec.structs.replace(server(0, ready=False, for_s=for_s), failure=problem, active=False)


def last(*pods: PodRecord, before: PodFailure = NO_FAILURE) -> PodProblem:
    return last_failure(pods, before).problem


def test_the_last_failure_is_told_until_a_server_has_become_ready_since() -> None:
    pods = failed(EVICTED, for_s=90), failed(FULL, for_s=60), server(1, ready=False, for_s=0)
    assert last(*pods) == FULL
    assert last(*pods, server(2, for_s=3600)) == FULL
    assert last_failure([*pods, server(2, for_s=50)], last_failure(pods, NO_FAILURE)) == NO_FAILURE
    assert last(server(1)) == PodProblem()


def test_what_it_said_first_stays_while_the_reason_does_and_after_the_pod_is_gone() -> None:
    before = last_failure([failed(FULL, for_s=60)], NO_FAILURE)
    after = last_failure([failed(FULLER, for_s=30)], before)
    assert after == PodFailure(FULL, before.since_s + 30)
    assert last_failure([server(1, ready=False)], after) == after
    assert last(failed(EVICTED, for_s=20), before=after) == EVICTED
