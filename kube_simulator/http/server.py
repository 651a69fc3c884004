"""The API server on the wire: TLS, one handler for every path, from a request to its answer or its stream.

The order is that of Kubernetes: who asks, whether they may, what it leads to, and then what becomes of it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import orjson
from aiohttp import StreamReader, web

from kube_simulator.access.authorizer import Authorizer
from kube_simulator.errors import ApiError, Cause, invalid_parameter, not_implemented
from kube_simulator.faults import Break, Delay, End, Fault, Faults, Refuse, SendError, Stall, refusal
from kube_simulator.http import routes
from kube_simulator.http.audit import AuditLog, Record
from kube_simulator.http.discovery import TEXT_TYPE, Discovery
from kube_simulator.http.negotiation import BODY_LIMIT_BYTES, JSON_TYPE, encoded, wants_table
from kube_simulator.http.routes import TextNotFound
from kube_simulator.http.verbs import Answer, ResourceRequest, Verbs
from kube_simulator.requests import bodies
from kube_simulator.requests.types import Caller, Target, User
from kube_simulator.resources import Registry, Resource, full_resource
from kube_simulator.store.watches import Event, Stream, Watches
from kube_simulator.values import Json

_log = logging.getLogger(__name__)

# Tokens are some 1 kB; a label selector of a thousand names is longer than aiohttp's 8 kB.
_LINE_LIMIT_BYTES = 64 * 2**10
_ALWAYS = {"Cache-Control": "no-cache, private"}
_NOT_FOUND = Answer(404, b"404 page not found\n", TEXT_TYPE, (("X-Content-Type-Options", "nosniff"),))
# What is being answered when the server is stopped may finish; what a fault holds longer than this is cut off.
_END_DEADLINE_S = 2.0

_NO_STREAMING_LISTS = Cause(
    "FieldValueForbidden",
    "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
    "sendInitialEvents",
)


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts that the server hands requests to."""

    verbs: Verbs
    watches: Watches
    discovery: Discovery
    authenticate: Callable[[bytes | None, str | None], User]
    """From the client's certificate (DER) and the header Authorization to a user; raises 401."""
    authorizer: Authorizer
    faults: Faults
    audit: AuditLog
    registry: Registry
    now: Callable[[], datetime]
    """The present time, in UTC."""
    streaming_lists: bool = True
    """False refuses `sendInitialEvents`, as Kubernetes without the feature WatchList."""


