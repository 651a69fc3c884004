"""Traces of a running operator, as a collector receives them."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from operator_runtime.telemetry.tracing import CLOSE_TIMEOUT_S
from tests.integration.accounts import LOCK, let_account_elect
from tests.integration.conftest import Operators
from tests.integration.oracle import create_memcached
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import logged_at

pytestmark = pytest.mark.cluster("simulator")


class Collector(ThreadingHTTPServer):
    """Takes traces by OTLP over HTTP; `requests` has each as it came."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[ExportTraceServiceRequest] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def spans(self) -> dict[str, set[str]]:
        """The names of the spans below each reconcile, by its key."""
        found = [
            span
            for request in tuple(self.requests)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        keys = {
            span.span_id: next(each.value.string_value for each in span.attributes if each.key == "reconcile.key")
            for span in found
            if span.name == "reconcile memcached"
        }
        below: dict[str, set[str]] = {key: set() for key in keys.values()}
        for span in found:
            if span.parent_span_id in keys:
                below[keys[span.parent_span_id]].add(span.name)
        return below


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        assert self.path == "/v1/traces"
        self.server.requests.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()


def test_a_collector_receives_the_reconciles_with_their_calls(
    kubectl: Kubectl, operators: Operators, collector: Collector
) -> None:
    operator = operators.start("-n", kubectl.namespace, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url).ready()
    create_memcached(kubectl, "cache", 1)
    assert operator.stop() == 0, "what was not sent yet is sent at the end"
    assert collector.spans() == {f"{kubectl.namespace}/cache": {"POST", "PATCH"}}
    assert f"sending traces to {collector.url}" in operator.log


def test_a_collector_that_is_away_holds_nothing_up(kubectl: Kubectl, operators: Operators) -> None:
    operator = operators.start("-n", kubectl.namespace, "--tracing-endpoint=http://127.0.0.1:1").ready()
    create_memcached(kubectl, "cache", 1)
    assert operator.stop() == 0
    assert operator.log.count("traces are lost") == 1, "once, and OpenTelemetry itself says nothing"
    assert "opentelemetry" not in operator.log


def test_a_collector_that_is_silent_keeps_neither_the_lease_nor_the_process(
    kubectl: Kubectl, operators: Operators
) -> None:
    let_account_elect(kubectl)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        operator = operators.start(
            "-n",
            kubectl.namespace,
            f"--tracing-endpoint={url}",
            "--leader-elect",
            f"--leader-elect-id={LOCK}",
            f"--leader-elect-namespace={kubectl.namespace}",
            # The first spans go out at the end.
            OTEL_BSP_SCHEDULE_DELAY="600000",
        ).ready()
        create_memcached(kubectl, "cache", 1)
        assert operator.stop() == 0
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(4) == b"POST"
    released, lost, ended = (
        next(number for number, line in enumerate(operator.lines) if text in line)
        for text in ("released Lease", "the last traces are lost", "ended in good order")
    )
    assert released < lost < ended
    # As long again for a machine that is busy.
    took = logged_at(operator.lines[ended]) - logged_at(operator.lines[released])
    assert took.total_seconds() < 2 * CLOSE_TIMEOUT_S
