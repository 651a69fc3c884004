"""Counts of what hand-overs, or moves, came to, since this leader leads."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily


class ResultCounts(dict[str, int]):
    """Counts by result, each of which is there from the start."""

    def __init__(self, name: str, help: str, *results: str) -> None:
        super().__init__(dict.fromkeys(results, 0))
        self._name, self._help = name, help

    def families(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._help, labels=("result",))
        for result, count in self.items():
            family.add_metric((result,), count)
        yield family
