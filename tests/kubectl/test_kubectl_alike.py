"""The real kubectl prints the same on the simulator as on Kubernetes, command by command."""

from __future__ import annotations

import pytest

from lab.control_plane import ControlPlane
from tests.kubectl.tour import TOUR, Command, Result, Visit
from tests.simulated_cluster import SimulatedCluster

# Whole tours, with what Kubernetes takes to roll out and to collect.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Result]]:
    """The results of the whole tour on each server."""
    results = {}
    clusters: dict[str, type[SimulatedCluster | ControlPlane]] = {
        "simulator": SimulatedCluster,
        "kubernetes": ControlPlane,
    }
    for name, cluster in clusters.items():
        with cluster() as running:
            visit = Visit(running, tmp_path_factory.mktemp(name))
            results[name] = [visit.run(command) for command in TOUR]
    return results


@pytest.mark.parametrize(("number", "command"), list(enumerate(TOUR)), ids=lambda value: getattr(value, "text", ""))
def test_kubectl_prints_the_same_on_both(visits: dict[str, list[Result]], number: int, command: Command) -> None:
    assert visits["simulator"][number] == visits["kubernetes"][number]
