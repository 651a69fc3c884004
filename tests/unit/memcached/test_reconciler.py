"""The reconciler against an API server in memory, with real stores, real knowledge of own writes, and a fake clock.

`World.show` is the watch: it brings the stores to what the server has. Until it is called, they are behind.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import pytest

from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.errors import Cause, Conflict, Forbidden, Invalid, KubeError, NotFound, Unreachable
from memcached_operator.kube.resources import Resource
from memcached_operator.memcached.desired import OWNER_UID_ANNOTATION
from memcached_operator.memcached.reconciler import (
    SLOW_RETRY_S,
    VANISHED_RETRY_S,
    Caches,
    MemcachedReconciler,
    ReconcilerConfig,
)
from memcached_operator.memcached.records import deployment_record, memcached_record, pod_record
from memcached_operator.runtime.controller import Result
from memcached_operator.runtime.events import EventRecorder, ObjectReference
from memcached_operator.runtime.own_writes import PATIENCE_S, OwnWrites
from memcached_operator.runtime.store import ObjectKey, Store
from tests.unit.memcached.fake_api import FakeApi, Json
from tests.unit.memcached.support import (
    DEPLOYMENT_UID,
    IMAGE,
    NAME,
    NAMESPACE,
    OTHER_UID,
    UID,
    container_of,
    live_deployment,
    live_pod,
)

KEY = ObjectKey(NAMESPACE, NAME)
DELAY_S = 0.25
APPLY, GET_DEPLOYMENT, GET_MEMCACHED = "apply Deployment", "get Deployment", "get Memcached"
WRITE_STATUS = "merge_patch/status Memcached"
DONE = Result()
SLOWLY = Result(requeue_after_s=SLOW_RETRY_S)
SOON = Result(requeue_after_s=VANISHED_RETRY_S)


class Event(NamedTuple):
    type: str
    reason: str
    note: str


class Recorder:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, regarding: ObjectReference, *, type: str, reason: str, action: str, note: str) -> None:
        assert (regarding.kind, regarding.namespace, regarding.name) == ("Memcached", NAMESPACE, NAME)
        assert regarding.uid == UID
        assert action
        self.events.append(Event(type, reason, note))


class World:
    """One Memcached, the API server that holds it, and the operator's parts around its reconciler."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.api = FakeApi()
        self.recorder = Recorder()
        self.caches = Caches(Store(), Store(), Store({"memcached": lambda pod: pod.memcached_key}))
        self.own_writes = OwnWrites(clock=lambda: self.now)
        self.own_writes.observe("Memcached", self.caches.memcacheds)
        self.own_writes.observe("Deployment", self.caches.deployments)
        self.reconciler = MemcachedReconciler(
            cast(ApiClient, self.api),
            self.caches,
            self.own_writes,
            cast(EventRecorder, self.recorder),
            ReconcilerConfig(image=IMAGE, field_manager="test-manager", status_delay_s=DELAY_S),
            clock=lambda: self.now,
            utc_now=lambda: datetime.fromtimestamp(1_800_000_000 + self.now, UTC),
        )

    def memcached(self, **spec: Any) -> Json:
        """Create the Memcached, or change its specification."""
        fresh: Json = {
            "kind": "Memcached",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "uid": UID, "generation": 0},
            "status": {},
        }
        memcached = self.api.objects.get(("Memcached", NAMESPACE, NAME), fresh)
        memcached["metadata"]["generation"] += 1
        memcached["spec"] = spec
        return self.api.put(memcached)

    def pods(self, ready: int, unready: int = 0) -> None:
        """Make these the pods of the Deployment."""
        for key in [key for key in self.api.objects if key[0] == "Pod"]:
            del self.api.objects[key]
        for number in range(ready + unready):
            pod = live_pod()
            pod["metadata"] |= {"name": f"{NAME}-7cc6f4b5f7-{number}", "uid": f"uid-of-pod-{number}"}
            pod["status"]["conditions"][0]["status"] = "True" if number < ready else "False"
            self.api.put(pod)

    def show(self) -> None:
        for kind, store, decode in (
            ("Memcached", self.caches.memcacheds, memcached_record),
            ("Deployment", self.caches.deployments, deployment_record),
            ("Pod", self.caches.pods, pod_record),
        ):
            held = [object_ for key, object_ in self.api.objects.items() if key[0] == kind]
            cast("Store[Any]", store).replace([decode(json.dumps(each).encode()) for each in held], set())

    async def reconcile(self) -> Result:
        """Reconcile, and forget the requests that came before."""
        self.api.calls.clear()
        return await self.reconciler.reconcile(KEY)

    async def refused(self, verb: str, error: KubeError) -> Result:
        """Reconcile twice while the API server refuses `verb` on the Deployment: by then the status is written."""
        result = DONE
        for _ in range(2):
            self.api.refuse(verb, "Deployment", error)
            result = await self.reconcile()
            self.now += DELAY_S
        return result

    async def settle(self) -> None:
        """Reconcile, with a watch that keeps up and after the delay of the status, until nothing is sent."""
        for _ in range(6):
            self.show()
            self.now += DELAY_S
            result = await self.reconcile()
            if not self.api.calls and result in (DONE, SLOWLY):
                self.recorder.events.clear()
                return
        raise AssertionError(f"it never settles: {self.api.verbs()}")

    @property
    def deployment(self) -> Json:
        return self.api.objects["Deployment", NAMESPACE, NAME]

    @property
    def status(self) -> Json:
        status: Json = self.api.objects["Memcached", NAMESPACE, NAME]["status"]
        return status

    def condition(self, type_: str) -> tuple[str, str]:
        (condition,) = [each for each in self.status["conditions"] if each["type"] == type_]
        return condition["status"], condition["reason"]

    def message(self, type_: str) -> str:
        (message,) = [each["message"] for each in self.status["conditions"] if each["type"] == type_]
        assert isinstance(message, str)
        return message


