"""A queue on a clock that moves when told to, and without chance."""

from __future__ import annotations

import pytest

from operator_runtime.testing.clock import FakeClock
from operator_runtime.workqueue.queue import WorkQueue
from tests.unit.operator_runtime.workqueue.queue_support import steady_backoff


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(100.0)


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(clock=clock, backoff=steady_backoff())
