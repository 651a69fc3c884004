"""The API server in memory by the names that the reconciler's tests use: kinds, and the client's methods."""

from __future__ import annotations

import copy
from collections.abc import Iterator, MutableMapping
from typing import NamedTuple

from kube_simulator.schema.kubernetes import builtin_resources
from memcached_operator.core.observed.caches import MEMCACHEDS
from operator_runtime.client.api_client import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from operator_runtime.client.errors import KubeError
from operator_runtime.client.resources import Resource
from tests.unit.fake_server import FakeServer, Json, Sent

_RESOURCES = {each.kind: Resource(each.group, each.version, each.plural, each.kind) for each in builtin_resources()}
_RESOURCES |= {"Memcached": MEMCACHEDS.resource, "Event": Resource("", "v1", "events", "Event")}
_KINDS = {resource.plural: kind for kind, resource in _RESOURCES.items()}
_VERBS = {"GET": "get", "POST": "create", "DELETE": "delete"}
_PATCHES = {MERGE_PATCH: "merge_patch", STRATEGIC_MERGE_PATCH: "strategic_merge_patch"}


class Call(NamedTuple):
    """One request: `verb` is the client's method, with the subresource if there was one."""

    verb: str
    kind: str
    body: Json


class _ByKind(MutableMapping[tuple[str, str, str], Json]):
    """The server's objects by kind, namespace and name."""

    def __init__(self, by_path: dict[str, Json]) -> None:
        self._by_path = by_path

    def __getitem__(self, key: tuple[str, str, str]) -> Json:
        return self._by_path[path_of(*key)]

    def __setitem__(self, key: tuple[str, str, str], value: Json) -> None:
        self._by_path[path_of(*key)] = value

    def __delitem__(self, key: tuple[str, str, str]) -> None:
        del self._by_path[path_of(*key)]

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        for path in self._by_path:
            *_, namespace, plural, name = path.split("/")
            yield _KINDS[plural], namespace, name

    def __len__(self) -> int:
        return len(self._by_path)


class FakeApi(FakeServer):
    """A `FakeServer` to which each write names the field manager of the tests, and no create has unknown fields.

    Attributes:
        calls: requests in their order.
        unserved: what discovery is answered with instead.
        refusals_of: for each verb and kind the answers that the next requests get instead.
    """

    def __init__(self) -> None:
        super().__init__()
        self.objects = _ByKind(self.by_path)
        self.calls: list[Call] = []
        self.refusals_of: dict[tuple[str, str], list[KubeError]] = {}
        self.unserved: KubeError | None = None

    def put(self, object_: Json) -> Json:
        """Store an object as another client would."""
        meta = object_["metadata"]
        return self.store(path_of(object_["kind"], meta["namespace"], meta["name"]), object_)

    def refuse(self, verb: str, kind: str, *errors: KubeError) -> None:
        self.refusals_of.setdefault((verb, kind), []).extend(errors)

    def verbs(self) -> list[str]:
        return [f"{call.verb} {call.kind}" for call in self.calls]

    def refusal(self, sent: Sent) -> KubeError | None:
        """Note the request, and how it is to be refused."""
        path, subresource = sent.of
        if path == "/api/v1":
            return self.unserved
        plural = next(part for part in reversed(path.split("/")) if part in _KINDS)
        verb = _PATCHES[sent.content_type] if sent.method == "PATCH" else _VERBS[sent.method]
        if verb == "get" and sent.of_collection:
            verb = "list"
        if verb not in ("get", "list", "delete"):
            assert sent.query["fieldManager"] == "test-manager", "every write names the field manager"
            assert verb != "create" or subresource or sent.query["fieldValidation"] == "Strict"
        call = Call(f"{verb}/{subresource}" if subresource else verb, _KINDS[plural], copy.deepcopy(sent.body))
        self.calls.append(call)
        refusals = self.refusals_of.get((call.verb, call.kind))
        return refusals.pop(0) if refusals else None


def path_of(kind: str, namespace: str, name: str) -> str:
    return _RESOURCES[kind].path(namespace, name)
