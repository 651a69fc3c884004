"""Alerts and dashboard ask for nothing but what the operator shows: each metric by its name, labels and values."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import pytest
from prometheus_client import generate_latest

from memcached_operator.api.status import OCCASIONAL_CONDITIONS, OWNED_CONDITIONS, Reason
from memcached_operator.core.observed.caches import Caches
from memcached_operator.core.observed.pods import pod_record
from memcached_operator.features.memory_scaling.memory_scaler import Scaler
from memcached_operator.servers.certificates import Certificate, Shown
from memcached_operator.servers.metric_families import server_families
from memcached_operator.servers.stats_answer import EXTSTORE, FIGURES, StatsAnswer
from memcached_operator.servers.stats_cache import QueriedServer
from operator_runtime.cache.store import ObjectKey, Store
from operator_runtime.election import elections
from operator_runtime.owned.per_key_state import KeyedStates
from operator_runtime.serving.self_signed import self_signed
from operator_runtime.serving.serving_tls import CertificateFiles
from operator_runtime.telemetry.metrics import Metrics
from tests.unit.manifests.expressions import joins, parsed, selectors, sums
from tests.unit.manifests.monitoring_files import alerts, panels, queries
from tests.unit.memcached_operator.support import live_pod
from tests.unit.operator_runtime.serving.test_monitoring import built

# What a PodMonitor gives to each series of a pod. A metric's own label of such a name becomes exported_NAME.
TARGET_LABELS = frozenset({"job", "namespace", "pod", "container", "endpoint", "instance"})
OPERATOR, SERVERS = "memcached-operator", "memcached-servers"
# Their values are known before anything was done.
CLOSED = {"controller", "reason", "resource", "condition", "status", "command"}


class Series(NamedTuple):
    """What Prometheus has of a metric: the labels of its series, the values of labels that were seen, and its jobs."""

    labels: frozenset[str]
    values: dict[str, set[str]]
    jobs: frozenset[str] = frozenset({OPERATOR})


class Leader:
    """An election, as far as its metrics look at it."""

    lock = ObjectKey("ops", "memcached-operator-lock")
    leading, slow_paths = True, 0


async def all_metrics(directory: Path) -> Metrics:
    """Everything that an operator can show, whatever it takes to be asked for."""
    _, metrics = await built()
    metrics.add(lambda: elections.election_families(Leader()))  # type: ignore[arg-type]
    key, begin, certificate = self_signed(["localhost"], datetime.now(UTC)).decode().partition("-----BEGIN CERTIFICATE")
    (directory / "tls.key").write_text(key)
    (directory / "tls.crt").write_text(begin + certificate)
    metrics.add(CertificateFiles(directory, "--metrics-cert-dir").families)
    return metrics


def server_metrics() -> Metrics:
    """All that a server's answer makes."""
    by_class = ("items:1:evicted", "items:1:outofmemory")
    stats = {name.encode(): b"1" for name in (*FIGURES, *EXTSTORE, *by_class)} | {b"version": b"1.6.45"}
    server = QueriedServer(0, True, answer=StatsAnswer.of(stats), shown=Shown(Certificate("", 0.0, 1.0), 0.0))
    pod = live_pod()
    pod["status"]["podIP"] = "10.0.0.1"
    metrics = Metrics()
    metrics.add(lambda: server_families([pod_record(json.dumps(pod).encode())], lambda _: server))
    metrics.add(Scaler(Caches(Store(), Store(), Store(), Store(), {}), KeyedStates(), 600.0, monotonic).families)
    return metrics


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Series]:
    """What can be asked for, as a scrape brings it and Prometheus keeps it."""
    # Put together as an operator is, which takes an event loop.
    found = scraped(asyncio.run(all_metrics(tmp_path_factory.mktemp("tls"))))
    # There is none before there is a Memcached.
    found[CONDITIONS].values.update(
        condition={*OWNED_CONDITIONS, *OCCASIONAL_CONDITIONS}, reason={*Reason}, status={"True", "False", "Unknown"}
    )
    # Their labels are honoured, and the PodMonitor takes the container away.
    for name, series in scraped(server_metrics()).items():
        labels = {each.removeprefix("exported_") for each in series.labels} - {"container"}
        found[name] = series._replace(labels=frozenset(labels), jobs=frozenset({SERVERS}))
    return found | {"up": Series(TARGET_LABELS, {}, frozenset({OPERATOR, SERVERS}))}


def scraped(metrics: Metrics) -> dict[str, Series]:
    """What one scrape brings, by name."""
    text = generate_latest(metrics).decode()
    found = {}
    # A metric may have no series yet, so that its labels stand in the family alone.
    declared = {
        family.name + ("_total" if family.type == "counter" else ""): getattr(family, "_labelnames", ())
        for family in metrics.collect()
    }
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE):
        own = set(declared.get(name, ())) | set(re.findall(r"(?<=[{,])(\w+)=", first_sample(text, name)))
        labels = frozenset(f"exported_{each}" if each in TARGET_LABELS else each for each in own) | TARGET_LABELS
        lines = re.findall(rf"^{name}\w*\{{(.*)\}} ", text, re.MULTILINE)
        pairs = [pair for line in lines for pair in re.findall(r'(\w+)="([^"]*)"', line)]
        series = Series(labels - {"le"}, {label: {value for of, value in pairs if of == label} for label, _ in pairs})
        for suffix in ("_bucket", "_sum", "_count") if kind == "histogram" else ("",):
            found[name + suffix] = series._replace(labels=series.labels | ({"le"} if suffix == "_bucket" else set()))
    return found


def first_sample(text: str, name: str) -> str:
    match = re.search(rf"^{name}\w*(\{{.*\}})? ", text, re.MULTILINE)
    return match[0] if match else ""


CONDITIONS = "memcached_operator_memcacheds"
EXPRESSIONS = {name: rule["expr"] for name, rule in alerts().items()} | queries()


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_expression_names_metrics_labels_and_values_that_there_are(
    expression: str, shown: dict[str, Series]
) -> None:
    tree = parsed(expression)
    found = list(selectors(tree))
    assert found
    for selector in found:
        series = shown[selector.name or ""]
        for matcher in selector.matchers.matchers:
            assert matcher.name in series.labels, f"{selector.name} has no label {matcher.name}"
            if matcher.name in CLOSED:
                # A pattern of these is nothing but words.
                assert set(matcher.value.split("|")) <= series.values[matcher.name], f"{selector.name} has no {matcher}"
    for labels, part in joins(tree):
        assert all(set(labels) <= shown[each.name or ""].labels for each in selectors(part)), part.prettify()
    for labels, part in sums(tree):
        # A join may leave the labels of its one side alone.
        there = {label for each in selectors(part) for label in shown[each.name or ""].labels}
        assert set(labels) <= there, part.prettify()


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_expression_looks_at_this_operator_alone(expression: str, shown: dict[str, Series]) -> None:
    for selector in selectors(parsed(expression)):
        (job,) = [each.value for each in selector.matchers.matchers if each.name == "job"]
        assert job in shown[selector.name or ""].jobs


def test_a_panel_s_legend_names_labels_that_are_left() -> None:
    for panel in panels():
        for target in panel.get("targets", ()):
            left = {label for labels, _ in sums(parsed(target["expr"])) for label in labels}
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= left, panel["title"]
