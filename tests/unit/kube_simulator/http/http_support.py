"""An API server on a loopback port, without TLS, whose requests for resources end in a stub."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from kube_simulator.access.authorizer import Authorizer
from kube_simulator.access.users import ANONYMOUS
from kube_simulator.errors import unauthorized
from kube_simulator.faults import Faults
from kube_simulator.http.audit import AuditLog
from kube_simulator.http.discovery import Discovery
from kube_simulator.http.server import HttpServer, Parts
from kube_simulator.http.verbs import Answer, ResourceRequest
from kube_simulator.requests.types import User
from kube_simulator.resources import Registry
from kube_simulator.schema import kubernetes
from kube_simulator.store.store import Store
from kube_simulator.store.watches import Watches
from kube_simulator.values import Json

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/a/leases"
_LEASES = "leases.coordination.k8s.io"
ADMINISTRATOR = User("admin", frozenset({"system:masters"}))


def lease(name: str, **metadata: Any) -> Json:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "a", "uid": name, **metadata},
        "spec": {},
    }


class StubVerbs:
    """Notes what is asked for, and answers with it."""

    def __init__(self) -> None:
        self.received: list[ResourceRequest] = []
        self.fail: Exception | None = None
        self.body = b'{"kind":"Lease"}\n'

    async def answer(self, received: ResourceRequest, named: Callable[[str], None]) -> Answer:
        self.received.append(received)
        if self.fail is not None:
            raise self.fail
        if received.verb == "create":
            named("created")
            return Answer(201, self.body)
        return Answer(200, self.body)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        found: Json = orjson.loads(self.body)
        return found


@dataclass(slots=True)
class Served:
    """The server under test, and what it works with."""

    store: Store
    registry: Registry
    watches: Watches
    faults: Faults
    verbs: StubVerbs
    server: HttpServer
    audit_path: Path
    client: aiohttp.ClientSession
    port: int = 0
    url: str = ""
    streams: list[aiohttp.ClientResponse] = field(default_factory=list)

    def put(self, name: str, **metadata: Any) -> Json:
        return self.store.put(_LEASES, lease(name, **metadata))

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.request("GET", path, None, **headers)

    async def request(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """Underscores in the names of headers stand for dashes."""
        async with self.client.request(
            method, f"{self.url}{path}", data=io.BytesIO(body) if body else None, headers=_named(headers)
        ) as answer:
            return Reply(answer.status, answer.headers, await answer.read())

    async def watch(self, query: str = "", **headers: str) -> aiohttp.ClientResponse:
        """A running watch of the leases."""
        answer = await self.client.get(f"{self.url}{LEASES}?watch=1{query}", headers=_named(headers))
        self.streams.append(answer)
        return answer

    async def start(self) -> None:
        await self.server.start("127.0.0.1", self.port, None)
        assert self.server._listener is not None
        self.port = self.server._listener.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def audited(self) -> list[Json]:
        return [orjson.loads(line) for line in self.audit_path.read_bytes().splitlines()]


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {"Authorization": "Bearer admin"} | {key.replace("_", "-"): value for key, value in headers.items()}


def authenticate(_certificate: bytes | None, authorization: str | None) -> User:
    if authorization == "Bearer admin":
        return ADMINISTRATOR
    if authorization is None or authorization == "":
        return ANONYMOUS
    raise unauthorized()


@asynccontextmanager
async def served(directory: Path) -> AsyncIterator[Served]:
    """A server that runs."""
    store, registry = Store(), Registry()
    for resource in kubernetes.builtin_resources():
        registry.put(resource)
    watches, faults, verbs = Watches(store, asyncio.get_running_loop().time), Faults(), StubVerbs()
    audit = AuditLog(directory / "audit.log", lambda: NOW)
    server = HttpServer(
        Parts(
            verbs=verbs,  # type: ignore[arg-type]
            watches=watches,
            discovery=Discovery(registry, lambda: "127.0.0.1:6443"),
            authenticate=authenticate,
            authorizer=Authorizer(store),
            faults=faults,
            audit=audit,
            registry=registry,
            now=lambda: NOW,
            streaming_lists=True,
        )
    )
    async with aiohttp.ClientSession() as client:
        found = Served(store, registry, watches, faults, verbs, server, directory / "audit.log", client)
        await found.start()
        try:
            yield found
        finally:
            faults.clear()
            for stream in found.streams:
                stream.close()
            await server.stop()
            audit.close()


async def events(answer: aiohttp.ClientResponse, count: int) -> list[Json]:
    """The next events of a watch."""
    found = []
    for _ in range(count):
        line = await asyncio.wait_for(answer.content.readline(), 60)
        assert line.endswith(b"\n"), line
        found.append(orjson.loads(line))
    return found


def key(event: Json) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")
