"""OpenTelemetry: a span for each reconcile, and below it one for each API call that it makes.

Imported where an endpoint is configured, and nowhere else. Sampling, headers and whatever else OpenTelemetry has
variables for (`OTEL_…`) is the library's own affair.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from operator_runtime.client.errors import ApiError, KubeError
from operator_runtime.controller.controller import Outcome, ReconcileContext
from operator_runtime.diagnostics.reminder import Reminder

logger = logging.getLogger(__name__)

# Per batch, with its retries.
_SEND_TIMEOUT_S = 5.0
# At the end, for all that is left. Kubernetes gives a pod 30 s, of which the workers have 25 s.
CLOSE_TIMEOUT_S = 2.0
_WELL = (Outcome.SUCCESS, Outcome.REQUEUE_AFTER)
# The logger of the library's batches, which tells of spans that its queue has no room for.
_QUEUE_LOGGER = "opentelemetry.sdk._shared_internal"


class Losses(logging.Filter):
    """Says that spans are lost, once and again after a growing pause, in place of the lines of OpenTelemetry's own.

    The library warns of every try and of every batch that it gives up: a collector that is away is some lines each five
    seconds, for as long as it is away. Called on several threads: at worst a line is said twice.
    """

    def __init__(self, exporter: SpanExporter, endpoint: str, flag: str, clock: Callable[[], float]) -> None:
        """
        Args:
            exporter: sends the spans.
            endpoint: where to, for messages.
            flag: the flag that sets it, for messages.
            clock: monotonic seconds.
        """
        super().__init__()
        self._exporter = exporter
        self._endpoint = endpoint
        self._flag = flag
        self._clock = clock
        self._reminder = Reminder()
        self._why = ""
        self._loggers = [logging.getLogger(each) for each in (type(exporter).__module__, _QUEUE_LOGGER)]
        for each in self._loggers:
            each.addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line of the library's is shown: none but of a bug."""
        if record.exc_info:
            return True
        if record.msg.startswith("Transient error") and isinstance(record.args, tuple):
            self._why = _at_bottom(record.args[0])  # which the line that the last try failed does not say
        elif record.levelno >= logging.WARNING:
            why, self._why = self._why or record.getMessage().rstrip("."), ""
            if self._reminder.due(self._clock()):
                logger.warning(
                    "traces are lost, as %s does not take them: %s. Look at the collector there, or correct %s; "
                    "everything else goes on",
                    self._endpoint,
                    why,
                    self._flag,
                )
        return False

    def give_up(self, seconds: float) -> None:
        """Have the exporter try no more. Say, unless that was just said, that what is left is lost after so long."""
        if self._reminder.due(self._clock()):
            logger.warning("the last traces are lost: %s did not take them within %g s", self._endpoint, seconds)
        self._exporter.shutdown()

    def close(self) -> None:
        """Have the library speak for itself again."""
        for each in self._loggers:
            each.removeFilter(self)


def _at_bottom(why: object) -> str:
    """What is at the bottom of requests' and urllib3's errors, which wrap each other and repeat the address."""
    while isinstance(why, BaseException) and (cause := why.__cause__ or why.__context__) is not None:
        why = cause
    return str(why) or type(why).__name__


class Tracing:
    """Makes spans. `reconcile` is a `controller.ReconcileTracer`, `call` a `client.CallTracer`."""

    def __init__(self, processor: SpanProcessor, service: str, version: str, losses: Losses | None = None) -> None:
        """
        Args:
            processor: takes the spans as they end.
            service: the operator's name.
            version: the operator's.
            losses: says that spans are lost; closed by this.
        """
        self._losses = losses
        # OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME go before what we say.
        ours = Resource({SERVICE_NAME: service, SERVICE_VERSION: version})
        resource = ours.merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("operator_runtime", version)

    @classmethod
    def to_collector(
        cls, endpoint: str, service: str, version: str, *, flag: str, clock: Callable[[], float] = time.monotonic
    ) -> Tracing:
        """Sends them by OTLP over HTTP to an endpoint, on a thread of the library's. `flag` sets it, for messages."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        url = f"{endpoint.rstrip('/')}/v1/traces"
        exporter = OTLPSpanExporter(endpoint=url, timeout=_SEND_TIMEOUT_S)
        return cls(BatchSpanProcessor(exporter), service, version, Losses(exporter, url, flag, clock))

    def close(self) -> None:
        """Send what is left. Blocks for `CLOSE_TIMEOUT_S` at most; what is not sent by then is lost.

        The library would wait for each batch in turn, whatever was left to wait. Neither its thread nor this one keeps
        the process from ending.
        """
        sending = threading.Thread(target=self._send_rest, name="last spans", daemon=True)
        sending.start()
        sending.join(CLOSE_TIMEOUT_S)
        if sending.is_alive() and self._losses is not None:
            self._losses.give_up(CLOSE_TIMEOUT_S)

    def _send_rest(self) -> None:
        self._provider.shutdown()
        if self._losses is not None:
            self._losses.close()

    @contextmanager
    def reconcile(self, context: ReconcileContext) -> Iterator[Callable[[Outcome], None]]:
        """A span around one reconcile."""
        attributes = {
            "controller": context.controller,
            "reconcile.key": str(context.key),
            "reconcile.id": context.id,
        }
        with self._tracer.start_as_current_span(f"reconcile {context.controller}", attributes=attributes) as span:

            def ended(outcome: Outcome) -> None:
                span.set_attribute("reconcile.outcome", outcome.value)
                if outcome not in _WELL:
                    span.set_status(Status(StatusCode.ERROR, outcome.value))

            yield ended

    @contextmanager
    def call(self, method: str, path: str) -> Iterator[None]:
        """A span around one API call of a reconcile; calls of others, such as the event recorder's, have none."""
        if not trace.get_current_span().get_span_context().is_valid:
            yield
            return
        attributes = {"http.request.method": method, "url.path": path}
        with self._tracer.start_as_current_span(
            method, kind=SpanKind.CLIENT, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except KubeError as error:
                _failed(span, error)
                raise


def _failed(span: Span, error: KubeError) -> None:
    if isinstance(error, ApiError):
        span.set_attribute("http.response.status_code", error.status)
    span.set_attribute("error.type", type(error).__name__)
    span.set_status(Status(StatusCode.ERROR, str(error)))
