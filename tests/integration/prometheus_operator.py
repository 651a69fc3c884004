"""prometheus-operator at work on a cluster: what it makes of the component prometheus, for a Prometheus beside it."""

from __future__ import annotations

import base64
import gzip
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from lab.cache import BuildError
from lab.control_plane import ControlPlane
from lab.programs import prometheus, prometheus_operator
from tests.cluster import await_established

PLAIN = ("prometheus",)
SECURE = ("secure-metrics", "prometheus", "prometheus/secure")
PROMETHEUS = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "Prometheus",
    "metadata": {"name": "ours"},
    "spec": {
        "replicas": 0,  # it runs beside the cluster
        "podMonitorSelector": {},
        "ruleSelector": {},
        "scrapeInterval": "1s",
        "evaluationInterval": "1s",
    },
}
# What the sidecar beside Prometheus fills in.
RELOADER = {"POD_NAME": "prometheus-ours-0", "SHARD": "0"}


class Kubectl(Protocol):
    """kubectl in one namespace; its standard output."""

    def __call__(self, *arguments: str, input: str | None = None, check: bool = True) -> str: ...


def executable(kubectl: Callable[..., object]) -> str:
    """A Prometheus that knows Kubernetes; prometheus-operator's kinds are in the cluster of that kubectl then.

    Where the programs cannot be had the test is left out, or fails where all must run.
    """
    try:
        files, path = prometheus_operator.definitions(), prometheus.build()
    except BuildError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"cannot be had here: {error}")
    for file in files:
        kubectl("apply", "--server-side", "-f", str(file))
    for file in files:
        name = f"crd/{yaml.safe_load(file.read_text())['metadata']['name']}"
        await_established(kubectl, name)
    return str(path)


@contextmanager
def running(plane: ControlPlane, namespace: str) -> Iterator[None]:
    """prometheus-operator for one namespace."""
    program = prometheus_operator.program(plane, [namespace])
    program.start()
    try:
        yield
    except AssertionError as error:
        error.add_note(f"prometheus-operator's log ends:\n{program.log_tail()}")
        raise
    finally:
        program.signal(signal.SIGTERM)
        program.wait(60)


def configuration(kubectl: Kubectl) -> dict[str, Any] | None:
    """What prometheus-operator tells the Prometheus to do; None while it names no pods."""
    found = kubectl("get", "secret", "prometheus-ours", "-o", "jsonpath={.data}", check=False)
    if not found:
        return None
    packed = base64.b64decode(yaml.safe_load(found)["prometheus.yaml.gz"])
    text = gzip.decompress(packed).decode()
    for variable, value in RELOADER.items():
        text = text.replace(f"$({variable})", value)
    settings: dict[str, Any] = yaml.safe_load(text)
    return settings if settings.get("scrape_configs") else None


def local_configuration(
    settings: dict[str, Any], kubeconfig: Path, directory: Path, rules: dict[str, str]
) -> dict[str, Any]:
    """The same for a Prometheus that runs beside the cluster and not in a pod."""
    for name, text in rules.items():
        (directory / name).write_text(text)
    for job in settings["scrape_configs"]:
        for discovery in job["kubernetes_sd_configs"]:
            discovery["kubeconfig_file"] = str(kubeconfig)
    return {**settings, "rule_files": [str(directory / "*.yaml")]}


def scraper_token(kubectl: Kubectl) -> str:
    """The token that the component prometheus/secure makes; nothing while it has none."""
    path = "jsonpath={.data.token}"
    return base64.b64decode(kubectl("get", "secret", "memcached-operator-scraper", "-o", path)).decode()
