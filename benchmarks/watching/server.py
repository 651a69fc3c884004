"""An API server of which there is nothing but lists, watches, and writes of a Memcached's status."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from aiohttp import web

from benchmarks.endpoint import MEMCACHEDS
from benchmarks.watching.world import World
from kube_simulator.access import kubeconfig, pki
from operator_runtime.client.resources import EVENTS, PODS

_HOST = "127.0.0.1"
_BOOKMARK_EVERY_S = 30.0
# As the API server sends what is ready in one piece.
_CHUNK_BYTES = 64 * 2**10
_TICK_S = 0.02
_END_DEADLINE_S = 1.0
_UNREADY_S = 5.0


@dataclass(slots=True)
class Requests:
    """What was asked that is none of what is played, by "METHOD path"."""

    unknown: dict[str, int] = field(default_factory=dict)


class Server:
    """Plays a world, from `start` to `stop`; between two operators the world can be exchanged."""

    def __init__(self, directory: Path, world: World) -> None:
        self._directory = directory
        self._authority = pki.Authority(directory / "pki", "memcached-operator bench-watch")
        self.world = world
        self.requests = Requests()
        self.port = 0
        self._streams: dict[str, set[asyncio.Queue[bytes]]] = {}
        self._listed: dict[str, asyncio.Event] = {}
        self._runner = web.ServerRunner(
            web.Server(self._handle, access_log=None, handler_cancellation=True), shutdown_timeout=_END_DEADLINE_S
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables by which a pod finds the API server."""
        return {"KUBERNETES_SERVICE_HOST": _HOST, "KUBERNETES_SERVICE_PORT": str(self.port)}

    @property
    def account(self) -> Path:
        """The folder of a service account."""
        return kubeconfig.write_account(
            self._directory / "account", token="of-nobody", authority=self._authority.certificate, namespace="default"
        )

    async def start(self) -> None:
        """Listen on a free port."""
        pair = self._authority.server("api", [_HOST])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        await self._runner.setup()
        site = web.TCPSite(self._runner, _HOST, 0, ssl_context=context)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """End everything."""
        await self._runner.cleanup()

    async def pods_listed(self) -> None:
        """Wait until an operator has been sent all pods."""
        await self._listed.setdefault(PODS.plural, asyncio.Event()).wait()

    async def play(self, changes: int, per_s: float, *, ready: bool) -> None:
        """Send so many changes of pods: of their readiness, or of nothing that matters.

        Readiness goes, and comes back some seconds later: a status is written in between, even by a busy operator.
        """
        loop = asyncio.get_running_loop()
        began_s, lag = loop.time(), max(1, int(per_s * _UNREADY_S))
        for number in range(changes):
            if (early_s := number / per_s - (loop.time() - began_s)) > _TICK_S:
                await asyncio.sleep(early_s)
            self._send(PODS.plural, "MODIFIED", self._changed(number, lag) if ready else self._touched(number))

    def _touched(self, number: int) -> bytes:
        return self.world.touch(self._scattered(number))

    def _changed(self, number: int, lag: int) -> bytes:
        turn, place = divmod(number, 2 * lag)
        back, place = divmod(place, lag)
        return self.world.set_ready(self._scattered(turn * lag + place), ready=bool(back))

    def _scattered(self, number: int) -> int:
        """One pod of each Memcached before the second of any."""
        place, owner = divmod(number, self.world.count)
        return owner * self.world.size + place % self.world.size

    def _send(self, plural: str, kind: str, found: bytes) -> None:
        for queue in self._streams.get(plural, ()):
            queue.put_nowait(_line(kind, found))

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        *_, plural = collection = request.path.strip("/").split("/")
        if request.method == "GET" and request.query.get("watch") in ("1", "true"):
            accept = request.headers.get("Accept", "*/*")
            if not any(known in accept for known in ("application/json", "*/*")):
                return web.Response(status=406)
            return await self._watch(request, plural)
        if collection[-1] == "status" and MEMCACHEDS.plural in collection:
            found = self.world.write_status(collection[-2], await request.read())
            if found is not None:
                self._send(MEMCACHEDS.plural, "MODIFIED", found)
                return web.Response(body=found, content_type="application/json")
        if request.method == "POST" and plural == EVENTS.plural:
            return web.Response(status=201, body=await request.read(), content_type="application/json")
        unplayed = f"{request.method} {request.path}"
        self.requests.unknown[unplayed] = self.requests.unknown.get(unplayed, 0) + 1
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        return web.Response(status=404, body=orjson.dumps(status), content_type="application/json")

    async def _watch(self, request: web.BaseRequest, plural: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        streams = self._streams.setdefault(plural, set())
        streams.add(queue)
        listed = self._listed.setdefault(plural, asyncio.Event())
        try:
            if "sendInitialEvents" in request.query:
                await self._list(response, plural)
            listed.set()
            while True:
                await response.write(await self._next(queue))
        except ConnectionError:
            return response
        finally:
            streams.discard(queue)
            listed.clear()

    async def _list(self, response: web.StreamResponse, plural: str) -> None:
        chunk = bytearray()
        for found in self.world.objects(plural):
            chunk += _line("ADDED", found)
            if len(chunk) >= _CHUNK_BYTES:
                await response.write(bytes(chunk))
                chunk.clear()
        await response.write(bytes(chunk) + _bookmark(self.world.version, listed=True))

    async def _next(self, queue: asyncio.Queue[bytes]) -> bytes:
        try:
            async with asyncio.timeout(_BOOKMARK_EVERY_S):
                lines = [await queue.get()]
        except TimeoutError:
            return _bookmark(self.world.version)
        with suppress(asyncio.QueueEmpty):
            while True:
                lines.append(queue.get_nowait())
        return b"".join(lines)


def _line(kind: str, found: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), found)


def _bookmark(version: int, *, listed: bool = False) -> bytes:
    metadata = {"resourceVersion": str(version)}
    if listed:
        return _line(
            "BOOKMARK",
            orjson.dumps({"metadata": metadata | {"annotations": {"k8s.io/initial-events-end": "true"}}}),
        )
    return _line("BOOKMARK", orjson.dumps({"metadata": metadata}))
