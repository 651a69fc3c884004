"""A real Prometheus finds the operator's pods by Kubernetes' service discovery, and scrapes them as they run.

What it is told is what prometheus-operator makes of the component's PodMonitor. It runs beside the node, which reaches
pods by their addresses as another pod would.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.node.node import Node
from lab.programs import prometheus_operator
from operator_runtime.testing.waiting import eventually
from tests.e2e.conftest import uninstall
from tests.e2e.node_cluster import OPERATOR, SYSTEM, leader, operator_pods, pod_address
from tests.integration.conftest import memcached
from tests.integration.monitoring import Prometheus, configured_prometheus, fetch
from tests.integration.prometheus_operator import (
    PLAIN,
    PROMETHEUS,
    SECURE,
    configuration,
    executable,
    local_configuration,
    overlay,
    running,
    scraper_token,
)
from tests.kubectl_in_namespace import Kubectl

# On first use prometheus-operator and Prometheus are compiled.
pytestmark = pytest.mark.timeout(1800)

METRICS_PORT = 8080
POOL = f"podMonitor/{SYSTEM}/{OPERATOR}/0"
# Of the account that Prometheus discovers pods by; docs/operations.md says what it must be allowed.
SCRAPER = "e2e-prometheus"
UNAUTHORIZED = "server returned HTTP status 401 Unauthorized"

Target = tuple[str, str, str, str, str]


@pytest.fixture(scope="module")
def prometheus_path(node: Node) -> Iterator[str]:
    """A Prometheus that knows Kubernetes; prometheus-operator's kinds are on the node meanwhile."""
    yield executable(node.kubectl)
    for file in prometheus_operator.definitions():
        node.kubectl("delete", "--ignore-not-found", "-f", str(file))


@contextmanager
def installed(node: Node, directory: Path, components: tuple[str, ...]) -> Iterator[Kubectl]:
    """kubectl in the namespace of the operator with components, whose two pods are ready, beside a memcached server."""
    text = overlay(directory, "cluster", SYSTEM, components)
    system = Kubectl(node.plane, SYSTEM)
    try:
        node.kubectl("apply", "--server-side", "-f", "-", input=text)
        system("create", "role", SCRAPER, "--verb=get,list,watch", "--resource=pods")
        system("create", "rolebinding", SCRAPER, f"--role={SCRAPER}", f"--user={SCRAPER}")
        system("apply", "-f", "-", input=json.dumps(memcached("bystander", 1)))
        system("apply", "-f", "-", input=json.dumps(PROMETHEUS))
        system("rollout", "status", f"deployment/{OPERATOR}", "--timeout=55s")
        system.wait("mc/bystander", "condition=Available")
        yield system
    finally:
        uninstall(node)
        node.kubectl("delete", "--ignore-not-found", "-f", "-", input=text)


def settings_of(node: Node, system: Kubectl, directory: Path) -> dict[str, Any]:
    """What prometheus-operator tells a Prometheus, for one beside the node with the permissions of the documents."""
    with running(node.plane, SYSTEM):
        settings = eventually(lambda: configuration(system), lambda made: made is not None)
    assert settings is not None
    return local_configuration(settings, node.plane.user_kubeconfig(SCRAPER), directory, {})


def targets(asked: Prometheus) -> set[Target]:
    """Pool, pod, address, health and error of all that is scraped."""
    return {
        (each["scrapePool"], each["labels"]["pod"], each["scrapeUrl"], each["health"], each["lastError"])
        for each in asked.targets()
    }


def urls(system: Kubectl, scheme: str) -> dict[str, str]:
    """Where each of the operator's two pods serves its metrics."""
    found = {pod: f"{scheme}://{pod_address(system, pod)}:{METRICS_PORT}/metrics" for pod in operator_pods(system)}
    assert len(found) == 2
    return found


def assert_scraped(asked: Prometheus, system: Kubectl, wanted: set[Target]) -> None:
    """Wait until what is scraped is this and no more, and Prometheus has learnt from it which pod leads."""
    eventually(lambda: targets(asked), lambda found: found == wanted)
    assert asked.passed_over()[POOL] >= 1, "the memcached server was not even looked at"
    lead = {pod: float(pod == leader(system)) for pod in operator_pods(system)}
    eventually(
        lambda: {labels["pod"]: value for labels, value in asked.series("leader_election_master_status")},
        lambda found: found == lead,
    )
    assert sum(lead.values()) == 1


def test_prometheus_finds_and_scrapes_both_operator_pods_and_nothing_else(
    node: Node, operator_images: None, prometheus_path: str, tmp_path: Path
) -> None:
    with installed(node, tmp_path, PLAIN) as system:
        settings = settings_of(node, system, tmp_path)
        with configured_prometheus(tmp_path, settings, prometheus_path) as asked:
            where = urls(system, "http")
            assert_scraped(asked, system, {(POOL, pod, url, "up", "") for pod, url in where.items()})
            up = {(pod, 1.0) for pod in where}
            found = eventually(
                lambda: asked.series("up"), lambda seen: {(labels["pod"], value) for labels, value in seen} == up
            )
            for labels, _ in found:
                assert labels["job"] == labels["container"] == OPERATOR
                assert (labels["namespace"], labels["endpoint"]) == (SYSTEM, "metrics")


def test_secure_metrics_are_scraped_by_tls_with_the_token_and_not_without_one(
    node: Node, operator_images: None, prometheus_path: str, tmp_path: Path
) -> None:
    with installed(node, tmp_path, SECURE) as system:
        settings = settings_of(node, system, tmp_path)
        (job,) = settings["scrape_configs"]
        stranger = copy.deepcopy(job) | {"job_name": "stranger"}
        del stranger["authorization"]
        settings["scrape_configs"].append(stranger)
        with configured_prometheus(tmp_path, settings, prometheus_path) as asked:
            where = urls(system, "https")
            assert_scraped(
                asked,
                system,
                {(POOL, pod, url, "up", "") for pod, url in where.items()}
                | {("stranger", pod, url, "down", UNAUTHORIZED) for pod, url in where.items()},
            )
        other = system("create", "token", "default").strip()
        for url in where.values():
            assert _answer(url) == (401, False)
            assert _answer(url, other) == (403, False)
            assert _answer(url, scraper_token(system)) == (200, True)


def _answer(url: str, token: str = "") -> tuple[int, bool]:
    """The status, and whether there are metrics in it."""
    status, text = fetch(url, token)
    return status, "# TYPE" in text
