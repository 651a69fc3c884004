"""The objects of an endpoint, and what its pods are told."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from copy import deepcopy

import pytest

from operator_runtime import Forbidden, ServerError
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.features.discovery.test_server_list_configmap import LIST, make_server
from tests.unit.memcached_operator.support import NAME, NAMESPACE, NO_RIGHT, live_pod
from tests.unit.memcached_operator.world import DELAY_S, World

ENDPOINT = f"{NAME}-discovery"
LABEL = f"{NAME}.discovery"
IMAGE = "registry.example/operator:1"
ON: Json = {
    **{"workload": "StatefulSet", "service": {}, "disruptionBudget": None},
    **{"discovery": {"autoDiscovery": {}}, "drainPeriodSeconds": 120},
}
NUDGE = "merge_patch Pod"


async def known_image() -> str:
    return IMAGE


class Endpoint(World):
    """A Memcached of two servers with an endpoint."""

    def __init__(self, image: Callable[[], Awaitable[str]] = known_image) -> None:
        super().__init__()
        self.use_image(image)

    def use_image(self, find: Callable[[], Awaitable[str]]) -> None:
        """Have the operator know its image so."""
        self.reconciler._objects.lists.find_image = find

    @property
    def cluster(self) -> list[str]:
        text: str = self.api.objects[LIST]["data"]["cluster"]
        return text.splitlines()

    def made(self, kind: str) -> Json | None:
        return self.api.objects.get((kind, NAMESPACE, ENDPOINT))

    def endpoint_pod(self, number: int) -> None:
        pod = live_pod()
        (owner,) = pod["metadata"]["ownerReferences"]
        owner |= {"name": f"{ENDPOINT}-{pod['metadata']['labels']['pod-template-hash']}"}
        pod["metadata"]["labels"] |= {"memcached_cr": LABEL}
        pod["metadata"] |= {"name": f"{ENDPOINT}-{number}", "uid": f"uid-of-endpoint-{number}"}
        self.api.put(pod)


@pytest.fixture
async def endpoint() -> Endpoint:
    world = Endpoint()
    world.memcached(size=2, **ON)
    await world.reconcile_shown()
    make_server(world, 0, "10.0.0.1")
    make_server(world, 1, "10.0.0.2")
    await world.settle()
    return world


async def test_an_endpoint_has_two_restricted_pods_a_service_and_a_budget(endpoint: Endpoint) -> None:
    deployment, service, budget = map(endpoint.made, ("Deployment", "Service", "PodDisruptionBudget"))
    assert deployment is not None
    assert service is not None
    assert budget is not None
    labels = {"app": "memcached", "memcached_cr": LABEL}
    assert deployment["spec"]["replicas"] == 2
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == labels
    assert budget["spec"]["selector"]["matchLabels"] == labels
    assert budget["spec"]["maxUnavailable"] == 1
    assert labels.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == IMAGE
    assert container["args"] == ["discovery", "-f", "/etc/memcached/discovery/cluster"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert await endpoint.writes() == []


async def test_lines_about_objects_of_an_endpoint_name_them(caplog: pytest.LogCaptureFixture) -> None:
    world = Endpoint()
    with caplog.at_level(logging.INFO):
        world.memcached(size=2, **ON)
        await world.reconcile_shown()
        make_server(world, 0, "10.0.0.1")
        make_server(world, 1, "10.0.0.2")
        await world.settle()
        live = deepcopy(world.api.objects["Service", NAMESPACE, ENDPOINT])
        live["spec"]["ports"][0]["port"] = 1
        world.api.put(live)
        await world.writes()
        world.memcached(size=2, **ON | {"discovery": None})
        await world.writes()
    for kind in ("Deployment", "Service", "PodDisruptionBudget"):
        for done in (f"created {kind} {ENDPOINT} ", f"deleted {kind} {ENDPOINT}: no longer desired"):
            assert [each.startswith(done) for each in caplog.messages].count(True) == 1, done
    beginnings = [each.partition(":")[0] for each in caplog.messages]
    assert f"updated Service {ENDPOINT}" in beginnings
    assert f"deleted ConfigMap {NAME}-servers" in beginnings
    # A line begins with the Memcached, which has the same name, and is found by that.
    assert "created Service (new Memcached)" in caplog.messages
    fields = [vars(each).get("fields", {}) for each in caplog.records]
    assert {ENDPOINT, f"{NAME}-servers"} <= {each.get("object") for each in fields}
    assert not any("name" in each for each in fields)


async def test_its_list_is_that_of_the_status_and_follows_it_and_the_addresses(endpoint: Endpoint) -> None:
    def nodes(*addresses: str) -> str:
        return " ".join(f"{NAME}-{n}.{NAME}.{NAMESPACE}.svc|{each}|11211" for n, each in enumerate(addresses))

    version, listed = endpoint.cluster
    assert listed == nodes("10.0.0.1", "10.0.0.2")
    make_server(endpoint, 0, "10.0.0.9")
    await endpoint.writes()
    later, listed = endpoint.cluster
    assert listed == nodes("10.0.0.9", "10.0.0.2")
    assert int(later) > int(version)
    endpoint.memcached(size=1, **ON)
    await endpoint.writes()
    last, listed = endpoint.cluster
    assert listed == nodes("10.0.0.9")
    assert int(last) > int(later)
    assert [each["metadata"]["name"] for each in endpoint.api.objects.values() if each["kind"] == "ConfigMap"] == [
        f"{NAME}-servers"
    ]


async def test_a_pod_is_told_of_each_list_once(endpoint: Endpoint) -> None:
    endpoint.endpoint_pod(0)
    assert await endpoint.writes() == [NUDGE]
    make_server(endpoint, 0, "10.0.0.9")
    sent = await endpoint.writes()
    assert sent.index("strategic_merge_patch ConfigMap") < sent.index(NUDGE)
    assert sent.count(NUDGE) == 1


async def test_a_pod_that_may_not_be_told_prevents_nothing(endpoint: Endpoint) -> None:
    endpoint.endpoint_pod(0)
    endpoint.api.refuse("merge_patch", "Pod", *[Forbidden(403, "Forbidden", NO_RIGHT)] * 5)
    await endpoint.writes()
    assert endpoint.condition("Degraded") == ("False", "AsExpected")


async def test_a_list_that_another_client_changed_is_put_right_under_a_greater_version(endpoint: Endpoint) -> None:
    version, listed = endpoint.cluster
    live = deepcopy(endpoint.api.objects[LIST])
    live["data"]["cluster"] = f"{int(version) + 7}\nother|10.9.9.9|11211\n"
    endpoint.api.put(live)
    await endpoint.writes()
    later, now = endpoint.cluster
    assert now == listed
    assert int(later) > int(version) + 7


async def test_a_list_that_another_client_deleted_is_made_anew_under_a_greater_version(endpoint: Endpoint) -> None:
    version, listed = endpoint.cluster
    del endpoint.api.objects[LIST]
    endpoint.clock.advance(1)
    await endpoint.writes()
    later, now = endpoint.cluster
    assert now == listed
    assert int(later) > int(version), "nothing but the time tells what it was"


async def test_without_the_field_the_endpoint_goes_and_with_a_configmap_the_list_stays(endpoint: Endpoint) -> None:
    endpoint.memcached(size=2, **ON | {"discovery": {"configMap": {}}})
    await endpoint.writes()
    assert not any(map(endpoint.made, ("Deployment", "Service", "PodDisruptionBudget")))
    assert sorted(endpoint.api.objects[LIST]["data"]) == ["servers", "servers.json"]
    assert await endpoint.writes() == []
    endpoint.memcached(size=2, **ON | {"discovery": None})
    await endpoint.writes()
    assert LIST not in endpoint.api.objects


async def test_where_the_image_is_not_known_the_remedy_is_named_and_a_deployment_that_is_there_stays(
    endpoint: Endpoint,
) -> None:
    async def unknown() -> str:
        return ""

    other = Endpoint(unknown)
    other.memcached(size=2, **ON)
    await other.reconcile_shown()
    make_server(other, 0, "10.0.0.1")
    await other.writes()
    assert other.made("Deployment") is None
    assert other.made("Service") is not None
    assert other.condition("Degraded") == ("True", "OperatorImageUnknown")
    (degraded,) = (each for each in other.status["conditions"] if each["type"] == "Degraded")
    assert "--operator-image (OPERATOR_IMAGE)" in degraded["message"]
    endpoint.use_image(unknown)
    await endpoint.writes()
    assert endpoint.made("Deployment") is not None


async def test_a_failing_api_server_is_asked_again_and_the_rest_is_reported() -> None:
    async def failing() -> str:
        raise ServerError(503)

    world = Endpoint(failing)
    world.memcached(size=2, **ON)
    with pytest.raises(ServerError):
        await world.reconcile_shown()
    assert world.made("Service") is not None
    world.show()
    with pytest.raises(ServerError):
        await world.reconcile(after_s=DELAY_S)  # a first status is held back for so long
    assert world.status["observedGeneration"] == 1


@pytest.mark.parametrize(
    "condition",
    [
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"},
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"},
    ],
)
async def test_an_endpoint_without_its_pods_is_reported(endpoint: Endpoint, condition: Json) -> None:
    deployment = endpoint.made("Deployment")
    assert deployment is not None
    endpoint.api.put(deployment | {"status": {"observedGeneration": 1, "conditions": [condition]}})
    await endpoint.writes()
    assert endpoint.condition("Degraded") == ("True", "EndpointNotReady")
    assert endpoint.condition("Ready") == ("False", "EndpointNotReady")
    (degraded,) = (each for each in endpoint.status["conditions"] if each["type"] == "Degraded")
    assert f"Deployment {ENDPOINT}" in degraded["message"]
    assert condition["message"] in degraded["message"]


async def test_a_budget_of_somebodys_own_goes_before_that_of_the_endpoint(endpoint: Endpoint) -> None:
    endpoint.api.put(
        {
            **{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"},
            "metadata": {"namespace": NAMESPACE, "name": "mine", "uid": "uid-of-mine", "resourceVersion": "1"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "memcached"}}},
        }
    )
    await endpoint.writes()
    assert endpoint.made("PodDisruptionBudget") is None
    assert endpoint.condition("Degraded") == ("True", "ConflictingDisruptionBudget")
    endpoint.memcached(size=2, **ON | {"disruptionBudget": {"maxUnavailable": "100%"}})
    await endpoint.writes()
    assert endpoint.made("PodDisruptionBudget") is None


async def test_the_policy_of_the_servers_is_that_of_the_endpoint(endpoint: Endpoint) -> None:
    endpoint.memcached(size=2, **ON, networkPolicy={"ingress": []})
    await endpoint.writes()
    policy = endpoint.api.objects["NetworkPolicy", NAMESPACE, NAME]
    assert policy["spec"]["podSelector"] == {
        "matchLabels": {"app": "memcached"},
        "matchExpressions": [{"key": "memcached_cr", "operator": "In", "values": [NAME, LABEL]}],
    }


@pytest.mark.parametrize(
    ("specified", "remedies"),
    [
        ({"drainPeriodSeconds": 59}, {"spec.drainPeriodSeconds"}),
        ({"drainPeriodSeconds": 60}, set()),
        ({"workload": "Deployment"}, {"spec.workload"}),
        ({"workload": "Deployment", "drainPeriodSeconds": 30}, {"spec.workload", "spec.drainPeriodSeconds"}),
        ({"discovery": {"configMap": {}}, "drainPeriodSeconds": 30}, set()),
    ],
)
async def test_a_drain_shorter_than_clients_take_to_read_the_list_is_discouraged(
    endpoint: Endpoint, specified: Json, remedies: set[str]
) -> None:
    endpoint.memcached(size=2, **ON | specified)
    await endpoint.writes()
    assert endpoint.condition("Discouraged") == (("True", "DrainTooShort") if remedies else ("False", "AsExpected"))
    assert remedies == {
        field for field in ("spec.workload", "spec.drainPeriodSeconds") if field in endpoint.message("Discouraged")
    }


async def test_nothing_of_it_is_made_before_there_is_a_list() -> None:
    world = Endpoint()
    world.memcached(size=2, **ON)
    world.show()
    await world.reconcile()
    assert "create Deployment" not in world.api.verbs()
    assert json.dumps(world.api.objects.get(("Service", NAMESPACE, ENDPOINT)))
