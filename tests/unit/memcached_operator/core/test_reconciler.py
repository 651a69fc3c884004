"""What is done about the Deployment of a Memcached."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from memcached_operator.core.objects.labels import APPLIED_ANNOTATION, OWNER_UID_ANNOTATION
from memcached_operator.core.observed.caches import DEPLOYMENTS
from memcached_operator.core.observed.memcacheds import memcached_record
from operator_runtime.client.errors import KubeError, MalformedAnswer, Unreachable
from operator_runtime.client.resources import Resource
from tests.unit.memcached_operator.support import NAME, NAMESPACE, UID, container_of, live_deployment
from tests.unit.memcached_operator.world import (
    DELAY_S,
    DONE,
    GET_MEMCACHED,
    KEY,
    PATCH,
    SLOWLY,
    SOON,
    VANISHED_RETRY_S,
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
    running.owners.states.keyed(str)[KEY] = "something"
    assert await running.reconcile() == DONE
    assert running.api.calls == []
    assert len(running.owners.states) == 0


# Create


@pytest.mark.parametrize(
    "owners", [None, [{"apiVersion": "v1", "kind": "Shop", "name": "s", "uid": "1", "controller": True}]]
)
async def test_one_that_is_taken_from_us_just_before_our_write_is_left_alone_and_told(
    world: World, monkeypatch: pytest.MonkeyPatch, owners: object
) -> None:
    await world.settle()
    world.api.put(world.deployment)["spec"]["replicas"] = 5
    patch = world.api.patch

    async def just_before(resource: Resource, *args: Any, **kwargs: Any) -> bytes:
        if resource == DEPLOYMENTS.resource:
            world.deployment["metadata"] |= {"ownerReferences": owners, "annotations": None}
        return await patch(resource, *args, **kwargs)

    monkeypatch.setattr(world.api, "patch", just_before)
    for _ in range(3):
        await world.reconcile_shown()
        world.clock.advance(DELAY_S)
    assert await world.reconcile_shown() == SLOWLY
    assert world.condition("Degraded") == ("True", "NotControlled")
    assert f"A Deployment named {NAME} exists and " in world.message("Degraded")
    version = world.api.put(world.deployment)["metadata"]["resourceVersion"]
    for _ in range(3):
        await world.reconcile_shown()
        world.clock.advance(DELAY_S)
    assert world.deployment["metadata"]["resourceVersion"] == version


# Scale and repair


async def test_replicas_that_somebody_else_changed_are_put_back_and_that_is_said(running: World) -> None:
    running.deployment["spec"]["replicas"] = 9
    running.api.put(running.deployment)
    await running.reconcile_shown()
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
    running.show()
    memcached = running.api.objects.pop(("Memcached", NAMESPACE, NAME))
    assert await running.reconcile() == SOON
    assert running.api.verbs() == [GET_MEMCACHED]
    running.api.put(memcached)
    running.clock.advance(VANISHED_RETRY_S)
    await running.reconcile_shown()
    assert running.api.verbs()[:3] == [GET_MEMCACHED, PATCH]
    assert running.deployment["metadata"]["ownerReferences"] == owners


@pytest.mark.parametrize("error", [Unreachable("reset"), MalformedAnswer("HTTP 200 with a login page")])
async def test_what_may_have_been_made_is_not_made_again_for_one_that_is_gone(world: World, error: KubeError) -> None:
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


@pytest.mark.parametrize("verb", ["create", "patch", "get"])
async def test_an_answer_that_is_no_object_says_nothing_about_the_memcached(
    world: World, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    request = getattr(world.api, verb)

    async def proxy(resource: Resource, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("subresource") == "status":
            return await request(resource, *args, **kwargs)
        return b'{"error": "log in first"}'

    if verb != "create":
        await world.settle()
    if verb == "get":  # before a Deployment is made again, the Memcached is looked at live
        del world.api.objects["Deployment", NAMESPACE, NAME]
        world.show()
    if verb == "patch":
        world.memcached(size=7)
        world.show()
    monkeypatch.setattr(world.api, verb, proxy)
    with pytest.raises(MalformedAnswer, match="not an object of the API"):
        await world.reconcile()


# Somebody else's


async def test_a_foreign_deployment_is_never_written_to_and_that_is_reported_once_until_it_goes(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    foreign_deployment = world.api.put(live_deployment())
    del foreign_deployment["metadata"]["ownerReferences"], foreign_deployment["metadata"]["annotations"]
    before = json.dumps(foreign_deployment)
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
    del world.api.objects["Deployment", NAMESPACE, NAME]
    with caplog.at_level(logging.INFO):
        await world.settle()
    assert caplog.messages[-1] == "no longer degraded"
    assert world.deployment["metadata"]["annotations"] == {OWNER_UID_ANNOTATION: UID, APPLIED_ANNOTATION: "{}"}
    assert world.condition("Degraded") == ("False", "AsExpected")
    assert world.condition("Progressing") == ("True", "Deploying")
