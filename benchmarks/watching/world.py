"""Very many Memcacheds with their Deployments and pods, of which only what differs from the first is in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from benchmarks.endpoint import MEMCACHEDS
from benchmarks.watching.capture import NAME, Captured
from kube_simulator.patches.merge import merge_patch
from operator_runtime.client.resources import DEPLOYMENTS, PODS

_VERSION = "qqversion"
_UID = re.compile(r"[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")
_BEGIN: Final = 1_000
_NAMED = re.compile(r"^cache-(\d+)$")


class _Template:
    """The text of an object, and where a number makes it another's."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        metadata = {**found["metadata"], "resourceVersion": _VERSION}
        text = orjson.dumps({**found, "metadata": metadata}).decode().replace("%", "%%")
        text = _UID.sub("%(uid)s", text)
        self._text = text.replace(_VERSION, "%(version)d").replace(NAME, "%(name)s")

    def made(self, number: int, version: int) -> bytes:
        return (self._text % {"name": f"cache-{number}", "uid": f"{number:08x}", "version": version}).encode()


class World:
    """What is there, and its versions. Each Memcached has as many pods as the captured one."""

    def __init__(self, captured: Captured, count: int) -> None:
        self.count, self.size = count, len(captured.pods)
        self.version = _BEGIN
        self._memcached, self._deployment = _Template(captured.memcached), _Template(captured.deployment)
        self._pods = [(_Template(pod), _Template(_unready(pod))) for pod in captured.pods]
        self._statuses: dict[int, object] = {}
        self._versions: dict[tuple[str, int], int] = {}
        self._unready: set[int] = set()
        self.status_writes = 0

    @property
    def pods(self) -> int:
        """How many there are."""
        return self.count * self.size

    def objects(self, plural: str) -> Iterator[bytes]:
        """All of one kind, each as JSON; of any other kind there are none."""
        if plural == MEMCACHEDS.plural:
            yield from map(self.memcached, range(self.count))
        elif plural == DEPLOYMENTS.plural:
            for number in range(self.count):
                yield self._deployment.made(number, _BEGIN)
        elif plural == PODS.plural:
            yield from map(self.pod, range(self.pods))

    def memcached(self, number: int) -> bytes:
        """One Memcached with the status that was last written."""
        made = self._memcached.made(number, self._versions.get((MEMCACHEDS.plural, number), _BEGIN))
        if number not in self._statuses:
            return made
        return orjson.dumps(orjson.loads(made) | {"status": self._statuses[number]})

    def pod(self, number: int) -> bytes:
        """One pod; those of one Memcached follow each other."""
        owner, place = divmod(number, self.size)
        template = self._pods[place][number in self._unready]
        return template.made(owner, self._versions.get((PODS.plural, number), _BEGIN))

    def touch(self, number: int) -> bytes:
        """The pod after a change that says nothing new."""
        self._advance(PODS.plural, number)
        return self.pod(number)

    def set_ready(self, number: int, ready: bool) -> bytes:
        """The pod after its readiness has changed."""
        if ready:
            self._unready.discard(number)
        else:
            self._unready.add(number)
        return self.touch(number)

    def write_status(self, name: str, body: bytes) -> bytes | None:
        """The Memcached after a merge patch, or an update, of its status; None if there is none of that name."""
        named = _NAMED.match(name)
        if named is None or (number := int(named[1])) >= self.count:
            return None
        status = orjson.loads(self.memcached(number)).get("status", {})
        self._statuses[number] = merge_patch(status, orjson.loads(body).get("status", {}))
        self.status_writes += 1
        self._advance(MEMCACHEDS.plural, number)
        return self.memcached(number)

    def _advance(self, plural: str, number: int) -> None:
        self.version += 1
        self._versions[plural, number] = self.version


def _unready(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    status = pod["status"]
    conditions = [
        each | ({"status": "False"} if each["type"] in ("Ready", "ContainersReady") else {})
        for each in status["conditions"]
    ]
    containers = [each | {"ready": False} for each in status.get("containerStatuses", ())]
    return {**pod, "status": {**status, "conditions": conditions, "containerStatuses": containers}}
