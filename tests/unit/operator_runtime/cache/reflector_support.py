"""A server that answers as scripted, and a reflector that has heard all of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from operator_runtime.cache.reflector import Reflector
from operator_runtime.cache.store import Store
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError, classify_response
from operator_runtime.client.frames import MAX_PAGE_BYTES
from operator_runtime.client.response_identity import ExpectedList
from tests.unit.operator_runtime.client import watch_support
from tests.unit.things import THINGS, Thing, decode

DEADLINE_S = 60.0
FORBIDDEN = classify_response(
    403, b'{"kind":"Status","code":403,"reason":"Forbidden","message":"things.example.com is forbidden: no"}'
)
TEXT_404 = classify_response(404, b"404 page not found\n")


def line(type_: str, object_: object) -> bytes:
    return watch_support.event(type_, object_) + b"\n"


def end_mark(version: int) -> bytes:
    return watch_support.bookmark(version, end="true") + b"\n"


def bookmark(version: int) -> bytes:
    return watch_support.bookmark(version) + b"\n"


EXPIRED_EVENT = line("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})

# What the server does with one request: refuses it, answers a page, or streams chunks, the last of which may be what
# breaks the stream.
Answer = KubeError | bytes | Sequence[bytes | KubeError]


class Body:
    def __init__(self, chunks: Sequence[bytes | KubeError]) -> None:
        self._chunks = list(chunks)
        self.received_bytes = 0

    async def read(self) -> bytes:
        if not self._chunks:
            return b""
        chunk = self._chunks.pop(0)
        if isinstance(chunk, KubeError):
            raise chunk
        self.received_bytes += len(chunk)
        return chunk


class Server(ApiClient):
    """Answers as scripted, then holds the next request open for ever.

    Attributes:
        discovery: the answer about what the group has in this version, which is outside of the script.
        discoveries: how often that was asked for.
    """

    def __init__(self, *answers: Answer) -> None:
        self.discovery: bytes | KubeError = TEXT_404
        self.discoveries = 0
        self.answers = list(answers)
        self.queries: list[dict[str, str]] = []
        self.open_streams = 0
        self.exhausted = asyncio.Event()

    async def request(self, method: str, path: str, **given: Any) -> bytes:
        assert (method, given["gzip"], given["max_bytes"]) == ("GET", True, MAX_PAGE_BYTES)
        if path == "/apis/example.com/v1":
            self.discoveries += 1
            if isinstance(self.discovery, KubeError):
                raise self.discovery
            return self.discovery
        assert isinstance(given["expected"], ExpectedList)
        answer = await self._next(given["query"])
        return answer if isinstance(answer, bytes) else b"".join(map(_must_be_bytes, answer))

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], silence_limit_s: float) -> AsyncIterator[Any]:
        assert path == "/apis/example.com/v1/namespaces/ns/things"
        answer = await self._next(query)
        assert not isinstance(answer, bytes)
        self.open_streams += 1
        try:
            yield Body(answer)
        finally:
            self.open_streams -= 1

    async def _next(self, query: Mapping[str, str]) -> bytes | Sequence[bytes | KubeError]:
        self.queries.append(dict(query))
        if not self.answers:
            self.exhausted.set()
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if isinstance(answer, KubeError):
            raise answer
        return answer


def _must_be_bytes(chunk: bytes | KubeError) -> bytes:
    assert isinstance(chunk, bytes)
    return chunk


class Run:
    """A reflector that has seen all that the server had to say."""

    def __init__(self, *answers: Answer, crd_hint: str = "") -> None:
        self.server = Server(*answers)
        self.store: Store[Thing] = Store()
        self.changes: list[tuple[Thing | None, Thing | None]] = []
        self.store.add_handler(lambda before, after: self.changes.append((before, after)))
        self.delays_s: list[float] = []
        self.now = 1000.0
        self.reflector = Reflector(
            self.server,
            THINGS,
            decode,
            self.store,
            namespace="ns",
            label_selector="app=x",
            clock=self._clock,
            sleep=self._sleep,
            uniform=lambda low, high: high,
        )
        self.reflector.crd_hint = crd_hint

    def _clock(self) -> float:
        # A quarter of a second for each look: enough for an order, too little for a stream to count as healthy.
        self.now += 0.25
        return self.now

    async def _sleep(self, seconds: float) -> None:
        self.delays_s.append(seconds)
        self.now += seconds

    async def to_the_end(self) -> Run:
        task = asyncio.create_task(self.reflector.run())
        exhausted = asyncio.create_task(self.server.exhausted.wait())
        await asyncio.wait({task, exhausted}, timeout=DEADLINE_S, return_when=asyncio.FIRST_COMPLETED)
        assert not task.done(), task
        assert exhausted.done()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert self.server.open_streams == 0
        return self

    @property
    def sizes(self) -> dict[str, int]:
        found = [self.store.get(key) for key in self.store.keys()]  # noqa: SIM118 - not a dict
        return {each.name: each.size for each in found if each is not None}


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]
