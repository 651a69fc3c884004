"""The fixture of this package."""

from collections.abc import AsyncIterator

import pytest

from tests.unit.kube_simulator.admission.admission_support import World, new_world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = new_world()
    yield made
    await made.admission.close()
