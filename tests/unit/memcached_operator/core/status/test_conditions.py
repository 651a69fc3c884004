"""The table of conditions, row by row."""

from __future__ import annotations

import msgspec
import pytest

from memcached_operator.api.status import Problem, Reason, Status
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.rollout.next_step import RolloutProgress
from memcached_operator.core.rollout.workload_decision import Hold
from operator_runtime import Condition
from tests.unit.memcached_operator.status_support import (
    DEPLOYING,
    EXCEEDED,
    FRESH,
    ROLLED_OUT,
    SCALED,
    UPDATED,
    condition_of,
    pods,
    reported,
    reported_status,
)
from tests.unit.memcached_operator.support import deployment_of, pod_of

# Available


@pytest.mark.parametrize(
    ("size", "ready", "status"),
    [(0, 0, "True"), (1, 1, "True"), (4, 2, "False"), (4, 3, "True"), (8, 5, "False"), (8, 6, "True")],
)
def test_it_is_available_while_at_most_a_quarter_of_its_servers_is_missing(size: int, ready: int, status: str) -> None:
    reason = Reason.MINIMUM_REPLICAS_AVAILABLE if status == "True" else Reason.MINIMUM_REPLICAS_UNAVAILABLE
    message = f"{ready} of {size} servers are ready."
    assert condition_of(reported_status(size, pods(ready, size - ready)), "Available") == (status, reason, message)


def test_more_ready_servers_than_desired_are_counted_in_ready_replicas_alone() -> None:
    status = reported_status(3, pods(5))
    assert condition_of(status, "Available")[2] == "3 of 3 servers are ready."
    assert status.readyReplicas == 5


NO_NODE = "Unschedulable: 0/3 nodes are available"
MIXED = [pod_of("a", ready=False, problem="Error"), *(pod_of(name, ready=False, problem=NO_NODE) for name in "bc")]
AVAILABLE: dict[str, tuple[Status, str]] = {
    "that all pods share": (
        reported_status(3, pods(0, 3, "ImagePullBackOff")),
        "0 of 3 servers are ready: ImagePullBackOff",
    ),
    "the commonest": (reported_status(3, MIXED), f"0 of 3 servers are ready: 2 with {NO_NODE}"),
    "the commonest in any order": (reported_status(3, MIXED[::-1]), f"0 of 3 servers are ready: 2 with {NO_NODE}"),
    "none of a ready pod": (reported_status(3, [pod_of("a", problem="Error")]), "1 of 3 servers are ready."),
    "what keeps pods from being made, first": (
        reported_status(3, pods(0, 1, "ImagePullBackOff"), deployment_of(create_failure=EXCEEDED)),
        f"0 of 3 servers are ready: {EXCEEDED}",
    ),
    "what keeps the Deployment from being made": (
        reported_status(3, [], None, problem=Problem(Reason.QUOTA_EXCEEDED, "exceeded quota: q")),
        "0 of 3 servers are ready: exceeded quota: q",
    ),
    "a stranger of its name": (
        reported_status(0, [], None, problem=Problem(Reason.NOT_CONTROLLED, "in the way")),
        "No server runs: another Deployment has the same name.",
    ),
}


@pytest.mark.parametrize(("status", "message"), AVAILABLE.values(), ids=AVAILABLE)
def test_why_servers_are_not_ready_is_told(status: Status, message: str) -> None:
    reason = "MinimumReplicasUnavailable"
    assert condition_of(status, "Available") == ("False", reason, message)


def test_a_memcached_whose_specification_cannot_be_read_may_be_available_or_not() -> None:
    status = reported_status(None, pods(3), problem=Problem(Reason.INVALID_SPEC, "spec.size: must be a whole number"))
    assert condition_of(status, "Available") == ("Unknown", "InvalidSpec", "The specification cannot be read.")


# Progressing


def test_a_deployment_whose_servers_are_all_ready_says_what_it_waits_for() -> None:
    message = "The rollout of the Deployment completes once the last server has been ready for 60 s."
    assert condition_of(reported_status(3, pods(3), UPDATED), "Progressing")[2].endswith(message)
    assert message not in condition_of(reported_status(3, pods(2, 1), UPDATED), "Progressing")[2]


