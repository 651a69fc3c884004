"""What keeps the next server of a rollout: the gates whose tables are long, each by itself."""

from __future__ import annotations

import pytest

from memcached_operator.core.rollout import next_step
from memcached_operator.core.rollout.next_step import Evict, RestartInPlace, RolloutDone, RolloutWait, Step, WaitReason
from memcached_operator.core.rollout.server_states import STUCK_AFTER_S, RolloutState
from tests.unit.memcached_operator.core.rollout.test_in_place_restart import WARM, warm
from tests.unit.memcached_operator.core.rollout.test_next_step import PAUSE_S, server, state_of
from tests.unit.memcached_operator.support import NAME

OTHERS = (server(0, "b"), server(1, "b"))

DOWN = server(1, ready=False, for_s=1, problem="ImagePullBackOff")
ENDED, CRASHES = (server(1, ready=False, for_s=1, problem=why) for why in ("OOMKilled", "CrashLoopBackOff"))
ENDED_LONG_AGO = server(1, ready=False, for_s=STUCK_AFTER_S, problem="CrashLoopBackOff")
BAD = server(2, "bad", ready=False, for_s=1, problem="ImagePullBackOff")
RESTARTS = warm(1, to="other", ready=False, for_s=1, problem="Completed")
FAILED = warm(1, to="other", ready=False, for_s=1, problem="ImagePullBackOff")


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (state_of(server(0), server(1)), None),
        (state_of(server(0, ready=False, for_s=1)), None),
        (state_of(server(0), DOWN), Evict(DOWN)),
        (state_of(server(0), RESTARTS, workload=WARM), None),
        (state_of(server(0), FAILED, workload=WARM), RestartInPlace(FAILED)),
        # One of the present template is to be mended by the specification alone.
        (state_of(server(0), server(1, "b", ready=False, problem="ImagePullBackOff")), None),
        # Where that template does not start, or is yet to, an old server that ends for a moment is left its own.
        (state_of(server(0), DOWN, server(2, "b", ready=False, problem="ImagePullBackOff")), None),
        (state_of(server(0), DOWN, server(2, "b", ready=False, for_s=1)), None),
        (state_of(server(0), FAILED, warm(2, to="new", ready=False), workload=WARM), None),
        (state_of(server(0), DOWN, server(2, "b")), Evict(DOWN)),
        # One that has ended starts again by itself, so it waits for servers of which no pod can be made as well.
        (state_of(server(0), ENDED), None),
        (state_of(server(0), ENDED, missing_s={2: STUCK_AFTER_S}), None),
        (state_of(server(0), ENDED, server(2)), Evict(ENDED)),
        (state_of(server(0), CRASHES, server(2)), Evict(CRASHES)),
        # The last server is about to start again with an image of which nothing is known, and still runs.
        (state_of(server(0), DOWN, warm(2, to="new"), workload=WARM), None),
        # What cannot start by itself is replaced once another server shows that the present template starts.
        (state_of(server(0, "b", ready=False), server(1, "b"), BAD), Evict(BAD)),
        (state_of(server(0, "b", ready=False), server(1), BAD), None),
        (state_of(server(0, "b"), ENDED, server(2, "b", ready=False, for_s=1)), None),
        (state_of(server(0, "b"), ENDED_LONG_AGO, server(2, "b", ready=False, for_s=1)), Evict(ENDED_LONG_AGO)),
        (state_of(server(0), ENDED_LONG_AGO), Evict(ENDED_LONG_AGO)),
    ],
)
def test_a_server_without_keys_waits_for_servers_of_the_present_template_alone(
    state: RolloutState, step: Step | None
) -> None:
    assert next_step.not_running(state) == step


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (state_of(server(0), server(1), server(2)), None),
        (state_of(server(0), server(1), server(2), handing_over=True), RolloutWait(WaitReason.HANDOVER)),
        (state_of(*OTHERS, underway=True, handing_over=True), None),
    ],
)
def test_a_hand_over_goes_before_a_rollout(state: RolloutState, step: Step | None) -> None:
    assert next_step.while_handing_over(state) == step
    down = server(1, ready=False, for_s=1, problem="ImagePullBackOff")
    assert next_step.rollout(state_of(server(0), down, server(2), handing_over=True)).step == Evict(down)


AWAY = server(0, ready=False, for_s=STUCK_AFTER_S)
STARTS = server(2, "b", ready=False, for_s=20)
UNPLACED = server(2, "b", ready=False, for_s=20, problem="Unschedulable: 0/3 nodes are available")


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (state_of(server(0), server(1), server(2)), None),
        # To be replaced itself, and of no use for long.
        (state_of(AWAY, server(1), server(2)), None),
        (state_of(server(0, ready=False, for_s=20), server(1)), RolloutWait(WaitReason.READY, STUCK_AFTER_S - 20)),
        (state_of(AWAY, server(1), STARTS), RolloutWait(WaitReason.READY, STUCK_AFTER_S - 20)),
        (state_of(server(0), server(1), STARTS), RolloutWait(WaitReason.READY, STUCK_AFTER_S - 20)),
        (state_of(server(0), server(2, "b", ready=False, for_s=STUCK_AFTER_S)), f"{NAME}-2"),
        (state_of(server(0), server(2, "b", ready=False, for_s=1, problem="ErrImagePull")), f"{NAME}-2"),
        (state_of(server(0), UNPLACED), RolloutWait(WaitReason.READY, STUCK_AFTER_S - 20)),
        (
            state_of(server(0), warm(2, to="new", since_s=20), workload=WARM),
            RolloutWait(WaitReason.READY, STUCK_AFTER_S - 20),
        ),
        (state_of(server(0), warm(2, to="new", since_s=STUCK_AFTER_S), workload=WARM), f"{NAME}-2"),
    ],
)
def test_a_server_that_does_not_serve_keeps_the_others(state: RolloutState, step: Step | str | None) -> None:
    found = next_step.unready(state)
    assert (found.server if isinstance(found, next_step.Stuck) else found) == step


@pytest.mark.parametrize(
    ("state", "complete", "pausing"),
    [
        (state_of(*OTHERS, underway=True), RolloutDone(), None),
        (state_of(*OTHERS, server(2)), None, None),
        (state_of(server(1), server(2, "b", for_s=20)), None, RolloutWait(WaitReason.PAUSE, PAUSE_S - 20)),
        (state_of(server(1), server(2, "b", for_s=PAUSE_S)), None, None),
        # That one is not ready says nothing of for how long others have been.
        (state_of(server(1), server(2, "b", ready=False, for_s=20)), None, None),
        # The clock of its node is ahead.
        (state_of(server(1), server(2, "b", for_s=-20)), None, RolloutWait(WaitReason.PAUSE, PAUSE_S)),
    ],
)
def test_the_next_server_comes_once_all_have_been_ready_for_the_pause(
    state: RolloutState, complete: Step | None, pausing: Step | None
) -> None:
    assert (next_step.complete(state), next_step.pausing(state)) == (complete, pausing)


def test_the_gates_are_asked_in_this_order() -> None:
    """What is counted, then what the user and the controller hold, then what has no keys, then what others need."""
    assert [gate.__name__ for gate in next_step.GATES] == [
        *("controlled_by_deployment", "nothing_underway", "restarted", "paused", "unobserved"),
        *("not_running", "while_handing_over", "missing", "unready", "complete", "pausing"),
    ]
