"""A Memcached that is being deleted without our finalizer, and kept for a while: its status goes on."""

from __future__ import annotations

import json

import pytest

from memcached_operator.api.names import FINALIZER
from memcached_operator.core.status.status_writer import SLOW_RETRY_S
from operator_runtime.client.errors import Conflict, Forbidden, KubeError, ServerError, TooManyRequests
from tests.unit.memcached_operator.running_servers import control
from tests.unit.memcached_operator.support import NAME, NAMESPACE
from tests.unit.memcached_operator.world import DELAY_S, DONE, World

WHEN = "2026-11-21T12:00:00Z"
HOLD = "example.com/hold"


def delete(world: World, *finalizers: str) -> None:
    """As `kubectl delete` does while these finalizers are there."""
    memcached = world.api.objects["Memcached", NAMESPACE, NAME]
    memcached["metadata"] |= {"deletionTimestamp": WHEN, "finalizers": list(finalizers)}
    world.api.put(memcached)


def lose(world: World, kind: str, name: str = NAME) -> None:
    """It is gone."""
    del world.api.objects[kind, NAMESPACE, name]


def published(world: World) -> list[str]:
    """The servers that the ConfigMap names."""
    data = world.api.objects["ConfigMap", NAMESPACE, f"{NAME}-servers"]["data"]
    found: list[str] = json.loads(data["servers.json"])
    return found


@pytest.fixture
async def listed(world: World) -> World:
    """Three servers of a StatefulSet, whose list is published."""
    world.memcached(size=3, workload="StatefulSet", discovery={"configMap": {}})
    await world.reconcile_shown()
    control(world)
    await world.settle()
    assert len(published(world)) == 3
    return world


@pytest.mark.parametrize(
    ("finalizers", "why"),
    [
        ([HOLD], f"Being deleted; waiting for the finalizer {HOLD}."),
        (["a/b", HOLD], f"Being deleted; waiting for the finalizers a/b, {HOLD}."),
        ([HOLD, "foregroundDeletion"], f"Being deleted; waiting for the finalizer {HOLD}."),
        (["foregroundDeletion"], "Being deleted; its objects are deleted first."),
    ],
)
async def test_the_status_says_what_keeps_it_and_what_is_left(running: World, finalizers: list[str], why: str) -> None:
    delete(running, *finalizers)
    await running.settle()
    assert running.message("Progressing") == why
    assert running.condition("Ready") == ("False", "Terminating")
    assert len(running.status["nodes"]) == 2
    running.pods(0)
    lose(running, "Deployment")
    await running.settle()
    assert running.status["nodes"] == running.status["serverList"] == []
    assert ("Deployment", NAMESPACE, NAME) not in running.api.objects


async def test_nothing_is_said_of_one_whose_servers_are_being_orphaned(running: World) -> None:
    delete(running, "orphan", HOLD)
    assert await running.reconcile_shown() == DONE
    assert running.api.verbs() == []


async def test_a_change_of_the_specification_is_told_and_not_done(running: World) -> None:
    delete(running, HOLD)
    await running.settle()
    running.memcached(size=5)
    await running.settle()
    assert running.deployment["spec"]["replicas"] == 2
    meta = running.api.objects["Memcached", NAMESPACE, NAME]["metadata"]
    assert running.status["observedGeneration"] == meta["generation"]


async def test_the_list_keeps_a_server_that_comes_back_and_none_that_does_not(listed: World) -> None:
    delete(listed, HOLD)
    lose(listed, "Pod", f"{NAME}-1")
    await listed.settle()
    assert len(listed.status["serverList"]) == len(published(listed)) == 3
    lose(listed, "StatefulSet")
    lose(listed, "Pod", f"{NAME}-2")
    await listed.settle()
    (left,) = listed.status["serverList"]
    assert left.startswith(f"{NAME}-0.")
    assert published(listed) == [left]


async def test_a_published_list_that_is_gone_is_not_made_again(listed: World) -> None:
    delete(listed, HOLD)
    lose(listed, "ConfigMap", f"{NAME}-servers")
    lose(listed, "StatefulSet")
    await listed.settle()
    assert ("ConfigMap", NAMESPACE, f"{NAME}-servers") not in listed.api.objects


@pytest.mark.parametrize("error", [ServerError(500), TooManyRequests(429), Forbidden(403), Conflict(409)])
async def test_a_list_that_cannot_be_written_now_is_when_it_can(listed: World, error: KubeError) -> None:
    delete(listed, HOLD)
    lose(listed, "StatefulSet")
    lose(listed, "Pod", f"{NAME}-2")
    listed.api.refuse("merge_patch", "ConfigMap", error)
    await listed.settle()
    assert len(listed.status["serverList"]) == 2
    listed.clock.advance(SLOW_RETRY_S)
    await listed.settle()
    assert len(published(listed)) == 2


async def test_an_immutable_list_is_left_alone_and_does_not_keep_a_memcached_from_going(listed: World) -> None:
    live = listed.api.objects["ConfigMap", NAMESPACE, f"{NAME}-servers"]
    live["immutable"] = True
    listed.api.put(live)
    delete(listed, FINALIZER)
    await listed.reconcile_shown()
    for kind, _, name in list(listed.api.objects):
        if kind in ("StatefulSet", "Pod"):
            lose(listed, kind, name)
    for _ in range(3):
        await listed.reconcile_shown()
        listed.clock.advance(DELAY_S)
    assert ("Memcached", NAMESPACE, NAME) not in listed.api.objects
    assert len(published(listed)) == 3
