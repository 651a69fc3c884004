"""The simulator as a pytest fixture. An author's `conftest.py` requests it by name::

    pytest_plugins = ["operator_runtime.testing.plugin"]

It is no entry point of the package: pytest would then load it in each of its runs wherever this package is installed,
also for projects that only start its simulator or run its operator, and their fixtures of the same name would meet it.

It needs the extra `testing`: pytest, and what the simulator needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from operator_runtime.testing.cluster import SimulatedCluster

_REMEDY = "pip install 'memcached-operator[testing]'"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "simulator(**options): how the fixture `simulator` differs, such as pods_ready_after_s=None"
    )


@pytest.fixture
def simulator(request: pytest.FixtureRequest) -> Iterator[SimulatedCluster]:
    """A simulated Kubernetes API of the test's own, with nothing in it: see `testing.cluster.SimulatedCluster`.

    Pods are ready as soon as they are made, unless the mark `simulator` has another value; it takes the fields of
    `simulator.Options`. For one that several tests share, make a fixture of another scope of `SimulatedCluster()`.
    """
    try:
        from operator_runtime.testing.cluster import OPTIONS, SimulatedCluster
    except ImportError as error:
        raise pytest.UsageError(f"the fixture simulator needs {error.name}: {_REMEDY}") from error
    mark = request.node.get_closest_marker("simulator")
    with SimulatedCluster(OPTIONS if mark is None else replace(OPTIONS, **mark.kwargs)) as cluster:
        yield cluster
