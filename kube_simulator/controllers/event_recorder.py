"""Events by which controllers report to people, written one after another.

An event that cannot be written is dropped.

Differs from Kubernetes: each event is written anew, where there the same words raise a count.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from kube_simulator.controllers.controller import Context, controller_caller
from kube_simulator.controllers.object_fields import stamp
from kube_simulator.errors import ApiError
from kube_simulator.values import Json

EventType = Literal["Normal", "Warning"]

_WAITING_AT_MOST: Final = 10_000
# A note longer than this is refused.
_MESSAGE_LENGTH: Final = 1024
_REGARDED: Final = ("name", "namespace", "uid", "resourceVersion")


class Recorder:
    """Takes what is said at once, and writes it while it is started."""

    def __init__(self, context: Context, clock_ns: Callable[[], int]) -> None:
        """
        Args:
            clock_ns: what makes the names of events unique, in nanoseconds.
        """
        self._context = context
        self._clock_ns = clock_ns
        self._waiting: deque[Json] = deque()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def record(self, about: Json, type: EventType, reason: str, message: str, component: str) -> None:
        """Record this about an object; what is beyond the capacity is dropped."""
        if len(self._waiting) >= _WAITING_AT_MOST:
            return
        meta, at = about["metadata"], stamp(self._context.now())
        subject = {key: meta[key] for key in _REGARDED if meta.get(key)}
        self._waiting.append(
            {
                "apiVersion": "v1",
                "kind": "Event",
                # Events of what is in no namespace are in `default`.
                "metadata": {
                    "name": f"{meta['name']}.{self._clock_ns():x}",
                    "namespace": meta.get("namespace") or "default",
                },
                "involvedObject": {"apiVersion": about["apiVersion"], "kind": about["kind"], **subject},
                "type": type,
                "reason": reason,
                "message": message[:_MESSAGE_LENGTH],
                "count": 1,
                "firstTimestamp": at,
                "lastTimestamp": at,
                "source": {"component": component},
                "reportingComponent": component,
            }
        )
        self._wake.set()

    def start(self) -> None:
        """Write what is said from now on, and what was said before."""
        self._task = asyncio.create_task(self._write_all(), name="events")

    async def stop(self) -> None:
        """Write no more; can be called twice."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    @property
    def idle(self) -> bool:
        """Everything that was said is written."""
        return not self._waiting

    async def _write_all(self) -> None:
        while True:
            while not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            body = self._waiting[0]
            target = self._context.target("events", body["metadata"]["namespace"])
            with contextlib.suppress(ApiError):  # its namespace is on its way out: nobody is there to be told
                await self._context.api.create(target, body, controller_caller(body["reportingComponent"]))
            self._waiting.popleft()
            await asyncio.sleep(0)
