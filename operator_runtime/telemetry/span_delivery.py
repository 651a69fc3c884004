"""Says once that spans are lost, and once that they arrive again, in place of OpenTelemetry's own lines.

The library warns of every try and of every batch that it gives up: a collector that is away is some lines each five
seconds, for as long as it is away. Imported with `runtime.tracing` alone.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

logger = logging.getLogger(__name__)

# What the library's batches are made with; its one warning is of spans that its queue has no room for.
_QUEUE_LOGGER = "opentelemetry.sdk._shared_internal"
_TOO_MANY = "more of them end than it takes in the same time; sample them with OTEL_TRACES_SAMPLER"


class Delivery(SpanExporter):
    """Hands spans on to another exporter, and speaks for it: on the library's thread, and at the end on another.

    Invariants:
        `_said` is true from a line that says that spans are lost until the one that says that they arrive again.
    """

    def __init__(self, exporter: SpanExporter, endpoint: str, flag: str) -> None:
        """
        Args:
            exporter: sends the spans; what its module logs is not shown.
            endpoint: where to, for messages.
            flag: the flag that sets it, for messages.
        """
        self._exporter = exporter
        self._endpoint = endpoint
        self._flag = flag
        self._lock = threading.Lock()
        self._said = False
        self._why = ""
        self._overflows = 0
        self._filters = {type(exporter).__module__: self._of_exporter, _QUEUE_LOGGER: self._of_queue}
        for name, filter in self._filters.items():
            # Before the library's own filter, which hides most of the same lines from what comes after it.
            logging.getLogger(name).filters.insert(0, filter)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """See `SpanExporter`."""
        self._why = ""
        overflows = self._overflows
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            self._lost(self._why or "it does not say why")
        elif self._overflows != overflows:
            self._lost(_TOO_MANY)
        else:
            self._arrived()
        return result

    def give_up(self, seconds: float) -> None:
        """Try no more. Say, unless that was said, that the last spans are lost: that time was not enough for them."""
        self._exporter.shutdown()
        if self._say(lost=True):
            logger.warning("the last traces are lost: %s did not take them within %g s", self._endpoint, seconds)

    def shutdown(self) -> None:
        """See `SpanExporter`."""
        self._exporter.shutdown()
        for name, filter in self._filters.items():
            logging.getLogger(name).removeFilter(filter)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """See `SpanExporter`."""
        return self._exporter.force_flush(timeout_millis)

    def _lost(self, why: str) -> None:
        if self._say(lost=True):
            logger.warning(
                "traces are lost, as %s does not take them: %s. Look at the collector there, or correct %s; "
                "everything else goes on",
                self._endpoint,
                why,
                self._flag,
            )

    def _arrived(self) -> None:
        if self._say(lost=False):
            logger.info("traces arrive again at %s", self._endpoint)

    def _say(self, *, lost: bool) -> bool:
        """Whether this is news."""
        with self._lock:
            news = self._said is not lost
            self._said = lost
        return news

    def _of_exporter(self, record: logging.LogRecord) -> bool:
        # The first of a batch says most; the last ones only that it was the last try.
        self._why = self._why or _reason(record)
        return False

    def _of_queue(self, record: logging.LogRecord) -> bool:
        if record.exc_info:
            return True  # a bug
        self._overflows += 1
        return False


def _reason(record: logging.LogRecord) -> str:
    """Why a batch did not arrive, in few words where the library has many."""
    arguments = record.args if isinstance(record.args, tuple) else ()
    for each in arguments:
        if isinstance(each, BaseException):
            return _root(each)
    message = record.getMessage()
    if message.startswith("Transient error") and arguments:
        return str(arguments[0]).lower()
    return "no answer in time" if "due to timeout" in message else message.rstrip(".")


def _root(error: BaseException) -> str:
    """What is at the bottom of requests' and urllib3's errors, which wrap each other and repeat the address."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    if isinstance(error, TimeoutError):
        return "no answer in time"
    words = error.strerror if isinstance(error, OSError) else None
    return (words or str(error) or type(error).__name__).lower()
