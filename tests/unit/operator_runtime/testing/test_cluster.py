"""The simulator as tests have it: what a user does with it, and what goes wrong on request."""

from __future__ import annotations

import asyncio

import pytest

from kube_simulator import Refuse, Stall
from operator_runtime import Client, ObjectKey, plain
from operator_runtime.client.errors import Conflict, Forbidden, NotFound, ServerError
from operator_runtime.testing.cluster import AGENT, SimulatedCluster
from operator_runtime.testing.waiting import async_eventually
from tests.unit.operator_runtime.testing.greetings import API_VERSION, CONFIG_MAPS

LABELS = {"app": "web"}
DEPLOYMENTS = plain("apps/v1", "Deployment", "deployments")
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
    },
}
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"size": "3"}}
KEY = ObjectKey("default", "settings")


async def become_ready(client: Client, replicas: int) -> None:
    await async_eventually(
        lambda: client.get(DEPLOYMENTS, ObjectKey("default", "web")),
        lambda web: web.body.get("status", {}).get("readyReplicas", 0) == replicas,
        what="its pods are ready",
    )


# What a user does


def test_an_object_is_applied_in_the_default_namespace_and_again(simulator: SimulatedCluster) -> None:
    (first,) = simulator.install(SETTINGS)
    assert (first["metadata"]["namespace"], first["data"]) == ("default", {"size": "3"})
    (second,) = simulator.install({**SETTINGS, "data": {"colour": "red"}})
    assert (second["metadata"]["uid"], second["data"]) == (first["metadata"]["uid"], {"colour": "red"})
    (elsewhere, there) = simulator.install(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "there"}},
        {**SETTINGS, "metadata": {"name": "settings", "namespace": "there"}},
    )
    assert "namespace" not in elsewhere["metadata"]
    assert there["metadata"]["namespace"] == "there"


async def test_what_is_not_served_or_not_allowed_is_said(simulator: SimulatedCluster) -> None:
    with pytest.raises(ValueError, match=f"no Greeting of {API_VERSION}: apply its CustomResourceDefinition first"):
        simulator.install({"apiVersion": API_VERSION, "kind": "Greeting", "metadata": {"name": "a"}})
    with pytest.raises(NotFound, match="nowhere"):
        await simulator.apply({**SETTINGS, "metadata": {"name": "settings", "namespace": "nowhere"}})


async def test_a_user_may_do_what_rbac_gives(simulator: SimulatedCluster) -> None:
    simulator.install(SETTINGS)
    async with simulator.client(kubeconfig=simulator.user_kubeconfig("jane")) as jane:
        with pytest.raises(Forbidden, match='User "jane" cannot get resource "configmaps"'):
            await jane.get(CONFIG_MAPS, KEY)


@pytest.mark.simulator(streaming_lists=False)
async def test_the_mark_says_how_the_simulator_differs(simulator: SimulatedCluster) -> None:
    assert simulator.simulator.options.streaming_lists is False
    assert simulator.simulator.options.pods_ready_after_s == 0.0


# What goes wrong


async def test_a_fault_ends_with_its_block(simulator: SimulatedCluster) -> None:
    body = {"metadata": {"name": "settings", "namespace": "default"}}
    refused = simulator.fault(Refuse(503), verb="create", resource="configmaps", agent=AGENT)
    async with simulator.client() as client:
        with refused as rule, pytest.raises(ServerError):
            await client.create(CONFIG_MAPS, body)
        assert rule.used == 1
        await client.create(CONFIG_MAPS, body)
        with pytest.raises(Conflict):
            await client.create(CONFIG_MAPS, body)


async def test_faults_are_cleared_and_stalled_requests_are_answered(simulator: SimulatedCluster) -> None:
    simulator.install(SETTINGS)
    async with simulator.client() as client:
        rule = simulator.add_fault(Stall(), verb="get", resource="configmaps")
        request = asyncio.create_task(client.get(CONFIG_MAPS, KEY))
        await async_eventually(lambda: rule.used, lambda used: used == 1)
        simulator.clear_faults()
        assert (await request).name == "settings"


async def test_what_was_stored_outlives_a_crash_of_the_api_server(simulator: SimulatedCluster) -> None:
    simulator.install(SETTINGS)
    simulator.kill_apiserver()
    simulator.start_apiserver()
    async with simulator.client() as client:
        assert (await client.get(CONFIG_MAPS, KEY)).name == "settings"


async def test_without_controllers_nothing_comes_of_a_deployment_until_they_are_back(
    simulator: SimulatedCluster,
) -> None:
    simulator.stop_controller_manager()
    simulator.install(WEB)
    assert simulator.call(lambda: simulator.simulator.store.get("deployments.apps", "default", "web"))
    simulator.start_controller_manager()
    async with simulator.client() as client:
        await become_ready(client, 2)
