"""A recorder, the API that it writes to, and its time, which goes on by itself while it sleeps."""

from __future__ import annotations

import pytest

from tests.unit.operator_runtime.events.recorder_support import Recording


@pytest.fixture
def at() -> Recording:
    return Recording()
