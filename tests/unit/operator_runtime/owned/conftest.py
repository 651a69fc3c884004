from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from operator_runtime import Client
from operator_runtime.testing.cluster import SimulatedCluster
from tests.unit.operator_runtime.owned.ensure_support import CONFIG_MAPS, Keeping


@pytest.fixture
async def client(simulator: SimulatedCluster) -> AsyncIterator[Client]:
    async with simulator.client() as client:
        yield client


@pytest.fixture
async def at(client: Client) -> Keeping:
    owner = await client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "owner"}})
    return Keeping(client, owner)
