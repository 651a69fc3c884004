"""Servers for probes and scrapes, and what they read from the operator's parts."""

from __future__ import annotations

import logging
import ssl
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from prometheus_client import Gauge, GCCollector, Metric, PlatformCollector, ProcessCollector

from operator_runtime.client.access.auth import ClusterAccess
from operator_runtime.client.api_client import ApiClient
from operator_runtime.controller.manager import Manager
from operator_runtime.events.recorder import DROP_REASONS, EventRecorder
from operator_runtime.identity import Program
from operator_runtime.serving.probes import Checks
from operator_runtime.serving.scrape import PATH, Refusal, Scrapes
from operator_runtime.settings.listen_address import parse_address
from operator_runtime.settings.runtime_settings import RuntimeSettings
from operator_runtime.telemetry.metrics import Metrics, client_families, counter, stream_families

logger = logging.getLogger(__name__)

PROBES_FLAG = "--health-probe-bind-address"
METRICS_FLAG = "--metrics-bind-address"
CERTIFICATE_FLAG = "--metrics-cert-dir"
# What Prometheus waits for a scrape by default.
REVIEW_TIMEOUT_S = 10.0


def add_sources(
    metrics: Metrics,
    program: Program,
    manager: Manager,
    client: ApiClient,
    recorder: EventRecorder,
    expected_writes: Iterable[tuple[str, str]],
) -> None:
    """Show what any operator on this runtime has to show."""
    metrics.add(lambda: stream_families(manager.reflectors))
    host = client.access.server.partition("://")[2]
    expected = tuple(expected_writes)
    metrics.add(lambda: client_families(host, client.requests, client.writes, expected))
    metrics.add(lambda: _event_families(recorder))
    python = ".".join(map(str, sys.version_info[:3]))
    help = "Which operator runs; always 1."
    build = Gauge(f"{program.snake_name}_build_info", help, ("version", "python"), registry=metrics)
    build.labels(program.version, python).set(1)
    ProcessCollector(registry=metrics)
    PlatformCollector(registry=metrics)
    GCCollector(registry=metrics)


@asynccontextmanager
async def served(
    settings: RuntimeSettings, checks: Checks, metrics: Mapping[str, Metrics], access: ClusterAccess, *, user_agent: str
) -> AsyncIterator[dict[str, str]]:
    """Answer probes and scrapes until the end of the block, which is given the URL of each server by its name.

    Args:
        metrics: what there is to see, by its path; what this has to show of itself is added to those at /metrics.
        access: with `user_agent`, to the API server, for who may see metrics.

    Raises:
        ServingError: an address is taken, or there is no certificate; the message names the flag.
    """
    from operator_runtime.serving.http_server import HttpServer  # with aiohttp's server, for whoever serves

    async with AsyncExitStack() as stack:
        urls: dict[str, str] = {}
        addresses: list[str] = []
        if (address := parse_address(settings.health_probe_bind_address)) is not None:
            probes = HttpServer("probes", PROBES_FLAG, address, checks.answer)
            await stack.enter_async_context(probes)
            urls["probes"] = probes.url
            addresses.append(f"probes at {probes.url}")
        if (address := parse_address(settings.metrics_bind_address)) is not None:
            refusal: Refusal | None = None
            context: ssl.SSLContext | None = None
            if settings.metrics_secure:
                from operator_runtime.serving.metrics_authentication import MetricsAuthentication

                context = await _tls(settings.metrics_cert_dir, metrics[PATH])
                # Of its own: a scrape must not wait for a worker's requests, nor be held back with a standby's writes.
                reviews = ApiClient(access, user_agent=user_agent, timeout_s=REVIEW_TIMEOUT_S)
                refusal = MetricsAuthentication(await stack.enter_async_context(reviews), paths=metrics).refusal
            scrapes = Scrapes(metrics, refusal)
            server = HttpServer("metrics", METRICS_FLAG, address, scrapes.answer, context)
            await stack.enter_async_context(server)
            urls["metrics"] = server.url
            addresses.append(f"metrics at {server.url}{PATH}")
        if addresses:
            logger.info("serving %s", ", ".join(addresses))
        yield urls


async def _tls(directory: str | None, metrics: Metrics) -> ssl.SSLContext:
    from operator_runtime.serving.serving_tls import CertificateFiles, self_signed_context

    if not directory:
        return await self_signed_context(CERTIFICATE_FLAG)
    files = CertificateFiles(Path(directory), CERTIFICATE_FLAG)
    metrics.add(files.families)
    return files.context


def _event_families(recorder: EventRecorder) -> Iterator[Metric]:
    yield counter("events_written_total", "Events that the API server accepted.", (), [((), recorder.written)])
    yield counter(
        "events_dropped_total",
        "Events that were dropped, by reason.",
        ("reason",),
        (((reason,), recorder.dropped[reason]) for reason in DROP_REASONS),
    )
