"""Servers move from one workload to the other, leave and come back, through the reconciler."""

from __future__ import annotations

import pytest

from tests.unit.fake_server import Json
from tests.unit.memcached_operator.server_model import name_of
from tests.unit.memcached_operator.support import NAME, NAMESPACE, live_pod
from tests.unit.memcached_operator.world import DELAY_S, WRITE_STATUS, World

DRAIN_S = 30


def stateful_set(world: World) -> Json | None:
    return world.api.objects.get(("StatefulSet", NAMESPACE, NAME))


def make_named_pods(world: World, *ordinals: int) -> None:
    """Ready pods of the StatefulSet, whose controller has made them."""
    found = stateful_set(world)
    assert found is not None
    found["status"] = {"observedGeneration": found["metadata"]["generation"]}
    found["status"] |= {"updateRevision": "a"}
    world.api.put(found)
    for ordinal in ordinals:
        pod = live_pod()
        pod["metadata"]["ownerReferences"][0] |= {"kind": "StatefulSet", "name": NAME}
        pod["metadata"] |= {"name": f"{NAME}-{ordinal}", "uid": f"uid-of-server-{ordinal}"}
        pod["metadata"]["labels"] |= {
            "controller-revision-hash": "a",
            "statefulset.kubernetes.io/pod-name": f"{NAME}-{ordinal}",
        }
        world.api.put(pod)


@pytest.fixture
async def named(world: World) -> World:
    """Three servers of a StatefulSet."""
    world.memcached(size=3, workload="StatefulSet")
    await world.reconcile_shown()
    make_named_pods(world, 0, 1, 2)
    await world.settle()
    assert world.status["serverList"] == [name_of(each) for each in range(3)]
    assert world.condition("Ready") == ("True", "AllServersReady")
    return world


async def test_the_list_shrinks_at_once_and_the_replicas_when_the_servers_have_drained(named: World) -> None:
    named.memcached(size=1, workload="StatefulSet")
    named.show()
    result = await named.reconcile()
    assert named.api.verbs() == [WRITE_STATUS]
    assert named.status["serverList"] == [name_of(0)]
    assert result.requeue_after_s == pytest.approx(DRAIN_S, abs=1.0)
    named.show()
    named.clock.advance(result.requeue_after_s or 0.0)
    await named.reconcile()
    assert named.api.verbs() == ["strategic_merge_patch StatefulSet", WRITE_STATUS]
    assert "draining" not in named.status
    (event,) = [each for each in named.recorder.events if each.reason == "Scaled"]
    assert event.note == f"Scaled StatefulSet {NAME} from 3 to 1 replicas: spec.size changed"


async def test_servers_move_without_a_moment_in_which_the_list_names_none(running: World) -> None:
    for number, key in enumerate(each for each in list(running.api.objects) if each[0] == "Pod"):
        running.api.objects[key]["status"]["podIP"] = f"10.0.0.{number}"
        running.api.put(running.api.objects[key])
    await running.writes()
    listed = running.status["serverList"]
    assert listed == ["10.0.0.0:11211", "10.0.0.1:11211"]
    running.memcached(size=2, workload="StatefulSet")
    assert "create StatefulSet" in await running.writes()
    assert (running.status["workload"], running.status["serverList"]) == ("Deployment", listed)
    assert running.condition("Progressing") == ("True", "Migrating")
    make_named_pods(running, 0, 1)
    assert await running.writes() == [WRITE_STATUS]
    assert running.status["serverList"] == [name_of(0), name_of(1)]
    assert running.status["draining"][0]["workload"] == "Deployment"
    running.clock.advance(DRAIN_S)
    running.show()
    await running.reconcile()
    (deletion,) = [each for each in running.api.calls if each.verb == "delete"]
    assert (deletion.kind, deletion.body["propagationPolicy"]) == ("Deployment", "Foreground")
    running.deployment["metadata"] |= {"deletionTimestamp": "2026-11-21T12:00:00Z", "finalizers": ["a/b", "c/d"]}
    running.api.put(running.deployment)
    await running.writes()
    held = f"The Deployment {NAME} has the finalizers a/b, c/d: the clients that added them must remove them."
    assert held in running.message("Ready")
    former = [each for each in running.api.objects if each[0] == "Deployment" or "-7cc6f4b5f7-" in each[2]]
    for key in former:
        del running.api.objects[key]
    await running.writes()
    assert "draining" not in running.status
    assert running.condition("Progressing") == ("False", "Complete")
    assert running.condition("Ready") == ("True", "AllServersReady")


async def test_the_names_that_clients_know_stay_as_long_as_their_servers_whatever_follows(world: World) -> None:
    def service() -> Json | None:
        return world.api.objects.get(("Service", NAMESPACE, NAME))

    of_a_stateful_set = {"size": 1, "workload": "StatefulSet", "service": {"type": "Headless"}}
    world.memcached(**of_a_stateful_set)
    await world.reconcile_shown()
    make_named_pods(world, 0)
    await world.settle()
    before = service()
    assert before is not None
    world.memcached(size=1, service={"type": "ClusterIP"})
    await world.writes()
    assert service() == before, "while its servers are listed"
    pod = live_pod()
    pod["status"]["podIP"] = "10.0.0.1"
    world.api.put(pod)
    await world.writes()
    assert world.status["serverList"] == ["10.0.0.1:11211"]
    assert service() == before, "while they drain"
    world.clock.advance(DRAIN_S)
    sent = await world.writes()
    assert sent.index("delete StatefulSet") < sent.index("delete Service")
    after = service()
    assert after is not None
    assert "clusterIP" not in after["spec"]
    assert after["spec"]["publishNotReadyAddresses"] is False


async def test_a_stateful_set_that_was_made_otherwise_is_replaced_and_no_server_leaves(named: World) -> None:
    found = stateful_set(named)
    assert found is not None
    found["spec"]["podManagementPolicy"] = "OrderedReady"
    named.api.put(found)
    named.show()
    await named.reconcile(after_s=DELAY_S)
    (deletion,) = [each for each in named.api.calls if each.verb == "delete"]
    assert deletion.body["propagationPolicy"] == "Orphan"
    for ordinal in range(3):
        pod = named.api.objects["Pod", NAMESPACE, f"{NAME}-{ordinal}"]
        del pod["metadata"]["ownerReferences"]
        named.api.put(pod)
    assert "create StatefulSet" in await named.writes()
    made = stateful_set(named)
    assert made is not None
    assert (made["spec"]["podManagementPolicy"], made["spec"]["replicas"]) == ("Parallel", 3)
    assert named.status["serverList"] == [name_of(each) for each in range(3)]
    assert named.condition("Available")[0] == "True"
    assert "Contested" not in [each.reason for each in named.recorder.events]
