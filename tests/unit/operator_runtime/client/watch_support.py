"""What the tests of list and watch share: lines and pages as a server sends them, and a sink that writes down."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from operator_runtime.client.watch import Request
from tests.unit.things import thing

HTML = b"<html><body>Please log in</body></html>"


class Mode(StrEnum):
    STREAMING_LIST = "streaming list"
    PAGES = "paged list"
    RESUMED = "watch"


def mode_of(request: Request) -> Mode:
    """What a request is for, by its query."""
    if "sendInitialEvents" in request.query:
        return Mode.STREAMING_LIST
    return Mode.RESUMED if request.streams else Mode.PAGES


@dataclass
class Sink:
    """Writes down what it receives."""

    received: list[tuple[Any, ...]] = field(default_factory=list)
    why: list[str] = field(default_factory=list)

    def begin(self) -> None:
        self.received.append(("begin",))

    def put(self, record: Any) -> None:
        self.received.append(("put", record.name, record.resource_version))

    def remove(self, record: Any) -> None:
        self.received.append(("remove", record.name, record.resource_version))

    def complete(self, resource_version: str) -> None:
        self.received.append(("complete", resource_version))

    def unreadable(self, namespace: str, name: str, gone: bool, why: str) -> None:
        self.received.append(("unreadable", namespace, name, gone))
        self.why.append(f"{namespace}/{name}: {why}")

    def take(self) -> list[tuple[Any, ...]]:
        received, self.received = self.received, []
        return received


def event(type_: str, object_: object) -> bytes:
    return json.dumps({"type": type_, "object": object_}).encode()


def bookmark(version: object, *, end: object = None) -> bytes:
    annotations = {} if end is None else {"annotations": {"k8s.io/initial-events-end": end}}
    return event("BOOKMARK", {"kind": "Thing", "metadata": {"resourceVersion": str(version), **annotations}})


def status(code: int, reason: str = "", **fields: object) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no", **fields}


def page(version: str, *names: str, more: str = "", items: list[Any] | None = None) -> bytes:
    listed = [thing(name, 1) for name in names] if items is None else items
    meta = {"resourceVersion": version} | ({"continue": more} if more else {})
    return json.dumps({"kind": "ThingList", "metadata": meta, "items": listed}).encode()
