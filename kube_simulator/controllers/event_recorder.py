"""Events by which controllers report to people, written one after another.

An event that cannot be written is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final, Literal

from kube_simulator.controllers.controller import Context, controller_caller
from kube_simulator.controllers.object_fields import stamp
from kube_simulator.errors import ApiError
from kube_simulator.values import Json

EventType = Literal["Normal", "Warning"]

_WAITING_AT_MOST: Final = 10_000


class Recorder:
    """Takes what is said at once, and writes it while it is started."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._waiting: asyncio.Queue[Json] = asyncio.Queue(_WAITING_AT_MOST)
        self._task: asyncio.Task[None] | None = None
        self._writing = False

    def record(self, about: Json, type: EventType, reason: str, message: str, component: str) -> None:
        """Record this about an object; what is beyond the capacity is dropped."""
        meta, at = about["metadata"], stamp(self._context.now())
        identity = {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion") if meta.get(key)}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            # Events of what is in no namespace are in `default`.
            "metadata": {"name": f"{meta['name']}.{time.time_ns():x}", "namespace": meta.get("namespace") or "default"},
            "involvedObject": {"apiVersion": about["apiVersion"], "kind": about["kind"], **identity},
            "type": type,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "source": {"component": component},
            "reportingComponent": component,
        }
        with contextlib.suppress(asyncio.QueueFull):
            self._waiting.put_nowait(event)

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
        return self._waiting.empty() and not self._writing

    async def _write_all(self) -> None:
        while True:
            self._writing = False
            body = await self._waiting.get()
            self._writing = True
            target = self._context.target("events", body["metadata"]["namespace"])
            with contextlib.suppress(ApiError):  # its namespace is on its way out: nobody is there to be told
                await self._context.api.create(target, body, controller_caller(body["reportingComponent"]))
            await asyncio.sleep(0)
