"""What a reconcile tells of what it found: the status, when it is written, and what is complained of."""

from __future__ import annotations

import logging

import pytest

from operator_runtime.cache.own_writes import PATIENCE_S
from operator_runtime.client.errors import Conflict, Forbidden, KubeError, NotFound, StatusCause
from operator_runtime.controller.controller import Result
from tests.unit.memcached_operator.support import NAME, NAMESPACE, live_deployment
from tests.unit.memcached_operator.world import (
    CREATE,
    DELAY_S,
    DONE,
    GET_MEMCACHED,
    KEY,
    SLOWLY,
    SOON,
    VANISHED_RETRY_S,
    WRITE_STATUS,
    Event,
    World,
)

# What the API server or a person refuses


async def test_a_specification_that_cannot_be_read_is_told_and_left_and_servers_go_on(running: World) -> None:
    running.memcached(size="three")
    await running.reconcile_shown()
    assert await running.reconcile(after_s=DELAY_S) == DONE
    assert running.api.verbs() == [WRITE_STATUS]
    assert running.condition("Degraded") == ("True", "InvalidSpec")
    assert "spec.size: must be a whole number" in running.message("Degraded")
    assert running.condition("Available") == ("Unknown", "InvalidSpec")
    assert running.deployment["spec"]["replicas"] == len(running.status["nodes"]) == 2


async def test_sizes_that_were_rounded_down_are_in_the_status(running: World) -> None:
    disk = {"size": "1G", "volume": {"emptyDir": {}}}
    running.memcached(size=2, memory="1G", maxItemSize=1_000_000, extstore=disk)
    await running.settle()
    assert running.status["memory"] == "953Mi"
    assert running.status["effectiveSizes"] == {"maxItemSize": "512Ki", "extstoreSize": "953Mi"}
    running.memcached(size=2, memory=2**30)
    await running.settle()
    assert running.status["memory"] == "1Gi"
    assert running.status["effectiveSizes"] == {"maxItemSize": "1Mi"}


FORBIDDEN = 'deployments.apps is forbidden: User "operator" cannot patch resource "deployments"'
QUOTA = 'deployments.apps "sessions" is forbidden: exceeded quota: q, requested: count/deployments.apps=1'


@pytest.mark.parametrize(("message", "reason"), [(FORBIDDEN, "Forbidden"), (QUOTA, "QuotaExceeded")])
async def test_a_forbidden_create_is_told_and_tried_again_slowly(world: World, message: str, reason: str) -> None:
    assert await world.refused("create", Forbidden(403, "Forbidden", message)) == SLOWLY
    assert world.condition("Degraded") == ("True", reason)
    assert world.message("Degraded") == message
    assert world.message("Available") == f"0 of 2 servers are ready: {message}"
    assert world.recorder.events == [Event("Warning", reason, message)]
    await world.settle()
    assert world.condition("Degraded") == ("False", "AsExpected")


TERMINATING = StatusCause("NamespaceTerminating", "namespace shop is being terminated", "metadata.namespace")


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (Forbidden(403, "Forbidden", "unable to create", causes=(TERMINATING,)), SLOWLY),
        (NotFound(404, "NotFound", 'namespaces "shop" not found'), SOON),
    ],
    ids=["going", "gone"],
)
async def test_in_a_namespace_that_is_going_or_gone_nothing_is_complained_of(
    world: World, caplog: pytest.LogCaptureFixture, error: KubeError, result: Result
) -> None:
    world.api.refuse("create", "Deployment", error)
    with caplog.at_level(logging.WARNING):
        assert await world.reconcile() == result
    assert world.api.verbs()[0] == CREATE
    assert (world.recorder.events, caplog.messages) == ([], [])


async def test_what_degrades_it_is_told_again_only_when_it_changes(world: World) -> None:
    for message in (FORBIDDEN, FORBIDDEN, QUOTA, QUOTA, FORBIDDEN):
        await world.refused("create", Forbidden(403, "Forbidden", message))
        world.show()
    assert [event.note for event in world.recorder.events] == [FORBIDDEN, QUOTA, FORBIDDEN]


# Status


async def test_a_status_that_still_changes_is_held_back_for_as_long_as_was_said_and_no_longer(running: World) -> None:
    running.pods(1, 1)
    assert await running.reconcile_shown() == Result(requeue_after_s=DELAY_S)
    running.clock.advance(0.1)
    running.pods(0, 2)
    left = await running.reconcile_shown()
    assert running.api.calls == []
    assert left.requeue_after_s == pytest.approx(DELAY_S - 0.1)
    running.clock.advance(DELAY_S - 0.1)
    assert await running.reconcile() == DONE
    assert running.api.verbs() == [WRITE_STATUS]
    assert running.status["readyReplicas"] == 0


