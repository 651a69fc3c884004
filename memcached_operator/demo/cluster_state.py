"""State of the demo's namespace at one moment, and the observer that reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from memcached_operator.api.names import KIND
from memcached_operator.core.observed.caches import MEMCACHEDS, STATEFUL_SETS
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError, NotFound
from operator_runtime.client.resources import DEPLOYMENTS, EVENTS, PODS, Resource

Json = dict[str, Any]

NAMESPACE = "default"
# Five lists of a handful of objects: often enough for eyes, and no burden for any server.
_READ_EVERY_S = 0.1
_REST_S = 1.0


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Objects by name, as the API shows them; those that are being deleted included."""

    memcacheds: Mapping[str, Json] = field(default_factory=dict)
    deployments: Mapping[str, Json] = field(default_factory=dict)
    stateful_sets: Mapping[str, Json] = field(default_factory=dict)
    pods: Mapping[str, Json] = field(default_factory=dict)
    events: tuple[Json, ...] = ()
    """Those that regard a Memcached, oldest first."""

    def pods_of(self, memcached: str) -> list[Json]:
        """Return the pods that are not being deleted, by name."""
        found = (each for each in self.pods.values() if labels_of_body(each).get("memcached_cr") == memcached)
        return [each for each in found if not terminating(each)]

    def nodes(self, memcached: str) -> list[str]:
        return list(self.status(memcached).get("nodes", []))

    def servers(self, memcached: str) -> list[str]:
        return list(self.status(memcached).get("serverList", []))

    def address_of(self, server: str) -> str:
        """The address behind a listed name, which only a cluster's DNS resolves: that of the pod it begins with."""
        return str(self.pods[server.partition(".")[0]]["status"]["podIP"])

    def status(self, memcached: str) -> Json:
        """`status` of a Memcached, empty where there is none."""
        return dict(self.memcacheds.get(memcached, {}).get("status", {}))

    def condition(self, memcached: str, type_: str) -> Json:
        """One condition of a Memcached, empty where there is none."""
        found = self.status(memcached).get("conditions", [])
        return next((each for each in found if each["type"] == type_), {})

    def runs(self, memcached: str, size: int) -> bool:
        """Report whether that many servers are ready and listed in the status, and nothing is underway any more."""
        workload = self.deployments.get(memcached) or self.stateful_sets.get(memcached, {})
        pods = self.pods_of(memcached)
        names = sorted(each["metadata"]["name"] for each in pods)
        return (
            workload.get("spec", {}).get("replicas") == size
            and len(names) == size
            and all(ready(each) for each in pods)
            and self.nodes(memcached) == names
            and len(self.servers(memcached)) == size
            and self.status(memcached).get("readyReplicas") == size
            and self.condition(memcached, "Ready").get("status") == "True"
            and self.condition(memcached, "Progressing").get("status") == "False"
        )


class Observer:
    """Observer of the namespace, which reads it again and again while `run` runs, and wakes those that wait.

    Lists requested every tenth of a second, and no watches: this is a spectator, and what it shows is what
    `kubectl get` would.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._changed = asyncio.Condition()
        self._read_every_s = _READ_EVERY_S
        self.state = ClusterState()

    async def run(self) -> None:
        """Observe until cancelled; what cannot be read at the moment is read again later."""
        while True:
            try:
                state = await self._read()
            except KubeError:
                pass
            else:
                async with self._changed:
                    self.state = state
                    self._changed.notify_all()
            await asyncio.sleep(self._read_every_s)

    def rest(self) -> None:
        """Observe only now and then from now on: each observation is some lines in the audit log."""
        self._read_every_s = _REST_S

    async def until(self, holds: Callable[[ClusterState], bool], deadline_s: float) -> bool:
        """Wait for a state, and report whether it came in time."""
        try:
            async with asyncio.timeout(deadline_s), self._changed:
                await self._changed.wait_for(lambda: holds(self.state))
        except TimeoutError:
            return False
        return True

    async def _read(self) -> ClusterState:
        memcacheds, deployments, stateful_sets, pods, events = await asyncio.gather(
            self._list(MEMCACHEDS.resource),
            self._list(DEPLOYMENTS),
            self._list(STATEFUL_SETS.resource),
            self._list(PODS),
            self._list(EVENTS),
        )
        owned = [each for each in events if each.get("regarding", {}).get("kind") == KIND]
        return ClusterState(
            _by_name(memcacheds),
            _by_name(deployments),
            _by_name(stateful_sets),
            _by_name(pods),
            tuple(sorted(owned, key=event_time)),
        )

    async def _list(self, resource: Resource) -> list[Json]:
        try:
            answer = await self._client.request("GET", resource.path(NAMESPACE))
        except NotFound:  # the CRD is not there yet, or gone again
            return []
        items: list[Json] = orjson.loads(answer)["items"]
        return items


def labels_of_body(found: Json) -> Mapping[str, str]:
    return found["metadata"].get("labels") or {}


def terminating(found: Json) -> bool:
    return "deletionTimestamp" in found["metadata"]


def ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def event_time(event: Json) -> str:
    """Return when an event was last seen, RFC 3339."""
    return str((event.get("series") or {}).get("lastObservedTime") or event.get("eventTime") or "")


def _by_name(items: list[Json]) -> Mapping[str, Json]:
    return {each["metadata"]["name"]: each for each in items}
