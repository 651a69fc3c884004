"""OpenTelemetry: a span for each reconcile, and below it one for each API call that it makes.

Imported where an endpoint is configured, and nowhere else. Sampling, headers and whatever else OpenTelemetry has
variables for (`OTEL_…`) is the library's own affair.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from operator_runtime.client.errors import ApiError, KubeError
from operator_runtime.controller.controller import Outcome, ReconcileContext
from operator_runtime.telemetry.span_delivery import Delivery

# Per batch, with its retries.
_SEND_TIMEOUT_S = 5.0
# At the end, for all that is left. Kubernetes gives a pod 30 s, of which the workers have 25 s.
CLOSE_TIMEOUT_S = 2.0
_WELL = (Outcome.SUCCESS, Outcome.REQUEUE_AFTER)


class Tracing:
    """Makes spans. `reconcile` is a `controller.ReconcileTracer`, `call` a `client.CallTracer`."""

    def __init__(
        self, processor: SpanProcessor, service: str, version: str, gave_up: Callable[[float], None] | None = None
    ) -> None:
        """
        Args:
            processor: takes the spans as they end.
            service: the operator's name.
            version: the operator's.
            gave_up: told if what is left was not sent within so many seconds.
        """
        self._gave_up = gave_up
        # OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME go before what we say.
        ours = Resource({SERVICE_NAME: service, SERVICE_VERSION: version})
        resource = ours.merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("operator_runtime", version)

    @classmethod
    def to_collector(cls, endpoint: str, service: str, version: str, *, flag: str) -> Tracing:
        """Sends them by OTLP over HTTP to an endpoint, on a thread of the library's. `flag` sets it, for messages."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        url = f"{endpoint.rstrip('/')}/v1/traces"
        delivery = Delivery(OTLPSpanExporter(endpoint=url, timeout=_SEND_TIMEOUT_S), url, flag)
        return cls(BatchSpanProcessor(delivery), service, version, delivery.give_up)

    def close(self) -> None:
        """Send what is left. Blocks for `CLOSE_TIMEOUT_S` at most; what is not sent by then is lost.

        The library would wait for each batch in turn, whatever was left to wait. Neither its thread nor this one keeps
        the process from ending.
        """
        sending = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        sending.start()
        sending.join(CLOSE_TIMEOUT_S)
        if sending.is_alive() and self._gave_up is not None:
            self._gave_up(CLOSE_TIMEOUT_S)

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
