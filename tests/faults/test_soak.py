"""Memcacheds come, change and go for a long time, and the operator needs no more for it in the end than at first.

Two minutes, or as long as `SOAK_S` says: `just soak` is half an hour.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

import pytest

from operator_runtime.client.connection_pools import IDLE_CONNECTION_S
from operator_runtime.testing.waiting import DEADLINE_S, eventually
from tests.integration.conftest import Operators
from tests.integration.load import Load
from tests.integration.monitoring import METRICS, Scrape, url_of
from tests.integration.oracle import wait_condition
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.cluster("kubernetes")

SOAK_S = float(os.environ.get("SOAK_S", "120"))
# By then what is held for a while (events of the last minutes, pools, compiled paths) has its size.
FIRST_PART = 1 / 6
MAY_GROW_BYTES = 5 * 1024**2
# A connection that the pool keeps, and what waits beside it: of what a change leaves behind there would be hundreds.
MAY_GROW = 10
# What the recorder of events holds at most, and what it writes: see operator_runtime/events.py.
MAX_EVENTS = 1000
EVENTS_PER_S = 5
# Besides the churn: to start, to delete, and to come to rest.
PATIENCE_S = 2 * DEADLINE_S + MAX_EVENTS / EVENTS_PER_S + IDLE_CONNECTION_S + DEADLINE_S


class Needs(NamedTuple):
    """What the operator's process holds."""

    memory_bytes: float
    descriptors: float
    tasks: float

    @classmethod
    def of(cls, metrics: str) -> Needs:
        found = Scrape(metrics)
        names = ("process_resident_memory_bytes", "process_open_fds", "event_loop_tasks")
        return cls(*(found.value(name) for name in names))


def churn(kubectl: Kubectl, seconds: float) -> int:
    """Create, resize and delete for so long; how many changes there were. Nothing is left of it."""
    with Load(kubectl) as load:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            load.await_steps(10)
    for name in load.alive:
        wait_condition(kubectl, name, "Available", "MinimumReplicasUnavailable")
    kubectl("delete", "mcd", "--all", "--timeout=45s")
    eventually(lambda: kubectl("get", "deployments", "-o=name"), lambda left: not left)
    return load.steps


@pytest.mark.timeout(SOAK_S + PATIENCE_S)
def test_after_a_long_churn_memory_descriptors_and_tasks_are_what_they_were(
    kubectl: Kubectl, operators: Operators
) -> None:
    operator = operators.start("-n", kubectl.namespace, METRICS).ready()
    metrics = url_of(operator, "metrics")
    Needs.of(metrics)  # the first look loads what writes the answer
    idle = Needs.of(metrics)

    churn(kubectl, SOAK_S * FIRST_PART)
    first = Needs.of(metrics)
    steps = churn(kubectl, SOAK_S * (1 - FIRST_PART))

    def at_rest(now: Needs) -> bool:
        return max(now.descriptors - idle.descriptors, now.tasks - idle.tasks) <= MAY_GROW

    # Events still wait for their turn then, and connections for more to do.
    rest_s = MAX_EVENTS / EVENTS_PER_S + IDLE_CONNECTION_S + DEADLINE_S
    last = eventually(lambda: Needs.of(metrics), at_rest, deadline_s=rest_s)
    assert last.memory_bytes <= first.memory_bytes + MAY_GROW_BYTES, (first, last)

    figures = Scrape(metrics)
    assert figures.value("controller_runtime_reconcile_total", result="success") > steps / 3, "it did its work"
    assert figures.value("controller_runtime_reconcile_panics_total") == 0
    assert figures.value("workqueue_unfinished_work_seconds") == 0
    assert sum(figures.values("watch_stream_cached_objects")) == 0
    assert operator.stop() == 0
    print(f"soak: {steps} changes in {SOAK_S:.0f} s; {first} became {last}")
