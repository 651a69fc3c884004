"""A store, an Api and the controllers, without HTTP; time stands still unless a test moves it."""

from collections.abc import AsyncIterator

import pytest

from tests.unit.kube_simulator.controllers.world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """All controllers, started; no nodes."""
    async with World() as running:
        yield running
