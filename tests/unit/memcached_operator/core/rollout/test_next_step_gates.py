"""What keeps the next server of a rollout, gate by gate: each as a table of its own."""

from __future__ import annotations

import msgspec
import pytest

from memcached_operator.api.v1alpha1 import Rollout as Pace
from memcached_operator.core.rollout import next_step
from memcached_operator.core.rollout.next_step import (
    Evict,
    MarkUpdated,
    RestartInPlace,
    RolloutDone,
    RolloutWait,
    Step,
    WaitReason,
)
from memcached_operator.core.rollout.server_states import STUCK_AFTER_S, RolloutState
from tests.unit.memcached_operator.core.rollout.test_in_place import WARM, warm
from tests.unit.memcached_operator.core.rollout.test_next_step import PAUSE_S, SPEC, server, state_of, stateful_set
from tests.unit.memcached_operator.server_model import workload_of
from tests.unit.memcached_operator.support import NAME, pod_of

DEPLOYMENT = msgspec.structs.replace(workload_of("Deployment", 2), template_hash="new", memory="64Mi,100Mi,100Mi")
OF_DEPLOYMENT = SPEC.model_copy(update={"size": 2, "workload": "Deployment"})
OLD, NEW = (
    msgspec.structs.replace(pod_of(name), template_hash=template_hash, memory=DEPLOYMENT.memory)
    for name, template_hash in (("a", "old"), ("b", "new"))
)
PAUSED = SPEC.model_copy(update={"rollout": Pace(minReadySeconds=PAUSE_S, paused=True)})
OTHERS = (server(0, "b"), server(1, "b"))


def deployment(*pods: object, **more: object) -> RolloutState:
    return state_of(*pods, spec=OF_DEPLOYMENT, workload=DEPLOYMENT, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (state_of(server(0)), None),
        (deployment(NEW, NEW), RolloutDone()),
        (deployment(NEW, NEW, underway=True), RolloutDone()),
        (deployment(OLD, NEW), RolloutWait(WaitReason.CONTROLLER)),
        (deployment(OLD, NEW, outdated_secrets=(NEW.uid,)), RolloutWait(WaitReason.CONTROLLER)),
        (deployment(NEW, outdated_secrets=(NEW.uid,)), RolloutWait(WaitReason.CONTROLLER)),
        (deployment(NEW, pod_of("c"), outdated_secrets=(NEW.uid,)), None),
    ],
)
def test_a_deployment_is_left_to_its_controller_but_for_late_certificates(
    state: RolloutState, step: Step | None
) -> None:
    assert next_step.controlled_by_deployment(state) == step


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (state_of(*OTHERS), RolloutDone()),
        (state_of(*OTHERS, underway=True), None),
        (state_of(*OTHERS, server(2)), None),
        (state_of(*OTHERS, server(2, "b"), outdated_secrets=("uid-2",)), None),
        (state_of(*OTHERS, server(3)), RolloutDone()),
    ],
)
def test_without_a_stale_server_nothing_is_underway_unless_the_status_says_so(
    state: RolloutState, step: Step | None
) -> None:
    assert next_step.nothing_underway(state) == step


BACK = warm(2, to="new", restarted=True)


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (state_of(BACK, workload=WARM), MarkUpdated(BACK)),
        (state_of(BACK, workload=WARM, spec=PAUSED), MarkUpdated(BACK)),
        (state_of(BACK, workload=stateful_set(restart_hash="fixed", is_observed=False)), None),
        (state_of(warm(2, to="new"), workload=WARM), None),
        (state_of(warm(2), workload=WARM), None),
    ],
)
def test_a_server_that_is_back_in_its_pod_is_counted(state: RolloutState, step: Step | None) -> None:
    assert next_step.restarted(state) == step


@pytest.mark.parametrize(
    ("state", "paused", "unobserved"),
    [
        (state_of(server(2)), None, None),
        (state_of(server(2), spec=PAUSED), RolloutWait(WaitReason.UNPAUSED), None),
        (state_of(server(2), workload=stateful_set(is_observed=False)), None, RolloutWait(WaitReason.OBSERVED)),
        # The last new server: nothing is left to be held, and that it does not start is to be told.
        (state_of(*OTHERS, spec=PAUSED, underway=True), None, None),
    ],
)
def test_a_pause_and_a_template_that_was_not_observed_hold_it(
    state: RolloutState, paused: Step | None, unobserved: Step | None
) -> None:
    assert (next_step.paused(state), next_step.unobserved(state)) == (paused, unobserved)


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


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (state_of(server(0), server(1), server(2)), None),
        (state_of(server(0), server(1)), RolloutWait(WaitReason.PODS, STUCK_AFTER_S)),
        (state_of(server(0), server(1), missing_s={2: STUCK_AFTER_S - 1}), RolloutWait(WaitReason.PODS, 1.0)),
        (state_of(server(0), server(2), missing_s={1: STUCK_AFTER_S}), f"{NAME}-1"),
        (state_of(server(0), missing_s={1: STUCK_AFTER_S, 2: STUCK_AFTER_S}), f"{NAME}-2"),
        # The pod of the other is still ending.
        (state_of(server(0), missing_s={1: STUCK_AFTER_S}), f"{NAME}-1"),
        (deployment(NEW, missing_s={1: STUCK_AFTER_S}), None),
    ],
)
def test_a_server_without_a_pod_stops_it(state: RolloutState, step: Step | str | None) -> None:
    found = next_step.missing(state)
    assert (found.server if isinstance(found, next_step.Stuck) else found) == step


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
