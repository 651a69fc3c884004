"""Times on pods that another machine wrote, by a clock of its own: how long they are believed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from memcached_operator.core.observed.pod_status import PodProblem
from memcached_operator.core.observed.pods import PodRecord, Termination
from memcached_operator.core.rollout.diagnosis.bounded_reads import READ_AFTER_S
from memcached_operator.core.rollout.diagnosis.ended_pods import OVERDUE_S, overdue
from memcached_operator.core.rollout.in_place_restart import RestartRequest, requested
from memcached_operator.core.rollout.server_states import (
    AHEAD_S,
    STUCK_AFTER_S,
    UNSEEN,
    WAIT_S,
    ObservedPods,
    Seen,
    observed_pods,
)
from tests.unit.memcached_operator.core.rollout.test_next_step import PAUSE_S, rollout_of, server, stuck
from tests.unit.memcached_operator.server_model import START
from tests.unit.memcached_operator.support import NAME

NOW_S = START.timestamp()
QUARTER_S = 900.0
GRACE_S = 30


def observe(*pods: PodRecord, after_s: float = 0.0, seen: Seen = UNSEEN) -> ObservedPods:
    """What is seen so many seconds later, by both clocks of the operator."""
    return observed_pods(pods, seen, NOW_S + after_s, after_s)


def since(found: ObservedPods) -> float:
    """How many seconds ago the first pod became as it is."""
    return NOW_S - found.pods[0].since_s


def test_a_time_that_has_passed_is_believed_and_nothing_is_remembered() -> None:
    pods = [server(0, for_s=3600), server(1, for_s=0), server(2, for_s=-AHEAD_S)]
    assert observe(*pods) == ObservedPods(tuple(pods), (), {}, None)


@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize(("after_s", "waited_s"), [(0.0, 0), (60.0, 60), (QUARTER_S + 60, QUARTER_S + 60)])
def test_what_is_yet_to_come_counts_from_when_it_was_seen_also_once_it_has_passed(
    after_s: float, waited_s: float, *, ready: bool
) -> None:
    ahead = server(2, ready=ready, for_s=-QUARTER_S)
    first = observe(ahead)
    then = observe(ahead, after_s=after_s, seen=first.seen)
    assert since(then) + after_s == waited_s
    assert first.ahead == (f"{NAME}-2",)
    assert then.ahead == ((f"{NAME}-2",) if after_s < QUARTER_S else ())


def test_another_time_and_another_pod_of_the_name_count_anew_and_those_that_are_gone_are_forgotten() -> None:
    ahead = server(2, for_s=-QUARTER_S)
    first = observe(ahead)
    again = msgspec.structs.replace(ahead, since_s=ahead.since_s + 30)
    assert since(observe(again, after_s=30, seen=first.seen)) == -30
    other = msgspec.structs.replace(ahead, uid="other")
    then = observe(other, after_s=30, seen=first.seen)
    assert since(then) == -30
    assert len(then.seen) == 1


def test_the_operators_own_clock_may_be_set_back_meanwhile() -> None:
    ahead = server(2, for_s=-QUARTER_S)
    then = observed_pods([ahead], observe(ahead).seen, NOW_S - 3600 + PAUSE_S, PAUSE_S)
    assert then.pods[0].since_s == NOW_S - 3600


def test_a_change_in_place_that_a_leader_with_another_clock_began_is_late_in_time() -> None:
    recorded = RestartRequest("new", 3, int(NOW_S + QUARTER_S))
    pod = msgspec.structs.replace(server(2), in_place=str(recorded))
    then = observe(pod, after_s=10, seen=observe(pod).seen)
    assert requested(then.pods[0]) == recorded._replace(since_s=int(NOW_S))


def test_a_pod_that_an_api_server_ahead_lets_end_is_overdue_in_time() -> None:
    since_s = int(NOW_S + QUARTER_S)
    pod = msgspec.structs.replace(server(2), active=False, termination=Termination(since_s, since_s + GRACE_S, "node"))
    first = observe(pod)
    assert overdue(first.pods, NOW_S) == ("", GRACE_S + OVERDUE_S)
    then = observe(pod, after_s=GRACE_S + OVERDUE_S, seen=first.seen)
    assert NAME in overdue(then.pods, NOW_S + GRACE_S + OVERDUE_S)[0]


@pytest.mark.parametrize(
    ("for_s", "problem", "next_s"), [(WAIT_S - 5, "", 5.0), (WAIT_S, "ContainerCreating: x", WAIT_S)]
)
def test_what_a_pod_waits_for_is_a_problem_once_it_takes_long(for_s: float, problem: str, next_s: float) -> None:
    pod = msgspec.structs.replace(
        server(2, "b", ready=False, for_s=for_s), waits=PodProblem("ContainerCreating", "x"), down=True
    )
    found = observe(pod)
    assert (str(found.pods[0].problem), found.next_s) == (problem, next_s)
    decided = rollout_of(server(0), server(1), *found.pods)
    assert stuck(decided) == "", "an image may take as long to pull"
    late = observe(msgspec.structs.replace(pod, since_s=int(NOW_S - STUCK_AFTER_S)))
    decided = rollout_of(server(0), server(1), *late.pods)
    assert f"The new server {NAME}-2 is not ready (ContainerCreating: x), so the other 2" in stuck(decided)


@pytest.mark.parametrize(
    ("for_s", "changes", "next_s"),
    [
        (1, {"down": True, "placed": True}, READ_AFTER_S - 1),
        (1, {"down": True}, WAIT_S - 1),
        (60, {"down": True}, None),
        (60, {"down": True, "placed": True}, WAIT_S),
        (1, {"down": True, "placed": True, "waits": PodProblem("ContainerCreating")}, WAIT_S - 1),
        (1, {}, None),
        (1, {"down": True, "problem": PodProblem("ImagePullBackOff")}, None),
        (1, {"down": True, "active": False}, None),
        (1, {"ready": True}, None),
    ],
)
def test_a_pod_that_does_not_run_yet_is_looked_at_again_without_an_event(
    for_s: float, changes: dict[str, Any], next_s: float | None
) -> None:
    assert observe(msgspec.structs.replace(server(0, ready=False, for_s=for_s), **changes)).next_s == next_s
