"""The real kubectl prints the same on the simulator as on Kubernetes, command by command."""

from __future__ import annotations

import pytest

from lab.control_plane import ControlPlane
from tests.kubectl.commands import COMMANDS, Command, Result, Session
from tests.simulated_cluster import SimulatedCluster

# All commands, with what Kubernetes takes to roll out and to collect.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Result]]:
    """The results of all commands on each server."""
    results = {}
    clusters: dict[str, type[SimulatedCluster | ControlPlane]] = {
        "simulator": SimulatedCluster,
        "kubernetes": ControlPlane,
    }
    for name, cluster in clusters.items():
        with cluster() as running:
            session = Session(running, tmp_path_factory.mktemp(name))
            results[name] = [session.run(command) for command in COMMANDS]
    return results


@pytest.mark.parametrize(("number", "command"), list(enumerate(COMMANDS)), ids=lambda value: getattr(value, "text", ""))
def test_kubectl_prints_the_same_on_both(results: dict[str, list[Result]], number: int, command: Command) -> None:
    assert results["simulator"][number] == results["kubernetes"][number]
