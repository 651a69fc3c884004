"""Channel: events from outside the cluster as reasons to reconcile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

E = TypeVar("E")


class Channel(Generic[E]):
    """Hands events from outside the cluster, such as a message or a timer, to the controllers that listen to it.

    Nothing is kept: a controller that does not lead yet, or has not begun, reconciles everything when it begins. As
    with any change, what was sent is only the reason for a reconcile, which must find the state itself.

    Invariant: `_loop` and `_thread` are those of the first listener, and None before.
    """

    def __init__(self) -> None:
        self._listeners: list[Callable[[E], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def listen(self, listener: Callable[[E], None]) -> None:
        """Call `listener` with each event from now on, on the event loop that runs now, or RuntimeError."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._listeners.append(listener)

    def send(self, event: E) -> None:
        """Enqueue what `event` maps to. May be called from any thread; never waits."""
        if self._loop is None:
            return
        if threading.get_ident() == self._thread:
            self._deliver(event)
        else:
            self._loop.call_soon_threadsafe(self._deliver, event)

    def _deliver(self, event: E) -> None:
        for listener in self._listeners:
            listener(event)
