"""A real Prometheus finds the operator's pods by Kubernetes' service discovery, and scrapes them as they run: what they
show of themselves, and what the memcached servers say.

What it is told is what prometheus-operator makes of the component's PodMonitor. It runs beside the node, which reaches
pods by their addresses as another pod would.
"""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.node.node import Node
from lab.programs import prometheus_operator
from operator_runtime.testing.waiting import eventually
from tests.e2e.conftest import uninstall
from tests.e2e.node_cluster import (
    MEMCACHED,
    OPERATOR,
    SYSTEM,
    leader,
    nodes_of,
    operator_pods,
    pod_address,
    stores,
)
from tests.integration.conftest import memcached
from tests.integration.monitoring import Prometheus, configured_prometheus, fetch, program
from tests.integration.prometheus_operator import (
    PLAIN,
    PROMETHEUS,
    SECURE,
    configuration,
    executable,
    local_configuration,
    running,
    scraper_token,
)
from tests.kubectl_in_namespace import Kubectl
from tests.overlays import overlay

# On first use prometheus-operator and Prometheus are compiled.
pytestmark = pytest.mark.timeout(1800)

METRICS_PORT = 8080
# What is scraped of each pod, by Prometheus' name for it.
PATHS = {f"podMonitor/{SYSTEM}/{OPERATOR}/0": "/metrics", f"podMonitor/{SYSTEM}/{OPERATOR}/1": "/metrics/servers"}
SERVERS_JOB = "memcached-servers"
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
def installed(node: Node, components: tuple[str, ...]) -> Iterator[Kubectl]:
    """kubectl in the namespace of the operator with components, whose two pods are ready, beside a memcached server."""
    text = overlay("cluster", components=components, namespace=SYSTEM)
    system = Kubectl(node.plane, SYSTEM)
    try:
        node.kubectl("apply", "--server-side", "-f", "-", input=text)
        system("create", "role", SCRAPER, "--verb=get,list,watch", "--resource=pods")
        system("create", "rolebinding", SCRAPER, f"--role={SCRAPER}", f"--user={SCRAPER}")
        system("apply", "-f", "-", input=json.dumps(memcached("bystander", 1)))
        system("apply", "-f", "-", input=json.dumps(PROMETHEUS))
        system("rollout", "status", f"deployment/{OPERATOR}", "--timeout=55s")
        system.wait("mcd/bystander", "condition=Available")
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


def targets(server: Prometheus) -> set[Target]:
    """Pool, pod, address, health and error of all that is scraped."""
    return {
        (each["scrapePool"], each["labels"]["pod"], each["scrapeUrl"], each["health"], each["lastError"])
        for each in server.targets()
    }


def urls(system: Kubectl, scheme: str) -> dict[tuple[str, str], str]:
    """Where each of the operator's two pods serves metrics, by pool and pod."""
    pods = operator_pods(system)
    assert len(pods) == 2
    return {
        (pool, pod): f"{scheme}://{pod_address(system, pod)}:{METRICS_PORT}{path}"
        for pool, path in PATHS.items()
        for pod in pods
    }


def assert_scraped(server: Prometheus, system: Kubectl, desired: set[Target]) -> None:
    """Wait until what is scraped is this and no more, and Prometheus has learnt from it which pod leads."""
    eventually(lambda: targets(server), lambda found: found == desired)
    for pool in PATHS:
        assert server.passed_over()[pool] >= 1, "the memcached server was not even looked at"
    lead = {pod: float(pod == leader(system)) for pod in operator_pods(system)}
    eventually(
        lambda: {labels["pod"]: value for labels, value in server.series("leader_election_master_status")},
        lambda found: found == lead,
    )
    assert sum(lead.values()) == 1


