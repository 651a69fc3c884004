"""A cluster without anything behind it, and states as the API would show them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memcached_operator.demo import caching
from memcached_operator.demo.cluster_state import ClusterState
from memcached_operator.demo.clusters import DemoCluster
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Unreachable

Json = dict[str, Any]


class AcceptingClient(ApiClient):
    """Takes every request, and nothing comes of it."""

    def __init__(self, *, down: bool = False) -> None:
        self.down = down
        self.writes = Counter()

    async def request(self, method: str, path: str, **_: object) -> bytes:
        if self.down:
            raise Unreachable("down")
        return b'{"metadata": {"generation": 2}}'


async def nothing_to_do() -> None:
    """What a cluster needs after the CRD."""


def cluster(*, real_pods: bool = False, kubeconfig: Path = Path("/k/config")) -> DemoCluster:
    """A cluster whose server nobody asks."""
    return DemoCluster(
        server="https://127.0.0.1:6443", kubeconfig=kubeconfig, real_pods=real_pods,
        what="an API server of a test", pods="made up", kind_installed=nothing_to_do,
    )  # fmt: skip


def object_of(name: str, **fields: Any) -> Json:
    """An object of that name."""
    return {"metadata": {"name": name, **fields.pop("metadata", {})}, **fields}


def pod(memcached: str, suffix: str, *, ready: bool = True, address: str = "127.0.0.1", **metadata: Any) -> Json:
    """A pod of a Memcached."""
    conditions = [{"type": "Ready", "status": str(ready)}]
    return object_of(
        f"{memcached}-{suffix}",
        metadata={"labels": {"app": "memcached", "memcached_cr": memcached}, "uid": "1", **metadata},
        status={"phase": "Running", "podIP": address, "conditions": conditions},
    )


def running(name: str, size: int, *, address: str = "127.0.0.1", named: bool = False) -> ClusterState:
    """A Memcached at rest, with all of its servers, whose names last or do not."""
    pods = [pod(name, str(number), address=address) for number in range(size)]
    conditions = [
        {"type": "Ready", "status": "True", "reason": "AllServersReady", "message": "all is as asked."},
        {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "all are ready."},
        {"type": "Progressing", "status": "False", "reason": "Complete", "message": "done."},
        {"type": "Degraded", "status": "False", "reason": "AsExpected", "message": "fine."},
    ]
    hosts = [f"{name}-{number}.{name}.default.svc" if named else address for number in range(size)]
    status = {"replicas": size, "readyReplicas": size, "conditions": conditions}
    status |= {"serverList": [f"{each}:11211" for each in hosts], "nodes": [each["metadata"]["name"] for each in pods]}
    meta = {"ownerReferences": [{"kind": "Memcached", "name": name}], "uid": "1", "generation": 1}
    workload = object_of(name, metadata=meta, spec={"replicas": size}, status={"readyReplicas": size})
    event = {"reason": "Created", "type": "Normal", "note": f"Created Deployment {name}"}
    return ClusterState(
        memcacheds={name: object_of(name, spec={"size": size}, status=status)},
        deployments={} if named else {name: workload},
        stateful_sets={name: workload} if named else {},
        pods={each["metadata"]["name"]: each for each in pods},
        events=({**event, "eventTime": "2026-01-01T10:11:12.000000Z"},),
    )


@asynccontextmanager
async def memcached_server(
    monkeypatch: pytest.MonkeyPatch, *, forgets: frozenset[str] = frozenset(), answers: bool = True
) -> AsyncIterator[str]:
    """A server of memcached's text protocol on a port of its own; its address."""
    kept: dict[bytes, bytes] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        verb, key, *_ = (await reader.readline()).split()
        if answers and verb == b"set":
            kept[key] = (await reader.readline()).strip()
            writer.write(b"STORED\r\n")
        elif answers:
            value = kept.get(key)
            there = value is not None and key.decode() not in forgets
            found = b"VALUE %b 0 %d\r\n%b\r\n" % (key, len(value or b""), value or b"") if there else b""
            writer.write(found + b"END\r\n")
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    monkeypatch.setattr(caching, "PORT", listening.sockets[0].getsockname()[1])
    async with listening:
        yield "127.0.0.1"
