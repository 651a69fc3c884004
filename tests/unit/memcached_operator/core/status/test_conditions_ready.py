"""The conditions of servers that clients keep: Ready, and Progressing while they move or leave."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memcached_operator.api.status import Drain, Problem, Reason, Status, joined
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.outcome import WorkloadResult
from memcached_operator.core.plan.plan import ListedServers
from memcached_operator.core.status.conditions import status_of
from memcached_operator.core.status.observation import Observation
from operator_runtime import Condition
from tests.unit.memcached_operator.server_model import named_pod, workload_of
from tests.unit.memcached_operator.status_support import (
    DEPLOYING,
    EXCEEDED,
    LATER,
    NEW,
    NOW,
    condition_of,
    pods,
    reported,
    reported_status,
)
from tests.unit.memcached_operator.support import NAME, deployment_of, pod_of

COMPLETE = reported_status(3, pods(3))


def test_a_memcached_is_ready_when_all_its_servers_are() -> None:
    assert condition_of(COMPLETE, "Ready") == ("True", "AllServersReady", "All 3 servers are ready.")


AUXILIARY = Problem(Reason.NOT_CONTROLLED, "A Service.", blocking=False)
UNREADY: dict[str, tuple[Status, str]] = {
    "being made": (reported_status(3, [], None), "Deploying"),
    "coming": (reported_status(3, pods(2, 1), DEPLOYING), "Deploying"),
    "a server short, although available": (
        reported_status(4, pods(3, 1), last=reported_status(4, pods(4))),
        "ServersNotReady",
    ),
    "updating": (reported_status(3, [*pods(3), pod_of("x", template="b")], last=COMPLETE), "Updating"),
    "stuck": (reported_status(3, pods(2, 1), deployment_of(deadline_exceeded="has timed out")), "DeadlineExceeded"),
    "over a quota": (reported_status(3, pods(2), deployment_of(create_failure=EXCEEDED)), "QuotaExceeded"),
    "something beside is missing": (reported_status(3, pods(3), problem=AUXILIARY), "NotControlled"),
    "something beside is awaited": (
        reported_status(3, pods(3), last=COMPLETE, waiting="The Service is replaced."),
        "Waiting",
    ),
    "moving": (reported_status(3, pods(3), last=COMPLETE, leaving="StatefulSet"), "Migrating"),
    "on its way out": (reported_status(3, pods(3), last=COMPLETE, terminating="Waiting."), "Terminating"),
}


@pytest.mark.parametrize(("status", "reason"), UNREADY.values(), ids=UNREADY)
def test_it_is_not_ready_for_the_first_reason_that_there_is(status: Status, reason: str) -> None:
    assert reported(status, "Ready") == ("False", reason)


def test_nobody_knows_whether_it_is_ready_while_the_specification_cannot_be_read() -> None:
    problem = Problem(Reason.INVALID_SPEC, "wrong")
    assert reported(reported_status(None, pods(3), problem=problem), "Ready") == ("Unknown", "InvalidSpec")


def test_what_blocks_nothing_leaves_the_other_conditions_as_they_are() -> None:
    problem = Problem(Reason.CONFLICTING_DISRUPTION_BUDGET, "The budget theirs.", blocking=False)
    status = reported_status(3, pods(3), problem=problem)
    assert reported(status, "Available") == ("True", "MinimumReplicasAvailable")
    assert reported(status, "Progressing") == ("False", "Complete")
    assert condition_of(status, "Degraded") == ("True", "ConflictingDisruptionBudget", "The budget theirs.")


def test_of_several_problems_what_blocks_gives_the_reason_and_all_are_told() -> None:
    budget = Problem(Reason.CONFLICTING_DISRUPTION_BUDGET, "A budget.", blocking=False)
    blocking = Problem(Reason.FORBIDDEN, "A Deployment.")
    assert joined([budget, blocking]) == Problem(Reason.FORBIDDEN, "A Deployment. A budget.")
    assert joined([budget]) == budget
    assert joined([]) is None


# Servers with lasting names


def status_of_names(
    size: int,
    found: Sequence[PodRecord],
    *,
    listed: Workload = "StatefulSet",
    draining: tuple[Drain, ...] = (),
    leaving: Workload | None = None,
    last: Status = NEW,
) -> Status:
    """The status reported for a StatefulSet of that size."""
    servers = ListedServers(listed, (), draining)
    workload, spec = workload_of("StatefulSet", size), Spec(size=size, drainPeriodSeconds=210)
    return status_of(
        Observation(NAME, 1, spec, "StatefulSet", WorkloadResult(workload), found, servers, leaving=leaving), last, NOW
    )


def named_pods(ready: int, unready: int = 0) -> list[PodRecord]:
    return [named_pod(each, ready=each < ready) for each in range(ready + unready)]


def test_servers_that_drain_stand_for_none_of_those_that_are_asked_for() -> None:
    status = status_of_names(2, [named_pod(0), named_pod(1, ready=False), named_pod(2), named_pod(3)])
    assert condition_of(status, "Available")[2] == "1 of 2 servers are ready."
    assert reported(status, "Available") == ("False", "MinimumReplicasUnavailable")


@pytest.mark.parametrize(
    ("draining", "words"),
    [
        ((Drain("StatefulSet", 2, NOW),), "2 servers are draining until 12:03:30Z."),
        ((Drain("StatefulSet", 3, NOW),), "1 server is draining until 12:03:30Z."),
        # The last of them.
        ((Drain("StatefulSet", 2, LATER), Drain("StatefulSet", 3, NOW)), "2 servers are draining until 12:08:30Z."),
        # Written by another client.
        ((Drain("StatefulSet", 2, "soon"),), "4 exist, 4 are ready."),
        ((Drain("StatefulSet", 9, NOW),), "4 exist, 4 are ready."),
    ],
)
def test_while_servers_drain_it_is_said_until_when(draining: tuple[Drain, ...], words: str) -> None:
    last = Status(conditions=(Condition("Progressing", "True", "Scaling"),), draining=draining)
    status = status_of_names(2, named_pods(4), draining=draining, last=last)
    assert reported(status, "Progressing") == ("True", "Scaling")
    assert condition_of(status, "Progressing")[2].endswith(words)


def test_servers_drain_since_the_list_without_them_is_written() -> None:
    status = status_of_names(2, named_pods(3), draining=(Drain("StatefulSet", 2, "2026-11-21T11:59:00Z"),))
    assert "until 12:03:30Z." in condition_of(status, "Progressing")[2]


def test_a_stateful_set_that_lacks_pods_says_where_to_look_for_the_reason() -> None:
    assert "`kubectl describe statefulset sessions`" in condition_of(status_of_names(3, []), "Available")[2]
    assert "describe" not in condition_of(status_of_names(3, named_pods(0, 3)), "Available")[2]


MOVES: dict[str, tuple[Workload, tuple[Drain, ...], str]] = {
    "before the list moves": ("Deployment", (), "of which 1 of 2 are ready. The list does not change until all are"),
    "after it": ("StatefulSet", (Drain("Deployment", 0, NOW),), "of the StatefulSet. 2 servers are draining until"),
}


@pytest.mark.parametrize(("listed", "draining", "words"), MOVES.values(), ids=MOVES)
def test_while_servers_move_it_is_said_how_far(listed: Workload, draining: tuple[Drain, ...], words: str) -> None:
    found = [*pods(2), *named_pods(1, 1)]
    status = status_of_names(2, found, listed=listed, draining=draining, leaving="Deployment")
    assert reported(status, "Progressing") == ("True", "Migrating")
    assert reported(status, "Ready") == ("False", "Migrating")
    assert words in condition_of(status, "Progressing")[2]
    available = "True" if listed == "Deployment" else "False"
    assert reported(status, "Available")[0] == available, "clients meet the servers of the list"


def test_when_the_former_workload_is_gone_the_move_is_complete() -> None:
    moving = status_of_names(2, [*pods(2), *named_pods(2)], leaving="Deployment")
    done = status_of_names(2, named_pods(2), last=moving)
    assert reported(done, "Progressing") == ("False", "Complete")
    assert reported(done, "Ready") == ("True", "AllServersReady")
