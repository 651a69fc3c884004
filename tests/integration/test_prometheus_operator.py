"""prometheus-operator reads what the component prometheus installs, and a real Prometheus does what it says.

There is no kubelet, so the operators run beside the cluster, each at an address that the status of one of the
Deployment's pods is given.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.control_plane import ControlPlane
from operator_runtime.testing.waiting import eventually, until
from tests.cluster import Cluster
from tests.integration.conftest import MANIFESTS, Operators, memcached
from tests.integration.monitoring import Prometheus, configured_prometheus
from tests.integration.oracle import wait
from tests.integration.prometheus_operator import (
    PLAIN,
    PROMETHEUS,
    SECURE,
    configuration,
    executable,
    local_configuration,
    overlay,
    rule_files,
    running,
    scraper_token,
)
from tests.kubectl_in_namespace import Kubectl

# On first use prometheus-operator and Prometheus are compiled.
pytestmark = [pytest.mark.cluster("kubernetes"), pytest.mark.timeout(1800)]

METRICS_PORT = 8080


@pytest.fixture(scope="module")
def prometheus_path(installed: Cluster) -> str:
    """A Prometheus that knows Kubernetes; prometheus-operator's kinds are in the cluster."""
    return executable(installed.kubectl)


@contextmanager
def install(kubectl: Kubectl, directory: Path, components: tuple[str, ...]) -> Iterator[list[dict[str, Any]]]:
    """The install for one namespace with components, until the end of the block; its objects."""
    text = overlay(directory, "namespaced", kubectl.namespace, components)
    kubectl("apply", "--server-side", "-f", "-", input=text)
    try:
        yield list(yaml.safe_load_all(text))
    finally:
        # Some of it belongs to no namespace, and other tests rely on its absence.
        kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", input=text)


def sources(job: dict[str, Any]) -> set[tuple[str, ...]]:
    """By which labels of a target it is kept."""
    return {tuple(each["source_labels"]) for each in job["relabel_configs"] if each.get("action") == "keep"}


def loopback_address() -> str:
    """One of its own for each pod, so that all can have the port that the manifest names."""
    return f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"


def run_pods(kubectl: Kubectl, operators: Operators) -> dict[str, str]:
    """Run an operator for each of the Deployment's pods, with the Deployment's flags; addresses by pod."""
    deployment = kubectl.get("deployment", "memcached-operator")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    flags = [each for each in container["args"] if "bind-address" not in each]
    selector = "app.kubernetes.io/name=memcached-operator"

    def found() -> list[str]:
        return [pod["metadata"]["name"] for pod in kubectl.get("pods", "-l", selector)["items"]]

    names = eventually(found, lambda pods: len(pods) == deployment["spec"]["replicas"])
    account = kubectl.cluster.service_account_dir(kubectl.namespace, "memcached-operator")
    addresses = {name: loopback_address() for name in names}
    for name, address in addresses.items():
        where = f"--metrics-bind-address={address}:{METRICS_PORT}"
        operators.start("-n", kubectl.namespace, where, *flags, account_dir=account, POD_NAME=name).ready()
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        kubectl("patch", "pod", name, "--subresource=status", "-p", yaml.safe_dump({"status": status}))
    return addresses


@contextmanager
def watched(
    kubectl: Kubectl, operators: Operators, directory: Path, path: str, components: tuple[str, ...]
) -> Iterator[tuple[dict[str, Any], dict[str, str], Prometheus]]:
    """Everything at work: what prometheus-operator made, the addresses of pods, and a Prometheus that does as told."""
    with ExitStack() as ends:
        ends.enter_context(install(kubectl, directory, components))
        assert isinstance(kubectl.cluster, ControlPlane)
        ends.enter_context(running(kubectl.cluster, kubectl.namespace))
        kubectl.apply(PROMETHEUS, memcached("cache", 2))
        addresses = run_pods(kubectl, operators)
        wait(kubectl, "mc/cache", ".status.replicas", 2)
        settings = eventually(lambda: configuration(kubectl), lambda made: made is not None)
        rules = eventually(lambda: rule_files(kubectl), bool)
        assert settings is not None
        local = local_configuration(settings, kubectl.cluster.kubeconfig_path, directory, rules)
        yield settings, addresses, ends.enter_context(configured_prometheus(directory, local, path))


def test_prometheus_finds_both_pods_and_the_alerts_as_prometheus_operator_tells_it(
    kubectl: Kubectl, operators: Operators, prometheus_path: str, tmp_path: Path
) -> None:
    with watched(kubectl, operators, tmp_path, prometheus_path, PLAIN) as (settings, addresses, asked):
        jobs = settings["scrape_configs"]
        pool = f"podMonitor/{kubectl.namespace}/memcached-operator"
        assert {each["job_name"]: each["metrics_path"] for each in jobs} == {
            f"{pool}/0": "/metrics",
            f"{pool}/1": "/metrics/servers",
        }
        assert [each["honor_labels"] for each in jobs] == [False, True], "what servers say bears their own labels"
        label = "__meta_kubernetes_pod_label_app_kubernetes_io_name"
        for job in jobs:
            assert job["scheme"] == "http"
            assert ("__meta_kubernetes_pod_container_port_name",) in sources(job)
            assert (label, label.replace("_label_", "_labelpresent_")) in sources(job)

        pods = {
            (job, name, f"{address}:{METRICS_PORT}")
            for name, address in addresses.items()
            for job in ("memcached-operator", "memcached-servers")
        }
        until(
            f"Prometheus sees {asked.series('up')}",
            lambda: {(of["job"], of["pod"], of["instance"]) for of, up in asked.series("up") if up} == pods,
        )
        for labels, _ in asked.series("up"):
            assert labels["container"] == "memcached-operator"
            assert (labels["namespace"], labels["endpoint"]) == (kubectl.namespace, "metrics")
        until("none leads", lambda: sum(value for _, value in asked.series("leader_election_master_status")) == 1)

        (text,) = rule_files(kubectl).values()
        assert yaml.safe_load(text) == {
            "groups": yaml.safe_load((MANIFESTS / "components/prometheus/prometheusrule.yaml").read_text())["spec"][
                "groups"
            ]
        }
        assert asked.firing() == {}


def test_secure_metrics_are_scraped_with_the_token_that_the_component_makes(
    kubectl: Kubectl, operators: Operators, prometheus_path: str, tmp_path: Path
) -> None:
    with watched(kubectl, operators, tmp_path, prometheus_path, SECURE) as (settings, addresses, asked):
        jobs = settings["scrape_configs"]
        assert len(jobs) == 2
        for job in jobs:
            assert job["scheme"] == "https"
            assert job["tls_config"] == {"insecure_skip_verify": True}
            assert job["authorization"] == {"type": "Bearer", "credentials": scraper_token(kubectl)}
        pods = {(job, pod) for pod in addresses for job in ("memcached-operator", "memcached-servers")}
        until(
            f"Prometheus sees {asked.series('up')}",
            lambda: {(of["job"], of["pod"]) for of, up in asked.series("up") if up} == pods,
        )
