"""How the harness itself speaks to the API server: as an administrator, over connections of its own."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import msgspec
import orjson

from operator_runtime.client.resources import Resource

MEMCACHEDS = Resource("cache.example.com", "v1alpha1", "memcacheds", "Memcached")
NAMESPACE = "default"


class Endpoint(msgspec.Struct, frozen=True):
    """An API server and a client certificate for it; as JSON it is passed to the load generator's process."""

    server: str
    authority: str
    certificate: str
    key: str

    @staticmethod
    def from_kubeconfig(kubeconfig: Path, authority: Path) -> Endpoint:
        """The endpoint of a kubeconfig that the lab wrote; its certificate goes to files beside it, as ssl wants."""
        config = orjson.loads(kubeconfig.read_bytes())
        user = config["users"][0]["user"]
        files = []
        for field in ("client-certificate-data", "client-key-data"):
            path = kubeconfig.with_suffix(f".{field}.pem")
            path.touch(mode=0o600)
            path.write_bytes(base64.b64decode(user[field]))
            files.append(str(path))
        return Endpoint(config["clusters"][0]["cluster"]["server"], str(authority), *files)

    def session(self, connections: int) -> aiohttp.ClientSession:
        """A session without time limits of its own: whoever uses it bounds the whole."""
        context = ssl.create_default_context(cafile=self.authority)
        context.load_cert_chain(self.certificate, self.key)
        return aiohttp.ClientSession(
            self.server,
            connector=aiohttp.TCPConnector(ssl=context, limit=connections),
            timeout=aiohttp.ClientTimeout(total=None),
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "benchmark"},
        )


def memcached_name(index: int) -> str:
    """The name of the Memcached with this number."""
    return f"bench-{index:05d}"


# Nothing beside the servers.
_BARE = {"service": {"type": "Disabled"}, "disruptionBudget": {"maxUnavailable": "100%"}}


def memcached(name: str, size: int, *, extras: bool) -> Mapping[str, object]:
    """The body that creates one: with a Service and a disruption budget, as by default, or with neither."""
    return {
        "apiVersion": MEMCACHEDS.api_version,
        "kind": MEMCACHEDS.kind,
        "metadata": {"namespace": NAMESPACE, "name": name},
        "spec": {"size": size} | ({} if extras else _BARE),
    }


async def resize(session: aiohttp.ClientSession, name: str, size: int) -> None:
    """Change one Memcached's size by merge patch, as `kubectl patch --type=merge` does."""
    async with session.patch(
        MEMCACHEDS.path(NAMESPACE, name),
        data=orjson.dumps({"spec": {"size": size}}),
        headers={"Content-Type": "application/merge-patch+json"},
        raise_for_status=True,
    ) as answer:
        await answer.read()
