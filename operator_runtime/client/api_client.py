"""The Kubernetes API over aiohttp: one request, one stream, and the writes that an operator needs.

Every answer that is not an object of the API, and every way in which there is no answer, becomes one of the errors of
`client.errors`. Nothing is retried here but what costs nothing; see `ApiClient.request`.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Literal

import aiohttp
import orjson

from operator_runtime.client.access.auth import ClusterAccess
from operator_runtime.client.bounded_bodies import MAX_OBJECT_BYTES, read_beginning, read_whole
from operator_runtime.client.connection_pools import ConnectionPools, WriteFence, describe
from operator_runtime.client.errors import (
    KubeError,
    MalformedAnswer,
    StreamStalled,
    Unauthorized,
    Unreachable,
    classify_response,
)
from operator_runtime.client.exchange import Answer, ConnectionCut, header_lines, target_of
from operator_runtime.client.resources import SCALES, Resource
from operator_runtime.client.response_identity import (
    Expected,
    ExpectedObject,
    expected_under,
    has_precondition,
    name_in,
    uid_in,
)
from operator_runtime.client.retry import parse_retry_after
from operator_runtime.client.stream import Stream

JSON = "application/json"
APPLY_PATCH = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

_READS = frozenset({"GET", "HEAD"})
_IDENTITY, _GZIP = b"Accept-Encoding: identity\r\n", b"Accept-Encoding: gzip\r\n"

Propagation = Literal["Foreground", "Background", "Orphan"]
"""What becomes of the dependents of an object that is deleted: they go first, they go after it, or they stay."""


class ApiClient:
    """Speaks to one API server as one user. Use it as an async context manager.

    Attributes:
        requests: how many requests were answered, by status code and method; code 0 where no answer came.
        writes: how many writes went well, by resource (`plural.group`, with its subresource) and verb.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        user_agent: str,
        timeout_s: float = 30.0,
        write_fence: WriteFence | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            user_agent: names this client in the audit log and to the server's flow control.
            timeout_s: bound on one API call from the connection to the last byte.
            clock: shows which token an answer of 401 is about.
        """
        self.access = access
        self._user_agent = user_agent
        self._timeout_s = timeout_s
        self._clock = clock
        self._fence = write_fence
        self._connections = ConnectionPools(access)
        self._identity: Mapping[str, str] | None = None
        self._lines = b""
        self.requests: Counter[tuple[int, str]] = Counter()
        self.writes: Counter[tuple[str, str]] = Counter()

    async def __aenter__(self) -> ApiClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; running watches fail."""
        await self._connections.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        gzip: bool = False,
        guarded: bool = False,
        max_bytes: int = MAX_OBJECT_BYTES,
        expected: Expected | None = None,
    ) -> bytes:
        """One API call; the answer's body.

        A 401 is tried once more where a newer credential is to be had. Where the server closed a pooled connection just
        as we took it and no byte of an answer came, the call goes out again, if it reads or is guarded: whether
        it was carried out is not known. Waiting for Retry-After is the caller's: it has a queue to wait in.

        Args:
            query: not yet encoded.
            gzip: request a compressed answer, which pays for lists alone.
            guarded: the write has a precondition (a uid, a resourceVersion), so that a second arrival is answered 409
                or changes nothing.
            max_bytes: bound on the answer (`client.bounded_bodies`).
            expected: what a success is held against (`client.response_identity`).
        """
        left_s = self._timeout_s
        refreshed = False
        reads = method in _READS
        target = target_of(path, query)
        content = _GZIP if gzip else _IDENTITY
        if body is not None:
            content += f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n".encode()
        elif not reads:
            content += b"Content-Length: 0\r\n"
        while True:
            started = self._clock()
            try:
                lines = await self._headers() + content
                pools = await self._connections.current()
                response = await pools.calls.send(
                    method, target, lines, body or b"", timeout_s=left_s, fence=None if reads else self._fence
                )
                if response.status < 300:
                    answer = await read_whole(response, max_bytes, expected)
                else:
                    answer = await read_beginning(response)
            except MalformedAnswer as error:
                self.requests[0, method] += 1
                raise type(error)(f"{method} {path}: {error}") from error
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                self.requests[0, method] += 1
                if isinstance(error, ConnectionCut) and error.idle and (guarded or reads):
                    # The pool may hold more of the kind. Each is tried once, as it leaves the pool, and then a new one.
                    left_s -= self._clock() - started
                    if left_s > 0.0:
                        continue
                await self._reload_ca_if_untrusted(error, started)
                raise Unreachable(f"{method} {path}: {describe(error)}") from error
            self.requests[response.status, method] += 1
            failure = _failure(response, answer)
            if failure is None:
                return answer
            if isinstance(failure, Unauthorized) and not refreshed:
                refreshed = True
                if await self.access.credentials.refresh(started):
                    continue
            raise failure

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], silence_limit_s: float) -> AsyncIterator[Stream]:
        """Open a watch. The silence timer runs from the request on, and again from each byte of the body.

        So the headers must be whole in time, a proxy's answer to CONNECT included. A stream that the server does not
        end after the query's `timeoutSeconds` is ended here, when the silence limit has passed once more. The
        connection is closed on every way out: an unread watch must not go back to a pool.

        Raises:
            KubeError: the server refused, could not be reached, or kept silent before the headers.
        """
        # Both bounds are held here and in `Stream`: aiohttp's read timeout begins anew with any byte, and knows nothing
        # of proxies. The server compresses watches from 1.37 on, one gzip member per flush, which costs more than it
        # saves here: identity is requested.
        silence = asyncio.timeout(silence_limit_s)
        started = self._clock()
        try:
            lines = await self._headers() + _IDENTITY
            pools = await self._connections.current()
            async with silence:
                answer = await pools.watches.send("GET", target_of(path, query), lines)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self.requests[0, "GET"] += 1
            if silence.expired():
                raise StreamStalled(f"no answer for {silence_limit_s:.0f} s") from error
            await self._reload_ca_if_untrusted(error, started)
            raise Unreachable(describe(error)) from error
        self.requests[answer.status, "GET"] += 1
        pools.watching.add(answer)
        stream: Stream | None = None
        try:
            failure = _failure(answer, await read_beginning(answer)) if answer.status >= 300 else None
            if isinstance(failure, Unauthorized):
                await self.access.credentials.refresh(started)
            if failure is not None:
                raise failure
            stream = Stream(answer, silence_limit_s, float(query.get("timeoutSeconds", "inf")) + silence_limit_s)
            yield stream
        finally:
            pools.watching.discard(answer)
            if stream is not None:
                stream.close()
            answer.abort()

    async def get(self, resource: Resource, namespace: str | None, name: str) -> bytes:
        expected = ExpectedObject(resource, namespace or "", name)
        return await self.request("GET", resource.path(namespace, name), expected=expected)

    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        body: object,
        *,
        field_manager: str,
        under: tuple[str, str] | None = None,
        strict: bool = False,
        guarded: bool = False,
    ) -> bytes:
        """A new object. An existing name is a Conflict.

        Args:
            under: name and subresource of an object where the body is of a subresource, such as an Eviction.
            strict: refuse fields that the kind does not have, as an apply does, and do not drop them.
            guarded: for whom a Conflict is enough, also where its own create is what is there; see `request`.
        """
        path = resource.path(namespace) if under is None else resource.path(namespace, *under)
        query = _written_by(field_manager, strict)
        expected = ExpectedObject(resource, namespace or "", name_in(body)) if under is None else expected_under(body)
        answer = await self.request(
            "POST", path, query=query, body=orjson.dumps(body), guarded=guarded, expected=expected
        )
        what = resource.qualified_name if under is None else f"{resource.qualified_name}/{under[1]}"
        self.writes[what, "create"] += 1
        return answer

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: object,
        *,
        field_manager: str,
        content_type: str = MERGE_PATCH,
        subresource: str | None = None,
        strict: bool = False,
        force: bool = False,
    ) -> bytes:
        """Change an object, or apply it; return the object as it is then.

        Args:
            content_type: `MERGE_PATCH`, `STRATEGIC_MERGE_PATCH` or `APPLY_PATCH`, each as a method of
                `controller.client.Client` has it.
            strict: as in `create`.
            force: have an apply take fields from other managers.
        """
        answer = await self.request(
            "PATCH",
            resource.path(namespace, name, subresource),
            query=_written_by(field_manager, strict) | ({"force": "true"} if force else {}),
            body=orjson.dumps(body),
            content_type=content_type,
            guarded=has_precondition(body),
            expected=ExpectedObject(
                SCALES if subresource == "scale" else resource, namespace or "", name, uid_in(body)
            ),
        )
        what = f"{resource.qualified_name}/{subresource}" if subresource else resource.qualified_name
        self.writes[what, "apply" if content_type == APPLY_PATCH else "patch"] += 1
        return answer

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
    ) -> bytes:
        """Delete an object, as `controller.client.Client.delete`. Return it as it is then, or a `Status`."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options = {
            "preconditions": {field: value for field, value in preconditions.items() if value is not None} or None,
            "propagationPolicy": propagation,
        }
        body = orjson.dumps({field: value for field, value in options.items() if value is not None})
        guarded = options["preconditions"] is not None
        expected = ExpectedObject(resource, namespace or "", name, uid or "", or_status=True)
        answer = await self.request(
            "DELETE", resource.path(namespace, name), body=body, guarded=guarded, expected=expected
        )
        self.writes[resource.qualified_name, "delete"] += 1
        return answer

    async def _headers(self) -> bytes:
        """The headers that all requests have in common, put together again when the credential is another one."""
        identity = await self.access.credentials.headers()
        if identity != self._identity:
            self._identity = dict(identity)
            self._lines = header_lines({"Accept": JSON, "User-Agent": self._user_agent, **identity})
        return self._lines

    async def _reload_ca_if_untrusted(self, error: Exception, started: float) -> None:
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            await self.access.credentials.reload_ca(started)


def _written_by(field_manager: str, strict: bool) -> dict[str, str]:
    return {"fieldManager": field_manager} | ({"fieldValidation": "Strict"} if strict else {})


def _failure(response: Answer, answer: bytes) -> KubeError | None:
    """Return the error that an answer reports; None when it is the JSON object that every success is."""
    if response.status >= 400:
        return classify_response(response.status, answer, parse_retry_after(response.headers.get("Retry-After")))
    if response.status >= 300:
        return MalformedAnswer(f"HTTP {response.status}, which no API server returns: a proxy redirects")
    if not answer.startswith(b"{"):
        return MalformedAnswer(f"HTTP {response.status} with something that is not an API object: {answer[:80]!r}")
    return None
