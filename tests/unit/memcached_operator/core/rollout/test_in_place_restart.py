"""Which server is changed in place now, and what is done about it, as tables; a machine has the pods restart."""

from __future__ import annotations

import msgspec
import pytest

from memcached_operator.api.v1alpha1 import Rollout as Pace, Spec, Tls
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.rollout.in_place_restart import (
    LATE_AFTER_S,
    RestartRequest,
    mark_updated_patch,
    restart_patch,
)
from memcached_operator.core.rollout.next_step import Evict, MarkUpdated, RestartInPlace, RolloutProgress, Step
from tests.unit.memcached_operator.core.rollout.test_next_step import (
    PAUSE_S,
    SPEC,
    rollout_of,
    server,
    stateful_set,
    stuck,
)
from tests.unit.memcached_operator.server_model import START
from tests.unit.memcached_operator.support import NAME, OWNER

NOW_S = int(START.timestamp())
WARM = stateful_set(restart_hash="fixed", image="memcached:1")


def warm(
    ordinal: int, revision: str = "a", *, to: str = "", since_s: float = 5, restarted: bool = False, **more: object
) -> PodRecord:
    """A server that keeps its items.

    Args:
        to: it is being changed to that, "" for nothing.
        since_s: since so many seconds.
        restarted: its container has started again since.
    """
    requested = str(RestartRequest(to, 3, int(NOW_S - since_s))) if to else ""
    found = server(ordinal, revision, **more)  # type: ignore[arg-type]
    return msgspec.structs.replace(found, restart_hash="fixed", in_place=requested, restarts=3 + restarted)


def mirrored(ordinal: int, *, image: str = "memcached:0") -> PodRecord:
    """A server whose pod was made of that image, and got another one."""
    return msgspec.structs.replace(warm(ordinal), image=image, rewritten=True)


def back(revision: str = "b", *, since_s: float, problem: str = "ImagePullBackOff") -> PodRecord:
    """The last server, which is to come to the present template, and is not ready since it was told so."""
    return warm(2, revision, to="new", since_s=since_s, ready=False, for_s=5, problem=problem)


def in_place_rollout_of(*pods: PodRecord, spec: Spec = SPEC, workload: WorkloadRecord = WARM) -> RolloutProgress:
    return rollout_of(*pods, spec=spec, workload=workload)


def done(found: RolloutProgress) -> tuple[type[Step], str] | None:
    """What is done about which server, None for nothing."""
    match found.step:
        case Evict(pod) | RestartInPlace(pod) | MarkUpdated(pod):
            return type(found.step), pod.name
        case _:
            return None


CHANGES_2, CHANGES_1 = (RestartInPlace, f"{NAME}-2"), (RestartInPlace, f"{NAME}-1")
SETTLES_2, NOTHING = (MarkUpdated, f"{NAME}-2"), None
EVICTS_2 = (Evict, f"{NAME}-2")