COMPLETE = reported_status(3, pods(3), ROLLED_OUT)
UNSEEN = msgspec.structs.replace(SCALED, is_observed=False)
BEGUN = reported_status(3, [], FRESH)
STARTS = reported_status(3, pods(1, 2), DEPLOYING, last=BEGUN)
ANEW = reported_status(3, [], FRESH, last=COMPLETE)
# The image was changed; the pods of the former one are all ready, and no other exists yet.
CHANGED = reported_status(3, pods(3), deployment_of(generation=2, is_observed=False), last=COMPLETE, generation=2)
SEEN = reported_status(3, pods(3), UPDATED, last=CHANGED, generation=2)
REPLACED = reported_status(3, pods(3, template="b"), UPDATED, last=SEEN, generation=2)
TIMED_OUT = 'ReplicaSet "sessions-a" has timed out progressing.'
LATE = reported_status(3, pods(1), deployment_of(rolled_out=False, deadline_exceeded=TIMED_OUT))
BLOCKED = reported_status(3, [], None, problem=Problem(Reason.NOT_CONTROLLED, "in the way"))
IS_DONE = ("False", "Complete", "All 3 servers have been rolled out.")
DEPLOYS, UPDATES = ("True", "Deploying"), ("True", "Updating")


def after(reason: str) -> Status:
    """The next status where another client wrote this reason."""
    last = Status(conditions=(Condition("Progressing", "True", reason, "Somebody wrote this."),))
    return reported_status(3, pods(2), DEPLOYING, last=last)


PROGRESSING: dict[str, tuple[Status, tuple[str, ...]]] = {
    "it is made": (reported_status(3, [], None), (*DEPLOYS, "The Deployment is being created.")),
    "the former one goes": (reported_status(3, [], None, waiting="It is going."), (*DEPLOYS, "It is going.")),
    "none is there": (BEGUN, (*DEPLOYS, "3 servers are desired, 0 exist, 0 are ready.")),
    "one is ready": (STARTS, (*DEPLOYS, "3 servers are desired, 3 exist, 1 are ready.")),
    "all are": (reported_status(3, pods(3), DEPLOYING, last=STARTS), IS_DONE),
    "complete": (COMPLETE, IS_DONE),
    "no server": (reported_status(0, [], FRESH), DEPLOYS),
    "no server, as was seen": (reported_status(0, [], DEPLOYING), ("False", "Complete")),
    "pods faster than the Deployment": (
        reported_status(4, pods(4), UNSEEN, last=COMPLETE, generation=2),
        ("True", "Scaling"),
    ),
    "pods of two templates": (
        reported_status(3, [*pods(2, template="a"), *pods(1, template="b")], UPDATED, last=COMPLETE),
        (*UPDATES, "Pods of the previous template are being replaced."),
    ),
    "an update": (CHANGED, UPDATES),
    "one that was seen": (SEEN, UPDATES),
    "one with all pods": (REPLACED, UPDATES),
    "one that is over": (
        reported_status(3, pods(3, template="b"), SCALED, last=REPLACED, generation=2),
        ("False", "Complete"),
    ),
    "late": (LATE, ("False", "DeadlineExceeded", TIMED_OUT)),
    "late, and there": (reported_status(3, pods(3), ROLLED_OUT, last=LATE), ("False", "Complete")),
    "made anew": (ANEW, DEPLOYS),
    "made anew, with one": (reported_status(3, pods(1), DEPLOYING, last=ANEW), DEPLOYS),
    # Held back, that status may never have been written.
    "made anew unseen": (reported_status(3, pods(1), DEPLOYING, last=COMPLETE), DEPLOYS),
    "blocked no more": (reported_status(3, [], DEPLOYING, last=BLOCKED), DEPLOYS),
    "blocked no more, with one": (reported_status(3, pods(1), DEPLOYING, last=BLOCKED), DEPLOYS),
    "a reason of a rollout": (after("Updating"), UPDATES),
    "one of an end": (after("Terminating"), DEPLOYS),
    "one of nobody": (after("Odd"), DEPLOYS),
}


@pytest.mark.parametrize(("status", "expected"), PROGRESSING.values(), ids=PROGRESSING)
def test_how_far_it_is_follows_from_what_is_there_and_was_told_before(
    status: Status, expected: tuple[str, ...]
) -> None:
    assert condition_of(status, "Progressing")[: len(expected)] == expected


def test_nothing_is_degraded_once_nothing_is_in_the_way_any_more() -> None:
    for found in ([], pods(1)):
        status = reported_status(3, found, DEPLOYING, last=BLOCKED)
        assert condition_of(status, "Degraded") == ("False", "AsExpected", "There is no problem.")


