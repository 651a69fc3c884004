"""A recorder, the API that it writes to, and its time, which goes on by itself while it sleeps."""

from __future__ import annotations

import pytest

from operator_runtime.events.recorder import EventRecorder
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.events.recorder_support import FakeApi, recorder_of


@pytest.fixture
def time() -> FakeClock:
    return FakeClock(autojump=True)


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def recorder(api: FakeApi, time: FakeClock) -> EventRecorder:
    return recorder_of(api, time)