@pytest.fixture
def world() -> World:
    """A Memcached of two servers that nothing was done for yet."""
    world = World()
    world.memcached(size=2)
    world.show()
    return world


@pytest.fixture
async def running(world: World) -> World:
    """The same once its two servers run and its status says so."""
    world.api.put(live_deployment())
    world.pods(2)
    await world.settle()
    assert world.condition("Available") == ("True", "MinimumReplicasAvailable")
    assert world.condition("Progressing") == ("False", "Complete")
    return world


# Nothing to do


async def test_where_there_is_nothing_to_change_nothing_is_sent(running: World) -> None:
    assert await running.reconcile() == DONE
    assert running.api.calls == []


async def test_a_memcached_that_is_gone_is_forgotten(running: World) -> None:
    del running.api.objects["Memcached", NAMESPACE, NAME]
    running.show()
    running.own_writes.expect(KEY, "Deployment", DEPLOYMENT_UID, "999999")
    assert await running.reconcile() == DONE
    assert running.api.calls == []
    assert not running.own_writes.pending(KEY)


async def test_for_a_memcached_that_is_being_deleted_nothing_at_all_is_sent(running: World) -> None:
    running.memcached(size=5)["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    del running.api.objects["Deployment", NAMESPACE, NAME]
    running.show()
    assert await running.reconcile() == DONE
    assert running.api.calls == []
    assert running.recorder.events == []


# Create


async def test_a_create_can_do_nothing_else_than_create(world: World) -> None:
    await world.reconcile()
    (call,) = world.api.calls
    assert (call.verb, call.kind, call.force) == ("apply", "Deployment", False)
    assert call.body["metadata"]["resourceVersion"] == "1"
    assert "uid" not in call.body["metadata"]
    assert world.deployment["spec"]["replicas"] == 2
    assert container_of(world.deployment)["image"] == IMAGE


async def test_the_image_of_the_memcached_goes_before_that_of_the_operator(world: World) -> None:
    world.memcached(size=2, image="memcached:2")
    world.show()
    await world.reconcile()
    assert container_of(world.deployment)["image"] == "memcached:2"


async def test_a_memcached_without_a_spec_gets_one_server(world: World) -> None:
    del world.memcached()["spec"]
    world.show()
    await world.reconcile()
    assert world.deployment["spec"]["replicas"] == 1


async def test_a_create_is_told_to_people_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        await world.reconcile()
        world.show()
        await world.reconcile()
    assert caplog.messages == ["created Deployment shop/sessions with 2 replicas (new Memcached)"]
    assert world.recorder.events == [Event("Normal", "Created", "Created Deployment sessions with 2 replicas")]


async def test_a_create_is_awaited_from_the_watch_and_not_put_into_the_cache(world: World) -> None:
    await world.reconcile()
    assert world.own_writes.pending(KEY)
    assert world.caches.deployments.get(KEY) is None
    world.show()
    assert not world.own_writes.pending(KEY)


async def test_a_strangers_deployment_made_between_our_look_and_our_create_is_not_written_to(world: World) -> None:
    stranger = world.api.put(live_deployment())
    del stranger["metadata"]["ownerReferences"], stranger["metadata"]["annotations"]
    version = stranger["metadata"]["resourceVersion"]
    world.now += DELAY_S
    await world.reconcile()
    assert world.api.verbs() == [APPLY, GET_DEPLOYMENT]
    world.now += DELAY_S
    assert await world.reconcile() == SLOWLY
    assert world.api.verbs() == [APPLY, GET_DEPLOYMENT, WRITE_STATUS]
    assert world.deployment["metadata"]["resourceVersion"] == version
    assert world.condition("Degraded") == ("True", "NotControlled")


async def test_our_own_deployment_that_the_cache_has_not_seen_is_handled_as_it_is(world: World) -> None:
    world.api.put(live_deployment())["spec"]["replicas"] = 7
    await world.reconcile()
    assert world.api.verbs()[:3] == [APPLY, GET_DEPLOYMENT, "merge_patch Deployment"]
    assert world.deployment["spec"]["replicas"] == 2


async def test_a_create_that_is_refused_as_a_conflict_although_there_is_none_is_tried_again(world: World) -> None:
    world.api.refuse("apply", "Deployment", Conflict(409, "Conflict", "cannot be fulfilled on resourcequotas"))
    assert await world.reconcile() == SOON
    assert world.api.verbs() == [APPLY, GET_DEPLOYMENT]
    await world.reconcile()
    assert world.deployment["spec"]["replicas"] == 2


async def test_before_a_deployment_is_made_again_the_memcached_is_asked_for(
    running: World, caplog: pytest.LogCaptureFixture
) -> None:
    del running.api.objects["Deployment", NAMESPACE, NAME]
    running.show()
    with caplog.at_level(logging.INFO):
        await running.reconcile()
    assert running.api.verbs() == [GET_MEMCACHED, APPLY]
    assert caplog.messages == ["created Deployment shop/sessions with 2 replicas (there was none)"]


async def test_no_deployment_is_made_again_for_a_memcached_that_is_gone(running: World) -> None:
    del running.api.objects["Deployment", NAMESPACE, NAME]
    running.show()
    held = running.api.objects.pop(("Memcached", NAMESPACE, NAME))
    assert await running.reconcile() == SOON
    held["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    running.api.put(held)
    assert await running.reconcile() == SOON
    held["metadata"] |= {"deletionTimestamp": None, "uid": OTHER_UID}
    running.api.put(held)
    assert await running.reconcile() == SOON
    assert running.api.verbs() == [GET_MEMCACHED]


# Scale and repair


async def test_a_new_size_is_a_merge_patch_of_the_replicas_and_of_nothing_else(
    running: World, caplog: pytest.LogCaptureFixture
) -> None:
    running.memcached(size=3)
    running.show()
    with caplog.at_level(logging.INFO):
        await running.reconcile()
    call, *_ = running.api.calls
    assert (call.verb, call.kind) == ("merge_patch", "Deployment")
    assert call.body == {"metadata": {"uid": DEPLOYMENT_UID}, "spec": {"replicas": 3}}
    assert caplog.messages == ["scaled Deployment shop/sessions from 2 to 3 replicas (spec.size changed)"]
    note = "Scaled Deployment sessions from 2 to 3 replicas: spec.size changed"
    assert running.recorder.events == [Event("Normal", "Scaled", note)]


async def test_replicas_that_somebody_else_changed_are_put_back_and_that_is_said(running: World) -> None:
    running.deployment["spec"]["replicas"] = 9
    running.api.put(running.deployment)
    running.show()
    await running.reconcile()
    assert running.deployment["spec"]["replicas"] == 2
    note = "Scaled Deployment sessions from 9 to 2 replicas: somebody else had changed them"
    assert running.recorder.events == [Event("Normal", "Scaled", note)]


async def test_the_answer_to_an_update_is_known_at_once_so_that_it_is_not_sent_twice(running: World) -> None:
    running.memcached(size=3)
    running.show()
    await running.reconcile()
    await running.reconcile()
    assert running.api.calls == []


async def test_another_image_is_an_apply_of_the_whole_deployment_by_force_to_the_one_that_was_judged(
    running: World, caplog: pytest.LogCaptureFixture
) -> None:
    running.memcached(size=2, image="memcached:2")
    running.show()
    with caplog.at_level(logging.INFO):
        await running.reconcile()
    call, *_ = running.api.calls
    assert (call.verb, call.kind, call.force) == ("apply", "Deployment", True)
    assert call.body["metadata"]["uid"] == DEPLOYMENT_UID
    assert "resourceVersion" not in call.body["metadata"]
    assert container_of(call.body)["args"] == []
    text = f'spec.template.spec.containers[memcached].image was "{IMAGE}", is to be "memcached:2"'
    assert caplog.messages == [f"updated Deployment shop/sessions: {text}"]
    assert running.recorder.events == [Event("Normal", "Updated", f"Updated Deployment sessions: {text}")]


async def test_edited_ports_are_replaced_by_a_patch_of_their_own_before_anything_else(running: World) -> None:
    container_of(running.deployment)["ports"][0]["containerPort"] = 11212
    container_of(running.deployment)["args"] = ["-vv"]
    running.api.put(running.deployment)
    running.show()
    await running.reconcile()
    call = running.api.calls[0]
    assert (call.verb, call.kind) == ("strategic_merge_patch", "Deployment")
    assert call.body["metadata"] == {"uid": DEPLOYMENT_UID}
    ports = [{"containerPort": 11211, "name": "memcached", "protocol": "TCP"}]
    assert container_of(running.deployment)["ports"] == ports
    await running.reconcile()
    assert running.api.verbs()[0] == APPLY


async def test_a_removed_owner_reference_is_put_back_for_a_memcached_that_is_still_there(running: World) -> None:
    owners = running.deployment["metadata"].pop("ownerReferences")
    running.api.put(running.deployment)
    running.show()
    await running.reconcile()
    assert running.api.verbs()[:2] == [GET_MEMCACHED, APPLY]
    assert running.deployment["metadata"]["ownerReferences"] == owners


async def test_an_orphan_of_a_memcached_that_was_just_deleted_is_not_claimed_again(running: World) -> None:
    del running.deployment["metadata"]["ownerReferences"]
    running.api.put(running.deployment)
    running.show()
    del running.api.objects["Memcached", NAMESPACE, NAME]
    assert await running.reconcile() == SOON
    assert running.api.verbs() == [GET_MEMCACHED]


@pytest.mark.parametrize("spec", [{"size": 3}, {"size": 2, "image": "memcached:2"}], ids=["scale", "repair"])
@pytest.mark.parametrize("successor", [None, OTHER_UID], ids=["gone", "another of its name"])
async def test_a_deployment_that_was_replaced_under_our_write_stays_as_it_is(
    running: World, spec: Json, successor: str | None
) -> None:
    """A write to a re-created object is answered 422 with cause metadata.uid, one to a missing object 404 or 409."""
    running.memcached(**spec)
    running.show()
    held = running.api.objects.pop(("Deployment", NAMESPACE, NAME))
    if successor is not None:
        running.api.put(held)["metadata"]["uid"] = successor
    assert await running.reconcile() == SOON
    assert len(running.api.calls) == 1
    assert running.recorder.events == []
    if successor is not None:
        assert (running.deployment["spec"]["replicas"], container_of(running.deployment)["image"]) == (2, IMAGE)


@pytest.mark.parametrize("kind", ["Deployment", "Memcached"])
async def test_an_answer_for_an_object_that_has_left_the_cache_does_not_bring_it_back(
    running: World, kind: str
) -> None:
    running.pods(3)
    running.memcached(size=3)
    running.show()
    caches: dict[str, Store[Any]] = {"Deployment": running.caches.deployments, "Memcached": running.caches.memcacheds}
    patch = running.api.merge_patch

    async def late_patch(resource: Resource, *args: Any, **options: Any) -> bytes:
        answer = await patch(resource, *args, **options)
        if resource.kind == kind:
            caches[kind].remove(KEY)
        return answer

    running.api.merge_patch = late_patch  # type: ignore[method-assign]
    await running.reconcile()
    assert running.api.verbs() == ["merge_patch Deployment", WRITE_STATUS]
    assert {name for name, store in caches.items() if store.get(KEY) is None} == {kind}


# Somebody else's


async def test_a_strangers_deployment_is_never_written_to_and_that_is_said_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = world.api.put(live_deployment())
    del stranger["metadata"]["ownerReferences"], stranger["metadata"]["annotations"]
    before = json.dumps(stranger)
    world.pods(2)
    world.show()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            await world.reconcile()
            world.now += DELAY_S
            world.show()
    assert json.dumps(world.deployment) == before
    assert await world.reconcile() == SLOWLY
    assert world.api.calls == []
    assert world.condition("Degraded") == ("True", "NotControlled")
    assert world.condition("Available") == ("False", "MinimumReplicasUnavailable")
    assert world.status["nodes"] == [], "its pods bear our labels, but are not ours"
    assert world.recorder.events == [Event("Warning", "NotControlled", world.message("Degraded"))]
    assert caplog.messages == [f"shop/sessions is degraded: NotControlled: {world.message('Degraded')}"]


async def test_when_the_strangers_deployment_goes_ours_is_made_and_nothing_is_in_the_way_any_more(world: World) -> None:
    stranger = world.api.put(live_deployment())
    del stranger["metadata"]["ownerReferences"], stranger["metadata"]["annotations"]
    await world.settle()
    del world.api.objects["Deployment", NAMESPACE, NAME]
    await world.settle()
    assert world.deployment["metadata"]["annotations"] == {OWNER_UID_ANNOTATION: UID}
    assert world.condition("Degraded") == ("False", "AsExpected")
    assert world.condition("Progressing") == ("True", "Deploying")


async def test_the_deployment_of_a_predecessor_is_waited_for_without_a_complaint(world: World) -> None:
    former = world.api.put(live_deployment())
    former["metadata"]["ownerReferences"][0]["uid"] = OTHER_UID
    await world.settle()
    assert world.condition("Degraded") == ("False", "AsExpected")
    assert world.condition("Progressing") == ("True", "Deploying")
    assert "waiting for it to go" in world.message("Progressing")


# What the API server or a person refuses


async def test_a_specification_that_cannot_be_read_is_told_and_left_to_a_change_of_it(world: World) -> None:
    world.memcached(size="three")
    world.show()
    await world.reconcile()
    world.now += DELAY_S
    assert await world.reconcile() == DONE
    assert world.api.verbs() == [WRITE_STATUS]
    assert world.condition("Degraded") == ("True", "InvalidSpec")
    assert "spec.size: must be a whole number" in world.message("Degraded")
    assert world.condition("Available") == ("Unknown", "InvalidSpec")


async def test_servers_go_on_while_a_specification_cannot_be_read(running: World) -> None:
    running.memcached(size=-1)
    await running.settle()
    assert running.deployment["spec"]["replicas"] == 2
    assert len(running.status["nodes"]) == 2


FORBIDDEN = 'deployments.apps is forbidden: User "operator" cannot patch resource "deployments"'
QUOTA = 'deployments.apps "sessions" is forbidden: exceeded quota: q, requested: count/deployments.apps=1'


@pytest.mark.parametrize(("message", "reason"), [(FORBIDDEN, "Forbidden"), (QUOTA, "QuotaExceeded")])
async def test_a_create_that_is_forbidden_is_told_and_tried_again_slowly_until_it_is_not(
    world: World, message: str, reason: str
) -> None:
    assert await world.refused("apply", Forbidden(403, "Forbidden", message)) == SLOWLY
    assert world.condition("Degraded") == ("True", reason)
    assert world.message("Degraded") == message
    assert world.message("Available") == f"0 of 2 servers are ready: {message}"
    assert world.recorder.events == [Event("Warning", reason, message)]
    await world.settle()
    assert world.condition("Degraded") == ("False", "AsExpected")


async def test_a_refusal_without_words_still_has_a_message(world: World) -> None:
    await world.refused("apply", Forbidden(403))
    assert world.message("Degraded") == "403 Forbidden: no message"


async def test_a_change_that_is_forbidden_leaves_what_runs_in_the_status(running: World) -> None:
    running.memcached(size=3)
    running.show()
    assert await running.refused("merge_patch", Forbidden(403, "Forbidden", FORBIDDEN)) == SLOWLY
    assert running.condition("Degraded") == ("True", "Forbidden")
    assert running.condition("Progressing") == ("False", "Forbidden")
    assert len(running.status["nodes"]) == 2


async def test_in_a_namespace_that_is_going_nothing_is_complained_of(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    cause = Cause("NamespaceTerminating", "namespace shop is being terminated", "metadata.namespace")
    world.api.refuse("apply", "Deployment", Forbidden(403, "Forbidden", "unable to create", causes=(cause,)))
    with caplog.at_level(logging.INFO):
        assert await world.reconcile() == SOON
    assert world.api.verbs() == [APPLY]
    assert world.recorder.events == []
    assert caplog.messages == []


async def test_in_a_namespace_that_is_gone_nothing_is_complained_of(world: World) -> None:
    world.api.refuse("apply", "Deployment", NotFound(404, "NotFound", 'namespaces "shop" not found'))
    assert await world.reconcile() == SOON
    assert world.recorder.events == []


async def test_a_deployment_that_the_api_server_finds_invalid_is_told_in_its_words_and_tried_again_slowly(
    running: World,
) -> None:
    running.memcached(size=2, image="memcached:2")
    running.show()
    cause = Cause("FieldValueInvalid", "bad", "spec.template.spec.containers[0].image")
    refusal = Invalid(422, "Invalid", "image: Invalid value", causes=(cause,))
    assert await running.refused("apply", refusal) == SLOWLY
    assert running.condition("Degraded") == ("True", "InvalidSpec")
    assert running.message("Degraded") == "The API server refused the Deployment: image: Invalid value"
    assert len(running.status["nodes"]) == 2


async def test_an_api_server_that_cannot_be_reached_is_the_controllers_to_retry(world: World) -> None:
    world.api.refuse("apply", "Deployment", Unreachable("connection refused"))
    with pytest.raises(Unreachable):
        await world.reconcile()


async def test_what_degrades_it_is_told_again_only_when_it_changes(world: World) -> None:
    for message in (FORBIDDEN, FORBIDDEN, QUOTA, QUOTA, FORBIDDEN):
        await world.refused("apply", Forbidden(403, "Forbidden", message))
        world.show()
    assert [event.note for event in world.recorder.events] == [FORBIDDEN, QUOTA, FORBIDDEN]


# Status


async def test_a_status_that_still_changes_is_held_back_for_as_long_as_was_said_and_no_longer(running: World) -> None:
    running.pods(1, 1)
    running.show()
    assert await running.reconcile() == Result(requeue_after_s=DELAY_S)
    running.now += 0.1
    running.pods(0, 2)
    running.show()
    left = await running.reconcile()
    assert running.api.calls == []
    assert left.requeue_after_s == pytest.approx(DELAY_S - 0.1)
    running.now += DELAY_S - 0.1
    assert await running.reconcile() == DONE
    assert running.api.verbs() == [WRITE_STATUS]
    assert running.status["readyReplicas"] == 0


async def test_a_status_is_written_at_once_when_all_servers_are_there_and_when_all_are_ready(world: World) -> None:
    await world.reconcile()
    world.pods(0, 2)
    world.show()
    assert await world.reconcile() == DONE
    assert world.api.verbs() == [WRITE_STATUS]
    assert world.status["replicas"] == 2
    world.pods(2)
    world.show()
    assert await world.reconcile() == DONE
    assert world.api.verbs() == [WRITE_STATUS]
    assert world.status["readyReplicas"] == 2


async def test_a_change_that_is_undone_before_it_was_written_is_never_written(running: World) -> None:
    running.pods(1, 1)
    running.show()
    await running.reconcile()
    running.pods(2)
    running.show()
    running.now += DELAY_S
    assert await running.reconcile() == DONE
    assert running.api.calls == []
    running.pods(1, 1)
    running.show()
    assert await running.reconcile() == Result(requeue_after_s=DELAY_S), "the next change waits its own time"


async def test_a_status_is_written_to_the_very_version_that_was_seen(running: World) -> None:
    version = running.api.objects["Memcached", NAMESPACE, NAME]["metadata"]["resourceVersion"]
    running.pods(0)
    running.show()
    await running.reconcile()
    running.now += DELAY_S
    await running.reconcile()
    (call,) = running.api.calls
    assert call.body["metadata"] == {"resourceVersion": version}
    assert call.body["status"].keys() == {"nodes", "replicas", "readyReplicas", "conditions"}


async def test_a_written_status_is_known_at_once_so_that_it_is_not_written_twice(running: World) -> None:
    running.pods(0)
    running.show()
    await running.reconcile()
    running.now += DELAY_S
    await running.reconcile()
    assert await running.reconcile() == DONE
    assert running.api.calls == []


async def test_a_status_that_somebody_else_wrote_meanwhile_is_looked_at_first(running: World) -> None:
    foreign = {"type": "Warm", "status": "True", "reason": "Yes", "message": "", "lastTransitionTime": "t"}
    running.pods(0)
    running.show()
    running.status["conditions"].append(foreign)
    running.api.put(running.api.objects["Memcached", NAMESPACE, NAME])
    await running.reconcile()
    running.now += DELAY_S
    assert await running.reconcile() == Result(requeue_after_s=DELAY_S)
    assert running.status["replicas"] == 2
    running.show()
    await running.reconcile()
    assert running.status["replicas"] == 0
    assert running.status["conditions"][-1] == foreign


async def test_a_complaint_whose_status_could_not_be_written_is_made_when_it_is(world: World) -> None:
    stranger = world.api.put(live_deployment())
    del stranger["metadata"]["ownerReferences"], stranger["metadata"]["annotations"]
    world.show()
    await world.reconcile()
    world.now += DELAY_S
    world.api.refuse("merge_patch/status", "Memcached", Conflict(409, "Conflict", "the object has been modified"))
    await world.reconcile()
    assert world.recorder.events == []
    await world.reconcile()
    assert len(world.recorder.events) == 1


async def test_the_status_of_a_memcached_that_has_just_gone_is_nobodys(running: World) -> None:
    running.pods(0)
    running.show()
    del running.api.objects["Memcached", NAMESPACE, NAME]
    await running.reconcile()
    running.now += DELAY_S
    assert await running.reconcile() == DONE
    assert running.api.verbs() == [WRITE_STATUS]


async def test_a_terminating_pod_is_in_no_status(running: World) -> None:
    pod = running.api.objects["Pod", NAMESPACE, f"{NAME}-7cc6f4b5f7-0"]
    pod["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    running.api.put(pod)
    await running.settle()
    assert running.status["nodes"] == [f"{NAME}-7cc6f4b5f7-1"]


# Our own writes


async def test_a_write_that_the_watch_never_shows_is_looked_for_on_the_server(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.reconcile()
    world.now += PATIENCE_S
    await world.reconcile()
    assert world.api.verbs() == [GET_MEMCACHED, GET_DEPLOYMENT, WRITE_STATUS]
    assert "the watch has not shown our last write for shop/sessions; looking at the live objects" in caplog.messages


async def test_what_is_looked_for_on_the_server_and_gone_there_is_left(world: World) -> None:
    await world.reconcile()
    world.now += PATIENCE_S
    world.api.objects.clear()
    assert await world.reconcile() == DONE
    assert world.api.verbs() == [GET_MEMCACHED, GET_DEPLOYMENT]
