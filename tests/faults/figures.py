"""What an operator's metrics say, and how they change."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from tests.faults.scene import await_none
from tests.operator_process import DEADLINE_S, OperatorProcess

# Flags by which an operator serves metrics and probes at ports of its own choice, which its log names.
SERVING = ("--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0")


class Sample(NamedTuple):
    """One series at one time."""

    name: str
    labels: dict[str, str]
    value: float


class Reading:
    """One scrape."""

    def __init__(self, text: str) -> None:
        self._samples = [
            Sample(each.name, each.labels, each.value)
            for family in text_string_to_metric_families(text)
            for each in family.samples
        ]

    def sum(self, name: str, **labels: str) -> float:
        """The sum of the series of that name that have these labels, among others."""
        found = [each for each in self._samples if each.name == name]
        assert found, f"there is no {name}"
        return sum(each.value for each in found if labels.items() <= each.labels.items())

    def restarts(self, cause: str, resource: str = "") -> float:
        """How many requests of watches ended so, of one kind or of all."""
        return self.sum("watch_stream_restarts_total", cause=cause, **({"resource": resource} if resource else {}))

    def relists(self, resource: str) -> float:
        """How many complete pictures of a kind were taken."""
        return self.sum("watch_stream_relists_total", resource=resource)

    def requests(self, code: str) -> float:
        """How many requests the API server answered so; "<error>" where no answer came."""
        return self.sum("rest_client_requests_total", code=code)


class Figures:
    """Scrapes an operator that was started with `SERVING`."""

    def __init__(self, operator: OperatorProcess) -> None:
        line = operator.wait_for_log("serving ", "metrics at ")
        self._urls = {name: url.rstrip(",") for name, url in re.findall(r"(probes|metrics) at (\S+)", line)}

    def read(self) -> Reading:
        """Everything as it is now."""
        with urllib.request.urlopen(self._urls["metrics"], timeout=DEADLINE_S) as answer:
            return Reading(answer.read().decode())

    def await_restarts(self, cause: str, resource: str, *, above: float) -> None:
        """Wait until requests of the watch of a kind have ended so more often than that."""
        await_none(
            lambda: (
                None
                if self.read().restarts(cause, resource) > above
                else f"the watch of {resource} did not end by {cause} again"
            )
        )

    def await_ready(self, ready: bool) -> None:
        """Wait until /readyz says that."""
        await_none(lambda: None if self._is_ready() == ready else f"/readyz does not say {ready}")

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(self._urls["probes"] + "/readyz", timeout=DEADLINE_S) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            with error:
                return False