@pytest.mark.parametrize(
    ("pods", "what"),
    [
        ([warm(0), warm(1), warm(2)], CHANGES_2),
        # Told, and still running, ended, started again, ready.
        ([warm(0), warm(1), warm(2, to="new")], NOTHING),
        ([warm(0), warm(1), warm(2, to="new", ready=False, for_s=1, problem="Completed")], NOTHING),
        ([warm(0), warm(1), warm(2, to="new", ready=False, for_s=1, restarted=True)], NOTHING),
        ([warm(0), warm(1), warm(2, to="new", for_s=1, restarted=True)], SETTLES_2),
        # The next one has its turn as after any other replacement.
        ([warm(0), warm(1), warm(2, "b", for_s=1)], NOTHING),
        ([warm(0), warm(1), warm(2, "b", for_s=PAUSE_S)], CHANGES_1),
        # One is away for another reason.
        ([warm(0, ready=False, for_s=1), warm(1), warm(2)], NOTHING),
        # It was on its way to what is not desired any more: first there, unless it does not come there.
        ([warm(0), warm(1), warm(2, to="other")], NOTHING),
        ([warm(0), warm(1), warm(2, to="other", restarted=True)], CHANGES_2),
        ([warm(0), warm(1), warm(2, to="other", ready=False, problem="ImagePullBackOff")], CHANGES_2),
        ([warm(0), warm(1), warm(2, to="other", since_s=LATE_AFTER_S)], CHANGES_2),
        # Back to what it runs by its label: the others never left.
        ([warm(0, "b"), warm(1, "b"), warm(2, "b", to="other", ready=False, problem="ImagePullBackOff")], CHANGES_2),
        # Its node saw nothing of the other one, as while it could not be reached: its container runs on.
        ([warm(0, "b"), warm(1, "b"), warm(2, "b", to="new", since_s=LATE_AFTER_S - 1)], NOTHING),
        ([warm(0, "b"), warm(1, "b"), warm(2, "b", to="new", since_s=LATE_AFTER_S)], SETTLES_2),
        # One that runs has items, ready or not.
        ([warm(0), warm(1), msgspec.structs.replace(warm(2, ready=False), restarts=0)], CHANGES_2),
        # One that never ran has no items to keep.
        ([warm(0), warm(1), msgspec.structs.replace(warm(2, ready=False, problem="Error"), restarts=0)], EVICTS_2),
        # One that ended in order for the first time has written out where its items are.
        ([warm(0), warm(1), msgspec.structs.replace(warm(2, ready=False, problem="Completed"), restarts=0)], CHANGES_2),
        # A template that another client changed is for new pods.
        ([warm(0), warm(1), msgspec.structs.replace(warm(2), template_hash="new")], EVICTS_2),
        ([warm(0), warm(1), msgspec.structs.replace(warm(2), restarted="at noon")], EVICTS_2),
        # What is not in place.
        ([warm(0), warm(1), msgspec.structs.replace(warm(2), restart_hash="other")], EVICTS_2),
        ([server(0), server(1), server(2)], EVICTS_2),
        # Admission gave it another image as it was created, and would not as it is changed.
        ([warm(0), warm(1), mirrored(2)], EVICTS_2),
        ([warm(0), warm(1), mirrored(2, image="memcached:1")], CHANGES_2),
        # It was given back what it ran before, and cannot run that in its pod: its time for it is over.
        ([warm(0, "b"), warm(1, "b"), back(since_s=LATE_AFTER_S - 1)], NOTHING),
        ([warm(0, "b"), warm(1, "b"), back(since_s=LATE_AFTER_S)], EVICTS_2),
        ([warm(0, "b"), warm(1, "b"), back(since_s=LATE_AFTER_S, problem="CrashLoopBackOff")], EVICTS_2),
        # Not ready, it may have its items; what is new to it stops the rollout.
        ([warm(0, "b"), warm(1, "b"), back(since_s=LATE_AFTER_S, problem="")], NOTHING),
        ([warm(0), warm(1), back("a", since_s=LATE_AFTER_S)], NOTHING),
    ],
)
def test_one_server_at_a_time_is_changed_in_place(pods: list[PodRecord], what: tuple[type[Step], str] | None) -> None:
    assert done(in_place_rollout_of(*pods)) == what


def test_a_pause_begins_nothing_and_ends_what_was_begun() -> None:
    paused = SPEC.model_copy(update={"rollout": Pace(paused=True)})
    assert done(in_place_rollout_of(warm(0), warm(1), warm(2), spec=paused)) == NOTHING
    assert done(in_place_rollout_of(warm(0), warm(1), warm(2, to="new", restarted=True), spec=paused)) == SETTLES_2


def test_nothing_is_settled_by_a_revision_that_the_controller_has_yet_to_tell() -> None:
    unsettled = stateful_set(restart_hash="fixed", is_observed=False)
    assert done(in_place_rollout_of(warm(0), warm(1), warm(2, to="new", restarted=True), workload=unsettled)) == NOTHING