def test_prometheus_finds_and_scrapes_both_operator_pods_and_nothing_else(
    node: Node, operator_images: None, prometheus_path: str, tmp_path: Path
) -> None:
    with installed(node, PLAIN) as system:
        settings = settings_of(node, system, tmp_path)
        with configured_prometheus(tmp_path, settings, prometheus_path) as server:
            where = urls(system, "http")
            assert_scraped(server, system, {(pool, pod, url, "up", "") for (pool, pod), url in where.items()})
            up = {(job, pod, 1.0) for _, pod in where for job in (OPERATOR, SERVERS_JOB)}
            found = eventually(
                lambda: server.series("up"),
                lambda seen: {(labels["job"], labels["pod"], value) for labels, value in seen} == up,
            )
            for labels, _ in found:
                assert labels["container"] == OPERATOR
                assert (labels["namespace"], labels["endpoint"]) == (SYSTEM, "metrics")


def test_prometheus_learns_what_each_memcached_server_says_of_itself_under_the_server_s_own_labels(
    node: Node, operator_images: None, kubectl: Kubectl, prometheus_path: str, tmp_path: Path
) -> None:
    with installed(node, PLAIN) as system:
        kubectl("apply", "-f", "-", input=json.dumps(memcached("cache", 2)))
        kubectl.wait("mcd/cache", "condition=Available")
        first, second = nodes_of(kubectl, "cache")
        assert stores(pod_address(kubectl, first), "hello")
        settings = settings_of(node, system, tmp_path)
        with configured_prometheus(tmp_path, settings, prometheus_path) as server:

            def values_of(metric: str) -> dict[str, float]:
                """The value of each of the Memcached's servers."""
                of_cache = f'{metric}{{job="{SERVERS_JOB}",namespace="{kubectl.namespace}",memcached="cache"}}'
                return {labels["pod"]: value for labels, value in server.series(of_cache)}

            eventually(lambda: values_of("memcached_up"), lambda found: found == {first: 1.0, second: 1.0})
            labels, _ = server.series(f'memcached_max_connections{{pod="{first}"}}')[0]
            assert labels == {
                "__name__": "memcached_max_connections",
                "job": SERVERS_JOB,
                "endpoint": "metrics",
                "namespace": kubectl.namespace,
                "memcached": "cache",
                "pod": first,
                "instance": first,
            }
            assert values_of("memcached_max_connections") == {first: 1024, second: 1024}
            assert values_of("memcached_limit_bytes") == {first: 64 << 20, second: 64 << 20}
            # Each is asked every half minute.
            eventually(lambda: values_of("memcached_current_items"), lambda found: found == {first: 1.0, second: 0.0})
            gets = {
                (of["pod"], of["status"]): value
                for of, value in server.series(f'memcached_commands_total{{command="get",pod=~"{first}|{second}"}}')
            }
            assert gets == {(first, "hit"): 1.0, (first, "miss"): 0.0, (second, "hit"): 0.0, (second, "miss"): 0.0}
            versions = server.series(f'memcached_version{{pod="{first}"}}')
            assert [of["version"] for of, _ in versions] == [MEMCACHED.rpartition(":")[2].partition("-")[0]]
        where = f"http://{pod_address(system, leader(system))}:{METRICS_PORT}/metrics/servers"
        checked = subprocess.run(
            [program("promtool"), "check", "metrics"],
            input=fetch(where)[1],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_secure_metrics_are_scraped_by_tls_with_the_token_and_not_without_one(
    node: Node, operator_images: None, prometheus_path: str, tmp_path: Path
) -> None:
    with installed(node, SECURE) as system:
        settings = settings_of(node, system, tmp_path)
        job = settings["scrape_configs"][0]
        unauthorized = copy.deepcopy(job) | {"job_name": "stranger"}
        del unauthorized["authorization"]
        settings["scrape_configs"].append(unauthorized)
        with configured_prometheus(tmp_path, settings, prometheus_path) as server:
            where = urls(system, "https")
            assert_scraped(
                server,
                system,
                {(pool, pod, url, "up", "") for (pool, pod), url in where.items()}
                | {
                    ("stranger", pod, url, "down", UNAUTHORIZED)
                    for (_, pod), url in where.items()
                    if url.endswith("/metrics")
                },
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
