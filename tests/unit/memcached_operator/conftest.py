"""A Memcached before and after the operator did its work."""

from __future__ import annotations

import pytest

from tests.unit.memcached_operator.running_servers import run_for_long
from tests.unit.memcached_operator.scaled_servers import Servers, running_scaled
from tests.unit.memcached_operator.support import live_deployment
from tests.unit.memcached_operator.world import World


@pytest.fixture
def world() -> World:
    """A Memcached of two servers that nothing was done for yet."""
    world = World()
    world.memcached(size=2)
    world.show()
    return world


@pytest.fixture
async def running(world: World) -> World:
    """The same once its two servers run and its status says so."""
    world.api.put(live_deployment())
    world.pods(2)
    await world.settle()
    assert world.condition("Available") == ("True", "MinimumReplicasAvailable")
    assert world.condition("Progressing") == ("False", "Complete")
    return world


@pytest.fixture
async def named(world: World) -> World:
    """Three servers of a StatefulSet, which have run for long."""
    return await run_for_long(world, size=3, workload="StatefulSet")


@pytest.fixture
async def scaled() -> World:
    return await running_scaled()


@pytest.fixture
def servers(scaled: World) -> Servers:
    return Servers(scaled)
