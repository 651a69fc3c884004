"""The status of quotas follows what is in their namespace."""

from collections.abc import AsyncIterator

import pytest

from kube_simulator.controllers.base import Context
from kube_simulator.controllers.quotas import Quotas
from kube_simulator.store.store import Change
from kube_simulator.values import Json
from tests.unit.kube_simulator.controllers.world import World, turns

QUOTA: Json = {"metadata": {"name": "few"}, "spec": {"hard": {"configmaps": "5", "pods": "5"}}}
POD: Json = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "x", "image": "i"}]}}


@pytest.fixture
async def quiet() -> AsyncIterator[World]:
    """A world whose only controller is that of quotas."""
    world = World()
    await world.create("namespaces", {"metadata": {"name": "shop"}}, namespace="")
    await world.create("serviceaccounts", {"metadata": {"name": "default"}})
    quotas = Quotas(Context(world.api, world.store, world.registry, lambda: world.moment)).controller
    quotas.start()
    yield world
    await quotas.stop()


async def used(world: World, **expected: str) -> None:
    """Wait until the status says so."""

    def said() -> bool:
        status = world.get("resourcequotas", "few").get("status") or {}
        return status == {"hard": QUOTA["spec"]["hard"], "used": expected}

    await turns(said)


async def test_a_new_quota_says_what_there_is(quiet: World) -> None:
    await quiet.create("configmaps", {"metadata": {"name": "a"}})
    await quiet.create("resourcequotas", QUOTA)
    await used(quiet, configmaps="1", pods="0")


async def test_what_comes_goes_or_ends_is_counted(quiet: World) -> None:
    await quiet.create("resourcequotas", QUOTA)
    await quiet.create("pods", POD)
    await quiet.create("configmaps", {"metadata": {"name": "a"}})
    await used(quiet, configmaps="1", pods="1")
    await quiet.merge("pods", "p", {"status": {"phase": "Failed"}}, subresource="status")
    await used(quiet, configmaps="1", pods="0")
    await quiet.delete("configmaps", "a")
    await used(quiet, configmaps="0", pods="0")


async def test_nothing_is_written_that_is_so_already(quiet: World) -> None:
    changes: list[Change] = []
    await quiet.create("resourcequotas", QUOTA)
    await used(quiet, configmaps="0", pods="0")
    quiet.store.subscribe(changes.append, "resourcequotas")
    await quiet.create("secrets", {"metadata": {"name": "s"}})
    await quiet.create("configmaps", {"metadata": {"name": "a"}})
    await used(quiet, configmaps="1", pods="0")
    assert len(changes) == 1


async def test_a_changed_limit_is_in_the_status_too(quiet: World) -> None:
    await quiet.create("resourcequotas", QUOTA)
    await used(quiet, configmaps="0", pods="0")
    await quiet.merge("resourcequotas", "few", {"spec": {"hard": {"pods": "9"}}})
    await turns(lambda: quiet.get("resourcequotas", "few")["status"]["hard"]["pods"] == "9")
