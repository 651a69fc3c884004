"""A proxy between an operator and the API server that does to connections what networks, load balancers and overloaded
servers do, when a test asks for it, and keeps count.

It ends TLS on both sides, so that it knows which request a byte belongs to.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import uvloop

from kube_simulator.access.pki import Pair
from operator_runtime.testing.waiting import DEADLINE_S, await_none

T = TypeVar("T")

_HOST = "127.0.0.1"
_CHUNK_BYTES = 4_096
# A kernel buffers megabytes for a slow reader; what a test calls slow must be slow from the first byte on.
_BUFFER_BYTES = 16_384
_HEAD_END = b"\r\n\r\n"
# By SO_LINGER a close() resets the connection instead of ending it in good order.
_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Request:
    """One request that reached the proxy, and when by the monotonic clock."""

    method: str
    target: str
    at_s: float

    def watches(self, plural: str) -> bool:
        """Whether it is a watch of that kind."""
        path, _, query = self.target.partition("?")
        return path.endswith(f"/{plural}") and "watch=1" in query


Which = Callable[[Request], bool]
"""Says which requests a fault is for."""


def every(_: Request) -> bool:
    """All requests."""
    return True


def watch_of(*plurals: str) -> Which:
    """Watches of these kinds."""
    return lambda request: any(request.watches(plural) for plural in plurals)


def writes_on(plural: str) -> Which:
    """Requests that change an object of that kind, or one of its subresources."""
    return lambda request: request.method != "GET" and f"/{plural}" in request.target


@dataclass(slots=True)
class _Refusal:
    which: Which
    code: int
    retry_after_s: int | None

    def answer(self) -> bytes:
        reasons = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "the proxy refuses this",
            "reason": reasons[self.code],
            "code": self.code,
        }
        body = json.dumps(status).encode()
        wait = "" if self.retry_after_s is None else f"Retry-After: {self.retry_after_s}\r\n"
        head = f"HTTP/1.1 {self.code} {reasons[self.code]}\r\nContent-Type: application/json\r\n{wait}"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass(eq=False, slots=True)
class _Link:
    """One connection of the operator, and the one that was made for it.

    `lost`: nothing that comes from either side is passed on, and neither is told.
    """

    near: asyncio.StreamWriter
    far: asyncio.StreamWriter
    request: Request | None = None
    lost: bool = False

    def abort(self) -> None:
        self.near.transport.abort()
        self.far.transport.abort()


@dataclass(slots=True)
class _Faults:
    """What is in force now."""

    refusals: list[_Refusal] = field(default_factory=list)
    holds: list[tuple[Which, asyncio.Event]] = field(default_factory=list)
    resets: list[Which] = field(default_factory=list)
    losses: list[Which] = field(default_factory=list)
    closed: bool = False
    delay_s: float = 0.0
    bytes_per_s: float = 0.0


class FaultProxy:
    """Listens on loopback, on an event loop and a thread of its own; a context manager. Without a fault it passes
    everything on.

    `requests` has each request in the order in which it came. `count` says what befell connections: "connections",
    "refused" (requests), "held" (requests), "closed" (connections at their start), "cut", "reset", "lost", and
    "lost bytes", "delayed" (pieces), "slow bytes".
    """

    def __init__(self, server_port: int, authority: Path, pair: Pair) -> None:
        """
        Args:
            server_port: the API server's, on loopback.
            authority: whom to trust for the API server.
            pair: shown to the operator.
        """
        self.requests: list[Request] = []
        self.count: Counter[str] = Counter()
        self._server_port = server_port
        self._client_context = ssl.create_default_context(cafile=authority)
        self._server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server_context.load_cert_chain(pair.certificate, pair.key)
        self._faults = _Faults()
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._free_at_s = 0.0
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault proxy", daemon=True)
        self._server: asyncio.Server
        self.port: int

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_S)
        self._loop.close()

    # What a test may ask for.

    def show(self, pair: Pair) -> None:
        """Show another certificate to whoever connects from now on."""
        self._call(lambda: self._server_context.load_cert_chain(pair.certificate, pair.key))

    def cut(self, which: Which = every) -> None:
        """End connections that serve such requests now, as a proxy does that restarts."""
        self._call(lambda: self._for_links(which, "cut", _Link.abort))

    def lose(self, which: Which = every, *, half_open: bool = False) -> None:
        """Pass nothing on any more on connections that serve such requests now, and tell neither side.

        Args:
            half_open: the server's side is closed, as by a server that was switched off; the operator is told nothing.
        """

        def lost(link: _Link) -> None:
            _lose(link)
            if half_open:
                link.far.transport.abort()

        # There may be no such connection at this moment: a watch pauses before it begins again.
        await_none(
            lambda: None if self._call(lambda: self._for_links(which, "lost", lost)) else "no such connection is there"
        )

    def reset_in_mid_line(self, which: Which) -> None:
        """Of the next piece of such an answer pass on half, and reset the connection. Once."""
        self._call(lambda: self._faults.resets.append(which))

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        """Until the end of the block connections are cut, those that run and those that are tried."""
        self._call(lambda: setattr(self._faults, "closed", True))
        self.cut()
        yield
        self._call(lambda: setattr(self._faults, "closed", False))

    @contextlib.contextmanager
    def losing(self, which: Which = every) -> Iterator[None]:
        """Until the end of the block nothing is passed on for such requests, neither on connections that serve them now
        nor on those that ask later. They stay lost.
        """

        def begin() -> None:
            self._faults.losses.append(which)
            self._for_links(which, "lost", _lose)

        self._call(begin)
        yield
        self._call(lambda: self._faults.losses.remove(which))

    @contextlib.contextmanager
    def refusing(self, code: int, *, retry_after_s: int | None = None, which: Which = every) -> Iterator[None]:
        """Until the end of the block answer such requests with this code, in the API server's place."""
        refusal = _Refusal(which, code, retry_after_s)
        self._call(lambda: self._faults.refusals.append(refusal))
        yield
        self._call(lambda: self._faults.refusals.remove(refusal))

    @contextlib.contextmanager
    def holding(self, which: Which) -> Iterator[None]:
        """Such requests reach the API server when the block ends."""
        over = self._call(asyncio.Event)
        self._call(lambda: self._faults.holds.append((which, over)))
        yield
        self._call(lambda: self._faults.holds.remove((which, over)))
        self._call(over.set)

    @contextlib.contextmanager
    def delaying(self, seconds: float) -> Iterator[None]:
        """Until the end of the block bytes take so long there and back."""
        self._call(lambda: setattr(self._faults, "delay_s", seconds))
        yield
        self._call(lambda: setattr(self._faults, "delay_s", 0.0))

    @contextlib.contextmanager
    def slow(self, bytes_per_s: float) -> Iterator[None]:
        """Until the end of the block so many bytes a second come from the API server, all connections together."""
        self._call(lambda: setattr(self._faults, "bytes_per_s", bytes_per_s))
        yield
        self._call(lambda: setattr(self._faults, "bytes_per_s", 0.0))

    def await_count(self, what: str, least: int = 1) -> None:
        """Wait until `count` has at least so many."""
        await_none(
            lambda: None if self.count[what] >= least else f"counted {dict(self.count)}, not {least} of {what!r}"
        )

    # The rest is for its own event loop.

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(DEADLINE_S)

    def _call(self, function: Callable[[], T]) -> T:
        async def called() -> T:
            return function()

        return self._run(called())

    def _for_links(self, which: Which, counted: str, act: Callable[[_Link], None]) -> int:
        # Before its first request there is none to judge a connection by; what befalls all befalls it too.
        hit = [
            each
            for each in self._links
            if not each.lost and (which is every or (each.request is not None and which(each.request)))
        ]
        for link in hit:
            act(link)
        self.count[counted] += len(hit)
        return len(hit)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, _HOST, 0, ssl=self._server_context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        self._server.close()
        for _, over in self._faults.holds:
            over.set()
        while tasks := tuple(self._tasks):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, near)
        except (OSError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:  # by `_end`; asyncio's own callback would take it for a failure
            pass
        finally:
            near.transport.abort()
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        self.count["connections"] += 1
        if self._faults.closed:
            self.count["closed"] += 1
            return
        far_reader, far = await asyncio.open_connection(
            _HOST, self._server_port, ssl=self._client_context, server_hostname=_HOST, limit=_BUFFER_BYTES
        )
        link = _Link(near, far)
        self._links.add(link)
        back = asyncio.create_task(self._answers(link, far_reader))
        try:
            await self._requests(link, reader)
        finally:
            self._links.discard(link)
            back.cancel()
            link.abort()  # before anything that waits: `_end` may cancel this at any time
            await asyncio.gather(back, return_exceptions=True)
            await _abort(far)

    async def _requests(self, link: _Link, reader: asyncio.StreamReader) -> None:
        while True:
            head = await reader.readuntil(_HEAD_END)
            method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            body = await reader.readexactly(_content_length(head))
            request = link.request = Request(method, target, time.monotonic())
            self.requests.append(request)
            for which, over in tuple(self._faults.holds):
                if which(request):
                    self.count["held"] += 1
                    await over.wait()
            if not link.lost and any(which(request) for which in self._faults.losses):
                self.count["lost"] += 1
                _lose(link)
            if link.lost:
                self.count["lost bytes"] += len(head) + len(body)
                continue
            refusal = next((each for each in self._faults.refusals if each.which(request)), None)
            if refusal is not None:
                self.count["refused"] += 1
                link.near.write(refusal.answer())
                continue
            await asyncio.sleep(self._faults.delay_s / 2)
            link.far.write(head + body)
            await link.far.drain()

    async def _answers(self, link: _Link, far_reader: asyncio.StreamReader) -> None:
        try:
            while data := await far_reader.read(_CHUNK_BYTES):
                if link.lost:
                    self.count["lost bytes"] += len(data)
                    continue
                await self._linger(len(data))
                if self._is_to_be_reset(link):
                    await self._reset(link, data)
                    return
                link.near.write(data)
                await link.near.drain()
            if not link.lost:
                link.near.close()
        except OSError:
            if not link.lost:
                link.near.transport.abort()

    async def _linger(self, size_bytes: int) -> None:
        """Take as long as a bad line would."""
        if self._faults.delay_s:
            self.count["delayed"] += 1
            await asyncio.sleep(self._faults.delay_s / 2)
        if self._faults.bytes_per_s:
            self.count["slow bytes"] += size_bytes
            self._free_at_s = max(self._free_at_s, time.monotonic()) + size_bytes / self._faults.bytes_per_s
            await asyncio.sleep(self._free_at_s - time.monotonic())

    def _is_to_be_reset(self, link: _Link) -> bool:
        for which in self._faults.resets:
            if link.request is not None and which(link.request):
                self._faults.resets.remove(which)
                return True
        return False

    async def _reset(self, link: _Link, data: bytes) -> None:
        self.count["reset"] += 1
        link.near.write(data[: len(data) // 2])
        await link.near.drain()
        link.near.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        link.abort()


def _lose(link: _Link) -> None:
    link.lost = True


async def _abort(writer: asyncio.StreamWriter) -> None:
    """Close a connection at once, and return when it is closed."""
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
