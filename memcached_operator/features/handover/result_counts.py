"""Counts of what hand-overs, or moves, came to, since this leader leads."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily


class ResultCounts:
    """Counts by result, each of which is there from the start."""

    def __init__(self, name: str, help: str, *results: str) -> None:
        self._name, self._help = name, help
        self._counts = dict.fromkeys(results, 0)

    def add(self, result: str) -> None:
        """Count one; `result` is one of those that were given."""
        self._counts[result] += 1

    def families(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._help, labels=("result",))
        for result, count in self._counts.items():
            family.add_metric((result,), count)
        yield family
