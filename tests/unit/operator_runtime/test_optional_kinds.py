"""Kinds that a cluster may do without: nobody waits for them, and they are seen when they are installed."""

from __future__ import annotations

import asyncio

from operator_runtime import ObjectKey, Operator, Result, RuntimeSettings, plain
from operator_runtime.testing.cluster import SimulatedCluster
from operator_runtime.testing.waiting import async_until
from tests.unit.operator_runtime.client.client_support import client_of
from tests.unit.operator_runtime.controller.test_builder import PROGRAM_OF_SHELLS, reconcile
from tests.unit.operator_runtime.operator_support import settings
from tests.unit.operator_runtime.testing.greetings import CRD

CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
GREETINGS = plain("greetings.example.org/v1", "Greeting", "greetings")
GREETING = {
    "apiVersion": "greetings.example.org/v1",
    "kind": "Greeting",
    "metadata": {"name": "world", "namespace": "default"},
    "spec": {"name": "World"},
}


async def test_an_operator_works_without_a_kind_that_is_optional_and_with_it_once_it_is_installed(
    simulator: SimulatedCluster,
) -> None:
    seen: list[ObjectKey] = []

    async def look(key: ObjectKey) -> Result:
        seen.append(key)
        return Result()

    def set_up(operator: Operator, settings: RuntimeSettings) -> None:
        builder = operator.controller("maps", CONFIG_MAPS, look)
        builder.watches(GREETINGS, lambda greeting: greeting.key, optional=True)

    async with simulator.operator(set_up) as operator:
        await async_until("no ConfigMap is looked at", lambda: bool(seen))
        assert operator.informer(GREETINGS).values() == []
        await asyncio.to_thread(simulator.install, CRD, GREETING)
        await async_until("the Greeting is not looked at", lambda: ObjectKey("default", "world") in seen)


def test_readiness_asks_for_no_optional_kind_unless_another_waits_for_it() -> None:
    operator = Operator(settings(), PROGRAM_OF_SHELLS, client_of("https://api.invalid"))
    operator.controller("maps", CONFIG_MAPS, reconcile).owns(GREETINGS, optional=True)
    manager = operator.manager
    assert [each.resource.plural for each in manager.reflectors] == ["configmaps", "greetings"]
    assert [each.resource.plural for each in manager.awaited] == ["configmaps"]
    operator.informer(GREETINGS, optional=True)
    assert [each.resource.plural for each in manager.awaited] == ["configmaps"]
    operator.informer(GREETINGS)
    assert [each.resource.plural for each in manager.awaited] == ["configmaps", "greetings"]
    operator.informer(GREETINGS, optional=True)
    assert [each.resource.plural for each in manager.awaited] == ["configmaps", "greetings"]
