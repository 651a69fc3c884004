"""Watches in the states from which tests begin, and a loop whose time can be moved on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from operator_runtime.client.errors import classify
from operator_runtime.client.watch import Watch
from tests.unit.operator_runtime.client.watch_support import Mode, Sink, bookmark, mode_of
from tests.unit.things import Thing, decode


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def watch(sink: Sink) -> Watch[Thing]:
    """A watch that has sent nothing yet; its jitter always draws the upper bound."""
    return Watch(decode, sink, label_selector="app=x", page_size=2, uniform=lambda low, high: high)


@pytest.fixture
def resumed(watch: Watch[Thing], sink: Sink) -> Watch[Thing]:
    """A watch whose snapshot was complete at version 100 and that has sent its first resumed request."""
    watch.next_request()
    watch.line(bookmark(100, end="true"))
    watch.ended(None, 300.0, 1000)
    assert watch.next_request().query["resourceVersion"] == "100"
    sink.take()
    return watch


@pytest.fixture
def paging(watch: Watch[Thing], sink: Sink) -> Watch[Thing]:
    """A watch whose server has no streaming lists and that has asked for the first page."""
    watch.next_request()
    watch.ended(classify(422), 0.1, 0)
    assert mode_of(watch.next_request()) is Mode.PAGES
    sink.take()
    return watch


@pytest.fixture
def skip(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the loop's clock on: timers that are due then fire without anybody waiting for them."""

    def skip(seconds: float) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + seconds)

    return skip
