"""A client of the simulator, which each test has for itself (`operator_runtime.testing.plugin`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from operator_runtime.testing.cluster import SimulatedCluster
from tests.conformance.api import Api


@pytest.fixture
def api(simulator: SimulatedCluster) -> Iterator[Api]:
    """The administrator's client."""
    client = Api(simulator, simulator.kubeconfig_path)
    yield client
    client.close()
