"""Real memcacheds behind a cluster that only answers for them: no API server forwards, and no pod is a pod."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kubectl_memcached.cluster import UserCluster
from kubectl_memcached.objects import ShownMemcached, decode_memcached
from kubectl_memcached.port_forward import PortForwarder
from operator_runtime.client.api_client import ApiClient
from operator_runtime.testing.waiting import until

HOST = "127.0.0.1"
NAMESPACE, NAME = "shop", "cache"


class _Tunnel:
    def __init__(self, pod: str, near: socket.socket) -> None:
        self.pod, self.near, self.failure = pod, near, ""


class _Forwarder:
    def __init__(self, ports: Mapping[str, int]) -> None:
        self._ports = ports

    @asynccontextmanager
    async def tunnel(self, _namespace: str, pod: str, _port: int) -> AsyncIterator[_Tunnel]:
        with socket.create_connection((HOST, self._ports[pod])) as near:
            near.setblocking(False)
            yield _Tunnel(pod, near)


class _Client:
    access = SimpleNamespace(description="context test of a kubeconfig")

    def __init__(self, pods: Sequence[str]) -> None:
        self._pods = pods
        self.statuses: Iterator[Mapping[str, Any]] = repeat({})

    async def request(self, _method: str, path: str, **_: Any) -> bytes:
        if path.endswith(f"/memcacheds/{NAME}"):
            return json.dumps(_document(next(self.statuses))).encode()
        status = {"phase": "Running", "podIP": HOST, "containerStatuses": [{"name": "memcached", "ready": True}]}
        pods = [{"metadata": {"name": each, "namespace": NAMESPACE}, "status": status} for each in self._pods]
        return json.dumps({"items": pods}).encode()


class RealServers:
    """Memcacheds, by the names of their pods."""

    def __init__(self, ports: Mapping[str, int]) -> None:
        self.ports = ports
        self._client = _Client([*ports])
        self.cluster = UserCluster(cast(ApiClient, self._client), cast(PortForwarder, _Forwarder(ports)), NAMESPACE)

    def show(self, *statuses: Mapping[str, Any]) -> None:
        """Have the API server show these statuses, one at each look, and the last one from then on."""
        self._client.statuses = chain(statuses, repeat(statuses[-1]))

    @property
    def memcached(self) -> ShownMemcached:
        return shown_memcached()

    def answer(self, pod: str, request: bytes) -> bytes:
        """What a server answers requests, up to the answer to `mn`."""
        with socket.create_connection((HOST, self.ports[pod])) as connection:
            connection.sendall(request + b"mn\r\n")
            received = b""
            while not received.endswith(b"MN\r\n"):
                received += connection.recv(1 << 16)
        return received.removesuffix(b"MN\r\n")

    def fill(self, pod: str, items: Mapping[str, int]) -> None:
        """Store values of so many bytes."""
        stores = (b"set %b 0 0 %d noreply\r\n%b\r\n" % (key.encode(), size, b"v" * size) for key, size in items.items())
        assert self.answer(pod, b"".join(stores)) == b""

    def stat(self, pod: str, name: str) -> int:
        """A figure of `stats`."""
        lines = dict(line.split(b" ", 2)[1:] for line in self.answer(pod, b"stats\r\n").splitlines() if b" " in line)
        return int(lines[name.encode()])


def shown_memcached(**status: Any) -> ShownMemcached:
    """A Memcached as the API server has it."""
    return decode_memcached(json.dumps(_document(status)))


def _document(status: Mapping[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {"size": 1}, "status": status}


@contextmanager
def real_servers(count: int, *options: str) -> Iterator[RealServers]:
    """So many memcacheds of this machine until the end of the block."""
    program = shutil.which("memcached") or "memcached"
    if shutil.which(program) is None and not os.environ.get("CI"):
        pytest.skip("no memcached on the PATH")
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = {f"{NAME}-{ordinal}": each.getsockname()[1] for ordinal, each in enumerate(sockets)}
    for each in sockets:
        each.close()
    processes = [
        subprocess.Popen([program, "-l", HOST, "-p", str(port), "-u", "nobody", "-t", "2", *options])
        for port in ports.values()
    ]
    try:
        for port in ports.values():
            until(f"a memcached listens on {port}", lambda port=port: _listens(port))  # type: ignore[misc]
        yield RealServers(ports)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port)):
        return True
    return False
