"""An API server in memory behind a real `ApiClient`: what a `Client` sends is seen as the wire has it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from operator_runtime.client.answers import MAX_OBJECT_BYTES
from operator_runtime.client.api_client import JSON, ApiClient
from operator_runtime.client.asked import Asked
from operator_runtime.client.errors import Conflict, KubeError, NotFound

Json = dict[str, Any]


class Sent(NamedTuple):
    """One request."""

    method: str
    path: str
    query: Json
    body: Json
    content_type: str


class FakeServer(ApiClient):
    """Objects by path; every write that changes something moves the one resourceVersion.

    Attributes:
        sent: requests in their order.
        refusals: what the next requests of a method are answered with instead, as long as there are any.
        pages: objects in one page, 0 for all in one.
    """

    def __init__(self) -> None:
        self.writes = Counter()
        self.requests = Counter()
        self.objects: dict[str, Json] = {}
        self.sent: list[Sent] = []
        self.refusals: dict[str, list[KubeError]] = {}
        self.pages = 0
        self.version = 100

    def put(self, path: str, body: Json) -> Json:
        """Store an object as somebody else would."""
        self.version += 1
        metadata = {"uid": f"uid-{self.version}"} | body["metadata"] | {"resourceVersion": str(self.version)}
        self.objects[path] = body | {"metadata": metadata}
        return self.objects[path]

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
        timeout_s: float | None = None,
        gzip: bool = False,
        guarded: bool = False,
        max_bytes: int = MAX_OBJECT_BYTES,
        asked: Asked | None = None,
    ) -> bytes:
        self.sent.append(Sent(method, path, dict(query or {}), json.loads(body or b"{}"), content_type))
        if self.refusals.get(method):
            raise self.refusals[method].pop(0)
        match method:
            case "GET" if path in self.objects:
                return _dump(self.objects[path])
            case "GET" if path.endswith("s"):
                return _dump(self._page(path, query or {}))
            case "POST":
                name = self.last.body["metadata"].get("name", "generated")
                return _dump(self._put_new(f"{path}/{name}", self.last.body))
            case "PATCH" if "apply" in content_type and path not in self.objects:
                return _dump(self._put_new(path, self.last.body))
            case "PATCH":
                return _dump(self._patched(path))
            case "DELETE" if path in self.objects:
                return self._deleted(path)
        raise NotFound(404, "NotFound", f"{path} not found")

    def _page(self, path: str, query: Mapping[str, str]) -> Json:
        found = [body for each, body in sorted(self.objects.items()) if each.rpartition("/")[0] == path]
        start = int(query.get("continue", "0"))
        size = self.pages if self.pages and "limit" in query else len(found)
        more = {"continue": str(start + size)} if start + size < len(found) else {}
        return {"metadata": {"resourceVersion": str(self.version), **more}, "items": found[start : start + size]}

    def _put_new(self, path: str, body: Json) -> Json:
        if path in self.objects:
            raise Conflict(409, "AlreadyExists", f"{path} already exists")
        return self.put(path, body | {"metadata": {"name": path.rpartition("/")[2]} | body["metadata"]})

    def _patched(self, path: str) -> Json:
        path = path.removesuffix("/status")
        if path not in self.objects:
            raise NotFound(404, "NotFound", f"{path} not found")
        live = self.objects[path]
        patch = self.last.body
        asked = patch.get("metadata", {}).get("resourceVersion")
        if asked not in (None, live["metadata"]["resourceVersion"]):
            raise Conflict(409, "Conflict", "the object has been modified")
        patched: Json = _merged(live, patch)
        if patched == live:
            return live
        left = patched["metadata"]
        if left.get("deletionTimestamp") and not left.get("finalizers"):
            # Not stored once more, but deleted: the answer bears the version from before.
            del self.objects[path]
            return patched
        return self.put(path, patched)

    def _deleted(self, path: str) -> bytes:
        live = self.objects[path]
        uid = self.last.body.get("preconditions", {}).get("uid")
        if uid not in (None, live["metadata"]["uid"]):
            raise Conflict(409, "Conflict", "the UID in the precondition does not match")
        if not live["metadata"].get("finalizers"):
            del self.objects[path]
            return _dump({"kind": "Status", "status": "Success"})
        return _dump(self.put(path, _merged(live, {"metadata": {"deletionTimestamp": "2026-11-21T10:00:00Z"}})))


def _merged(live: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(live) if isinstance(live, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged


def _dump(body: Json) -> bytes:
    return json.dumps(body).encode()