async def test_a_change_that_is_undone_before_it_was_written_is_never_written(running: World) -> None:
    running.pods(1, 1)
    await running.reconcile_shown()
    running.pods(2)
    running.show()
    assert await running.reconcile(after_s=DELAY_S) == DONE
    assert running.api.calls == []
    running.pods(1, 1)
    assert await running.reconcile_shown() == Result(requeue_after_s=DELAY_S), "the next change waits its own time"


async def test_a_status_is_written_to_the_very_version_that_was_seen(running: World) -> None:
    version = running.api.objects["Memcached", NAMESPACE, NAME]["metadata"]["resourceVersion"]
    running.pods(0)
    await running.reconcile_shown()
    await running.reconcile(after_s=DELAY_S)
    (call,) = running.api.calls
    assert call.body["metadata"] == {"resourceVersion": version}
    assert call.body["status"].keys() == {"nodes", "replicas", "readyReplicas", "conditions"}


async def test_a_status_that_somebody_else_wrote_meanwhile_is_read_first(running: World) -> None:
    foreign = {"type": "Warm", "status": "True", "reason": "Yes", "message": "", "lastTransitionTime": "t"}
    running.pods(0)
    running.show()
    running.status["conditions"].append(foreign)
    running.api.put(running.api.objects["Memcached", NAMESPACE, NAME])
    await running.reconcile()
    assert await running.reconcile(after_s=DELAY_S) == Result(requeue_after_s=DELAY_S)
    assert running.api.verbs() == [WRITE_STATUS]
    assert running.wait_s(KEY) > 0, "the cache is to show what is there"
    assert running.status["replicas"] == 2
    await running.reconcile_shown()
    assert running.api.calls == [], "whoever writes in a loop is not raced with"
    await running.reconcile(after_s=DELAY_S)
    assert running.status["replicas"] == 0
    assert running.status["conditions"][-1] == foreign


async def test_a_complaint_whose_status_could_not_be_written_is_made_when_it_is(world: World) -> None:
    foreign_deployment = world.api.put(live_deployment())
    del foreign_deployment["metadata"]["ownerReferences"], foreign_deployment["metadata"]["annotations"]
    await world.reconcile_shown()
    world.clock.advance(DELAY_S)
    world.api.refuse("merge_patch/status", "Memcached", Conflict(409, "Conflict", "the object has been modified"))
    await world.reconcile()
    assert world.recorder.events == []
    await world.reconcile(after_s=DELAY_S)
    assert len(world.recorder.events) == 1


async def test_the_status_of_a_memcached_that_has_just_gone_is_nobodys(running: World) -> None:
    running.pods(0)
    running.show()
    del running.api.objects["Memcached", NAMESPACE, NAME]
    await running.reconcile()
    assert await running.reconcile(after_s=DELAY_S) == SOON
    assert running.api.verbs() == [WRITE_STATUS, GET_MEMCACHED]


async def test_a_kind_without_a_status_is_an_error_that_names_the_remedy(running: World) -> None:
    running.pods(0)
    await running.reconcile_shown()
    running.clock.advance(DELAY_S)
    running.api.refuse("merge_patch/status", "Memcached", NotFound(404, "", "404 page not found"))
    with pytest.raises(NotFound, match="has no status; install the operator's own CustomResourceDefinition"):
        await running.reconcile()


# Gone on the server, and a watch that is down


@pytest.fixture
async def behind(world: World) -> World:
    """Its Deployment was made; it was then deleted with it, and the watch of Memcacheds does not show that."""
    await world.reconcile()
    world.show()
    world.clock.advance(PATIENCE_S)
    world.api.objects.clear()
    world.caches.deployments.replace([], set())
    await world.reconcile()
    return world


async def test_nothing_is_made_for_what_is_gone_however_long_the_watch_is_down(behind: World) -> None:
    for _ in range(10):
        assert behind.wait_s(KEY) == VANISHED_RETRY_S
        behind.clock.advance(VANISHED_RETRY_S)
        assert behind.wait_s(KEY) == 0.0
        assert await behind.reconcile() == SOON
        assert set(behind.api.verbs()) == {GET_MEMCACHED}
    behind.memcached(size=3)
    behind.show()
    assert behind.wait_s(KEY) == 0.0, "a change is proof of its life"
    await behind.reconcile()
    assert behind.deployment["spec"]["replicas"] == 3


async def test_what_only_seemed_gone_is_reconciled_again(behind: World) -> None:
    """An API server that boots answers 404 for kinds of CRDs that it has not read yet."""
    behind.memcached(size=2)
    behind.clock.advance(VANISHED_RETRY_S)
    await behind.reconcile()
    assert CREATE in behind.api.verbs()
    assert behind.wait_s(KEY) <= PATIENCE_S
