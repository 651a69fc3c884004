"""The simulator's verbs on a store of their own, with the built-in kinds and one custom one, and without HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kube_simulator.admission.chain import Admission
from kube_simulator.errors import ApiError
from kube_simulator.requests.api import Api
from kube_simulator.requests.types import Caller, Patch, Target, User, WriteOptions, Written
from kube_simulator.resources import Registry
from kube_simulator.schema import kubernetes
from kube_simulator.schema.custom import resources_of
from kube_simulator.store.store import Change, Store
from kube_simulator.values import Json

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CALLER = Caller(User("tester", frozenset({"system:masters"})), "test")
NAMESPACE = "shop"
_SIZE = {"type": "integer", "format": "int32", "minimum": 0, "default": 1}
_NODES = {"type": "array", "items": {"type": "string"}}


def crd() -> Json:
    """A kind Widget with a size, a status and a scale."""
    properties = {
        "spec": {"type": "object", "default": {}, "properties": {"size": _SIZE}},
        "status": {"type": "object", "properties": {"nodes": _NODES, "replicas": {"type": "integer"}}},
    }
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}, "scale": scale},
    }
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [version],
        },
    }


@dataclass
class Bench:
    """The verbs, what the store was told, and the present time."""

    now: datetime = NOW
    changes: list[Change] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store, self.registry = Store(), Registry()
        for resource in (*kubernetes.builtin_resources(), *resources_of(crd())):
            self.registry.put(resource)
        admission = Admission(self.store)
        self.refuse_creation = False
        self.api = Api(self.store, self.registry, admission, now=lambda: self.now, may_create=self._may_create)
        self.store.put("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        self.store.subscribe(self.changes.append)

    def _may_create(self, target: Target, caller: Caller) -> None:
        if self.refuse_creation:
            raise ApiError(403, "Forbidden", f"{caller.user.name} cannot create {target.resource.full_name}")

    def target(self, plural: str, name: str = "", subresource: str = "", namespace: str = NAMESPACE) -> Target:
        """What is asked for, by the plural of its resource."""
        found = [each for each in self.registry if each.plural == plural and each.group != ""]
        found += [each for each in self.registry if each.plural == plural and each.group == ""]
        return Target(found[0], namespace if found[0].namespaced else "", name, subresource)

    async def create(self, plural: str, body: Json, **options: Any) -> Written:
        """POST."""
        return await self.api.create(self.target(plural), body, CALLER, WriteOptions(**options))

    async def patch(self, plural: str, name: str, body: Any, kind: Any = "merge", **options: Any) -> Written:
        """PATCH; a name may have a subresource after a slash."""
        name, _, subresource = name.partition("/")
        return await self.api.patch(
            self.target(plural, name, subresource), Patch(kind, body), CALLER, WriteOptions(**options)
        )

    async def put(self, plural: str, name: str, body: Json) -> Written:
        """PUT; a name may have a subresource after a slash."""
        name, _, subresource = name.partition("/")
        return await self.api.update(self.target(plural, name, subresource), body, CALLER)

    def heard(self) -> list[tuple[str, str]]:
        """Type and name of each change since the last time."""
        found: list[tuple[str, str]] = [(each.type, each.object["metadata"]["name"]) for each in self.changes]
        self.changes.clear()
        return found


def config_map(name: str, data: Json | None = None, **metadata: Any) -> Json:
    """The plainest of objects."""
    body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return body if data is None else body | {"data": data}


def widget(name: str, spec: Json | None = None, **metadata: Any) -> Json:
    """An object of the custom kind."""
    body: Json = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, **metadata}}
    return body if spec is None else body | {"spec": spec}
