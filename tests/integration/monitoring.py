"""What an operator serves of itself, as its callers see it: curl, kubelet, and a real Prometheus."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from operator_runtime.testing.waiting import DEADLINE_S
from tests.cluster import REQUIRED_VARIABLE
from tests.operator_process import OperatorProcess

FREE_PORT = "127.0.0.1:0"
PROBES = f"--health-probe-bind-address={FREE_PORT}"
METRICS = f"--metrics-bind-address={FREE_PORT}"

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def url_of(operator: OperatorProcess, what: str) -> str:
    """Where the operator serves "probes" or "metrics", as its log says."""
    line = operator.wait_for_log("serving ", what)
    found = re.search(rf"{what} at ([^\s,]+)", line)
    assert found is not None, line
    return found[1]


def fetch(url: str, token: str = "") -> tuple[int, str]:
    """Status and text of a GET; whoever's certificate is taken."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S, context=_anybody()) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class Scrape:
    """One look at /metrics."""

    def __init__(self, url: str) -> None:
        status, self.text = fetch(url)
        assert status == 200, self.text
        self.series: Series = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.text)
            for sample in family.samples
        }

    def value(self, name: str, /, **labels: str) -> float:
        """The value of the one series that has these labels and perhaps more."""
        (found,) = self.values(name, **labels)
        return found

    def values(self, name: str, /, **labels: str) -> list[float]:
        """Those of all series that have these labels and perhaps more."""
        return [
            value for (of, having), value in self.series.items() if of == name and having >= frozenset(labels.items())
        ]


def program(name: str) -> str:
    """The path of one of Prometheus' programs; without it the test is left out, or fails where all must run."""
    path = shutil.which(name)
    if path is None:
        message = f"{name} is not there: install the package prometheus"
        if os.environ.get("CI") and os.environ.get(REQUIRED_VARIABLE):
            pytest.fail(message)
        pytest.skip(message)
    return path


class Prometheus:
    """A real Prometheus that runs."""

    def __init__(self, port: int) -> None:
        self._port = port

    def series(self, query: str) -> list[tuple[dict[str, str], float]]:
        """All that answers a query: labels and value of each."""
        results = self._get(f"query?{urllib.parse.urlencode({'query': query})}").get("result", ())
        return [(each["metric"], float(each["value"][1])) for each in results]

    def targets(self) -> list[dict[str, Any]]:
        """All that it scrapes: labels, scrapePool, scrapeUrl, health and lastError of each."""
        found: list[dict[str, Any]] = self._get("targets?state=active").get("activeTargets", [])
        return found

    def passed_over(self) -> dict[str, int]:
        """How many targets each job has found and does not scrape."""
        found: dict[str, int] = self._get("targets?state=dropped").get("droppedTargetCounts", {})
        return found

    def _get(self, what: str) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/{what}", timeout=DEADLINE_S) as answer:
                data: dict[str, Any] = json.load(answer)["data"]
        except OSError:
            return {}  # it starts
        return data


@contextmanager
def configured_prometheus(
    directory: Path, settings: dict[str, Any], executable: str | None = None
) -> Iterator[Prometheus]:
    """A real Prometheus, the machine's unless another is named, with a configuration of the caller's."""
    path = executable or program("prometheus")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (directory / "prometheus.yml").write_text(yaml.safe_dump(settings))
    with (directory / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [
                path,
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        yield Prometheus(port)
    finally:
        process.kill()
        process.wait()


def _anybody() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
