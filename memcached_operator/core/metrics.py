"""Metrics of Memcacheds: their conditions, repairs, and on request how many servers each has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

from memcached_operator.api.reading import read_spec
from memcached_operator.api.status import OCCASIONAL_CONDITIONS, OWNED_CONDITIONS, Reason, stored_status
from memcached_operator.core.objects.labels import MemcachedOwner
from memcached_operator.core.objects.owned_kind import Known, OwnedKind, auxiliary_objects
from memcached_operator.core.objects.owned_object import Manifest, without_names
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.core.observed.caches import Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from operator_runtime import Condition, field_name, field_names

OTHER_FIELDS = "other"
# No owned reason: of a condition that is not there yet, and of one that another client wrote.
NO_REASON, OTHER_REASON = "none", "other"
_STATUSES = frozenset(("True", "False", "Unknown"))
_REASONS = frozenset(each.value for each in Reason)


class RepairCounts:
    """Counts of repairs, by kind and field: what other clients changed in owned objects.

    A series comes with its first repair: most never do, and there are some 200. The fields are those of a desired
    object; whatever is none of them counts as `OTHER_FIELDS`, so that no other client's label becomes a series.
    """

    def __init__(self, kinds: Iterable[OwnedKind]) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._known = {(kind, name) for kind, desired in _examples(kinds).items() for name in field_names(desired)}

    def count(self, kind: str, path: str) -> None:
        """Count a field that was repaired; `path` as `Difference` has it."""
        name = field_name(path)
        self._counts[kind, name if (kind, name) in self._known else OTHER_FIELDS] += 1

    def families(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "memcached_operator_repairs_total",
            "Fields of owned objects that another client had changed and the operator restored.",
            labels=("kind", "field"),
        )
        for (kind, name), number in sorted(self._counts.items()):
            family.add_metric((kind, name), number)
        yield family


def _examples(kinds: Iterable[OwnedKind]) -> Mapping[str, Manifest]:
    """An object of each kind, without what names it, as a Memcached desires it."""
    owner = MemcachedOwner("name", "namespace", "uid")
    spec = read_spec(b'{"size": 2, "networkPolicy": {"ingress": []}, "discovery": {"configMap": {}}}')
    manifests = (
        desired_workload("Deployment", owner, 1, "image"),
        desired_workload("StatefulSet", owner, 1, "image"),
        *auxiliary_objects(kinds, owner, spec, Known()),
    )
    return {each.kind or "": without_names(each) for each in manifests}


def contested_family(contested: int) -> Metric:
    return GaugeMetricFamily(
        "memcached_operator_contested_memcacheds",
        "Memcacheds of which another client keeps changing a field; the log names the field and the client.",
        value=contested,
    )


def condition_family(memcacheds: Iterable[MemcachedRecord]) -> Metric:
    """Count the Memcacheds by owned condition, status and reason.

    For each condition the numbers add up to that of all Memcacheds: one that has no such condition yet counts as
    Unknown for the reason `NO_REASON`. `OCCASIONAL_CONDITIONS` count only where they stand. Foreign conditions do not
    count, and a foreign reason is `OTHER_REASON`.
    Statuses are decoded at each call, some 6 us each, so that nothing is kept of them.
    """
    family = GaugeMetricFamily(
        "memcached_operator_memcacheds",
        "Memcacheds by type, status and reason of a condition.",
        labels=("condition", "status", "reason"),
    )
    counts: Counter[tuple[str, str, str]] = Counter()
    for memcached in memcacheds:
        found = {each.type: each for each in stored_status(memcached.status).conditions or ()}
        for type_ in (*OWNED_CONDITIONS, *(each for each in OCCASIONAL_CONDITIONS if each in found)):
            counts[_labels(type_, found.get(type_))] += 1
    for labels, number in sorted(counts.items()):
        family.add_metric(labels, number)
    return family


def _labels(type_: str, condition: Condition | None) -> tuple[str, str, str]:
    if condition is None:
        return type_, "Unknown", NO_REASON
    status = condition.status if condition.status in _STATUSES else "Unknown"
    return type_, status, condition.reason if condition.reason in _REASONS else OTHER_REASON


def memcached_families(caches: Caches) -> Iterator[Metric]:
    """Desired and ready servers of each Memcached that there is; one whose specification is wrong desires none."""
    labels = ("namespace", "name")
    desired_servers = GaugeMetricFamily(
        "memcached_operator_memcached_desired_servers",
        "Servers that a Memcached specifies.",
        labels=labels,
    )
    ready_servers = GaugeMetricFamily(
        "memcached_operator_memcached_ready_servers", "Servers of a Memcached that are ready.", labels=labels
    )
    for each in list(caches.memcacheds.values()):
        if (spec := each.readable_spec) is not None:
            desired_servers.add_metric(each.key, spec.size)
        ready = sum(pod.active and pod.ready for pod in caches.pods_of(each.key))
        ready_servers.add_metric(each.key, ready)
    yield from (desired_servers, ready_servers)
