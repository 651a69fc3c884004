"""StatefulSets: what happens where pods are refused, or are somebody else's. The rest is shown on a real server too."""

from typing import Any

from kube_simulator.errors import ApiError
from kube_simulator.values import Json
from tests.unit.kube_simulator.controllers.world import World, deployment, template

STATEFUL_SETS = "statefulsets.apps"
FORBIDDEN = ApiError(403, "Forbidden", "not today")


async def make(world: World, replicas: int = 1, **spec: Any) -> Json:
    body = deployment(replicas=replicas, podManagementPolicy="Parallel", serviceName="web", **spec)
    await world.create(STATEFUL_SETS, body)
    await world.settle()
    return world.get(STATEFUL_SETS, "web")


async def test_it_says_what_it_does_with_pods(world: World) -> None:
    await make(world, 2)
    assert sorted(world.messages("SuccessfulCreate")) == [
        f"Create Pod web-{ordinal} in StatefulSet web successful" for ordinal in (0, 1)
    ]
    await world.merge(STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
    await world.settle()
    assert world.messages("SuccessfulDelete") == ["Delete Pod web-1 in StatefulSet web successful"]


async def test_a_refused_pod_is_spoken_of_and_tried_again(world: World) -> None:
    world.admission.forbidden["CREATE", "pods"] = FORBIDDEN
    await make(world)
    assert world.messages("FailedCreate") == ["Create Pod web-0 in StatefulSet web failed error: not today"]
    assert world.get(STATEFUL_SETS, "web")["status"]["observedGeneration"] == 1
    world.admission.forbidden.clear()
    await world.until(lambda: world.names("pods") == ["web-0"])


async def test_a_deletion_that_is_refused_is_spoken_of(world: World) -> None:
    await make(world)
    world.admission.forbidden["DELETE", "pods"] = FORBIDDEN
    await world.merge(STATEFUL_SETS, "web", {"spec": {"replicas": 0}})
    await world.until(lambda: bool(world.messages("FailedDelete")))
    assert world.names("pods") == ["web-0"]
    world.admission.forbidden.clear()
    await world.until(lambda: world.names("pods") == [])


async def test_a_stranger_s_pod_keeps_the_name_until_it_is_gone(world: World) -> None:
    labels = {"app": "other"}
    await world.create("pods", {"metadata": {"name": "web-0", "labels": labels}, "spec": template()["spec"]})
    await make(world, 2)
    assert world.get("pods", "web-0")["metadata"]["labels"] == labels
    assert world.messages("FailedCreate") == []
    await world.delete("pods", "web-0")
    await world.until(lambda: world.names("pods") == ["web-0", "web-1"])


async def test_a_pod_of_another_name_is_not_adopted(world: World) -> None:
    metadata = {"name": "other-0", "labels": {"app": "web"}}
    before = await world.create("pods", {"metadata": metadata, "spec": template()["spec"]})
    await make(world)
    assert world.get("pods", "other-0") == before
    assert world.get(STATEFUL_SETS, "web")["status"]["replicas"] == 1


async def test_an_adopted_pod_gets_the_labels_that_say_which_it_is(world: World) -> None:
    metadata = {"name": "web-0", "labels": {"app": "web"}}
    await world.create("pods", {"metadata": metadata, "spec": template()["spec"]})
    await make(world, updateStrategy={"type": "OnDelete"})
    labels = {"app": "web", "statefulset.kubernetes.io/pod-name": "web-0", "apps.kubernetes.io/pod-index": "0"}
    assert world.get("pods", "web-0")["metadata"]["labels"] == labels
    assert world.messages("SuccessfulUpdate") == ["Update Pod web-0 in StatefulSet web successful"]


async def test_what_is_on_its_way_out_makes_no_pods(world: World) -> None:
    await make(world)
    await world.merge(STATEFUL_SETS, "web", {"metadata": {"finalizers": ["example.com/slow"]}})
    await world.delete(STATEFUL_SETS, "web")
    await world.delete("pods", "web-0")
    await world.settle()
    assert world.names("pods") == []
    assert world.get(STATEFUL_SETS, "web")["status"]["replicas"] == 0
