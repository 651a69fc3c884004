"""A small world of one namespace and a node whose pods are ready at once, and the words to change and read it."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from kube_simulator.controllers.controller import Context
from kube_simulator.controllers.manager import ControllerManager
from kube_simulator.requests.api import Api
from kube_simulator.requests.types import Caller, DeleteOptions, Patch, Target, User
from kube_simulator.resources import Registry
from kube_simulator.schema.kubernetes import builtin_resources
from kube_simulator.store.store import Store
from kube_simulator.values import Json

NAMESPACE = "shop"
TESTER = Caller(User("tester", frozenset({"system:masters", "system:authenticated"})), "tester")
DEADLINE_S = 60.0


class World:
    """Started on entry; what the loop reports of a fault in a controller fails the test on exit."""

    def __init__(self, *, real_memcached: bool = True) -> None:
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)
        self.store = Store()
        self.registry = Registry()
        for resource in builtin_resources():
            self.registry.put(resource)
        self.api = Api(self.store, self.registry, now=lambda: self.moment)
        context = Context(self.api, self.store, self.registry, lambda: self.moment)
        self.manager = ControllerManager(context, ready_after_s=0.0, real_memcached=real_memcached)
        self.faults: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: self.faults.append(context))
        await self.create("namespaces", {"metadata": {"name": NAMESPACE}}, namespace="")
        await self.create("serviceaccounts", {"metadata": {"name": "default"}})
        self.manager.start()
        self.manager.kubelet.controller.start()
        await self.settle()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.manager.stop()
        await self.manager.kubelet.stop()
        assert self.faults == []

    async def settle(self) -> None:
        """Until nothing is left to do but what waits for a time."""
        async with asyncio.timeout(DEADLINE_S):
            quiet = 0
            while quiet < 3:
                quiet = quiet + 1 if self.manager.idle else 0
                await asyncio.sleep(0)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Until something holds that takes real time, such as a retry or a process."""
        changed = asyncio.Event()
        leave = self.store.subscribe(lambda _change: changed.set())
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not holds():
                    changed.clear()
                    await changed.wait()
        finally:
            leave()

    def target(self, collection: str, name: str = "", *, namespace: str = NAMESPACE, subresource: str = "") -> Target:
        plural, _, group = collection.partition(".")
        resource = self.registry.of(group, plural)
        assert resource is not None, collection
        return Target(resource, namespace if resource.namespaced else "", name, subresource)

    async def create(self, collection: str, body: Json, *, namespace: str = NAMESPACE) -> Json:
        target = self.target(collection, namespace=namespace)
        identity = {"apiVersion": target.resource.api_version, "kind": target.resource.kind}
        return (await self.api.create(target, {**identity, **body}, TESTER)).object

    async def merge(self, collection: str, name: str, body: Json, *, subresource: str = "") -> Json:
        target = self.target(collection, name, subresource=subresource)
        return (await self.api.patch(target, Patch("merge", body), TESTER)).object

    async def delete(self, collection: str, name: str) -> None:
        await self.api.delete(self.target(collection, name), DeleteOptions())

    def get(self, collection: str, name: str) -> Json:
        return self.api.get(self.target(collection, name))

    def gone(self, collection: str, name: str) -> bool:
        target = self.target(collection, name)
        return self.store.get(collection, target.namespace, name) is None


async def turns(over: Callable[[], bool]) -> None:
    """Give the loop its turns until it is over; for what never waits for a time."""
    async with asyncio.timeout(DEADLINE_S):
        while not over():  # noqa: ASYNC110 - nothing here tells when: that is what is tested
            await asyncio.sleep(0)


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def web(**spec: object) -> Json:
    """The specification of a pod."""
    return {"containers": [{"name": "web", "image": "web:1"}], **spec}


def condition(found: Json, kind: str) -> Json:
    [condition] = [each for each in found["status"]["conditions"] if each["type"] == kind]
    return dict(condition)
