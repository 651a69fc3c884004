"""The finalizer: when it is put on, what a deletion with it does and waits for, and when it is taken off."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from memcached_operator.api.names import FINALIZER
from memcached_operator.core.deletion import (
    STALLED_AFTER_S,
    DeleteWorkload,
    DeletionWait,
    ReleaseMemcached,
    next_deletion_step,
)
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord, Termination
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.status.debounce import CONFLICT_PAUSE_S
from memcached_operator.core.status.status_writer import SLOW_RETRY_S
from operator_runtime.client.errors import Conflict, Forbidden, Invalid, KubeError, ServerError
from operator_runtime.controller.controller import Result
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.support import NAME, NAMESPACE, NO_RIGHT, UID, deployment_of, live_deployment, pod_of
from tests.unit.memcached_operator.world import DELAY_S, DONE, KEY, WRITE_STATUS, Event, World

GET_WORKLOADS = ["get Deployment", "get StatefulSet"]
PATCH, DELETE = "merge_patch Memcached", "delete Deployment"
WHEN = "2026-11-21T12:00:00Z"
OWNED = deployment_of()
GOING, KEPT = deployment_of(deleting=True), deployment_of(deleting=True, finalizers=("example.com/hold",))
PODS = [pod_of("b"), pod_of("a")]
ENDING = [msgspec.structs.replace(pod, active=False) for pod in PODS]
LOST = msgspec.structs.replace(ENDING[0], termination=Termination(1, 31, "gone"))
HELD = msgspec.structs.replace(LOST, termination=Termination(1, 31, "gone", ("example.com/hold",)))
A, B = (f"{NAME}-7cc6f4b5f7-{letter}" for letter in "ab")


def deleted(*finalizers: str) -> MemcachedRecord:
    return MemcachedRecord(NAMESPACE, NAME, UID, "7", 1, True, b"", b"", (FINALIZER, *finalizers))


# What a deletion asks for


@pytest.mark.parametrize("mode", [(), ("foregroundDeletion",)], ids=["background", "foreground"])
def test_the_deployment_is_deleted_and_then_waited_for(mode: tuple[str, ...]) -> None:
    assert next_deletion_step(deleted(*mode), [OWNED], PODS) == DeleteWorkload(OWNED)
    assert isinstance(next_deletion_step(deleted(*mode), [GOING], ENDING), DeletionWait)
    assert isinstance(next_deletion_step(deleted(*mode), [], ENDING), DeletionWait)
    assert next_deletion_step(deleted(*mode), [], []) == ReleaseMemcached("its pods are gone")


@pytest.mark.parametrize(
    ("memcached", "deployment"),
    [
        (deleted("orphan"), OWNED),
        (deleted("orphan"), None),
        (deleted(), deployment_of(owner_kind="", owner_name="", owner_uid="")),
        (deleted(), deployment_of(owner_name="sessions", owner_uid="of-a-former-one")),
        (
            deleted(),
            deployment_of(owner_kind="Other", owner_name="sessions", owner_uid="x", made_for_uid="", normalized=b""),
        ),
    ],
    ids=["being orphaned", "orphaned and deleted by hand", "orphaned", "of a former Memcached", "a stranger's"],
)
def test_what_is_orphaned_or_not_its_own_is_left_alone_and_keeps_nobody_waiting(
    memcached: MemcachedRecord, deployment: WorkloadRecord | None
) -> None:
    assert isinstance(next_deletion_step(memcached, [deployment] if deployment else [], PODS), ReleaseMemcached)


MANY = [pod_of(str(number)) for number in range(7)]


@pytest.mark.parametrize(
    ("deployment", "pods", "what", "remedy"),
    [
        (GOING, ENDING, f"Waiting for 2 pods to end: {A}, {B}.", "kube-controller-manager"),
        (None, [LOST], f"Waiting for 1 pod to end: {B}.", f"`kubectl delete pod {B} --force --grace-period=0`"),
        (None, [HELD], f"Waiting for 1 pod to end: {B}.", "because of the finalizer example.com/hold: the client that"),
        (GOING, PODS, f"Waiting for 2 pods to end: {A}, {B}.", "kube-controller-manager"),
        (None, PODS, f"Waiting for 2 pods to end: {A}, {B}.", "delete them, and their ReplicaSet"),
        (None, MANY, "Waiting for 7 pods to end: ", "and 4 more"),
        (GOING, [], f"Waiting for the Deployment {NAME} to be deleted.", "garbage collector"),
        (
            KEPT,
            [],
            f"Waiting for the Deployment {NAME}, which has the finalizer example.com/hold, to",
            "The client that added it must remove it.",
        ),
        (
            msgspec.structs.replace(KEPT, finalizers=("a/b", "c/d")),
            [],
            f"Waiting for the Deployment {NAME}, which has the finalizers a/b, c/d, to be deleted.",
            "The clients that added them must remove them.",
        ),
    ],
)
def test_it_is_said_what_is_waited_for_and_what_a_person_can_do(
    deployment: WorkloadRecord | None, pods: list[PodRecord], what: str, remedy: str
) -> None:
    step = next_deletion_step(deleted(), [deployment] if deployment else [], pods)
    assert isinstance(step, DeletionWait)
    assert step.why.startswith(what)
    assert remedy in step.remedy


# Putting it on


@pytest.fixture
def holding() -> World:
    """A Memcached of two servers under --finalizer, that nothing was done for yet."""
    world = World(finalizer=True)
    world.memcached(size=2)
    world.show()
    return world


@pytest.fixture
async def held(holding: World) -> World:
    """The same with the finalizer, once its two servers run."""
    await holding.settle()
    holding.pods(2)
    held = live_deployment()
    held["metadata"]["uid"] = holding.deployment["metadata"]["uid"]
    holding.api.put(held)
    await holding.settle()
    assert finalizers(holding) == [FINALIZER]
    return holding


def finalizers(world: World) -> Any:
    """Those of the Memcached; none once it is gone."""
    found = world.api.objects.get(("Memcached", NAMESPACE, NAME), {"metadata": {}})
    return found["metadata"].get("finalizers", [])


def delete(world: World, *mode: str) -> None:
    """As `kubectl delete` does while a finalizer is there."""
    memcached = world.api.objects["Memcached", NAMESPACE, NAME]
    memcached["metadata"] |= {"deletionTimestamp": WHEN, "finalizers": [*finalizers(world), *mode]}
    world.api.put(memcached)
    world.show()


def end(world: World, *, pods: int = 0, deployment: bool = False) -> None:
    """As many pods are left, all of them on their way out; perhaps the Deployment too, which goes last."""
    world.pods(pods)
    for (kind, _, _), object_ in world.api.objects.items():
        if kind == "Pod":
            object_["metadata"]["deletionTimestamp"] = WHEN
    if not deployment:
        world.api.objects.pop(("Deployment", NAMESPACE, NAME), None)
    world.show()


async def test_it_is_put_on_before_anything_is_made_and_costs_one_request(holding: World) -> None:
    memcached = holding.api.objects["Memcached", NAMESPACE, NAME]
    memcached["metadata"]["finalizers"] = ["example.com/other"]
    version = holding.api.put(memcached)["metadata"]["resourceVersion"]
    await holding.reconcile_shown()
    assert holding.api.verbs()[:2] == [PATCH, "create Deployment"]
    body = {"metadata": {"resourceVersion": version, "finalizers": ["example.com/other", FINALIZER]}}
    assert holding.api.calls[0].body == body
    assert holding.api.verbs().count(PATCH) == 1


async def test_a_memcached_that_changed_meanwhile_is_reconciled_again(holding: World) -> None:
    holding.api.refuse("merge_patch", "Memcached", Conflict(409))
    assert await holding.reconcile() == Result(requeue_after_s=CONFLICT_PAUSE_S)
    assert holding.api.verbs() == [PATCH]
    assert holding.wait_s(KEY) > 0, "the watch is waited for"
    await holding.settle()
    assert finalizers(holding) == [FINALIZER]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Forbidden(403, message=NO_RIGHT), "Forbidden"),
        (Invalid(422, message='Memcached.cache.example.com "sessions" is invalid: metadata.finalizers'), "InvalidSpec"),
    ],
)
async def test_servers_are_made_also_where_it_cannot_be_put_on(holding: World, error: KubeError, reason: str) -> None:
    holding.api.refuse("merge_patch", "Memcached", error)
    await holding.reconcile()
    assert holding.deployment["spec"]["replicas"] == 2
    holding.show()
    assert (await holding.reconcile(after_s=DELAY_S)).requeue_after_s == SLOW_RETRY_S
    assert PATCH not in holding.api.verbs(), "it is not requested again at each reconcile"
    assert holding.condition("Degraded") == ("True", reason)
    assert f"The finalizer {FINALIZER} cannot be added" in holding.message("Degraded")
    assert holding.condition("Progressing") == ("True", "Deploying")
    holding.clock.advance(SLOW_RETRY_S)
    await holding.settle()
    assert finalizers(holding) == [FINALIZER]
    assert holding.condition("Degraded") == ("False", "AsExpected")


async def test_servers_are_made_and_told_of_also_while_the_api_server_fails_to_put_it_on(holding: World) -> None:
    for _ in range(2):
        holding.api.refuse("merge_patch", "Memcached", ServerError(500, message="failed calling webhook"))
        holding.show()
        with pytest.raises(ServerError):
            await holding.reconcile(after_s=DELAY_S)
    assert holding.deployment["spec"]["replicas"] == 2
    assert "will not wait for its pods: failed calling webhook" in holding.message("Ready")
    await holding.settle()
    assert finalizers(holding) == [FINALIZER]
    assert "webhook" not in holding.message("Ready")


# A deletion


async def test_it_goes_when_its_pods_are_gone(held: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    preconditions = {field: held.deployment["metadata"][field] for field in ("uid", "resourceVersion")}
    delete(held)
    await held.reconcile()
    assert held.api.verbs()[0] == DELETE
    assert held.api.calls[0].body == {"preconditions": preconditions, "propagationPolicy": "Foreground"}
    names = ", ".join(sorted(held.status["nodes"]))
    assert held.wait_s(KEY) > 0, "it is deleted once, although the watch has not shown it"
    held.show()
    await held.reconcile(after_s=DELAY_S)
    assert held.api.verbs() == [WRITE_STATUS]
    assert held.condition("Progressing") == ("True", "Terminating")
    assert held.message("Progressing") == f"Waiting for 2 pods to end: {names}."
    assert held.condition("Degraded") == ("False", "AsExpected")

    end(held, pods=1, deployment=True)
    await held.reconcile(after_s=DELAY_S)
    await held.reconcile(after_s=DELAY_S)
    assert held.message("Progressing") == f"Waiting for 1 pod to end: {NAME}-7cc6f4b5f7-0."
    assert held.status["nodes"] == []

    end(held)
    assert await held.reconcile() == DONE
    assert held.api.verbs() == [PATCH]
    assert finalizers(held) == []
    reasons = [(each.type, each.reason) for each in held.recorder.events]
    assert reasons == [("Normal", reason) for reason in ("Deleted", "Terminating", "Finalized")]
    assert held.recorder.events[1].note == f"Waiting for 2 pods to end: {names}."
    for line in ("deleted Deployment", "being deleted: Waiting for 2 pods", "removed the finalizer: its pods are gone"):
        assert line in caplog.text
    assert held.wait_s(KEY) > 0, "it is done, although the watch has not shown it"


async def test_a_deployment_that_is_being_orphaned_is_not_deleted_by_one_that_has_not_seen_it(held: World) -> None:
    delete(held)
    held.deployment["metadata"]["ownerReferences"] = []
    held.api.put(held.deployment)
    assert await held.reconcile() == Result(requeue_after_s=CONFLICT_PAUSE_S)
    assert held.api.verbs() == [DELETE, GET_WORKLOADS[0]]
    assert held.wait_s(KEY) > 0, "the watch is waited for"
    assert await held.reconcile_shown() == DONE
    assert "deletionTimestamp" not in held.deployment["metadata"]
    assert finalizers(held) == []


async def test_a_deployment_that_the_watch_has_not_shown_yet_is_deleted_too(held: World) -> None:
    delete(held)
    hidden = held.api.objects.pop(("Deployment", NAMESPACE, NAME))
    held.pods(0)
    held.show()
    held.api.objects["Deployment", NAMESPACE, NAME] = hidden
    await held.reconcile()
    assert held.api.verbs()[:3] == [*GET_WORKLOADS, DELETE]
    assert finalizers(held) == [FINALIZER]


async def test_one_whose_specification_cannot_be_read_goes_as_well(held: World) -> None:
    held.memcached(size="three")
    delete(held)
    await held.reconcile()
    held.show()
    await held.reconcile(after_s=DELAY_S)
    assert held.condition("Progressing") == ("True", "Terminating")
    end(held)
    await held.reconcile()
    assert finalizers(held) == []


# What goes wrong


@pytest.mark.parametrize("what", ["delete", "merge_patch"])
async def test_a_cleanup_that_is_forbidden_is_told_and_tried_again_until_it_is_not(held: World, what: str) -> None:
    delete(held)
    if what == "merge_patch":
        end(held)
    error = Forbidden(403, "Forbidden", NO_RIGHT)
    held.api.refuse(what, "Deployment" if what == "delete" else "Memcached", error)
    assert (await held.reconcile()).requeue_after_s is not None
    await held.reconcile(after_s=DELAY_S)
    assert [verb for verb in held.api.verbs() if verb not in GET_WORKLOADS] == [WRITE_STATUS], "it is not asked again"
    assert held.condition("Degraded") == ("True", "Forbidden")
    assert held.message("Degraded").endswith(f": {NO_RIGHT}")
    assert held.condition("Progressing") == ("True", "Terminating")
    assert held.recorder.events[-1] == Event("Warning", "Forbidden", held.message("Degraded"))
    assert finalizers(held) == [FINALIZER]

    held.clock.advance(SLOW_RETRY_S)
    await held.reconcile_shown()
    end(held)
    await held.reconcile()
    assert finalizers(held) == []


DRAIN = {"workload": "StatefulSet", "firstOrdinal": 0, "startTime": WHEN}


@pytest.mark.parametrize(
    ("spec", "status", "kind", "goes"),
    [
        pytest.param({}, {}, "StatefulSet", True, id="it never had one"),
        pytest.param({"workload": "StatefulSet"}, {}, "StatefulSet", False, id="it asks for one"),
        pytest.param({}, {"workload": "StatefulSet"}, "StatefulSet", False, id="its servers are of one"),
        pytest.param({}, {"draining": [DRAIN]}, "StatefulSet", False, id="it moves from one"),
        pytest.param({}, {}, "Deployment", False, id="every operator makes these"),
    ],
)
async def test_a_kind_that_the_operator_has_no_right_to_keeps_only_those_that_may_have_made_use_of_it(
    held: World, spec: Json, status: Json, kind: str, goes: bool
) -> None:
    held.memcached(**spec)["status"].update(status)
    delete(held)
    end(held)
    held.api.refuse("get", kind, *[Forbidden(403, "Forbidden", NO_RIGHT)] * 2)
    await held.reconcile()
    assert finalizers(held) == ([] if goes else [FINALIZER])
    if not goes:
        await held.reconcile(after_s=DELAY_S)
        assert held.condition("Degraded") == ("True", "Forbidden")
        assert held.message("Degraded") == f"Its servers cannot be deleted: {NO_RIGHT}"


async def test_a_server_that_fails_to_delete_is_told_of_and_asked_again_after_a_growing_pause(held: World) -> None:
    delete(held)
    for _ in range(2):
        held.api.refuse("delete", "Deployment", ServerError(500, message="no webhook answers"))
        with pytest.raises(ServerError):
            await held.reconcile()
        held.clock.advance(DELAY_S)
    assert held.condition("Degraded") == ("True", "TerminationStalled")
    assert held.message("Degraded") == f"The Deployment {NAME} cannot be deleted: no webhook answers"
    await held.reconcile()
    assert held.api.verbs()[0] == DELETE


async def test_pods_that_never_end_are_named_with_a_remedy_and_their_end_heals_it(held: World) -> None:
    delete(held)
    await held.reconcile()
    end(held, pods=1, deployment=True)
    result = await held.reconcile(after_s=DELAY_S)
    result = await held.reconcile(after_s=DELAY_S)
    assert held.condition("Degraded") == ("False", "AsExpected")
    assert result.requeue_after_s is not None
    assert STALLED_AFTER_S - 1 < result.requeue_after_s <= STALLED_AFTER_S

    await held.reconcile(after_s=STALLED_AFTER_S)
    await held.reconcile(after_s=DELAY_S)
    assert held.condition("Degraded") == ("True", "TerminationStalled")
    assert f"No progress for 60 s: Waiting for 1 pod to end: {NAME}-7cc6f4b5f7-0." in held.message("Degraded")
    assert "--force --grace-period=0" in held.message("Degraded")
    assert held.recorder.events[-1] == Event("Warning", "TerminationStalled", held.message("Degraded"))

    end(held)
    await held.reconcile()
    assert finalizers(held) == []


async def test_a_restart_does_not_take_back_that_it_is_stalled(held: World) -> None:
    delete(held)
    end(held, pods=1, deployment=True)
    held.deployment["metadata"]["deletionTimestamp"] = WHEN
    held.api.put(held.deployment)
    await held.reconcile_shown()
    held.clock.advance(STALLED_AFTER_S)
    for _ in range(2):
        await held.reconcile()
        held.clock.advance(DELAY_S)
    assert held.condition("Degraded") == ("True", "TerminationStalled")
    restarted = World(finalizer=True)
    restarted.api.objects, restarted.api.version = held.api.objects, held.api.version
    restarted.clock.advance_to(held.clock.now)
    await restarted.reconcile_shown()
    assert restarted.api.verbs() == []
