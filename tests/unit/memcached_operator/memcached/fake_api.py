"""An API server in memory, as far as the reconciler speaks to one, with the answers that a real one gives."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from kube_simulator.patches.strategic import strategic_merge
from kube_simulator.schema import kubernetes
from operator_runtime.client.errors import Conflict, Invalid, KubeError, NotFound, StatusCause
from operator_runtime.client.resources import Resource

Json = dict[str, Any]
_SCHEMAS = {each.kind: each.schema for each in kubernetes.builtin_resources()}


class Call(NamedTuple):
    """One request: `verb` is the client's method, with the subresource if there was one."""

    verb: str
    kind: str
    body: Json


@dataclass
class FakeApi:
    """Objects by kind, namespace and name; every write moves the one resourceVersion.

    Attributes:
        calls: requests in their order.
        refusals: for each verb (and kind) the answers that the next requests get instead.
        admission: changes what a strategic merge patch sends, as a mutating policy does.
    """

    objects: dict[tuple[str, str, str], Json] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    refusals: dict[tuple[str, str], list[KubeError]] = field(default_factory=dict)
    version: int = 1000
    admission: Callable[[Json], object] | None = None

    def put(self, object_: Json) -> Json:
        """Store an object as somebody else would."""
        meta = object_["metadata"]
        self.version += 1
        meta.setdefault("uid", f"uid-{self.version}")
        meta["resourceVersion"] = str(self.version)
        self.objects[object_["kind"], meta["namespace"], meta["name"]] = object_
        return object_

    def refuse(self, verb: str, kind: str, *errors: KubeError) -> None:
        self.refusals.setdefault((verb, kind), []).extend(errors)

    def verbs(self) -> list[str]:
        return [f"{call.verb} {call.kind}" for call in self.calls]

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        self._called(Call("get", resource.kind, {}))
        return _encoded(self._held(resource, namespace, name))

    async def request(self, method: str, path: str, *, query: dict[str, str], **more: object) -> bytes:
        """The one list that the reconciler asks for: the events about an object."""
        assert (method, path.rpartition("/")[2], more["gzip"]) == ("GET", "events", True)
        self._called(Call("list", "Event", {}))
        field, _, uid = query["fieldSelector"].partition("=")
        assert field == "involvedObject.uid"
        events = [each for key, each in self.objects.items() if key[0] == "Event"]
        found = [each for each in events if each["involvedObject"]["uid"] == uid]
        return _encoded({"kind": "EventList", "metadata": {"resourceVersion": "1"}, "items": found})

    async def merge_patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: object,
        *,
        field_manager: str,
        subresource: str | None = None,
        strict: bool = False,
    ) -> bytes:
        verb = f"merge_patch/{subresource}" if subresource else "merge_patch"
        sent = self._sent(verb, resource, body, field_manager)
        held = self._held(resource, namespace, name)
        if (
            sent["metadata"].pop("resourceVersion", held["metadata"]["resourceVersion"])
            != (held["metadata"]["resourceVersion"])
        ):
            raise Conflict(409, "Conflict", "the object has been modified")
        patched = copy.deepcopy(held)
        _merge(patched, {**sent, "metadata": _without_uid(sent)})
        return self._merged(held, sent["metadata"].get("uid"), patched, status=subresource == "status")

    async def create(
        self,
        resource: Resource,
        namespace: str,
        body: object,
        *,
        field_manager: str,
        under: tuple[str, str] | None = None,
        strict: bool = False,
        guarded: bool = False,
    ) -> bytes:
        """Make an object, or evict a pod, which is gone at once."""
        if under is None:
            assert strict, "a misspelt field is refused"
            return self._made(self._sent("create", resource, body, field_manager))
        name, subresource = under
        sent = self._sent(f"create/{subresource}", resource, body, field_manager)
        held = self._held(resource, namespace, name)
        if sent["deleteOptions"]["preconditions"]["uid"] != held["metadata"]["uid"]:
            raise Conflict(409, "Conflict", "Precondition failed")
        del self.objects[resource.kind, namespace, name]
        return _encoded({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    async def strategic_merge_patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: object,
        *,
        field_manager: str,
        subresource: str | None = None,
        strict: bool = False,
    ) -> bytes:
        verb = f"strategic_merge_patch/{subresource}" if subresource else "strategic_merge_patch"
        sent = self._sent(verb, resource, body, field_manager)
        held = self._held(resource, namespace, name)
        if self.admission and not subresource:
            self.admission(sent)
        patched = strategic_merge(held, {**sent, "metadata": _without_uid(sent)}, _SCHEMAS[resource.kind])
        return self._merged(held, sent["metadata"].get("uid"), patched)

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str, resource_version: str, propagation: str | None
    ) -> bytes:
        """In the foreground it stays until the garbage collector, which is the test, has deleted its pods."""
        self._called(Call("delete", resource.kind, {"uid": uid, "propagation": propagation}))
        held = self._held(resource, namespace, name)
        meta = held["metadata"]
        if (uid, resource_version) != (meta["uid"], meta["resourceVersion"]):
            raise Conflict(409, "Conflict", "Precondition failed")
        if propagation != "Foreground":
            del self.objects[resource.kind, namespace, name]
            return _encoded(held)
        meta |= {"deletionTimestamp": "2026-11-21T12:00:00Z", "finalizers": ["foregroundDeletion"]}
        return _encoded(self.put(held))

    def _made(self, sent: Json) -> bytes:
        key = sent["kind"], sent["metadata"]["namespace"], sent["metadata"]["name"]
        if key in self.objects:
            raise Conflict(409, "AlreadyExists", f"{key} already exists")
        return _encoded(self.put(sent | {"metadata": sent["metadata"] | {"generation": 1}, "status": {}}))

    def _called(self, call: Call) -> None:
        self.calls.append(call)
        if refusals := self.refusals.get((call.verb, call.kind)):
            raise refusals.pop(0)

    def _sent(self, verb: str, resource: Resource, body: object, manager: str) -> Json:
        assert manager == "test-manager", "every write names the field manager"
        sent: Json = json.loads(orjson.dumps(body))
        self._called(Call(verb, resource.kind, copy.deepcopy(sent)))
        return sent

    def _held(self, resource: Resource, namespace: str, name: str) -> Json:
        held = self.objects.get((resource.kind, namespace, name))
        if held is None:
            raise NotFound(404, "NotFound", f'{resource.qualified_name} "{name}" not found')
        return held

    def _merged(self, held: Json, uid: str | None, patched: Json, *, status: bool = False) -> bytes:
        if uid not in (None, held["metadata"]["uid"]):
            cause = StatusCause("FieldValueInvalid", "field is immutable", "metadata.uid")
            raise Invalid(422, "Invalid", "metadata.uid: field is immutable", causes=(cause,))
        if held != patched:
            before = copy.deepcopy(held)
            held.clear()
            held |= copy.deepcopy(patched)
            if not status and held.get("spec") != before.get("spec"):
                held["metadata"]["generation"] = held["metadata"].get("generation", 0) + 1
            self.put(held)
        return _encoded(held)


def _without_uid(sent: Json) -> Json:
    return {field: value for field, value in sent["metadata"].items() if field != "uid"}


def _merge(into: Json, patch: Json) -> None:
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif value is None:
            into.pop(key, None)
        else:
            into[key] = copy.deepcopy(value)


def _encoded(object_: Json) -> bytes:
    return json.dumps(object_).encode()