def test_those_that_keep_their_items_are_counted() -> None:
    found = in_place_rollout_of(warm(0), msgspec.structs.replace(warm(1), restart_hash="other"), warm(2, to="new"))
    assert (found.stale, found.in_place) == (3, 2)


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (
            warm(2, to="new", ready=False, for_s=1, problem="ImagePullBackOff"),
            "is not ready after its change in place (",
        ),
        (warm(2, to="new", ready=False, for_s=1, problem="CrashLoopBackOff", restarted=True), "is not ready after its"),
        (
            warm(2, to="new", since_s=LATE_AFTER_S),
            "has not started its container again, so the other 2 are not changed.",
        ),
        (warm(2, to="new", since_s=LATE_AFTER_S - 1), ""),
        (warm(2, to="new", ready=False, for_s=1, problem="Error"), ""),
        (warm(2, to="new", ready=False, for_s=1, problem="OOMKilled"), ""),
        # It was restarted a few minutes ago, too.
        (warm(2, to="new", ready=False, for_s=1, problem="CrashLoopBackOff"), ""),
    ],
)
def test_a_server_that_does_not_come_back_stops_it_and_is_told(pod: PodRecord, why: str) -> None:
    found = in_place_rollout_of(warm(0), warm(1), pod)
    assert done(found) == NOTHING
    assert bool(stuck(found)) is bool(why)
    assert why in stuck(found)


def test_a_server_that_runs_on_is_not_said_to_be_the_first() -> None:
    """Of several that are then to be changed, it takes its turn."""
    assert "changed first" not in stuck(in_place_rollout_of(warm(0), warm(1), warm(2, to="new", since_s=LATE_AFTER_S)))


@pytest.mark.parametrize("other", [warm(1), warm(1, ready=False)])
def test_a_server_that_is_to_start_again_is_reconciled_when_it_is_late(other: PodRecord) -> None:
    assert in_place_rollout_of(warm(0), other, warm(2, to="new", since_s=100)).requeue_s == LATE_AFTER_S - 100


def test_a_pod_gets_the_image_of_the_template_in_all_containers_that_run_it() -> None:
    spec = Spec(workload="StatefulSet", warmRestart=True, tls=Tls(secretName="cache-tls"))
    desired = desired_workload("StatefulSet", OWNER, 3, "memcached:2", None, spec, restart="monday")
    annotations = {
        "cache.example.com/in-place": f"new 3 {NOW_S}",
        "cache.example.com/restart": "monday",
        "cache.example.com/image": "memcached:2",
    }
    assert restart_patch(warm(2), WARM, desired, NOW_S + 0.5) == {
        "metadata": {"resourceVersion": "1", "annotations": annotations},
        "spec": {
            "containers": [{"name": "memcached", "image": "memcached:2"}],
            "initContainers": [{"name": "reloader", "image": "memcached:2"}],
        },
    }


def test_a_restart_alone_touches_no_image() -> None:
    spec = Spec(workload="StatefulSet", warmRestart=True, tls=Tls(secretName="cache-tls"))
    desired = desired_workload("StatefulSet", OWNER, 3, "memcached:1", None, spec, restart="monday")
    annotations = {"cache.example.com/in-place": f"new 3 {NOW_S}", "cache.example.com/restart": "monday"}
    assert restart_patch(mirrored(2, image="memcached:1"), WARM, desired, NOW_S) == {
        "metadata": {"resourceVersion": "1", "annotations": annotations}
    }


def test_a_server_that_has_arrived_is_one_of_the_template_for_kubernetes_too() -> None:
    assert mark_updated_patch(warm(2), WARM) == {
        "metadata": {
            "resourceVersion": "1",
            "annotations": {"cache.example.com/template": "new", "cache.example.com/in-place": None},
            "labels": {"controller-revision-hash": "b"},
        }
    }
