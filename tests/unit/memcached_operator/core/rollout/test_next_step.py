"""Which server is replaced now, as tables."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from memcached_operator.api.v1alpha1 import Rollout as Pace, Spec
from memcached_operator.core.objects.holder import Moving
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.rollout.next_step import (
    DONE,
    Evict,
    Move,
    RolloutProgress,
    RolloutWait,
    Stuck,
    WaitReason,
    rollout,
)
from memcached_operator.core.rollout.server_states import STUCK_AFTER_S, RolloutState, is_stale, missing_servers
from tests.unit.memcached_operator.server_model import START, named_pod, workload_of
from tests.unit.memcached_operator.support import NAME, pod_of, problem_of

PAUSE_S = 60
SPEC = Spec(size=3, workload="StatefulSet", rollout=Pace(minReadySeconds=PAUSE_S))


MEMORY = "64Mi,100Mi,100Mi"


def stateful_set(**changes: object) -> WorkloadRecord:
    """A StatefulSet whose present template is revision "b"."""
    record = msgspec.structs.replace(workload_of("StatefulSet", 3), template_hash="new", memory=MEMORY, revision="b")
    return msgspec.structs.replace(record, **changes)


def server(
    ordinal: int, revision: str = "a", *, ready: bool = True, for_s: float = 3600, problem: str = ""
) -> PodRecord:
    """A server, ready or not for so many seconds; of the former template or of the present one."""
    since_s, template_hash = int(START.timestamp() - for_s), "new" if revision == "b" else "old"
    return msgspec.structs.replace(
        named_pod(ordinal, ready=ready), revision=revision, template_hash=template_hash, memory=MEMORY, since_s=since_s,
        problem=problem_of(problem), down=bool(problem),
    )  # fmt: skip


def state_of(
    *pods: PodRecord, spec: Spec = SPEC, workload: WorkloadRecord | None = None, now: datetime = START, **more: Any
) -> RolloutState:
    return RolloutState(spec, workload or stateful_set(), pods, now.timestamp(), **more)


def rollout_of(*pods: PodRecord, **more: Any) -> RolloutProgress:
    return rollout(state_of(*pods, **more))


def evicted(found: RolloutProgress) -> str | None:
    return found.step.pod.name if isinstance(found.step, Evict) else None


def stuck(found: RolloutProgress) -> str:
    """Why it is stuck, "" where it is not."""
    return found.step.why if isinstance(found.step, Stuck) else ""


def test_where_all_is_as_the_template_says_nothing_is_done() -> None:
    assert rollout_of(server(0, "b"), server(1, "b"), server(2, "b")) == DONE
    assert rollout(None) == DONE
    assert rollout_of(server(0), workload=stateful_set(deleting=True)) == DONE


def test_servers_are_replaced_from_the_highest_ordinal() -> None:
    assert evicted(rollout_of(server(0), server(1), server(2))) == f"{NAME}-2"
    assert evicted(rollout_of(server(0), server(1), server(2), server(3), server(4))) == f"{NAME}-2", "others drain"
    assert evicted(rollout_of(server(0), server(1), server(2, "b"))) == f"{NAME}-1"
    assert evicted(rollout_of(server(0), server(1, "b"), server(2, "b"))) == f"{NAME}-0"


def test_a_server_of_which_no_pod_comes_stops_it_and_is_told_in_time() -> None:
    found = rollout_of(server(0), server(1), server(4), missing_s={2: STUCK_AFTER_S - 5})
    assert (evicted(found), stuck(found), found.requeue_s) == (None, "", 5.0)
    found = rollout_of(server(0), server(1), server(4), missing_s={2: STUCK_AFTER_S})
    assert (found.stale, evicted(found)) == (2, None)
    assert f"The server {NAME}-2 has no pod, so the other 2 are not replaced. The events of `kubectl" in stuck(found)
    stalled = rollout_of(server(0), server(1), missing_s={2: STUCK_AFTER_S}, missing_reported=True)
    assert stuck(stalled).startswith(f"The server {NAME}-2 has no pod"), "it is stuck all the same"
    assert "kubectl" not in stuck(stalled), "another condition says why"
    assert f"The server {NAME}-2 has no pod, nor has another, so " in stuck(
        rollout_of(server(0), missing_s={1: 9999, 2: 9999})
    )


def test_servers_that_drain_or_move_make_up_for_none_that_is_missing() -> None:
    assert missing_servers(SPEC, stateful_set(), [server(0), server(1), server(2)]) == 0
    assert missing_servers(SPEC, stateful_set(), [server(0), server(3), server(4), pod_of("a")]) == 2
    assert missing_servers(SPEC, workload_of("Deployment", 3), [pod_of("a")]) == missing_servers(SPEC, None, []) == 0


def test_the_last_new_server_is_told_too_where_a_rollout_is_on_its_way() -> None:
    pods = [server(0, "b", ready=False, problem="ImagePullBackOff"), server(1, "b"), server(2, "b")]
    assert rollout_of(*pods) == DONE
    found = rollout_of(*pods, underway=True)
    assert stuck(found).startswith(f"The new server {NAME}-0 is not ready (ImagePullBackOff). Correct the ")
    found = rollout_of(*pods[1:], missing_s={0: STUCK_AFTER_S}, underway=True)
    assert f"The server {NAME}-0 has no pod. " in stuck(found)
    new = [server(each, "b", for_s=1) for each in range(3)]
    assert rollout_of(*new, underway=True) == DONE


def test_what_never_got_ready_is_replaced_first_and_waits_for_nobody() -> None:
    """After the specification was put back: the one server of the bad template, whatever the others do."""
    bad = server(2, "bad", ready=False, for_s=1, problem="ImagePullBackOff")
    back = stateful_set(revision="a", template_hash="old")
    assert evicted(rollout_of(server(0, for_s=1), server(1), bad, workload=back)) == f"{NAME}-2"
    assert evicted(rollout_of(server(0), bad, workload=back)) == f"{NAME}-2"
    pending = server(2, ready=False, for_s=1, problem="Unschedulable: 0/3 nodes are available")
    assert evicted(rollout_of(server(0), server(1), pending)) == f"{NAME}-2"


def test_servers_of_a_node_that_is_out_of_reach_may_have_their_keys_and_go_one_at_a_time() -> None:
    away, also = (server(each, ready=False, for_s=STUCK_AFTER_S) for each in (0, 1))
    assert evicted(rollout_of(away, also, server(2))) == f"{NAME}-1"
    assert evicted(rollout_of(away, server(2))) is None
    assert evicted(rollout_of(away, server(1, "b", ready=False, for_s=1), server(2))) is None
    found = rollout_of(away, server(1, "b", for_s=20), server(2))
    assert (evicted(found), found.requeue_s) == (None, PAUSE_S - 20)
    assert evicted(rollout_of(away, server(1, "b"), server(2))) == f"{NAME}-0"


def test_a_server_beside_which_another_container_fails_has_its_keys() -> None:
    other = msgspec.structs.replace(server(2, ready=False, for_s=5, problem="CrashLoopBackOff"), down=False)
    assert evicted(rollout_of(server(0), server(1), other)) is None


def test_of_a_deployment_stale_pods_are_only_counted() -> None:
    deployment = msgspec.structs.replace(workload_of("Deployment", 2), template_hash="new", memory=MEMORY, restarted="")
    old = msgspec.structs.replace(pod_of("a"), template_hash="old", memory=MEMORY)
    resized = msgspec.structs.replace(pod_of("b"), template_hash="new", memory="32Mi,70Mi,70Mi")
    new = msgspec.structs.replace(pod_of("c"), template_hash="new", memory=MEMORY)
    stripped = msgspec.structs.replace(pod_of("d"), template_hash="", memory="")
    found = rollout_of(old, resized, new, stripped, workload=deployment)
    assert found == RolloutProgress(RolloutWait(WaitReason.CONTROLLER), stale=2)


@pytest.mark.parametrize(
    ("changes", "untold", "stale"),
    [
        ({}, False, False),
        ({"revision": "a", "template_hash": "old"}, False, True),
        ({"revision": "a", "restarted": "2026-11-21T12:00:00Z"}, False, True),
        # Only its memory is another: it was told, or will be.
        ({"revision": "a", "memory": "32Mi,70Mi,70Mi"}, False, False),
        ({"revision": "a", "memory": "32Mi,70Mi,70Mi"}, True, True),
        ({"revision": "a", "memory": "32Mi,70Mi,70Mi", "template_hash": "old"}, False, True),
        # The template differs in what is not ours, such as a sidecar.
        ({"revision": "a"}, False, True),
    ],
)
def test_a_server_is_stale_where_only_a_new_pod_would_be_as_the_template_says(
    changes: dict[str, object], untold: bool, stale: bool
) -> None:
    pod = msgspec.structs.replace(server(0, "b"), **changes)
    assert is_stale(pod, stateful_set(), {pod.uid} if untold else ()) is stale


def test_servers_that_show_another_certificate_than_new_ones_would_are_replaced_at_the_same_pace() -> None:
    pods = [server(each, "b") for each in range(3)]
    found = rollout_of(*pods, outdated_secrets=(pods[0].uid, pods[1].uid))
    assert (found.stale, evicted(found)) == (2, f"{NAME}-1")
    found = rollout_of(pods[0], server(1, "b", for_s=20), pods[2], outdated_secrets=(pods[0].uid,))
    assert (found.stale, evicted(found), found.requeue_s) == (1, None, PAUSE_S - 20)
    assert rollout_of(*pods, outdated_secrets=("gone",)) == DONE
    paused = SPEC.model_copy(update={"rollout": Pace(paused=True)})
    assert rollout_of(*pods, outdated_secrets=(pods[0].uid,), spec=paused) == RolloutProgress(
        RolloutWait(WaitReason.UNPAUSED), stale=1
    )


def test_of_a_deployment_too_those_with_another_certificate_go_one_at_a_time() -> None:
    deployment = msgspec.structs.replace(workload_of("Deployment", 2), template_hash="new", memory=MEMORY)
    spec = SPEC.model_copy(update={"size": 2, "workload": "Deployment"})
    since_s = int(START.timestamp() - PAUSE_S)
    a, b = (msgspec.structs.replace(pod_of(each), template_hash="new", memory=MEMORY, since_s=since_s) for each in "ab")
    both = (a.uid, b.uid)
    assert evicted(rollout_of(a, b, spec=spec, workload=deployment, outdated_secrets=both)) == b.name
    controller = RolloutProgress(RolloutWait(WaitReason.CONTROLLER), stale=1)
    assert rollout_of(a, spec=spec, workload=deployment, outdated_secrets=both) == controller
    new = msgspec.structs.replace(b, uid="new", ready=False, since_s=int(START.timestamp()))
    assert evicted(rollout_of(a, new, spec=spec, workload=deployment, outdated_secrets=both)) is None
    ready = msgspec.structs.replace(new, ready=True)
    assert rollout_of(a, ready, spec=spec, workload=deployment, outdated_secrets=both).requeue_s == PAUSE_S
    assert rollout_of(a, ready, spec=spec, workload=deployment) == DONE
    other = msgspec.structs.replace(a, template_hash="old")
    assert rollout_of(other, b, spec=spec, workload=deployment, outdated_secrets=both) == controller, (
        "its controller is at it"
    )


def test_a_server_that_has_items_moves_before_it_is_replaced() -> None:
    servers = (server(0), server(1), server(2))
    assert rollout_of(*servers, moving=Moving()).step == Move(servers[2])
    released = Moving(released=frozenset((servers[2].uid,)))
    assert rollout_of(*servers, moving=released).step == Evict(servers[2])
    down = server(2, ready=False, problem="CrashLoopBackOff")
    assert rollout_of(server(0), server(1), down, moving=Moving()).step == Evict(down)


@pytest.mark.parametrize(("made_with", "named"), [("h", ""), ("", "h"), ("h", "h")])
def test_a_holder_in_the_template_makes_no_server_one_of_another_template(made_with: str, named: str) -> None:
    former = msgspec.structs.replace(server(2, "a"), template_hash="new", holder=made_with)
    assert not is_stale(former, stateful_set(holder=named))
    assert is_stale(msgspec.structs.replace(former, template_hash="old"), stateful_set(holder=named))
    assert is_stale(msgspec.structs.replace(former, holder=""), stateful_set()), "another client has added something"
