"""The harness's own eyes: two watches that note when Deployments and statuses become what they should be.

Slim records only, and one monotonic time for each chunk of bytes, so that watching costs the machine little and every
operator the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp
import msgspec

from benchmarks.endpoint import MEMCACHEDS, NAMESPACE
from operator_runtime.client.resources import DEPLOYMENTS, Resource

_RECONNECT_PAUSE_S = 0.05


class _Metadata(msgspec.Struct):
    resourceVersion: str
    name: str = ""


class _Spec(msgspec.Struct):
    replicas: int = 0


class _Status(msgspec.Struct):
    nodes: list[str] | None = None


class _Deployment(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Memcached(msgspec.Struct):
    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


class _DeploymentEvent(msgspec.Struct):
    type: str
    object: _Deployment


class _MemcachedEvent(msgspec.Struct):
    type: str
    object: _Memcached


class _List(msgspec.Struct):
    metadata: _Metadata


class WatchFailed(Exception):
    """A watch of the harness cannot go on; what it saw so far is not to be trusted."""


@dataclass(slots=True)
class Goal:
    """A number to be reached by each of `count` objects, whichever or the one called `only`, and when the last did.

    Invariant: `reached_s` is set if and only if at least `count` objects have the number `target`; it is the time of
    the event by which they last became so many.
    """

    count: int
    target: int
    only: str | None = None
    at_target: set[str] = field(default_factory=set)
    reached_s: float | None = None
    _reached: asyncio.Event = field(default_factory=asyncio.Event)

    def see(self, name: str, value: int | None, now_s: float) -> None:
        """Take in one object's number (None: it has none)."""
        if self.only not in (None, name):
            return
        if value == self.target:
            self.at_target.add(name)
        else:
            self.at_target.discard(name)
        if len(self.at_target) < self.count:
            self.reached_s = None
            self._reached.clear()
        elif self.reached_s is None:
            self.reached_s = now_s
            self._reached.set()

    async def wait(self) -> float:
        """Wait until it is reached; returns when, on the monotonic clock, in seconds."""
        await self._reached.wait()
        assert self.reached_s is not None
        return self.reached_s


class Observer:
    """Watches Deployments and Memcacheds of the harness's namespace until it is cancelled.

    Attributes:
        replicas: goals on `spec.replicas` of Deployments.
        nodes: goals on the number of `status.nodes` of Memcacheds.
    """

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self.replicas: list[Goal] = []
        self.nodes: list[Goal] = []

    async def versions(self) -> tuple[str, str]:
        """The points from which to watch; to be taken before the first object is made."""
        return await self._version(DEPLOYMENTS), await self._version(MEMCACHEDS)

    async def watch(self, versions: tuple[str, str]) -> None:
        """Run both watches for ever. Raises WatchFailed: inside an ExceptionGroup, when events may have been lost."""
        deployment, memcached = msgspec.json.Decoder(_DeploymentEvent), msgspec.json.Decoder(_MemcachedEvent)

        def on_deployment(line: bytes, now_s: float) -> str:
            event = deployment.decode(line)
            if event.type != "BOOKMARK":
                value = None if event.type == "DELETED" else event.object.spec.replicas
                for goal in self.replicas:
                    goal.see(event.object.metadata.name, value, now_s)
            return event.object.metadata.resourceVersion

        def on_memcached(line: bytes, now_s: float) -> str:
            event = memcached.decode(line)
            if event.type != "BOOKMARK":
                nodes = event.object.status.nodes
                for goal in self.nodes:
                    goal.see(event.object.metadata.name, None if nodes is None else len(nodes), now_s)
            return event.object.metadata.resourceVersion

        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(DEPLOYMENTS, versions[0], on_deployment))
            group.create_task(self._follow(MEMCACHEDS, versions[1], on_memcached))

    async def _version(self, resource: Resource) -> str:
        async with self._session.get(resource.path(NAMESPACE), params={"limit": "1"}, raise_for_status=True) as answer:
            return msgspec.json.decode(await answer.read(), type=_List).metadata.resourceVersion

    async def _follow(self, resource: Resource, version: str, on_line: Callable[[bytes, float], str]) -> None:
        """Under load the API server ends watches; each time this goes on from the last event's version."""
        path = resource.path(NAMESPACE)
        while True:
            query = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version}
            try:
                async with self._session.get(path, params=query, raise_for_status=True) as answer:
                    rest = b""
                    async for chunk in answer.content.iter_any():
                        now_s = time.monotonic()
                        *lines, rest = (rest + chunk).split(b"\n")
                        for line in lines:
                            version = on_line(line, now_s)
            except msgspec.ValidationError as error:
                # An ERROR event carries a Status, whose metadata has no resourceVersion.
                raise WatchFailed(f"watch of {resource.plural}: {error}") from error
            except aiohttp.ClientResponseError as error:
                raise WatchFailed(f"watch of {resource.plural}: {error.status} {error.message}") from error
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(_RECONNECT_PAUSE_S)
