"""Spans of a controller's reconciles and of the API calls below them, kept in memory, and the end of it all."""

from __future__ import annotations

import http.client
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from operator_runtime.client.errors import Conflict, Unreachable
from operator_runtime.controller.controller import Controller, Outcome, ReconcileContext, Result
from operator_runtime.telemetry import tracing
from operator_runtime.telemetry.tracing import Tracing
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.client.client_support import PATH, Peer, Request, client_of, serving
from tests.unit.operator_runtime.controller.controller_support import Outcomes, quick_queue, running

DEADLINE_S = 60.0
LAST_SPANS = "last spans"  # the thread that an end waits for as long as it may
CONTEXT = ReconcileContext("memcached", "shop/sessions", 7)


class Kept:
    """Tracing whose spans are looked at by their names."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracing = Tracing(SimpleSpanProcessor(self._exporter), "mine", "1.2.3")

    def spans(self) -> list[ReadableSpan]:
        """In the order in which they ended."""
        return list(self._exporter.get_finished_spans())


@pytest.fixture(autouse=True)
def nothing_lasts() -> Iterator[None]:
    """What a test's end does not wait for is over before the next test: until then it takes the library's lines."""
    yield
    for each in threading.enumerate():
        if each.name == LAST_SPANS:
            each.join(DEADLINE_S)
            assert not each.is_alive()


@pytest.fixture
def kept() -> Kept:
    return Kept()


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("outcome", Outcome)
def test_a_reconcile_is_a_span_that_says_how_it_ended(kept: Kept, outcome: Outcome) -> None:
    with kept.tracing.reconcile(CONTEXT) as ended:
        ended(outcome)
    (span,) = kept.spans()
    assert span.name == "reconcile memcached"
    assert attributes(span) == {
        "controller": "memcached",
        "reconcile.key": "shop/sessions",
        "reconcile.id": CONTEXT.id,
        "reconcile.outcome": outcome.value,
    }
    assert span.status.is_ok is (outcome in (Outcome.SUCCESS, Outcome.REQUEUE_AFTER))


async def test_the_calls_of_a_reconcile_are_below_it_and_others_are_not_told_of(kept: Kept) -> None:
    async def answers(peer: Peer, request: Request) -> None:
        await peer.answer(409 if request.method == "PATCH" else 200)

    outcomes = Outcomes()
    async with serving(answers) as server, client_of(server.url) as client:
        client._tracer = kept.tracing.call

        async def reconcile(key: str) -> Result:
            await client.request("GET", PATH)
            await client.request("PATCH", f"{PATH}/a", body=b"{}")
            return Result()

        controller = Controller(
            "memcached", reconcile, queue=quick_queue(), observer=outcomes, tracer=kept.tracing.reconcile
        )
        async with running(controller):
            controller.queue.add("shop/sessions")
            assert (await outcomes.wait_for(1))[0] is Outcome.ERROR
        before = len(kept.spans())
        await client.request("GET", PATH)
        assert len(kept.spans()) == before, "nobody's call"
    get, patch, parent = kept.spans()[:3]
    assert parent.context is not None
    for span in (get, patch):
        assert span.parent is not None
        assert span.parent.span_id == parent.context.span_id
    assert (get.name, attributes(get)) == ("GET", {"http.request.method": "GET", "url.path": PATH})
    assert attributes(patch)["http.response.status_code"] == 409
    assert (get.status.is_ok, patch.status.is_ok) == (True, False)
    assert attributes(parent)["reconcile.outcome"] == "error"


@pytest.mark.parametrize("error", [Conflict(409, "Conflict", "no"), Unreachable("down")])
def test_a_failed_call_says_what_failed_and_fails_on(kept: Kept, error: Exception) -> None:
    with kept.tracing.reconcile(CONTEXT), pytest.raises(type(error)), kept.tracing.call("PATCH", PATH):
        raise error
    call, _ = kept.spans()
    assert attributes(call)["error.type"] == type(error).__name__
    assert ("http.response.status_code" in attributes(call)) is isinstance(error, Conflict)


def test_the_service_bears_the_operators_name_unless_the_environment_says_another(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "theirs")
    other = Kept()
    for each, name in ((kept, "mine"), (other, "theirs")):
        with each.tracing.reconcile(CONTEXT):
            pass
        (span,) = each.spans()
        assert span.resource.attributes["service.name"] == name
        assert span.resource.attributes["service.version"] == "1.2.3"


def lost(endpoint: str, why: str) -> str:
    return (
        f"traces are lost, as {endpoint} does not take them: {why}. "
        "Look at the collector there, or correct --flag; everything else goes on"
    )


def test_that_spans_are_lost_is_said_with_the_reason_and_again_after_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for a second try, of which the library would tell.
    monkeypatch.setattr(tracing, "_SEND_TIMEOUT_S", 1.3)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    clock = FakeClock()
    to_nobody = Tracing.to_collector(url, "mine", "1.2.3", flag="--flag", clock=clock)
    for wait_s in (0.0, 59.0, 1.0):
        clock.advance(wait_s)
        with to_nobody.reconcile(CONTEXT):
            pass
        to_nobody._provider.force_flush()
    to_nobody.close()
    assert caplog.messages == [lost(f"{url}/v1/traces", "[Errno 111] Connection refused")] * 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "code: 404, reason: Not Found"),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", "Service Unavailable"),
        (b"", "Remote end closed connection without response"),
    ],
)
def test_of_a_collector_that_refuses_it_says_why(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, answer: bytes, why: str
) -> None:
    monkeypatch.setattr(tracing, "_SEND_TIMEOUT_S", 1.3)

    def serve(server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                stream.readline()
                stream.read(int(http.client.parse_headers(stream)["Content-Length"]))
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(DEADLINE_S)
        serving = threading.Thread(target=serve, args=(server,))
        serving.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        refused = Tracing.to_collector(url, "mine", "1.2.3", flag="--flag")
        try:
            with refused.reconcile(CONTEXT):
                pass
            refused._provider.force_flush()
            refused.close()
        finally:
            server.shutdown(socket.SHUT_RDWR)
            serving.join()
    (said,) = caplog.messages
    assert f"{why}. Look at the collector there" in said


def test_more_spans_than_are_taken_is_said_once_too(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE"):
        monkeypatch.setenv(f"OTEL_BSP_{name}", "2")
    monkeypatch.setattr(tracing, "_SEND_TIMEOUT_S", 600.0)
    monkeypatch.setattr(tracing, "CLOSE_TIMEOUT_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(DEADLINE_S)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        to_silent = Tracing.to_collector(url, "mine", "1.2.3", flag="--flag")
        # Of the first two it waits for an answer.
        for _ in range(10):
            with to_silent.reconcile(CONTEXT):
                pass
        connection, _ = silent.accept()
        to_silent.close()
        connection.close()
    assert caplog.messages == [lost(f"{url}/v1/traces", "Queue full, dropping Span")]


def test_after_its_end_the_library_speaks_for_itself_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "CLOSE_TIMEOUT_S", DEADLINE_S)  # which it would give up after, and not be at its end
    Tracing.to_collector("http://127.0.0.1:1", "mine", "1.2.3", flag="--flag").close()
    for name in ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal"):
        logging.getLogger(name).warning("heard of %s", name)
        assert f"heard of {name}" in caplog.messages


def test_a_collector_that_is_silent_is_not_waited_for_at_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing, "_SEND_TIMEOUT_S", 600.0)
    monkeypatch.setattr(tracing, "CLOSE_TIMEOUT_S", 0.01)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")  # so that it asks before it is told to end
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(DEADLINE_S)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        to_silent = Tracing.to_collector(url, "mine", "1.2.3", flag="--flag")
        with to_silent.reconcile(CONTEXT):
            pass
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(4) == b"POST"
            to_silent.close()
            (sending,) = [each for each in threading.enumerate() if each.name == LAST_SPANS]
            assert sending.is_alive()
    sending.join(DEADLINE_S)
    assert not sending.is_alive()
    assert caplog.messages == [f"the last traces are lost: {url}/v1/traces did not take them within 0.01 s"]


def test_a_collector_that_is_silent_does_not_keep_the_process() -> None:
    code = """if True:
    import os, socket
    from operator_runtime.telemetry import tracing
    from operator_runtime.controller.controller import ReconcileContext

    tracing._SEND_TIMEOUT_S, tracing.CLOSE_TIMEOUT_S = 600.0, 0.01
    os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "1"
    silent = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    to_silent = tracing.Tracing.to_collector(url, "mine", "1.2.3", flag="--flag")
    with to_silent.reconcile(ReconcileContext("memcached", "shop/sessions", 7)):
        pass
    asked = silent.accept()
    to_silent.close()
    print("the end")
    """
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    assert (finished.returncode, finished.stdout) == (0, "the end\n"), finished.stderr
