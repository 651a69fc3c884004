"""A queue on a clock that moves when told to, and without chance; the time of the event recorder."""

from __future__ import annotations

import pytest

from memcached_operator.runtime.workqueue.queue import WorkQueue
from memcached_operator.testing.clock import FakeClock
from tests.unit.runtime.workqueue.queue_support import steady_backoff


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(100.0)


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(clock=clock, backoff=steady_backoff())


@pytest.fixture
def time() -> FakeClock:
    return FakeClock(autojump=True)
