"""What is done about the Deployment of a Memcached."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from memcached_operator.memcached.kinds import DEPLOYMENTS
from memcached_operator.memcached.labels import OWNER_UID_ANNOTATION
from memcached_operator.memcached.records import memcached_record
from operator_runtime.cache.store import Store
from operator_runtime.client.errors import Conflict, KubeError, MalformedAnswer, Unreachable
from operator_runtime.client.resources import Resource
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.memcached.support import (
    DEPLOYMENT_UID,
    IMAGE,
    NAME,
    NAMESPACE,
    OTHER_UID,
    UID,
    container_of,
    live_deployment,
)
from tests.unit.memcached_operator.memcached.world import (
    CREATE,
    DELAY_S,
    DONE,
    GET_DEPLOYMENT,
    GET_MEMCACHED,
    KEY,
    PATCH,
    SLOWLY,
    SOON,
    VANISHED_RETRY_S,
    WRITE_STATUS,
    Event,
    World,
)

# Nothing to do


async def test_where_there_is_nothing_to_change_nothing_is_sent(running: World) -> None:
    assert await running.reconcile() == DONE
    assert running.api.calls == []


async def test_a_memcached_that_is_gone_is_forgotten(running: World) -> None:
    del running.api.objects["Memcached", NAMESPACE, NAME]
    running.show()
    running.owners.memory.slot(str).set(KEY, "something")
    assert await running.reconcile() == DONE
    assert running.api.calls == []
    assert len(running.owners.memory) == 0


async def test_for_a_memcached_that_is_being_deleted_nothing_at_all_is_sent(running: World) -> None:
    running.memcached(size=5)["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    del running.api.objects["Deployment", NAMESPACE, NAME]
    assert await running.look() == DONE
    assert running.api.calls == []
    assert running.recorder.events == []


# Create


async def test_a_create_can_do_nothing_else_than_create(world: World) -> None:
    await world.reconcile()
    (call,) = world.api.calls
    assert (call.verb, call.kind) == ("create", "Deployment")
    assert "uid" not in call.body["metadata"]
    assert world.deployment["spec"]["replicas"] == 2
    assert container_of(world.deployment)["image"] == IMAGE


async def test_the_image_of_the_memcached_goes_before_that_of_the_operator(world: World) -> None:
    world.memcached(size=2, image="memcached:2")
    await world.look()
    assert container_of(world.deployment)["image"] == "memcached:2"


async def test_a_memcached_without_a_spec_gets_one_server(world: World) -> None:
    del world.memcached()["spec"]
    await world.look()
    assert world.deployment["spec"]["replicas"] == 1


async def test_a_create_is_told_to_people_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        await world.reconcile()
        await world.look()
    assert caplog.messages == ["created Deployment with 2 replicas (new Memcached)"]
    assert world.recorder.events == [Event("Normal", "Created", "Created Deployment sessions with 2 replicas")]


async def test_a_create_is_awaited_from_the_watch_and_not_put_into_the_cache(world: World) -> None:
    await world.reconcile()
    assert world.own_writes.pending(KEY)
    assert world.caches.deployments.get(KEY) is None
    world.show()
    assert not world.own_writes.pending(KEY)


@pytest.mark.parametrize(
    "owners", [None, [{"apiVersion": "v1", "kind": "Shop", "name": "s", "uid": "1", "controller": True}]]
)
async def test_one_that_is_taken_from_us_just_before_our_write_is_left_alone_and_told(
    world: World, monkeypatch: pytest.MonkeyPatch, owners: object
) -> None:
    await world.settle()
    world.api.put(world.deployment)["spec"]["replicas"] = 5
    patch = world.api.strategic_merge_patch

    async def just_before(resource: Resource, *args: Any, **kwargs: Any) -> bytes:
        if resource == DEPLOYMENTS.resource:
            world.deployment["metadata"] |= {"ownerReferences": owners, "annotations": None}
        return await patch(resource, *args, **kwargs)

    monkeypatch.setattr(world.api, "strategic_merge_patch", just_before)
    for _ in range(3):
        await world.look()
        world.clock.advance(DELAY_S)
    assert await world.look() == SLOWLY
    assert world.condition("Degraded") == ("True", "NotControlled")
    assert f"A Deployment named {NAME} exists and " in world.message("Degraded")
    version = world.api.put(world.deployment)["metadata"]["resourceVersion"]
    for _ in range(3):
        await world.look()
        world.clock.advance(DELAY_S)
    assert world.deployment["metadata"]["resourceVersion"] == version


async def test_a_strangers_deployment_made_between_our_look_and_our_create_is_not_written_to(world: World) -> None:
    stranger = world.api.put(live_deployment())
    del stranger["metadata"]["ownerReferences"], stranger["metadata"]["annotations"]
    version = stranger["metadata"]["resourceVersion"]
    await world.reconcile(after_s=DELAY_S)
    assert world.api.verbs() == [CREATE, GET_DEPLOYMENT]
    assert await world.reconcile(after_s=DELAY_S) == SLOWLY
    assert world.api.verbs() == [CREATE, GET_DEPLOYMENT, WRITE_STATUS]
    assert world.deployment["metadata"]["resourceVersion"] == version
    assert world.condition("Degraded") == ("True", "NotControlled")


async def test_our_own_deployment_that_the_cache_has_not_seen_is_handled_as_it_is(world: World) -> None:
    world.api.put(live_deployment())["spec"]["replicas"] = 7
    await world.reconcile()
    assert world.api.verbs()[:3] == [CREATE, GET_DEPLOYMENT, "strategic_merge_patch Deployment"]
    assert world.deployment["spec"]["replicas"] == 2


async def test_a_create_that_is_refused_as_a_conflict_although_there_is_none_is_tried_again(world: World) -> None:
    world.api.refuse("create", "Deployment", Conflict(409, "Conflict", "cannot be fulfilled on resourcequotas"))
    assert await world.reconcile() == SOON
    assert world.api.verbs() == [CREATE, GET_DEPLOYMENT]
    await world.reconcile()
    assert world.deployment["spec"]["replicas"] == 2


async def test_before_a_deployment_is_made_again_the_memcached_is_asked_for(
    running: World, caplog: pytest.LogCaptureFixture
) -> None:
    del running.api.objects["Deployment", NAMESPACE, NAME]
    running.show()
    with caplog.at_level(logging.INFO):
        await running.reconcile()
    assert running.api.verbs() == [GET_MEMCACHED, CREATE]
    assert caplog.messages == ["created Deployment with 2 replicas (it did not exist)"]


async def test_no_deployment_is_made_again_for_a_memcached_that_is_gone(running: World) -> None:
    del running.api.objects["Deployment", NAMESPACE, NAME]
    running.show()
    held = running.api.objects.pop(("Memcached", NAMESPACE, NAME))
    assert await running.reconcile() == SOON
    held["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    running.api.put(held)
    running.clock.advance(VANISHED_RETRY_S)
    assert await running.reconcile() == SOON
    held["metadata"] |= {"deletionTimestamp": None, "uid": OTHER_UID}
    running.api.put(held)
    running.clock.advance(VANISHED_RETRY_S)
    assert await running.reconcile() == SOON
    assert running.api.verbs() == [GET_MEMCACHED]


# Scale and repair


async def test_a_new_size_is_a_patch_of_the_replicas_and_of_nothing_else(
    running: World, caplog: pytest.LogCaptureFixture
) -> None:
    running.memcached(size=3)
    running.show()
    with caplog.at_level(logging.INFO):
        await running.reconcile()
    call, *_ = running.api.calls
    assert (call.verb, call.kind) == ("strategic_merge_patch", "Deployment")
    assert call.body == {"metadata": {"uid": DEPLOYMENT_UID}, "spec": {"replicas": 3}}
    assert caplog.messages == ["scaled Deployment from 2 to 3 replicas (spec.size changed)"]
    note = "Scaled Deployment sessions from 2 to 3 replicas: spec.size changed"
    assert running.recorder.events == [Event("Normal", "Scaled", note)]


async def test_replicas_that_somebody_else_changed_are_put_back_and_that_is_said(running: World) -> None:
    running.deployment["spec"]["replicas"] = 9
    running.api.put(running.deployment)
    await running.look()
    assert running.deployment["spec"]["replicas"] == 2
    note = "Scaled Deployment sessions from 9 to 2 replicas: another client had changed them"
    assert running.recorder.events == [Event("Normal", "Scaled", note)]
    assert running.repairs_counted() == {"spec.replicas": 1}


async def test_only_what_others_changed_counts_as_a_repair(running: World) -> None:
    running.memcached(size=3, image="memcached:2")
    running.show()
    await running.settle()
    assert running.repairs_counted() == {}
    container_of(running.deployment)["image"] = "memcached:0"
    running.deployment["metadata"]["labels"]["app.kubernetes.io/name"] = "mine"
    running.api.put(running.deployment)
    await running.settle()
    assert running.repairs_counted() == {"metadata.labels": 1, "spec.template.spec.containers.image": 1}


async def test_the_answer_to_an_update_is_known_at_once_so_that_it_is_not_sent_twice(running: World) -> None:
    running.memcached(size=3)
    await running.look()
    await running.reconcile()
    assert running.api.calls == []


async def test_another_image_is_a_patch_of_what_differs_in_the_deployment_that_was_judged(
    running: World, caplog: pytest.LogCaptureFixture
) -> None:
    running.memcached(size=2, image="memcached:2")
    running.show()
    with caplog.at_level(logging.INFO):
        await running.reconcile()
    call = running.api.calls[0]
    assert (call.verb, call.kind) == ("strategic_merge_patch", "Deployment")
    assert call.body["metadata"] == {"uid": DEPLOYMENT_UID}
    assert container_of(call.body) == {"name": "memcached", "image": "memcached:2"}
    text = f'spec.template.spec.containers[memcached].image was "{IMAGE}", is to be "memcached:2"'
    cost = (
        "spec.image: 2 servers are replaced, one at a time; each loses its keys and its address; about 80 s (60 s "
        "pause and a few seconds each)"
    )
    assert caplog.messages == [cost, f"updated Deployment: {text}"]
    assert running.recorder.events == [
        Event("Normal", "RollingChange", f'{cost}. spec.image was "{IMAGE}", is to be "memcached:2"'),
        Event("Normal", "Updated", f"Updated Deployment sessions: {text}"),
    ]


async def test_edited_ports_and_arguments_are_put_right_by_one_patch(running: World) -> None:
    container_of(running.deployment)["ports"][0]["containerPort"] = 11212
    container_of(running.deployment)["args"] = ["-vv"]
    running.api.put(running.deployment)
    await running.look()
    assert [call.verb for call in running.api.calls if call.kind == "Deployment"] == ["strategic_merge_patch"]
    assert running.api.calls[0].body["metadata"] == {"uid": DEPLOYMENT_UID}
    ports = [{"containerPort": 11211, "name": "memcached", "protocol": "TCP"}]
    assert container_of(running.deployment)["ports"] == ports
    assert container_of(running.deployment)["args"] == []


@pytest.mark.parametrize("theirs", [11211, 0], ids=["that was wanted before", "that somebody has put in"])
async def test_a_user_id_where_there_must_be_none_is_taken_out_whoever_set_it(theirs: int) -> None:
    world = World(user_id=None)
    world.memcached(size=2)
    world.api.put(live_deployment())
    world.deployment["spec"]["template"]["spec"]["securityContext"] |= {"runAsUser": theirs, "runAsGroup": theirs}
    await world.look()
    call = world.api.calls[0]
    assert (call.verb, call.body["metadata"]) == ("strategic_merge_patch", {"uid": DEPLOYMENT_UID})
    security = world.deployment["spec"]["template"]["spec"]["securityContext"]
    assert security == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    where = "spec.template.spec.securityContext"
    (note,) = [each.note for each in world.recorder.events if each.reason == "Updated"]
    assert note.endswith(
        f"{where}.runAsUser was {theirs}, is to be absent; {where}.runAsGroup was {theirs}, is to be absent"
    )
    await world.settle()
    assert await world.reconcile() == DONE
    assert world.api.calls == []


async def test_ports_and_user_ids_are_put_right_by_one_patch() -> None:
    world = World(user_id=None)
    world.memcached(size=2)
    world.api.put(live_deployment())
    container_of(world.deployment)["ports"][0]["name"] = "theirs"
    await world.look()
    assert [call.verb for call in world.api.calls if call.kind == "Deployment"] == ["strategic_merge_patch"]
    await world.settle()
    assert container_of(world.deployment)["ports"][0]["name"] == "memcached"
    assert "runAsUser" not in world.deployment["spec"]["template"]["spec"]["securityContext"]


async def test_a_selector_that_cannot_be_changed_is_not_even_tried(running: World) -> None:
    running.deployment["spec"]["selector"]["matchLabels"]["memcached_cr"] = "other"
    running.api.put(running.deployment)
    await running.settle()
    assert "Deployment" not in [call.kind for call in running.api.calls]
    assert running.condition("Degraded") == ("True", "Immutable")
    assert "Delete the Deployment" in running.message("Degraded")


async def test_a_removed_owner_reference_is_put_back_for_a_memcached_that_is_still_there(running: World) -> None:
    owners = running.deployment["metadata"].pop("ownerReferences")
    running.api.put(running.deployment)
    await running.look()
    assert running.api.verbs()[:3] == [GET_MEMCACHED, PATCH]
    assert running.deployment["metadata"]["ownerReferences"] == owners


async def test_what_was_made_for_a_memcached_that_is_gone_is_not_made_again_without_a_watch(
    world: World,
) -> None:
    """The garbage collector deletes it, the watch of Deployments shows that, and no status was ever written."""
    await world.reconcile()
    del world.api.objects["Memcached", NAMESPACE, NAME]
    del world.api.objects["Deployment", NAMESPACE, NAME]
    world.own_writes.forget(KEY)  # as the watch of Deployments has shown it come and go
    assert await world.reconcile() == SOON
    assert world.api.verbs() == [GET_MEMCACHED]


@pytest.mark.parametrize("error", [Unreachable("reset"), MalformedAnswer("HTTP 200 with a login page")])
async def test_what_may_have_been_made_is_not_made_again_for_a_memcached_that_is_gone(
    world: World, error: KubeError
) -> None:
    world.api.refuse("create", "Deployment", error)
    with pytest.raises(type(error)):
        await world.reconcile()
    del world.api.objects["Memcached", NAMESPACE, NAME]
    assert await world.reconcile() == SOON
    assert world.api.verbs() == [GET_MEMCACHED]


async def test_a_snapshot_that_was_begun_before_a_write_does_not_have_it_made_again(running: World) -> None:
    store = running.caches.deployments
    before, version = store.values(), str(running.api.version)
    running.memcached(size=7)
    running.caches.memcacheds.put(
        memcached_record(json.dumps(running.api.objects["Memcached", NAMESPACE, NAME]).encode())
    )
    store.begin()
    running.recorder.events.clear()
    await running.reconcile()
    assert [event.reason for event in running.recorder.events] == ["Scaled"]
    store.replace(before, set(), version=version)
    await running.reconcile()
    assert "strategic_merge_patch Deployment" not in running.api.verbs()
    assert [event.reason for event in running.recorder.events] == ["Scaled"]


@pytest.mark.parametrize("verb", ["create", "strategic_merge_patch", "get"])
async def test_an_answer_that_is_no_object_says_nothing_about_the_memcached(
    world: World, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    async def proxy(*_: object, **__: object) -> bytes:
        return b'{"error": "log in first"}'

    if verb != "create":
        await world.settle()
    if verb == "get":  # before a Deployment is made again, the Memcached is looked at live
        del world.api.objects["Deployment", NAMESPACE, NAME]
        world.show()
    if verb == "strategic_merge_patch":
        world.memcached(size=7)
        world.show()
    monkeypatch.setattr(world.api, verb, proxy)
    with pytest.raises(MalformedAnswer, match="not an object of the API"):
        await world.reconcile()


async def test_what_was_made_and_deleted_before_a_status_was_written_is_made_again(world: World) -> None:
    await world.reconcile()
    del world.api.objects["Deployment", NAMESPACE, NAME]
    world.own_writes.forget(KEY)
    await world.reconcile()
    assert world.api.verbs()[:2] == [GET_MEMCACHED, CREATE]


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
    assert [each for each in running.recorder.events if each.reason != "RollingChange"] == []
    if successor is not None:
        assert (running.deployment["spec"]["replicas"], container_of(running.deployment)["image"]) == (2, IMAGE)


@pytest.mark.parametrize("kind", ["Deployment", "Memcached"])
async def test_an_answer_for_an_object_that_has_left_the_cache_does_not_bring_it_back(
    running: World, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    running.pods(3)
    running.memcached(size=3)
    running.show()
    caches: dict[str, Store[Any]] = {"Deployment": running.caches.deployments, "Memcached": running.caches.memcacheds}
    verb = "strategic_merge_patch" if kind == "Deployment" else "merge_patch"
    patch = getattr(running.api, verb)

    async def late_patch(resource: Resource, *args: Any, **options: Any) -> bytes:
        answer: bytes = await patch(resource, *args, **options)
        if resource.kind == kind:
            caches[kind].remove(KEY)
        return answer

    monkeypatch.setattr(running.api, verb, late_patch)
    await running.reconcile()
    assert running.api.verbs() == ["strategic_merge_patch Deployment", WRITE_STATUS]
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
            world.clock.advance(DELAY_S)
            world.show()
    assert json.dumps(world.deployment) == before
    assert await world.reconcile() == SLOWLY
    assert world.api.calls == []
    assert world.condition("Degraded") == ("True", "NotControlled")
    assert world.condition("Available") == ("False", "MinimumReplicasUnavailable")
    assert world.status["nodes"] == [], "its pods bear our labels, but are not ours"
    assert world.recorder.events == [Event("Warning", "NotControlled", world.message("Degraded"))]
    assert caplog.messages == [f"degraded: NotControlled: {world.message('Degraded')}"]


async def test_when_the_strangers_deployment_goes_ours_is_made_and_nothing_is_in_the_way_any_more(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = world.api.put(live_deployment())
    del stranger["metadata"]["ownerReferences"], stranger["metadata"]["annotations"]
    await world.settle()
    del world.api.objects["Deployment", NAMESPACE, NAME]
    with caplog.at_level(logging.INFO):
        await world.settle()
    assert caplog.messages[-1] == "no longer degraded"
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
