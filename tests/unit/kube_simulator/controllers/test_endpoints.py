"""Endpoints: which pods stand behind a Service."""

from kube_simulator.values import Json
from tests.unit.kube_simulator.controllers.world import World, deployment, ready


def service(**spec: object) -> Json:
    ports = [{"name": "web", "port": 80, "targetPort": 8080}]
    return {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports, **spec}}


async def give_addresses(world: World) -> None:
    for number, pod in enumerate(world.pods(), 1):
        body = {"status": {"podIP": f"10.0.0.{number}", "podIPs": [{"ip": f"10.0.0.{number}"}]}}
        await world.merge("pods", pod["metadata"]["name"], body, subresource="status")
    await world.settle()


async def test_ready_pods_stand_apart_from_those_that_are_not(world: World) -> None:
    await world.create("services", service())
    await world.create("deployments.apps", deployment(replicas=2))
    await world.settle()
    assert not world.get("endpoints", "web").get("subsets")
    await give_addresses(world)
    await world.ready(world.pods()[0])
    [subset] = world.get("endpoints", "web")["subsets"]
    [first] = [pod for pod in world.pods() if ready(pod)]
    assert [each["ip"] for each in subset["addresses"]] == ["10.0.0.1"]
    assert subset["addresses"][0]["targetRef"]["name"] == first["metadata"]["name"]
    assert [each["ip"] for each in subset["notReadyAddresses"]] == ["10.0.0.2"]
    assert subset["ports"] == [{"name": "web", "port": 8080, "protocol": "TCP"}]


async def test_they_follow_pods_that_go_and_services_that_select_others(world: World) -> None:
    await world.create("services", service())
    await world.create("deployments.apps", deployment(replicas=1))
    await world.settle()
    await give_addresses(world)
    await world.merge("deployments.apps", "web", {"spec": {"replicas": 0}})
    await world.settle()
    assert not world.get("endpoints", "web").get("subsets")
    await world.merge("deployments.apps", "web", {"spec": {"replicas": 1}})
    await world.settle()
    await give_addresses(world)
    await world.merge("services", "web", {"spec": {"selector": {"app": "other"}}})
    await world.settle()
    assert not world.get("endpoints", "web").get("subsets")


async def test_they_go_with_their_service(world: World) -> None:
    await world.create("services", service())
    await world.settle()
    labels = world.get("endpoints", "web")["metadata"]["labels"]
    assert labels == {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    await world.delete("services", "web")
    await world.settle()
    assert world.gone("endpoints", "web")


async def test_a_service_without_a_selector_has_none_of_ours(world: World) -> None:
    await world.create("services", service(selector=None))
    await world.settle()
    assert world.gone("endpoints", "web")


async def test_nothing_is_written_where_nothing_that_shows_has_changed(world: World) -> None:
    await world.create("services", service())
    await world.create("deployments.apps", deployment(replicas=1))
    await world.settle()
    await give_addresses(world)
    before = world.get("endpoints", "web")
    await world.merge("deployments.apps", "web", {"metadata": {"labels": {"l": "1"}}})
    await world.merge("pods", world.names("pods")[0], {"metadata": {"annotations": {"a": "1"}}})
    await world.settle()
    assert world.get("endpoints", "web") == before
