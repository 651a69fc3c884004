"""Events by which controllers report to people, written one after another, as by client-go's recorder.

The same words about the same object raise a count. An event that cannot be written is dropped.

Differs from Kubernetes: events of one reason are not combined, and no source is held back that says much of one object.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kube_simulator.controllers.controller import Context, controller_caller
from kube_simulator.controllers.object_fields import stamp
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Patch
from kube_simulator.values import Json

EventType = Literal["Normal", "Warning"]

_REMEMBERED = 4096
_WAITING_AT_MOST = 10_000
# A note longer than this is refused.
_MESSAGE_LENGTH = 1024


@dataclass(frozen=True, slots=True)
class _Saying:
    about: Json
    type: EventType
    reason: str
    message: str
    component: str
    at: datetime


class Recorder:
    """Takes what is said at once, and writes it while it is started."""

    def __init__(self, context: Context, clock_ns: Callable[[], int]) -> None:
        """
        Args:
            clock_ns: what makes the names of events unique, in nanoseconds.
        """
        self._context = context
        self._clock_ns = clock_ns
        self._waiting: OrderedDict[int, _Saying] = OrderedDict()
        self._recorded = 0
        self._counts: OrderedDict[tuple[str, ...], tuple[str, int]] = OrderedDict()
        """By object, component and words: the event's name and count."""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def record(self, about: Json, type: EventType, reason: str, message: str, component: str) -> None:
        """Record this about an object; what is beyond the capacity is dropped."""
        if len(self._waiting) >= _WAITING_AT_MOST:
            return
        self._recorded += 1
        self._waiting[self._recorded] = _Saying(about, type, reason, message, component, self._context.now())
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
            number, saying = next(iter(self._waiting.items()))
            try:
                await self._write(saying)
            except ApiError:
                pass  # its namespace is on its way out, or a quota is full: nobody is there to be told
            finally:
                self._waiting.pop(number, None)
            await asyncio.sleep(0)

    async def _write(self, saying: _Saying) -> None:
        key = saying.about["metadata"]["uid"], saying.component, saying.type, saying.reason, saying.message
        name, count = self._counts.pop(key, ("", 0))
        if not name or not await self._count(saying, name, count + 1):
            name, count = await self._create(saying), 0
        self._counts[key] = name, count + 1
        if len(self._counts) > _REMEMBERED:
            self._counts.popitem(last=False)

    async def _count(self, saying: _Saying, name: str, count: int) -> bool:
        """Raise the count of an event; False if it is gone."""
        body = {"count": count, "lastTimestamp": stamp(saying.at)}
        target = self._context.target("events", _namespace(saying.about), name)
        try:
            await self._context.api.patch(target, Patch("merge", body), controller_caller(saying.component))
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    async def _create(self, saying: _Saying) -> str:
        namespace, meta = _namespace(saying.about), saying.about["metadata"]
        name = f"{meta['name']}.{self._clock_ns():x}"
        at = stamp(saying.at)
        body: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": saying.about["apiVersion"],
                "kind": saying.about["kind"],
                "name": meta["name"],
                "namespace": meta.get("namespace"),
                "resourceVersion": meta.get("resourceVersion"),
                "uid": meta["uid"],
            },
            "type": saying.type,
            "reason": saying.reason,
            "message": saying.message[:_MESSAGE_LENGTH],
            "count": 1,
            "eventTime": None,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "source": {"component": saying.component},
            "reportingComponent": saying.component,
            "reportingInstance": "",
        }
        body["involvedObject"] = {key: value for key, value in body["involvedObject"].items() if value is not None}
        target = self._context.target("events", namespace)
        await self._context.api.create(target, body, controller_caller(saying.component))
        return name


def _namespace(about: Json) -> str:
    """Events of what is in no namespace are in `default`."""
    return about["metadata"].get("namespace") or "default"
