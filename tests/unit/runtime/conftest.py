"""A queue on a clock that moves when told to, and without chance; the time of the event recorder."""

from __future__ import annotations

import pytest

from memcached_operator.runtime.workqueue.queue import WorkQueue
from tests.unit.runtime.events.recorder_support import FakeTime
from tests.unit.runtime.workqueue.queue_support import FakeClock, steady_backoff


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(clock=clock, backoff=steady_backoff())


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()
