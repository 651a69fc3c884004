"""What an operator serves of itself: addresses, checks and families, with nothing running but the servers."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memcached_operator import operator
from memcached_operator.about import PROGRAM
from memcached_operator.settings_schema import SCHEMA
from operator_runtime.controller.manager import Manager
from operator_runtime.identity import Program
from operator_runtime.operator import Operator
from operator_runtime.serving.listening import ServingError
from operator_runtime.serving.monitoring import add_sources, served
from operator_runtime.serving.probes import Checks
from operator_runtime.telemetry.metrics import Metrics
from tests.unit.operator_runtime.client.client_support import client_of
from tests.unit.operator_runtime.http import connected, fetched, get
from tests.unit.operator_runtime.operator_support import settings
from tests.unit.operator_runtime.series import series

FREE = "127.0.0.1:0"
OPERATIONS = Path(__file__).parents[4] / "docs" / "operations.md"


@asynccontextmanager
async def serving(
    metrics: Metrics, values: Mapping[str, object], checks: Checks | None = None
) -> AsyncIterator[dict[str, str]]:
    """Serve what there is of an operator, by these settings."""
    access, by_path = client_of("https://api.invalid").access, {"/metrics": metrics}
    async with served(settings(**values), checks or Checks(), by_path, access, user_agent="test/1") as urls:
        yield urls


PROBES, METRICS = "health_probe_bind_address", "metrics_bind_address"


async def built(*namespaces: str) -> tuple[Manager, Metrics]:
    """An operator that does not run, with all that it can show."""
    client = client_of("https://api.invalid:6443")
    values = SCHEMA.load({"metrics_per_object": True, "server_stats_interval_s": 0}, {})
    parts = Operator(values, PROGRAM, client, namespaces=namespaces)
    operator.set_up(parts, values)
    manager = parts.finish()
    add_sources(parts.metrics, PROGRAM, manager, client, parts.events, parts.expected_writes)
    return manager, parts.metrics


def urls(messages: Sequence[str]) -> dict[str, str]:
    (line,) = (each for each in messages if each.startswith("serving "))
    return dict(re.findall(r"(probes|metrics) at (\S+?)(?:,|$)", line))


async def test_probes_and_metrics_are_served_where_the_log_says(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    _, metrics = await built()
    checks = Checks()
    checks.add_health("leaderElection", lambda: "overdue")
    async with serving(metrics, {PROBES: FREE, METRICS: FREE}, checks):
        found = urls(caplog.messages)
        assert await fetched(found["probes"] + "/healthz/ping") == (200, "ok")
        assert await fetched(found["probes"] + "/healthz/leaderElection") == (500, "internal server error: overdue\n")
        status, text = await fetched(found["metrics"])
        assert status == 200
        assert "\nworkqueue_depth{" in text
        address = found["probes"].removeprefix("http://")
        for taken in (PROBES, METRICS):
            flag = "--" + taken.replace("_", "-")
            with pytest.raises(ServingError, match=f"turn it off with {flag}=0"):
                async with serving(metrics, {PROBES: FREE, METRICS: FREE} | {taken: address}):
                    raise AssertionError("unreachable")
    with pytest.raises(ConnectionRefusedError):
        await fetched(found["metrics"])


@pytest.mark.parametrize("target", [b"/readyz?exclude=\xff", b"/readyz/\xff", b"/\xff", b"/readyz?exclude=%ff&verbose"])
async def test_no_bytes_of_a_request_are_a_fault_of_the_operators(
    target: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    _, metrics = await built()
    async with serving(metrics, {PROBES: FREE}) as urls, connected(urls["probes"]) as client:
        answer = await client.exchange(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 ")) or b"\n[+]ping ok\n" in answer
    assert not [each for each in caplog.records if each.exc_info]


async def test_checks_of_an_authors_own_run_beside_the_built_in_ones_and_what_is_turned_off_is_not_served() -> None:
    _, metrics = await built()
    checks = Checks()
    checks.add_ready("backlog", lambda: "too long")
    async with serving(metrics, {PROBES: FREE}, checks) as urls:
        assert await fetched(urls["probes"] + "/readyz/backlog") == (500, "internal server error: too long\n")
        assert set(urls) == {"probes"}
    async with serving(metrics, {}) as urls:
        assert urls == {}


async def test_secure_metrics_without_their_certificate_name_the_flag(tmp_path: Path) -> None:
    _, metrics = await built()
    where = {METRICS: FREE, "metrics_secure": True, "metrics_cert_dir": str(tmp_path)}
    with pytest.raises(ServingError, match=f"^--metrics-cert-dir={tmp_path}: "):
        async with serving(metrics, where):
            raise AssertionError("unreachable")


async def test_there_is_a_check_for_each_watch_and_none_is_passed_before_its_first_list() -> None:
    manager, _ = await built("shop", "bank")
    checks = Checks()
    for reflector in manager.awaited:
        checks.add_watch(reflector)
    response = await checks.answer(get("/readyz?verbose"))
    assert response.status == 500
    kinds = ("memcacheds.cache.example.com", "deployments.apps", "pods")
    assert response.body.decode().splitlines() == [
        "[+]ping ok",
        *(f"[-]watch/{kind}/{where} failed: reason withheld" for kind in kinds for where in ("shop", "bank")),
        "readyz check failed",
    ]
    for reflector in manager.awaited:
        reflector.synced.set()
    assert (await checks.answer(get("/readyz"))).status == 200


def documented() -> set[str]:
    """The names in the first column of the table of metrics."""
    section = OPERATIONS.read_text().partition("## Metrics")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([a-z_]+)`", section, re.MULTILINE))


ON_REQUEST = {
    *(f"certwatcher_{name}" for name in ("last_read_successful", "read_certificate_total")),
    "certwatcher_read_certificate_errors_total",
    "leader_election_master_status",
    "leader_election_slowpath_total",
}


async def test_each_metric_is_documented_and_each_documented_metric_is_there() -> None:
    _, metrics = await built()
    names = {f"{each.name}_total" if each.type == "counter" else each.name for each in metrics.collect()}
    assert documented() - ON_REQUEST == names
    assert documented() >= ON_REQUEST


async def test_no_label_has_values_without_end_but_those_that_are_asked_for() -> None:
    _, metrics = await built()
    of_python = ("python_", "process_")
    own_families = [
        each for each in metrics.collect() if "_memcached_" not in each.name and not each.name.startswith(of_python)
    ]
    labels = {label for family in own_families for sample in family.samples for label in sample.labels}
    labels |= {
        label for family in own_families for label in getattr(family, "_labelnames", ())
    }  # there may be no series yet
    assert labels == {
        *("controller", "name", "priority", "result"),  # a controller's; at most 27 priorities
        *("resource", "scope", "cause"),  # the watches that were configured, and a closed set
        *("code", "method", "host", "verb"),  # HTTP's and ours
        *("kind", "field", "reason", "condition", "status"),  # closed sets
        *("version", "python"),
        "le",  # of histograms
    }


def test_the_metric_of_which_operator_runs_bears_its_name_and_version() -> None:
    shells = Program("my-own-shell", "1.2.3")
    parts = Operator(SCHEMA.load({}, {}), shells, client_of("https://api.invalid"))
    add_sources(parts.metrics, shells, parts.finish(), parts.api, parts.events, ())
    python = ".".join(map(str, sys.version_info[:3]))
    assert series(parts.metrics.collect())["my_own_shell_build_info"] == {("1.2.3", python): 1}
