"""What the node makes of a resize: resources and conditions in a pod's status, and events."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from kube_simulator.controllers.manager import Options
from kube_simulator.errors import ApiError
from kube_simulator.resizes import Held
from kube_simulator.values import Json
from tests.unit.kube_simulator.controllers.world import NAMESPACE, World, condition, stamp

SMALL = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}
LARGE = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}}


@pytest.fixture
async def node() -> AsyncIterator[World]:
    """A node on which pods are ready at once; nothing on it is real."""
    async with World(Options(ready_after_s=0, real_memcached=False)) as running:
        yield running


async def run(world: World, resources: Json, name: str = "a") -> Json:
    container = {"name": "web", "image": "web:1", "resources": resources}
    await world.create("pods", {"metadata": {"name": name}, "spec": {"containers": [container]}})
    await world.settle()
    return world.get("pods", name)


async def resize(world: World, resources: Json, name: str = "a") -> Json:
    containers = world.get("pods", name)["spec"]["containers"]
    await world.merge(
        "pods", name, {"spec": {"containers": [{**containers[0], "resources": resources}]}}, subresource="resize"
    )
    await world.settle()
    return world.get("pods", name)


def resources_of(pod: Json) -> tuple[Json | None, Json]:
    [status] = pod["status"]["containerStatuses"]
    return status.get("allocatedResources"), status["resources"]


def conditions(pod: Json) -> set[str]:
    return {each["type"] for each in pod["status"]["conditions"] if "Resize" in each["type"]}


def resize_events(world: World) -> list[tuple[str, str]]:
    found = sorted(world.all("events"), key=lambda each: int(each["metadata"]["resourceVersion"]))
    return [(each["type"], each["reason"]) for each in found if "Resize" in each["reason"]]


async def test_a_pod_has_what_its_containers_ask_for(node: World) -> None:
    assert resources_of(await run(node, SMALL)) == (SMALL["requests"], SMALL)
    assert resources_of(await run(node, {}, "b")) == (None, {})


async def test_a_resize_is_carried_out_at_once_and_nothing_restarts(node: World) -> None:
    before = await run(node, SMALL)
    pod = await resize(node, LARGE)
    assert resources_of(pod) == (LARGE["requests"], LARGE)
    assert (pod["metadata"]["generation"], pod["status"]["observedGeneration"]) == (2, 2)
    assert conditions(pod) == set()
    status, was = (each["status"]["containerStatuses"][0] for each in (pod, before))
    assert (status["containerID"], status["restartCount"]) == (was["containerID"], 0)
    assert resize_events(node) == [("Normal", "ResizeStarted"), ("Normal", "ResizeCompleted")]
    [message] = node.messages("ResizeCompleted")
    said, _, summary = message.partition(": ")
    assert said == "Pod resize completed"
    assert json.loads(summary) == {"containers": [{"name": "web", "resources": LARGE}], "generation": 2}


@pytest.mark.parametrize("how", ["Infeasible", "Deferred"])
async def test_a_resize_that_the_node_cannot_do_is_pending_until_it_can(node: World, how: Held) -> None:
    await run(node, SMALL)
    with node.resizes.held(how, "no room", pod="a"):
        pod = await resize(node, LARGE)
        assert resources_of(pod) == (SMALL["requests"], SMALL)
        assert pod["spec"]["containers"][0]["resources"] == LARGE
        assert conditions(pod) == {"PodResizePending"}
        assert condition(pod, "PodResizePending") == {
            "type": "PodResizePending",
            "status": "True",
            "observedGeneration": 2,
            "lastProbeTime": stamp(node.moment),
            "lastTransitionTime": stamp(node.moment),
            "reason": how,
            "message": "no room",
        }
        since = stamp(node.moment)
        node.moment += timedelta(seconds=10)
        await node.merge("pods", "a", {"metadata": {"labels": {"x": "y"}}})
        await node.settle()
        assert condition(node.get("pods", "a"), "PodResizePending")["lastTransitionTime"] == since
        assert resize_events(node) == [("Warning", f"Resize{how}")]
    await node.settle()
    pod = node.get("pods", "a")
    assert (resources_of(pod), conditions(pod)) == ((LARGE["requests"], LARGE), set())


async def test_a_resize_that_is_taken_back_is_no_longer_pending(node: World) -> None:
    await run(node, SMALL)
    with node.resizes.held("Infeasible"):
        assert conditions(await resize(node, LARGE)) == {"PodResizePending"}
        pod = await resize(node, SMALL)
        assert (resources_of(pod), conditions(pod)) == ((SMALL["requests"], SMALL), set())


@pytest.mark.parametrize(("how", "said"), [("InProgress", None), ("Error", "Error")])
async def test_a_resize_may_be_set_aside_and_not_be_there_yet(node: World, how: Held, said: str | None) -> None:
    await run(node, LARGE)
    with node.resizes.held(how, namespace=NAMESPACE):
        pod = await resize(node, SMALL)
        assert resources_of(pod) == (SMALL["requests"], LARGE)
        assert conditions(pod) == {"PodResizeInProgress"}
        assert condition(pod, "PodResizeInProgress").get("reason") == said
    await node.settle()
    pod = node.get("pods", "a")
    assert (resources_of(pod), conditions(pod)) == ((SMALL["requests"], SMALL), set())


async def test_a_hold_is_for_the_pods_that_it_names(node: World) -> None:
    await run(node, SMALL)
    await run(node, SMALL, "b")
    with node.resizes.held("Deferred", pod="b"), node.resizes.held("Error", namespace="other"):
        assert conditions(await resize(node, LARGE)) == set()
        assert conditions(await resize(node, LARGE, "b")) == {"PodResizePending"}


async def test_a_node_that_starts_again_knows_what_it_had_set_aside(node: World) -> None:
    await run(node, SMALL)
    hold = node.resizes.hold("Infeasible")
    await resize(node, LARGE)
    await node.manager.stop_kubelet()
    node.manager.start_kubelet()
    await node.settle()
    pod = node.get("pods", "a")
    assert (resources_of(pod), conditions(pod)) == ((SMALL["requests"], SMALL), {"PodResizePending"})
    node.resizes.release(hold)
    node.resizes.release(hold)
    await node.settle()
    assert resources_of(node.get("pods", "a")) == (LARGE["requests"], LARGE)


async def test_a_resize_beyond_what_the_node_has_is_refused(node: World) -> None:
    await run(node, SMALL)
    node.resizes.allocatable = {"memory": "100Mi", "cpu": "60m"}
    with pytest.raises(ApiError) as refused:
        await resize(node, {**LARGE, "requests": {"cpu": "61m", "memory": "128Mi"}})
    assert (refused.value.code, refused.value.details["causes"]) == (403, [{"reason": "NodeCapacity"}])
    assert refused.value.message == (
        'pods "a" is forbidden: node didn\'t have enough allocatable resources: '
        "cpu, requested: 61, allocatable: 60; memory, requested: 134217728, allocatable: 104857600"
    )
    assert resources_of(await resize(node, {**LARGE, "requests": SMALL["requests"]}))[0] == SMALL["requests"]
