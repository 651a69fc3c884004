"""Webhooks of an author's own: the API server asks them before a write, or to convert between versions of a kind.

    async def sane(request: AdmissionRequest[Shell]) -> Allowed | Denied:
        shell = request.object
        if shell is not None and shell.spec.size > 10:
            return Denied("spec.size is at most 10", code=422)
        return Allowed()

    operator.webhooks.validate("/validate-myownshell", sane, kind=SHELLS)

Every replica answers, whether it leads or not: the API server asks any of them.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar, overload

from operator_runtime.diagnostics.callback_errors import described, is_coroutine_function
from operator_runtime.serving.admission import (
    AdmissionRequest,
    Allowed,
    Answer,
    AnyObject,
    Decodes,
    Denied,
    Json,
    MalformedReview,
    Patched,
    Unreadable,
    read_review,
    write_review,
)
from operator_runtime.serving.conversion import Converter, converted
from operator_runtime.serving.http_messages import JSON, Gone, HttpResponse, TooLong, text_response
from operator_runtime.serving.http_server import ServingError, listen, parse_address, url_of
from operator_runtime.serving.routes import checked_path
from operator_runtime.telemetry.metrics import QUEUE_BUCKETS_S, Family, Histogram, counter, gauge, histogram

if TYPE_CHECKING:
    # Some MiB, in an operator that has no webhooks, for nothing.
    from aiohttp import web

    from operator_runtime.serving.webhook_server import TakeBody, WebhookServer

logger = logging.getLogger(__name__)

T = TypeVar("T")

FLAG = "--webhook-bind-address"
CERTIFICATE_FLAG = "--webhook-cert-dir"
# controller-runtime's.
DEFAULT_ADDRESS = ":9443"
# Twice the 3 MiB that the API server takes as one object (an UPDATE brings the old one, too), and 1 MiB for the rest of
# a review; controller-runtime's bound as well.
MAX_REVIEW_BYTES = 7 * 1024 * 1024
# A list is converted in one piece: some 20 objects of the largest size, or 30,000 of two KiB.
MAX_CONVERSION_BYTES = 64 * 1024 * 1024
# Kubernetes' default and greatest `timeoutSeconds`; the API server says in each request which one holds.
_TIMEOUT_S, _LONGEST_TIMEOUT_S = 10.0, 30.0
# For what is being answered when everything ends; nobody waits longer for an answer by default.
DRAIN_S = _TIMEOUT_S

_Hook = Callable[[bytes], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class WebhookConfig:
    """Where webhooks are served.

    Attributes:
        address: as `http_server.parse_address` has it, "0" for none.
        cert_dir: folder with tls.crt and tls.key; the API server must trust them (`clientConfig.caBundle`). Renewed
            files are served from the next connection on.
    """

    address: str = DEFAULT_ADDRESS
    cert_dir: Path | None = None


class _Served(NamedTuple):
    answer: _Hook
    max_bytes: int


class Webhooks:
    """Serves webhooks over HTTPS, once there is one; add them before it is entered.

    An async context manager that listens, and a service of the manager. Ending lets what is being answered be finished.

    Attributes:
        url: where it listens, from when it does, such as `https://127.0.0.1:9443`; "" before, and where nothing is.

    Invariants:
        `_in_flight`, `_answers` and `_latencies_s` have a path from when it was added on.
    """

    def __init__(self, config: WebhookConfig | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            config: where; None for the default address, which takes a certificate to be served.
            clock: monotonic seconds.
        """
        self._config = config or WebhookConfig()
        self._clock = clock
        self._hooks: dict[str, _Served] = {}
        self._server: WebhookServer | None = None
        self._stopping = asyncio.Event()
        self._in_flight: dict[str, int] = {}
        self._answers: dict[str, Counter[int]] = {}
        self._latencies_s: dict[str, Histogram] = {}
        self.url = ""

    @overload
    def validate(self, path: str, handler: Callable[[AdmissionRequest[Json]], Awaitable[Allowed | Denied]]) -> None: ...
    @overload
    def validate(
        self, path: str, handler: Callable[[AdmissionRequest[T]], Awaitable[Allowed | Denied]], *, kind: Decodes[T]
    ) -> None: ...
    def validate(self, path: str, handler: Callable[..., Awaitable[Answer]], *, kind: Decodes[T] | None = None) -> None:
        """Have `handler` decide about writes: `clientConfig` of a ValidatingWebhookConfiguration names the path.

        What it raises is answered 500 and logged, and so is no answer within the webhook's `timeoutSeconds`: its
        `failurePolicy` decides then.

        Args:
            path: absolute, such as `/validate-myownshell`.
            handler: a coroutine function from `AdmissionRequest` to `Allowed` or `Denied`.
            kind: what the objects become, a `Kind`; None leaves them dicts. What it cannot read is denied with code
                400: with a kind that is stricter than the stored objects, a webhook for UPDATE or DELETE keeps them
                from being mended or deleted.

        Raises:
            ValueError: the path is taken or not absolute.
            TypeError: the handler is no coroutine function.
        """
        self._admit("validate", path, handler, (Allowed, Denied), AnyObject() if kind is None else kind)

    @overload
    def mutate(
        self, path: str, handler: Callable[[AdmissionRequest[Json]], Awaitable[Allowed | Denied | Patched]]
    ) -> None: ...
    @overload
    def mutate(
        self,
        path: str,
        handler: Callable[[AdmissionRequest[T]], Awaitable[Allowed | Denied | Patched]],
        *,
        kind: Decodes[T],
    ) -> None: ...
    def mutate(self, path: str, handler: Callable[..., Awaitable[Answer]], *, kind: Decodes[T] | None = None) -> None:
        """Have `handler` change what is written: `clientConfig` of a MutatingWebhookConfiguration names the path.

        As `validate`, but that the handler may give `Patched`, too. The API server may ask twice about one write: a
        patch of what the first patch made must be empty.
        """
        self._admit("mutate", path, handler, (Allowed, Denied, Patched), AnyObject() if kind is None else kind)

    def convert(self, path: str, handler: Converter) -> None:
        """Have `handler` convert objects between the versions of a kind: `spec.conversion` of its CRD names the path.

        Args:
            path: absolute, such as `/convert`.
            handler: `async def convert(body, api_version) -> body` of one object, which gives it in that apiVersion,
                with its metadata as it was. It raises `CannotConvert` where that cannot be.

        Raises:
            ValueError: the path is taken or not absolute.
            TypeError: the handler is no coroutine function.
        """
        self._add("convert", path, handler, lambda body: converted(body, handler), MAX_CONVERSION_BYTES)

    @property
    def paths(self) -> tuple[str, ...]:
        """What was added."""
        return tuple(self._hooks)

    async def __aenter__(self) -> Self:
        """Listen, if there is a webhook; `url` says where.

        Raises:
            ServingError: the address is taken, or there is no certificate; the message names the flag.
        """
        if not self._hooks or self._server is not None:
            return self
        try:
            address = parse_address(self._config.address)
        except ValueError as error:
            raise ServingError(f"{FLAG}={self._config.address}: {error}") from None
        if address is None:
            logger.warning("not serving %s: webhooks are turned off with %s=0", ", ".join(self.paths), FLAG)
            return self
        if self._config.cert_dir is None:
            raise ServingError(
                f"webhooks are served with TLS alone: name a folder with tls.crt and tls.key with {CERTIFICATE_FLAG}"
            )
        from operator_runtime.serving.serving_tls import CertificateFiles
        from operator_runtime.serving.webhook_server import WebhookServer

        files = CertificateFiles(self._config.cert_dir, CERTIFICATE_FLAG, "webhooks")
        listening = await listen("webhooks", FLAG, address)
        self._server = WebhookServer(self._answer, files.context)
        self._server.listen(listening)
        self.url = url_of(address, listening, secure=True)
        logger.info("serving webhooks at %s: %s", self.url, ", ".join(self.paths))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Listen no more, finish what is being answered, for `DRAIN_S` at most, and end all connections."""
        server, self._server = self._server, None
        if server is not None:
            await server.close(DRAIN_S)

    async def run(self) -> None:
        """Serve until `stop`; listens first, if nobody has entered it.

        Raises:
            ServingError: as entering does. An operator enters it before it runs, so that this is one plain line.
        """
        async with self:
            await self._stopping.wait()

    def stop(self) -> None:
        """Make `run` return."""
        self._stopping.set()

    def families(self) -> Iterator[Family]:
        """controller-runtime's metrics of webhooks, by path."""
        yield counter(
            "controller_runtime_webhook_requests_total",
            "Requests to webhooks, by path and HTTP status code.",
            ("webhook", "code"),
            (((path, str(code)), number) for path, codes in self._answers.items() for code, number in codes.items()),
        )
        yield gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Requests that a webhook is answering, by path.",
            ("webhook",),
            (((path,), number) for path, number in self._in_flight.items()),
        )
        yield histogram(
            "controller_runtime_webhook_latency_seconds",
            "Seconds that a webhook took to answer, by path.",
            ("webhook",),
            (((path,), latency_s) for path, latency_s in self._latencies_s.items()),
        )

    def _admit(
        self,
        verb: str,
        path: str,
        handler: Callable[[AdmissionRequest[T]], Awaitable[Answer]],
        answers: tuple[type[Answer], ...],
        kind: Decodes[T],
    ) -> None:
        async def answer(body: bytes) -> bytes:
            try:
                request = read_review(body, kind)
            except Unreadable as error:
                return write_review(error.uid, Denied(str(error), code=400))
            try:
                given = await handler(request)
                if not isinstance(given, answers):
                    expected = ", ".join(each.__name__ for each in answers)
                    raise TypeError(f"the handler of {path} gave back a {type(given).__name__}, not one of {expected}")
                return write_review(request.uid, given)
            except Exception as error:
                what = f"{request.resource.resource}.{request.resource.group}".rstrip(".")
                error.add_note(f"Asked about {request.operation} of {what} {request.namespace}/{request.name}.")
                raise

        self._add(verb, path, handler, answer, MAX_REVIEW_BYTES)

    def _add(self, verb: str, path: str, handler: Callable[..., object], answer: _Hook, max_bytes: int) -> None:
        checked_path(path, self._hooks)
        if not is_coroutine_function(handler):
            what = described(handler)
            raise TypeError(f"webhooks.{verb}({path!r}): {what} is no coroutine function: define it with `async def`")
        self._hooks[path] = _Served(answer, max_bytes)
        self._in_flight[path] = 0
        self._answers[path] = Counter({200: 0, 500: 0})
        self._latencies_s[path] = Histogram(QUEUE_BUCKETS_S)

    async def _answer(self, request: web.BaseRequest, take: TakeBody) -> HttpResponse:
        path = request.path
        hook = self._hooks.get(path)
        if hook is None:
            return text_response(404, f"there are {', '.join(self.paths)} here\n")
        if request.method != "POST":
            return HttpResponse(405, b"only POST is answered here\n", headers={"Allow": "POST"})
        began = self._clock()
        self._in_flight[path] += 1
        code = 500
        try:
            response = await self._answered(hook, request, take)
            code = response.status
        finally:
            self._in_flight[path] -= 1
            self._answers[path][code] += 1
            self._latencies_s[path].observe(self._clock() - began)
        return response

    async def _answered(self, hook: _Served, request: web.BaseRequest, take: TakeBody) -> HttpResponse:
        """The answer, in the time that the API server waits; what goes wrong is logged."""
        limit_s = timeout_of(request.query.get("timeout", ""))
        timeout = asyncio.timeout(limit_s)
        try:
            async with timeout:
                return HttpResponse(200, await hook.answer(await take(hook.max_bytes)), JSON)
        except Gone:
            logger.debug("webhook %s: the connection ended within a request", request.path)
            return text_response(400, "the body is not whole\n")
        except TooLong:
            logger.warning("webhook %s: refused a request of more than %d bytes", request.path, hook.max_bytes)
            return text_response(413, "the body is too long\n")
        except MalformedReview as error:
            logger.warning("webhook %s: cannot read what it is asked: %s", request.path, error)
            return text_response(400, f"{error}\n")
        except Exception as error:
            if timeout.expired() and isinstance(error, TimeoutError):
                logger.error("webhook %s: no answer within the %g s that the API server waits", request.path, limit_s)
            else:
                logger.exception("webhook %s: cannot answer", request.path)
            return text_response(500, "internal server error; see the operator's log\n")


def timeout_of(said: str) -> float:
    """Seconds that the API server waits, from the `timeout` of its query such as "10s"; Kubernetes' default if none."""
    found = re.fullmatch(r"(\d{1,4})s", said)
    return min(float(found[1]), _LONGEST_TIMEOUT_S) if found and int(found[1]) > 0 else _TIMEOUT_S
