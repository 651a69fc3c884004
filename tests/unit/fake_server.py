"""An API server in memory behind a real `ApiClient`: what is sent is seen as the wire has it."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kube_simulator.patches.merge import merge_patch
from kube_simulator.patches.strategic import strategic_merge
from kube_simulator.schema import kubernetes
from operator_runtime.client.api_client import JSON, STRATEGIC_MERGE_PATCH, ApiClient
from operator_runtime.client.bounded_bodies import MAX_OBJECT_BYTES
from operator_runtime.client.errors import Conflict, Invalid, KubeError, NotFound, StatusCause
from operator_runtime.client.response_identity import Expected

Json = dict[str, Any]
_SCHEMAS = {each.plural: each.schema for each in kubernetes.builtin_resources()}
_SUBRESOURCES = ("status", "resize", "eviction", "scale")


class Sent(NamedTuple):
    """One request."""

    method: str
    path: str
    query: Json
    body: Json
    content_type: str

    @property
    def of(self) -> tuple[str, str]:
        """The path of the object or the collection, and the subresource."""
        path, _, last = self.path.rpartition("/")
        return (path, last) if last in _SUBRESOURCES else (self.path, "")

    @property
    def of_collection(self) -> bool:
        return re.fullmatch(r"/(api|apis/[^/]+)/[^/]+(/namespaces/[^/]+)?/[^/]+", self.path) is not None


class FakeServer(ApiClient):
    """Objects `by_path`; every write that changes something moves the one resourceVersion.

    An object is changed in place, so that a test that holds one sees what became of it.

    Attributes:
        sent: requests in their order.
        refusals: what the next requests of a method are answered with instead, as long as there are any.
        core: what discovery says that the core group has.
        pages: objects in one page, 0 for all in one.
        admission: changes what a strategic merge patch sends, as a mutating policy does.
    """

    def __init__(self) -> None:
        self.writes = Counter()
        self.requests = Counter()
        self.by_path: dict[str, Json] = {}
        self.sent: list[Sent] = []
        self.refusals: dict[str, list[KubeError]] = {}
        self.pages = 0
        self.core: tuple[str, ...] = ("pods", "pods/resize")
        self.version = 100
        self.admission: Callable[[Json], object] | None = None

    def store(self, path: str, body: Json) -> Json:
        """Store an object as another client would."""
        self.version += 1
        body["metadata"] = {"uid": f"uid-{self.version}"} | body["metadata"] | {"resourceVersion": str(self.version)}
        self.by_path[path] = body
        return body

    @property
    def methods(self) -> list[str]:
        return [each.method for each in self.sent]

    @property
    def last(self) -> Sent:
        return self.sent[-1]

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        gzip: bool = False,
        guarded: bool = False,
        max_bytes: int = MAX_OBJECT_BYTES,
        expected: Expected | None = None,
    ) -> bytes:
        sent = Sent(method, path, dict(query or {}), json.loads(body or b"{}"), content_type)
        self.sent.append(sent)
        if refusal := self.refusal(sent):
            raise refusal
        return json.dumps(self._answer(sent)).encode()

    def refusal(self, sent: Sent) -> KubeError | None:
        """The error that a request is answered with."""
        refusals = self.refusals.get(sent.method)
        return refusals.pop(0) if refusals else None

    def _answer(self, sent: Sent) -> Json:
        path, subresource = sent.of
        match sent.method:
            case "GET" if sent.path == "/api/v1":
                return {"resources": [{"name": each, "kind": "", "namespaced": True} for each in self.core]}
            case "GET" if path in self.by_path:
                return self.by_path[path]
            case "GET" if sent.of_collection:
                return self._page(path, sent.query)
            case "POST" if subresource == "eviction":
                _hold_to(self._held(path), sent.body["deleteOptions"]["preconditions"])
                del self.by_path[path]
                return {"kind": "Status", "apiVersion": "v1", "status": "Success"}
            case "POST":
                return self._put_new(f"{path}/{sent.body['metadata'].get('name', 'generated')}", sent.body)
            case "PATCH" if "apply" in sent.content_type and path not in self.by_path:
                return self._put_new(path, sent.body)
            case "PATCH":
                return self._patched(path, sent, subresource)
            case "DELETE":
                return self._deleted(path, sent.body)
        raise NotFound(404, "NotFound", f"{path} not found")

    def _held(self, path: str) -> Json:
        if path not in self.by_path:
            raise NotFound(404, "NotFound", f"{path} not found")
        return self.by_path[path]

    def _page(self, path: str, query: Mapping[str, str]) -> Json:
        found = [body for each, body in sorted(self.by_path.items()) if each.rpartition("/")[0] == path]
        for requirement in filter(None, query.get("fieldSelector", "").split(",")):
            field, _, value = requirement.removeprefix("involvedObject.").partition("=")
            found = [body for body in found if body["involvedObject"].get(field) == value]
        start = int(query.get("continue", "0"))
        size = self.pages if self.pages and "limit" in query else len(found)
        more = {"continue": str(start + size)} if start + size < len(found) else {}
        return {"metadata": {"resourceVersion": str(self.version), **more}, "items": found[start : start + size]}

    def _put_new(self, path: str, body: Json) -> Json:
        if path in self.by_path:
            raise Conflict(409, "AlreadyExists", f"{path} already exists")
        name = path.rpartition("/")[2]
        return self.store(path, body | {"metadata": {"name": name, "generation": 1} | body["metadata"], "status": {}})

    def _patched(self, path: str, sent: Sent, subresource: str) -> Json:
        held = self._held(path)
        metadata = dict(sent.body.get("metadata", {}))
        if metadata.pop("resourceVersion", held["metadata"]["resourceVersion"]) != held["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", "the object has been modified")
        if metadata.pop("uid", held["metadata"]["uid"]) != held["metadata"]["uid"]:
            cause = StatusCause("FieldValueInvalid", "field is immutable", "metadata.uid")
            raise Invalid(422, "Invalid", "metadata.uid: field is immutable", causes=(cause,))
        patch = sent.body | {"metadata": metadata}
        if sent.content_type == STRATEGIC_MERGE_PATCH:
            if self.admission and not subresource:
                self.admission(patch)
            patched = strategic_merge(held, patch, _SCHEMAS[path.split("/")[-2]])
        else:
            patched = merge_patch(held, patch)
        if patched == held:
            return held
        left = patched["metadata"]
        if left.get("deletionTimestamp") and not left.get("finalizers") and held["metadata"].get("finalizers"):
            # Not stored once more, but deleted: the answer bears the version from before.
            del self.by_path[path]
            return patched
        if not subresource and held.get("spec") != patched.get("spec"):
            left["generation"] = left.get("generation", 0) + 1
        held.clear()
        held |= copy.deepcopy(patched)
        return self.store(path, held)

    def _deleted(self, path: str, options: Json) -> Json:
        """In the foreground it stays until the garbage collector, which is the test, has deleted its dependents."""
        held = self._held(path)
        _hold_to(held, options.get("preconditions") or {})
        foreground = options.get("propagationPolicy") == "Foreground"
        finalizers = [*held["metadata"].get("finalizers", ()), *(["foregroundDeletion"] if foreground else [])]
        if not finalizers:
            del self.by_path[path]
            return {"kind": "Status", "status": "Success"}
        held["metadata"] |= {"deletionTimestamp": "2026-11-21T12:00:00Z", "finalizers": finalizers}
        return self.store(path, held)


def _hold_to(held: Json, preconditions: Json) -> None:
    if any(held["metadata"][field] != value for field, value in preconditions.items()):
        raise Conflict(409, "Conflict", "Precondition failed")
