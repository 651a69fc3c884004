"""What the status of a PodDisruptionBudget says of pods."""

from datetime import timedelta

import pytest

from kube_simulator.values import Json
from tests.unit.kube_simulator.controllers.world import World, condition, deployment, stamp, template

SELECTOR = {"matchLabels": {"app": "web"}}


def counts(world: World) -> tuple[int, int, int, int]:
    status = world.get("poddisruptionbudgets.policy", "few")["status"]
    names = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    expected, healthy, desired, allowed = (status[name] for name in names)
    return expected, healthy, desired, allowed


async def make(world: World, **spec: object) -> None:
    await world.create("poddisruptionbudgets.policy", {"metadata": {"name": "few"}, "spec": spec})
    await world.settle()


@pytest.mark.parametrize(
    ("spec", "counted"),
    [
        ({"minAvailable": 1, "selector": SELECTOR}, (3, 3, 1, 2)),
        ({"minAvailable": "34%", "selector": {}}, (3, 3, 2, 1)),
        ({"maxUnavailable": 1, "selector": SELECTOR}, (3, 3, 2, 1)),
        ({"maxUnavailable": "34%", "selector": SELECTOR}, (3, 3, 1, 2)),
        ({"maxUnavailable": 5, "selector": SELECTOR}, (3, 3, 0, 3)),
        ({"minAvailable": 5, "selector": SELECTOR}, (3, 3, 5, 0)),
        ({"minAvailable": 1}, (0, 0, 1, 0)),
        ({"selector": SELECTOR}, (0, 3, 0, 0)),
    ],
)
async def test_what_is_wanted_and_allowed(world: World, spec: Json, counted: tuple[int, ...]) -> None:
    await world.create("deployments.apps", deployment(replicas=3))
    await world.settle()
    await world.ready()
    await make(world, **spec)
    assert counts(world) == counted


async def test_pods_of_no_controller_count_where_a_number_is_given_alone(world: World) -> None:
    pod = {"metadata": {"name": "a", "labels": {"app": "web"}}, "spec": template()["spec"]}
    await world.create("pods", pod)
    await world.ready()
    await make(world, minAvailable=0, selector=SELECTOR)
    assert counts(world) == (1, 1, 0, 1)
    await world.merge("poddisruptionbudgets.policy", "few", {"spec": {"minAvailable": "50%"}})
    await world.settle()
    assert counts(world) == (0, 1, 0, 0)


async def test_the_status_follows_the_pods(world: World) -> None:
    await world.create("deployments.apps", deployment(replicas=2))
    await make(world, minAvailable=1, selector=SELECTOR)
    assert counts(world) == (2, 0, 1, 0)
    found = world.get("poddisruptionbudgets.policy", "few")
    assert condition(found, "DisruptionAllowed")["reason"] == "InsufficientPods"
    await world.ready()
    assert counts(world) == (2, 2, 1, 1)
    before = world.get("poddisruptionbudgets.policy", "few")
    assert condition(before, "DisruptionAllowed")["reason"] == "SufficientPods"
    await world.merge("pods", world.pods()[0]["metadata"]["name"], {"metadata": {"labels": {"x": "y"}}})
    await world.settle()
    assert world.get("poddisruptionbudgets.policy", "few") == before


async def test_an_evicted_pod_does_not_count_as_healthy_until_it_should_have_gone(world: World) -> None:
    await world.create("deployments.apps", deployment(replicas=2))
    await make(world, minAvailable=1, selector=SELECTOR)
    await world.ready()
    evicted = {world.pods()[0]["metadata"]["name"]: stamp(world.moment), "gone": stamp(world.moment)}
    await world.merge(
        "poddisruptionbudgets.policy", "few", {"status": {"disruptedPods": evicted}}, subresource="status"
    )
    await world.settle()
    assert counts(world) == (2, 1, 1, 0)
    remembered = world.get("poddisruptionbudgets.policy", "few")["status"]["disruptedPods"]
    assert remembered == {world.pods()[0]["metadata"]["name"]: stamp(world.moment)}
    world.moment += timedelta(minutes=2)
    await world.merge("poddisruptionbudgets.policy", "few", {"metadata": {"labels": {"x": "y"}}})
    await world.settle()
    assert counts(world) == (2, 2, 1, 1)
    assert "disruptedPods" not in world.get("poddisruptionbudgets.policy", "few")["status"]
