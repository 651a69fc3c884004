"""ReplicaSets: pods made and taken away, adopted and let go, and the counts of them."""

import re

import pytest

from kube_simulator.controllers.replica_sets import pod_of
from kube_simulator.errors import ApiError
from kube_simulator.values import Json
from tests.unit.kube_simulator.controllers.world import World, condition, stamp, template

REPLICA_SETS = "replicasets.apps"


def replica_set(replicas: int = 1, **spec: object) -> Json:
    selector = {"matchLabels": {"app": "web"}}
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": selector, "template": template(), **spec},
    }


async def make(world: World, replicas: int = 1, **spec: object) -> Json:
    await world.create(REPLICA_SETS, replica_set(replicas, **spec))
    await world.settle()
    return world.get(REPLICA_SETS, "web")


async def scale(world: World, replicas: int) -> None:
    await world.merge(REPLICA_SETS, "web", {"spec": {"replicas": replicas}})
    await world.settle()


async def test_pods_are_made_from_the_template_and_name_their_owner(world: World) -> None:
    made = await make(world, 2)
    for pod in world.all("pods"):
        assert re.fullmatch("web-[bcdfghjklmnpqrstvwxz2456789]{5}", pod["metadata"]["name"])
        assert pod["metadata"]["generateName"] == "web-"
        assert pod["metadata"]["labels"] == {"app": "web"}
        assert pod["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": made["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    names = world.names("pods")
    assert sorted(world.messages("SuccessfulCreate")) == sorted(f"Created pod: {name}" for name in names)
    assert made["status"] == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "observedGeneration": 1,
        "terminatingReplicas": 0,
    }


def test_a_pod_takes_annotations_and_finalizers_of_the_template_along() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", **replica_set()}
    owner["metadata"] |= {"namespace": "shop", "uid": "u"}
    owner["spec"]["template"]["metadata"] |= {"annotations": {"a": "1"}, "finalizers": ["example.com/f"], "name": "x"}
    metadata = pod_of(owner)["metadata"]
    assert (metadata["annotations"], metadata["finalizers"], "name" in metadata) == (
        {"a": "1"},
        ["example.com/f"],
        False,
    )


async def test_a_pod_that_is_gone_finished_or_going_is_replaced(world: World) -> None:
    await make(world, 3)
    gone, finished, going = world.names("pods")
    await world.delete("pods", gone)
    await world.merge("pods", finished, {"status": {"phase": "Failed"}}, subresource="status")
    await world.merge("pods", going, {"metadata": {"finalizers": ["example.com/slow"]}})
    await world.delete("pods", going)
    await world.settle()
    assert len(set(world.names("pods")) - {gone, finished, going}) == 3
    status = world.get(REPLICA_SETS, "web")["status"]
    assert (status["replicas"], status["terminatingReplicas"]) == (3, 1)


async def test_a_pod_that_matches_is_adopted_and_one_that_no_longer_does_is_let_go(world: World) -> None:
    await world.create("pods", {"metadata": {"name": "mine", "labels": {"app": "web"}}, "spec": template()["spec"]})
    made = await make(world, 1)
    assert world.names("pods") == ["mine"]
    assert world.get("pods", "mine")["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    await world.merge("pods", "mine", {"metadata": {"labels": {"app": "other"}}})
    await world.settle()
    assert "ownerReferences" not in world.get("pods", "mine")["metadata"]
    assert len(world.names("pods")) == 2


async def test_a_pod_of_another_controller_is_not_touched(world: World) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "", "controller": True}
    owner["uid"] = (await world.create("configmaps", {"metadata": {"name": "a"}}))["metadata"]["uid"]
    metadata = {"name": "theirs", "labels": {"app": "web"}, "ownerReferences": [owner]}
    before = await world.create("pods", {"metadata": metadata, "spec": template()["spec"]})
    await make(world, 1)
    assert world.get("pods", "theirs") == before
    assert len(world.names("pods")) == 2


async def test_pods_that_are_not_ready_go_first_and_then_the_younger(world: World) -> None:
    await make(world, 1)
    [old] = world.names("pods")
    await world.later(60)
    await scale(world, 2)
    [young] = set(world.names("pods")) - {old}
    await world.later(60)
    await scale(world, 3)
    await world.ready(world.get("pods", old), world.get("pods", young))
    await scale(world, 2)
    assert set(world.names("pods")) == {old, young}
    await scale(world, 1)
    assert world.names("pods") == [old]
    assert world.messages("SuccessfulDelete")[-1] == f"Deleted pod: {young}"


async def test_a_pod_that_has_no_node_yet_goes_before_one_that_has(world: World) -> None:
    for name, node in (("a", {"nodeName": "elsewhere"}), ("b", {})):
        labels = {"app": "web"}
        await world.create("pods", {"metadata": {"name": name, "labels": labels}, "spec": template(**node)["spec"]})
    await make(world, 1)
    assert world.names("pods") == ["a"]


async def test_a_pod_on_its_way_out_is_not_adopted(world: World) -> None:
    metadata = {"name": "going", "labels": {"app": "web"}, "finalizers": ["example.com/slow"]}
    await world.create("pods", {"metadata": metadata, "spec": template()["spec"]})
    await world.delete("pods", "going")
    await make(world, 1)
    assert "ownerReferences" not in world.get("pods", "going")["metadata"]


async def test_a_replica_set_on_its_way_out_lets_nothing_go(world: World) -> None:
    await make(world, 1)
    [name] = world.names("pods")
    await world.merge(REPLICA_SETS, "web", {"metadata": {"finalizers": ["example.com/slow"]}})
    await world.delete(REPLICA_SETS, "web")
    await world.merge("pods", name, {"metadata": {"labels": {"app": "other"}}})
    await world.settle()
    assert "ownerReferences" in world.get("pods", name)["metadata"]


async def test_the_first_refusal_s_words_stay(world: World) -> None:
    world.admission.forbidden["CREATE", "pods"] = ApiError(403, "Forbidden", "first")
    await make(world, 1)
    world.admission.forbidden["CREATE", "pods"] = ApiError(403, "Forbidden", "second")
    await world.until(lambda: "Error creating: second" in world.messages("FailedCreate"))
    await world.settle()
    assert condition(world.get(REPLICA_SETS, "web"), "ReplicaFailure")["message"] == "first"


async def test_a_cheap_pod_goes_before_a_dear_one(world: World) -> None:
    await make(world, 2)
    dear, cheap = world.names("pods")
    for name, cost in ((dear, "10"), (cheap, "-1")):
        annotations = {"controller.kubernetes.io/pod-deletion-cost": cost}
        await world.merge("pods", name, {"metadata": {"annotations": annotations}})
    await scale(world, 1)
    assert world.names("pods") == [dear]


async def test_a_refused_pod_shows_in_a_condition_and_an_event_and_is_tried_again(world: World) -> None:
    words = 'pods "web-x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    world.admission.forbidden["CREATE", "pods"] = ApiError(403, "Forbidden", words)
    made = await make(world, 2)
    assert condition(made, "ReplicaFailure") == {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": words,
        "lastTransitionTime": stamp(world.moment),
    }
    assert made["status"]["replicas"] == 0
    assert f"Error creating: {words}" in world.messages("FailedCreate")
    world.admission.forbidden.clear()
    await world.until(lambda: len(world.names("pods")) == 2)
    await world.until(lambda: "conditions" not in world.get(REPLICA_SETS, "web")["status"])


async def test_a_namespace_that_is_leaving_is_no_failure(world: World) -> None:
    causes = [{"reason": "NamespaceTerminating", "message": "", "field": "metadata.namespace"}]
    world.admission.forbidden["CREATE", "pods"] = ApiError(403, "Forbidden", "leaving", {"causes": causes})
    await make(world, 1)
    assert world.messages("FailedCreate") == []


async def test_a_pod_counts_as_available_when_it_has_been_ready_for_long_enough(world: World) -> None:
    await make(world, 1, minReadySeconds=10)
    await world.ready()
    assert "availableReplicas" not in world.get(REPLICA_SETS, "web")["status"]
    await world.later(9)
    assert "availableReplicas" not in world.get(REPLICA_SETS, "web")["status"]
    await world.later(1)
    assert world.get(REPLICA_SETS, "web")["status"]["availableReplicas"] == 1


async def test_a_pod_without_a_label_of_the_template_is_counted_apart(world: World) -> None:
    labelled = template()
    labelled["metadata"]["labels"] = {"app": "web", "more": "1"}
    await world.create("pods", {"metadata": {"name": "bare", "labels": {"app": "web"}}, "spec": template()["spec"]})
    made = await make(world, 2, template=labelled)
    assert (made["status"]["replicas"], made["status"]["fullyLabeledReplicas"]) == (2, 1)


async def test_a_replica_set_on_its_way_out_makes_no_pods(world: World) -> None:
    await make(world, 1)
    await world.merge(REPLICA_SETS, "web", {"metadata": {"finalizers": ["example.com/slow"]}})
    await world.delete(REPLICA_SETS, "web")
    await world.delete("pods", world.names("pods")[0])
    await world.settle()
    assert world.names("pods") == []


@pytest.mark.parametrize("count", [600])
async def test_many_pods_are_made_in_turns(world: World, count: int) -> None:
    """More than Kubernetes makes at one look: the next looks make the rest."""
    made = await make(world, count)
    await world.until(lambda: world.get(REPLICA_SETS, "web")["status"]["replicas"] == count)
    assert len(world.names("pods")) == count
    assert made["spec"]["replicas"] == count
