"""What a scrape is answered with: families as Prometheus text or OpenMetrics, by prometheus-client.

Imported by the first scrape alone (3 MiB, 0.1 s), on a thread beside the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.openmetrics.exposition import (
    CONTENT_TYPE_LATEST as OPENMETRICS,
    generate_latest as generate_openmetrics,
)
from prometheus_client.registry import Collector, CollectorRegistry

from operator_runtime.telemetry.metrics import Family, Histogram, Kind

# Of a scraper's Accept header only the format is looked at: Prometheus takes 0.0.4 and 1.0.0 whatever else it can read,
# and the library's own choice stumbles over versions that it does not know.
_OPENMETRICS = "application/openmetrics-text"
_openmetrics: Callable[[CollectorRegistry], bytes] = generate_openmetrics


class Exposition:
    """Renders families, with what prometheus-client says of the process, in the format that a scraper asks for."""

    def __init__(self) -> None:
        self._process = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    def content_type(self, accept: str) -> str:
        """The format that a scraper is answered in.

        Args:
            accept: its Accept header, "" if it sent none.
        """
        asked = {each.partition(";")[0].strip() for each in accept.split(",")}
        return OPENMETRICS if _OPENMETRICS in asked else CONTENT_TYPE_PLAIN_0_0_4

    def render(self, families: Iterable[Family], content_type: str) -> bytes:
        """The body.

        Args:
            families: as they are to be shown; not looked at again.
            content_type: as `content_type` gave it.
        """
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Given(families, self._process))
        return _openmetrics(registry) if content_type == OPENMETRICS else generate_latest(registry)

    def names(self) -> list[str]:
        """The families that prometheus-client adds, as they are documented: counters with `_total`."""
        return [f"{each.name}_total" if each.type == "counter" else each.name for each in self._process.collect()]


class _Given(Collector):
    """Shows these families and then those of another registry."""

    def __init__(self, families: Iterable[Family], after: CollectorRegistry) -> None:
        self._families = tuple(families)
        self._after = after

    def collect(self) -> Iterator[Metric]:
        for each in self._families:
            yield _metric(each)
        yield from self._after.collect()


def _metric(family: Family) -> Metric:
    metric: CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
    match family.kind:
        case Kind.COUNTER:
            metric = CounterMetricFamily(family.name, family.help, labels=family.labels)
        case Kind.GAUGE:
            metric = GaugeMetricFamily(family.name, family.help, labels=family.labels)
        case Kind.HISTOGRAM:
            metric = HistogramMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in family.samples:
        if isinstance(value, Histogram):
            assert isinstance(metric, HistogramMetricFamily)
            metric.add_metric(labels, _buckets(value), value.sum)
        else:
            assert not isinstance(metric, HistogramMetricFamily)
            metric.add_metric(labels, value)
    return metric


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Cumulative counts, as the formats want them."""
    total = 0
    buckets: list[tuple[str, float]] = []
    for bound, number in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        total += number
        buckets.append((_bound(bound), total))
    return buckets


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else repr(bound)
