"""The node's part: pods are bound, run, become ready, and end."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from kube_simulator.values import Json
from tests.unit.kube_simulator.world import NAMESPACE, World, condition, ready, stamp, web


@pytest.fixture
async def node() -> AsyncIterator[World]:
    """Controllers and a node on which pods are ready at once; nothing on it is real."""
    async with World(real_memcached=False) as running:
        yield running


async def run(world: World, name: str = "a", **spec: object) -> Json:
    await world.create("pods", {"metadata": {"name": name}, "spec": web(**spec)})
    await world.settle()
    return world.get("pods", name)


async def test_a_pod_is_bound_and_runs(node: World) -> None:
    pod = await run(node)
    assert pod["spec"]["nodeName"] == "simulator"
    status = pod["status"]
    assert (status["phase"], status["hostIP"], status["startTime"]) == ("Running", "127.0.0.1", stamp(node.moment))
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    assert conditions == dict.fromkeys(kinds, "True")
    [container] = status["containerStatuses"]
    assert (container["name"], container["ready"], container["restartCount"]) == ("web", True, 0)
    assert container["state"] == {"running": {"startedAt": stamp(node.moment)}}


async def test_until_its_time_a_pod_is_being_created(node: World, monkeypatch: pytest.MonkeyPatch) -> None:
    node.manager.kubelet.ready_after_s = 600.0
    pod = await run(node)
    assert (pod["status"]["phase"], "podIP" in pod["status"]) == ("Pending", False)
    assert pod["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    unready = condition(pod, "Ready")
    assert (unready["status"], unready["reason"], unready["message"]) == (
        "False",
        "ContainersNotReady",
        "containers with unready status: [web]",
    )
    loop = asyncio.get_running_loop()
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + 600.0)
    await node.until(lambda: ready(node.get("pods", "a")))


async def test_a_pod_that_is_deleted_has_ended_before_it_is_gone(node: World) -> None:
    await node.create("pods", {"metadata": {"name": "a", "finalizers": ["example.com/f"]}, "spec": web()})
    await node.settle()
    assert ready(node.get("pods", "a"))
    await node.delete("pods", "a")
    await node.settle()
    pod = node.get("pods", "a")
    assert pod["status"]["phase"] == "Succeeded"
    for kind in ("Ready", "ContainersReady"):
        found = condition(pod, kind)
        assert (found["status"], found["reason"]) == ("False", "PodCompleted")
    assert condition(pod, "PodReadyToStartContainers")["status"] == "False"
    [container] = pod["status"]["containerStatuses"]
    assert not container["ready"]
    assert container["state"]["terminated"]["exitCode"] == 0


async def test_a_pod_stays_ready_since_before_and_keeps_the_conditions_of_others(node: World) -> None:
    since = condition(await run(node), "Ready")["lastTransitionTime"]
    node.moment += timedelta(minutes=5)
    await node.merge("pods", "a", {"metadata": {"labels": {"x": "y"}}})
    await node.settle()
    assert condition(node.get("pods", "a"), "Ready")["lastTransitionTime"] == since
    theirs = {"type": "example.com/Gate", "status": "True"}
    await node.merge("pods", "a", {"status": {"conditions": [theirs]}}, subresource="status")
    await node.settle()
    assert condition(node.get("pods", "a"), "example.com/Gate")["status"] == "True"
    assert ready(node.get("pods", "a"))


async def test_the_node_goes_on_without_the_controllers(node: World) -> None:
    await node.manager.stop()
    first = await run(node)
    assert ready(first)
    assert (await run(node, "b"))["status"]["podIP"] != first["status"]["podIP"]


async def test_a_pod_that_crashes_is_started_again_and_ready_since_then(node: World) -> None:
    before = await run(node)
    node.moment += timedelta(minutes=5)
    node.manager.kubelet.crash(NAMESPACE, "a")
    await node.settle()
    pod = node.get("pods", "a")
    [container] = pod["status"]["containerStatuses"]
    assert (container["restartCount"], container["ready"]) == (1, True)
    assert container["state"] == {"running": {"startedAt": stamp(node.moment)}}
    ended = container["lastState"]["terminated"]
    assert (ended["exitCode"], ended["signal"], ended["finishedAt"]) == (137, 9, stamp(node.moment))
    assert (pod["metadata"]["uid"], pod["status"]["podIP"]) == (before["metadata"]["uid"], before["status"]["podIP"])
    for kind in ("Ready", "ContainersReady"):
        assert condition(pod, kind)["lastTransitionTime"] == stamp(node.moment)
    assert condition(pod, "PodScheduled") == condition(before, "PodScheduled")


async def test_only_a_pod_that_runs_can_crash(node: World) -> None:
    with pytest.raises(KeyError):
        node.manager.kubelet.crash(NAMESPACE, "absent")
    node.manager.kubelet.ready_after_s = 600.0
    await run(node)
    with pytest.raises(KeyError):
        node.manager.kubelet.crash(NAMESPACE, "a")
