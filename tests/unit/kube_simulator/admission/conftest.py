"""The fixture of this package."""

import pytest

from tests.unit.kube_simulator.admission.admission_support import World, new_world


@pytest.fixture
def world() -> World:
    return new_world()
