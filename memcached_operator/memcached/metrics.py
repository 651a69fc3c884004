"""What is shown of Memcacheds: what was put right, and on request how many servers each has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

from memcached_operator.api.names import InvalidSpec
from memcached_operator.memcached import desired
from memcached_operator.memcached.records import MemcachedRecord, PodRecord
from memcached_operator.memcached.rules import without_names
from memcached_operator.memcached.spec import read_spec
from operator_runtime import Store, field_name, field_names

OTHER_FIELDS = "other"


class RepairCounts:
    """Counts by field what others changed in our Deployments and we put right.

    The fields are those of a wanted Deployment; whatever is none of them counts as `OTHER_FIELDS`, so that nobody's
    label becomes a series.
    """

    def __init__(self) -> None:
        wanted = desired.deployment("name", "namespace", "uid", 1, "image")
        self._counts = dict.fromkeys([*field_names(without_names(wanted)), OTHER_FIELDS], 0)

    def count(self, path: str) -> None:
        """One field was put right; `path` as `Difference` has it."""
        name = field_name(path)
        self._counts[name if name in self._counts else OTHER_FIELDS] += 1

    def families(self) -> Iterator[Metric]:
        """The counts."""
        family = CounterMetricFamily(
            "memcached_operator_repairs_total",
            "Fields of Deployments that somebody else had changed and the operator put right.",
            labels=("field",),
        )
        for name, number in self._counts.items():
            family.add_metric((name,), number)
        yield family


def contested_family(contested: int) -> Metric:
    """How many Memcacheds are contested."""
    return GaugeMetricFamily(
        "memcached_operator_contested_memcacheds",
        "Memcacheds of which another client rewrites a field in a loop; the log says which and who.",
        value=contested,
    )


class MemcachedCaches(Protocol):
    """What is read of `reporter.Caches`."""

    @property
    def memcacheds(self) -> Store[MemcachedRecord]: ...
    @property
    def pods(self) -> Store[PodRecord]: ...


def memcached_families(caches: MemcachedCaches) -> Iterator[Metric]:
    """Desired and ready servers of each Memcached that there is; one whose specification is wrong desires none."""
    labels = ("namespace", "name")
    memcacheds = [each for key in caches.memcacheds.keys() if (each := caches.memcacheds.get(key)) is not None]  # noqa: SIM118
    desired_servers = GaugeMetricFamily(
        "memcached_operator_memcached_desired_servers",
        "Servers that a Memcached's specification asks for.",
        labels=labels,
    )
    ready_servers = GaugeMetricFamily(
        "memcached_operator_memcached_ready_servers", "Servers of a Memcached that are ready.", labels=labels
    )
    for each in memcacheds:
        if (size := _size(each)) is not None:
            desired_servers.add_metric(each.key, size)
        ready_servers.add_metric(each.key, _ready(each, caches.pods))
    yield from (desired_servers, ready_servers)


def _size(memcached: MemcachedRecord) -> int | None:
    try:
        return read_spec(memcached.spec).size
    except InvalidSpec:
        return None


def _ready(memcached: MemcachedRecord, pods: Store[PodRecord]) -> int:
    return sum(1 for pod in pods.by_index("memcached", memcached.key) if pod.active and pod.ready)
