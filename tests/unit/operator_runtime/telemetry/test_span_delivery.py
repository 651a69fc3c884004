"""What the log says of spans that do not arrive: by our own words alone, and once."""

from __future__ import annotations

import http.client
import logging
import socket
import threading
from collections.abc import Iterator, Sequence

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from operator_runtime.telemetry.span_delivery import Delivery

DEADLINE_S = 10.0
SUCCESS, FAILURE = SpanExportResult.SUCCESS, SpanExportResult.FAILURE
ARRIVE_AGAIN = "traces arrive again at http://there"


def lost(why: str, endpoint: str = "http://there") -> str:
    return (
        f"traces are lost, as {endpoint} does not take them: {why}. "
        "Look at the collector there, or correct --flag; everything else goes on"
    )


class Scripted(SpanExporter):
    """Ends each export as the test says, after it has logged what the test says."""

    def __init__(self, *results: SpanExportResult | str) -> None:
        self._results: Iterator[SpanExportResult | str] = iter(results)
        self.begun, self.go_on = threading.Semaphore(0), threading.Semaphore(0)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = next(self._results)
        if isinstance(result, str):
            logging.getLogger(__name__).warning("%s", result)
            return FAILURE
        self.begun.release()
        assert self.go_on.acquire(timeout=DEADLINE_S)
        return result


@pytest.fixture(autouse=True)
def at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_that_spans_are_lost_is_said_once_and_once_that_they_arrive_again(caplog: pytest.LogCaptureFixture) -> None:
    exporter = Scripted(SUCCESS, "down", "away", SUCCESS, SUCCESS, "gone")
    exporter.go_on.release(3)
    delivery = Delivery(exporter, "http://there", "--flag")
    results = [delivery.export([]) for _ in range(6)]
    delivery.shutdown()
    assert results == [SUCCESS, FAILURE, FAILURE, SUCCESS, SUCCESS, FAILURE]
    assert caplog.messages == [lost("down"), ARRIVE_AGAIN, lost("gone")]


def test_what_is_not_taken_at_the_end_is_said_unless_that_was_said(caplog: pytest.LogCaptureFixture) -> None:
    delivery = Delivery(Scripted("down"), "http://there", "--flag")
    delivery.give_up(2.0)
    delivery.give_up(2.0)
    assert delivery.export([]) is FAILURE
    delivery.shutdown()
    assert caplog.messages == ["the last traces are lost: http://there did not take them within 2 s"]


def test_more_spans_than_are_taken_is_said_once_too(caplog: pytest.LogCaptureFixture) -> None:
    exporter = Scripted(SUCCESS, SUCCESS, SUCCESS)
    delivery = Delivery(exporter, "http://there", "--flag")
    processor = BatchSpanProcessor(
        delivery, max_queue_size=2, max_export_batch_size=2, schedule_delay_millis=DEADLINE_S * 1000
    )
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("test")
    for ended in (2, 5, 6):
        for _ in range(ended):
            tracer.start_span("one").end()
        if ended == 2:
            assert exporter.begun.acquire(timeout=DEADLINE_S)
        else:
            # The batch under way, in whose time too many ended; the next one is full again at once.
            exporter.go_on.release()
            assert exporter.begun.acquire(timeout=DEADLINE_S)
    exporter.go_on.release()
    provider.shutdown()
    why = "more of them end than it takes in the same time; sample them with OTEL_TRACES_SAMPLER"
    assert caplog.messages == [lost(why), ARRIVE_AGAIN]
    assert "Queue full" not in caplog.text


def test_after_its_end_the_library_speaks_for_itself_again(caplog: pytest.LogCaptureFixture) -> None:
    Delivery(Scripted(), "http://there", "--flag").shutdown()
    logging.getLogger(__name__).warning("heard")
    logging.getLogger("opentelemetry.sdk._shared_internal").warning("heard too")
    assert caplog.messages == ["heard", "heard too"]


def test_of_a_collector_that_is_away_the_library_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
    # Long enough for a second try, of which the library would tell.
    delivery = Delivery(OTLPSpanExporter(endpoint=endpoint, timeout=1.3), endpoint, "--flag")
    assert delivery.export([]) is FAILURE
    delivery.shutdown()
    assert caplog.messages == [lost("connection refused", endpoint)]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "Failed to export spans batch code: 404, reason: N"),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", "service unavailable"),
        (b"", "remote end closed connection without response"),
        (None, "no answer in time"),
    ],
)
def test_of_a_collector_that_refuses_it_says_why(
    caplog: pytest.LogCaptureFixture, answer: bytes | None, why: str
) -> None:
    ended = threading.Event()

    def serve(server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                request = http.client.HTTPMessage()
                with connection.makefile("rb") as stream:
                    stream.readline()
                    request = http.client.parse_headers(stream)
                    stream.read(int(request["Content-Length"]))
                if answer is None:
                    ended.wait(DEADLINE_S)
                else:
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)
        serving = threading.Thread(target=serve, args=(server,))
        serving.start()
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        delivery = Delivery(OTLPSpanExporter(endpoint=endpoint, timeout=1.3), endpoint, "--flag")
        try:
            assert delivery.export([]) is FAILURE
        finally:
            ended.set()
            delivery.shutdown()
            server.shutdown(socket.SHUT_RDWR)
            serving.join()
    (said,) = caplog.messages
    assert said.startswith(lost(why, endpoint)[: said.index(why) + len(why)])