@pytest.mark.parametrize("size", [0, 2, 4, 9])
def test_a_new_size_is_scaling_until_just_so_many_servers_are_ready(size: int) -> None:
    begun = reported_status(size, pods(3), UNSEEN, last=COMPLETE, generation=2)
    assert reported(begun, "Progressing") == ("True", "Scaling")
    under_way = reported_status(size, pods(2, size), SCALED, last=begun, generation=2)
    assert reported(under_way, "Progressing") == ("True", "Scaling")
    done = reported_status(size, pods(size), SCALED, last=under_way, generation=2)
    assert reported(done, "Progressing") == ("False", "Complete")


def test_a_paused_rollout_is_told_only_where_servers_are_yet_to_be_replaced() -> None:

    held = reported_status(3, pods(3), UPDATED, last=COMPLETE, rollout=RolloutProgress(stale=2), paused=True)
    message = "2 of 3 servers have not been replaced yet; spec.rollout.paused is true."
    assert condition_of(held, "Progressing") == ("False", "RolloutPaused", message)
    assert condition_of(held, "Ready") == ("False", "RolloutPaused", message)
    surged = reported_status(2, pods(3), UPDATED, last=COMPLETE, rollout=RolloutProgress(stale=3), paused=True)
    assert condition_of(surged, "Progressing")[2].startswith("3 of 3 servers have not been replaced yet")
    for last in (COMPLETE, held):
        nothing_held = reported_status(3, pods(3), UPDATED, last=last, paused=True)
        assert reported(nothing_held, "Progressing") == ("False", "Complete")


def test_what_keeps_a_server_that_the_others_wait_for_is_told() -> None:
    found = [*pods(2), *pods(0, 1, "Unschedulable: 0/1 nodes are available", template="b")]
    message = condition_of(
        reported_status(3, found, UPDATED, last=COMPLETE, rollout=RolloutProgress(stale=2)), "Progressing"
    )[2]
    assert message.endswith(" sessions-b-0 is not ready: Unschedulable: 0/1 nodes are available.")


def test_servers_that_are_replaced_for_nobody_but_the_operator_are_ready_while_they_wait() -> None:
    status = reported_status(3, pods(3), last=COMPLETE, hold=Hold.QUEUED)
    assert reported(status, "Ready") == ("True", "AllServersReady")
    assert "The operator's own defaults have changed" in condition_of(status, "Progressing")[2]
    held = reported_status(3, pods(3), last=COMPLETE, hold=Hold.PAUSED, paused=True)
    assert condition_of(held, "Progressing")[2].endswith("the servers are replaced once spec.rollout.paused is false.")


@pytest.mark.parametrize("found", [pods(2), pods(2, 1), pods(0), pods(0, 3, "CrashLoopBackOff")])
def test_a_pod_that_is_lost_or_restarted_is_no_rollout(found: list[PodRecord]) -> None:
    status = reported_status(3, found, ROLLED_OUT, last=COMPLETE)
    assert reported(status, "Progressing") == ("False", "Complete")
    assert reported(status, "Available") == ("False", "MinimumReplicasUnavailable")


@pytest.mark.parametrize("reason", [Reason.NOT_CONTROLLED, Reason.FORBIDDEN, Reason.QUOTA_EXCEEDED])
@pytest.mark.parametrize("deployment", [None, ROLLED_OUT], ids=["no deployment", "a deployment"])
def test_where_something_is_in_the_way_nothing_progresses(reason: Reason, deployment: WorkloadRecord | None) -> None:
    status = reported_status(3, [], deployment, problem=Problem(reason, "in the way"))
    message = "Nothing is being changed; see the condition Degraded."
    assert condition_of(status, "Progressing") == ("False", reason, message)


POLICY = 'pods "sessions-1" is forbidden: violates PodSecurity "restricted:latest"'


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (
            reported_status(3, [], None, problem=Problem(Reason.INVALID_SPEC, "what and why")),
            "InvalidSpec",
            "what and why",
        ),
        (reported_status(3, pods(1), deployment_of(create_failure=EXCEEDED)), "QuotaExceeded", EXCEEDED),
        (reported_status(3, pods(1), deployment_of(create_failure=POLICY)), "DeniedByPolicy", POLICY),
    ],
)
def test_it_is_degraded_by_what_is_in_the_way(status: Status, reason: str, message: str) -> None:
    assert condition_of(status, "Degraded") == ("True", reason, message)