class HttpServer:
    """Listens between `start` and `stop` or `kill`, and may be started again."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._server: web.Server | None = None
        self._listener: asyncio.Server | None = None

    @property
    def serving(self) -> bool:
        """Report whether it takes connections."""
        return self._listener is not None

    async def start(self, host: str, port: int, context: ssl.SSLContext) -> None:
        """Listen; does nothing while it does. Raises OSError: the port is taken."""
        if self._listener is not None:
            return
        loop = asyncio.get_running_loop()
        server: web.Server = web.Server(
            self._handle,
            request_factory=_request_factory(loop),
            handler_cancellation=True,  # or an idle watch would outlive its client
            access_log=None,
            max_line_size=_LINE_LIMIT_BYTES,
            max_field_size=_LINE_LIMIT_BYTES,
        )
        self._listener = await loop.create_server(server, host, port, ssl=context)
        self._server = server
        self._parts.watches.begin_serving()

    async def stop(self) -> None:
        """Refuse new connections at once, end all streams cleanly, let running requests finish."""
        server = self._close()
        if server is not None:
            self._parts.watches.end_all()
            server.pre_shutdown()
            await server.shutdown(_END_DEADLINE_S)

    def kill(self) -> None:
        """Refuse new connections and reset those that are open, as if the process had died."""
        server = self._close()
        if server is not None:
            for connection in server.connections:
                if connection.transport is not None:
                    connection.transport.abort()

    def _close(self) -> web.Server | None:
        server, self._server = self._server, None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        return server

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._server is None:  # a handshake that was under way when the server ended
            return await _cut(request)
        route, headers, parts = routes.parse(request.method, request.raw_path), request.headers, self._parts
        agent, source = headers.get("User-Agent", ""), request.remote or ""
        record = Record(str(uuid.uuid4()), route, request.raw_path, parts.now(), agent, source)
        fault: Fault | None = None
        try:
            tls: ssl.SSLObject | None = request.get_extra_info("ssl_object")
            certificate = None if tls is None else tls.getpeercert(binary_form=True)
            record.user = user = parts.authenticate(certificate, headers.get("Authorization"))
            if any(name.lower().startswith("impersonate-") for name in headers):
                raise not_implemented("impersonation")
            fault = await self._fault(record)
            parts.authorizer.check(user, route.attributes)
            if route.resource:
                target = routes.target(route, parts.registry)
                table = wants_table(headers.get("Accept", ""), tables=route.verb != "watch")
                if route.verb == "watch":
                    return await self._watch(request, record, target, fault)
                answer = await self._answer(request, record, Caller(user, agent.partition("/")[0]), target, table)
            else:
                answer = parts.discovery.answer(route)
        except ApiError as error:
            answer = _refused(error)
        except TextNotFound:
            answer = _NOT_FOUND
        except Exception as error:  # the simulator's own fault: said here, and the client sees what it would see
            _log.exception("%s %s failed", route.method, request.raw_path)
            message = f"Internal error occurred: {type(error).__name__}: {error}"
            answer = _refused(ApiError(500, "InternalError", message, {"causes": [{"message": str(error)}]}))
        parts.audit.write(record, "ResponseComplete", answer.status)
        response = _response(answer, record)
        return await _send_half(request, response) if isinstance(fault, Break) else response

    async def _fault(self, record: Record) -> Fault | None:
        """Return the fault of a request; what comes before its answer has come when this returns."""
        route = record.route
        resource = full_resource(route.resource, route.subresource)
        rule = self._parts.faults.take(route.verb, resource, route.namespace, record.user_agent)
        if rule is None:
            return None
        match rule.fault:
            case Refuse(code, retry_after_s):
                raise refusal(code, retry_after_s)
            case Delay(seconds):
                await asyncio.sleep(seconds)
            case Stall():
                await rule.removed.wait()
        return rule.fault

    async def _answer(
        self, request: web.BaseRequest, record: Record, caller: Caller, target: Target, table: bool
    ) -> Answer:
        try:
            body = await request.read() if request.body_exists else b""
        except web.HTTPRequestEntityTooLarge:
            message = f"Request entity too large: limit is {BODY_LIMIT_BYTES}"
            raise ApiError(413, "RequestEntityTooLarge", message) from None
        route, content_type = record.route, request.headers.get("Content-Type", "")
        authorized = ResourceRequest(route.verb, target, route.query, body, content_type, caller, table)
        return await self._parts.verbs.answer(authorized, lambda name: setattr(record, "name", name))

    async def _watch(
        self, request: web.BaseRequest, record: Record, target: Target, fault: Fault | None
    ) -> web.StreamResponse:
        query, resource = record.route.query, target.resource
        if "sendInitialEvents" in query and not self._parts.streaming_lists:
            raise invalid_parameter("ListOptions", [_NO_STREAMING_LISTS])
        stream = self._parts.watches.open(resource, target.namespace, query)
        self._parts.audit.write(record, "ResponseStarted", 200)
        response = web.StreamResponse(headers=_headers(record, JSON_TYPE))
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            async for events in _batches(stream, fault):
                lines = b"".join([_line(resource, kind, found) for kind, found in events])
                if isinstance(fault, Break) and stream.ended:
                    await response.write(lines[: len(lines) // 2])
                    return await _cut(request)
                await response.write(lines)
            await response.write_eof()
        except ConnectionError:
            return await _cut(request)
        except Exception:  # too late for a 500
            _log.exception("the stream of %s failed", request.raw_path)
            return await _cut(request)
        finally:
            stream.end()
            self._parts.audit.write(record, "ResponseComplete", 200)
        return response


async def _batches(stream: Stream, fault: Fault | None) -> AsyncIterator[list[Event]]:
    """Yield what a watch sends, as many events at once as there are, with the fault that it is to have.

    The stream has ended when the event is yielded in which the connection breaks.
    """
    if not isinstance(fault, Break | End | SendError):
        while batch := await stream.batch():
            yield batch
        return
    for _ in range(fault.after_events):
        yield await stream.batch(1)
    if isinstance(fault, SendError):
        yield [("ERROR", refusal(fault.code).status())]
    elif isinstance(fault, Break):
        broken = await stream.batch(1)
        stream.end()
        yield broken


def _line(resource: Resource, kind: str, found: Json) -> bytes:
    """The line of an event; bookmarks and errors are no objects of the store."""
    shown = found if kind in ("BOOKMARK", "ERROR") else bodies.shown(resource, found)
    return orjson.dumps({"type": kind, "object": shown}, option=orjson.OPT_APPEND_NEWLINE)


def _refused(error: ApiError) -> Answer:
    return Answer(error.code, encoded(error.status()), headers=tuple(error.headers.items()))


def _response(answer: Answer, record: Record) -> web.Response:
    headers = [*_headers(record, answer.content_type), *answer.headers]
    return web.Response(status=answer.status, body=answer.body, headers=headers)


def _headers(record: Record, content_type: str) -> list[tuple[str, str]]:
    return [("Audit-Id", record.audit_id), *_ALWAYS.items(), ("Content-Type", content_type)]


async def _send_half(request: web.BaseRequest, response: web.Response) -> NoReturn:
    """The headers of the whole and half of the body, and then nothing more."""
    body = response.body
    assert isinstance(body, bytes)
    half = web.StreamResponse(status=response.status, headers=response.headers)
    half.content_length = max(len(body), 2)
    await half.prepare(request)
    await half.write(body[: len(body) // 2])
    await _cut(request)


async def _cut(request: web.BaseRequest) -> NoReturn:
    """Cut the connection. Its end cancels the handler; to raise anything would be taken for a fault and logged."""
    if request.transport is not None:
        request.transport.close()
    await asyncio.get_running_loop().create_future()
    raise AssertionError("the handler of a connection that is cut goes on")


def _request_factory(loop: asyncio.AbstractEventLoop) -> Callable[..., web.BaseRequest]:
    def make(
        message: Any, payload: StreamReader, protocol: Any, writer: Any, task: asyncio.Task[None]
    ) -> web.BaseRequest:
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=BODY_LIMIT_BYTES)

    return make
