"""The simulator as tests have it: what a user does with it, and what goes wrong on request."""

from __future__ import annotations

import pytest

from kube_simulator import Refuse
from operator_runtime import ObjectKey
from operator_runtime.client.errors import Conflict, NotFound, ServerError
from operator_runtime.testing.cluster import AGENT, SimulatedCluster
from tests.unit.operator_runtime.testing.greetings import API_VERSION, CONFIG_MAPS

SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"size": "3"}}
KEY = ObjectKey("default", "settings")


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
